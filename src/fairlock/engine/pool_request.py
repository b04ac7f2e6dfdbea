"""Requests for an item of a pool, and what is known about an item that is held.

A held item is a grant, like a held lock: the same engine acquires, renews and releases it, and it is lost in the same
way. Only the messages differ.
"""

from __future__ import annotations

from typing import Any

from ..errors import ConfigError, LockTimeout, NotHeld, StoreError
from ..rules.pools import (
    Absent,
    Busy,
    Finish,
    Finished,
    Give,
    Given,
    Look,
    Looked,
    Nothing,
    On,
    Queued,
    Quit,
    Remove,
    Removed,
    Seek,
    Taken,
    Touch,
    Touched,
)  # fmt: skip
from . import pool_admin, with_block
from .grant import Grant, LeaseBase
from .grant_state import QUEUED, REQUESTING
from .request import LockRequest, named
from .session import Session

BACK_OFF = 5.0  # seconds for which an item rests that a failed body gave back

End = Give | Finish | Remove
ENDED = (Given, Finished, Removed)
ENDS = {Give: "given back", Finish: "finished", Remove: "removed"}


class ItemRequest(LockRequest):
    """A request for an item of a pool. Made once for many takes."""

    __slots__ = ("wanted",)

    def __init__(self, pool: str, lease: float, wanted: str = "", renews: bool = True, note: str = "") -> None:
        super().__init__(pool, 0, 1, lease, note=note)
        self.wanted = wanted  # a key; '': any item
        self.pool, self.message, self.granted, self.ended, self.renews = True, Seek, Taken, ENDED, renews
        self.plain = False

    def _fields(self, wait: bool, listener: str, owner: str) -> tuple[Any, ...]:
        return self.lease_us, wait, listener, owner, self.note, self.wanted, False

    def release_message(self, session: Session, grant: Grant, hold: Any) -> On:
        return hold._end or On(hold._key, Give(grant.ticket, hold.fence))

    def renewal_message(self, grant: Grant, lease: int | None = None, body: str | None = None) -> On:
        return On(grant.detail, Touch(grant.ticket, grant.fence, body, lease))

    def withdraw_message(self, grant: Grant, leave_tombstone: bool, lease: int | None = None) -> On | Quit:
        if grant.state is REQUESTING or grant.state is QUEUED:
            return Quit(grant.ticket, self.lease_us, self.wanted)
        hold: Any = grant.holds[0]
        return hold._end or On(hold._key, Give(grant.ticket, grant.fence))

    def waits_after(self, reply: Any, trying: bool) -> bool:
        return isinstance(reply, Queued) or (not trying and isinstance(reply, Busy | Absent | Nothing))

    def renewed(self, reply: Any, grant: Grant) -> bool:
        return isinstance(reply, Touched)

    def ends_exactly(self, hold: LeaseBase) -> bool:
        """Return whether its end is final: an item that is done or removed stays so; one that was given back may belong
        to another worker since."""
        return isinstance(hold, ItemBase) and hold._end is not None and type(hold._end.command) is not Give

    def refusal(self, reply: Any) -> Exception | None:
        if isinstance(reply, Finished):
            what = f"{self.wanted!r} of {self.name!r}"
            return ConfigError(f"{what} is done. To process it again, remove it and then add it.")
        return None


class ItemBase(LeaseBase):
    """An acquired item: the part that threads and asyncio share."""

    # Most of these are never set, and a method that sets them takes longer than to find them here.
    _key = ""
    _text = ""
    _end: On | None = None  # the message that gives it up; by default it is given back
    _done = False  # a clean `with` block finishes it
    _last_body: str | None = None  # a clean `with` block that gives it back stores this
    _back_off = 0.0

    @property
    def _what(self) -> str:
        return f"{self.key!r} of {self.name!r}"

    @property
    def _detail(self) -> str:
        return self._key

    @property
    def key(self) -> str:
        """The key of the item in its pool; `name` is the name of the pool."""
        return self._key

    @property
    def body(self) -> Any:
        """The body as it was acquired, or as it was updated since. A new copy each time."""
        return pool_admin.body(self._text, self.name, self._key)

    def _ends_by(self, end: End, quiet: bool = False) -> None:
        """Choose how it is given up. A second time does nothing; but to finish or remove an item that was given up in
        another way raises NotHeld, or LeaseLost."""
        if not self._released:
            if not self._reason:
                self._end = named(On, (self._key, end))
        elif not quiet and not isinstance(end, Give):
            if self._reason and self._reason != "forked":
                raise self._loss()
            before = Give if self._end is None else type(self._end.command)
            if before is not type(end):
                ended = ENDS[before]
                raise NotHeld(f"{self._what} was {ended}, so it cannot be {ENDS[type(end)]}. Acquire it again.")

    def _end_of_block(self, error: BaseException | None) -> End:
        """Return how a `with` block ends: a clean one has finished the item, or gives it back; a failed one gives it
        back for later."""
        if self._done and error is None:
            return Finish(self._grant.ticket, self.fence)
        if error is None:
            return Give(self._grant.ticket, self.fence, 0, self._last_body)
        return Give(self._grant.ticket, self.fence, int(self._back_off * 1e6))


async def leave(session: Session, hold: ItemBase, error: BaseException | None) -> None:
    """Leave `with`, as a lock does."""
    hold._ends_by(hold._end_of_block(error), quiet=True)
    await with_block.leave(session, hold, error)


async def timed_out(session: Session, hold: LeaseBase, limit: float) -> LockTimeout:
    """Return the LockTimeout of a wait that has ended, with its sentence."""
    request = hold._request
    assert isinstance(request, ItemRequest)
    place = hold._grant.place[0] + 1 if hold._grant.place is not None else None
    there = ""
    try:
        if request.wanted:
            answer = await session.call_pool(request.name, On(request.wanted, Look()))
            item = answer.reply.item if isinstance(answer.reply, Looked) else None
            there = "it is not there" if item is None else f"taken by {item.owner}" if item.ticket else "it rests"
        else:
            counts = await session.pools().count(request.name)
            there = ", ".join(f"{number} {state}" for state, number in counts.items() if number) or "the pool is empty"
    except StoreError:
        pass
    waited = f"; you waited {limit:g} s" if limit else ""
    number = f", position {place} in the queue" if place is not None and limit else ""
    wanted = f"{request.wanted!r} of {request.name!r} could not be acquired"
    what = wanted if request.wanted else f"No item of {request.name!r} is free"
    error = LockTimeout(f"{what} ({there or 'no answer'}){waited}{number}.")
    error.name, error.place, error.waited = request.name, place, limit
    return error
