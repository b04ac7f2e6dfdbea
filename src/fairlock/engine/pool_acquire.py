"""Acquire an item of a pool.

    seek      sends Seek until it has an item; between two of them it waits for a wake-up, at most as long as the rules
              allow
    withdraw  undoes what a cancelled or interrupted seek has done so far

pool_renewal.py renews an item; pool_release.py gives it back, finishes or removes it; fast_item.py does both without
waiting.

A held item is a grant, like a held lock: the same keeper renews it, and it is lost in the same way.
"""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Hashable
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, LockTimeout, StoreError
from ..rules.pools import (
    Absent,
    Busy,
    Finish,
    Finished,
    Give,
    Look,
    Looked,
    Nothing,
    On,
    Queued,
    Quit,
    Remove,
    Seek,
    Taken,
)
from ..rules.pools.queue import sleep_span
from .acquire import QUICKLY, RETRY_FIRST, RETRY_MOST, named
from .events import Outcome, emit, heeded, outcome_of, tell_acquired
from .grant import NEVER, Grant, LeaseBase
from .release import flush_release
from .request import LockRequest
from .session import FORGET, PendingRelease, Session

if TYPE_CHECKING:
    from ..stores.base import PoolAnswer

BACK_OFF = 5.0  # seconds for which an item rests that a failed body gave back


class PoolRequest:
    """A request for an item of a pool. Made once for many takes."""

    __slots__ = ("key", "lease", "note", "pool", "renew", "request")

    def __init__(self, pool: str, lease: float, key: str = "", renew: bool = True, note: str = "") -> None:
        self.pool = pool
        self.lease = lease
        self.key = key
        self.renew = renew
        self.note = note
        self.request = LockRequest(pool, 0, 1, lease, note=note)


class Seeker:
    """One search for an item, and its progress."""

    ticket = ""
    sent = False  # the store may know this ticket
    answer: PoolAnswer | None = None  # a reply that is not handled yet
    hold: LeaseBase | None = None
    place: int | None = None
    first_place = 0  # its first position in the queue; 0: it has not waited in it
    began = 0.0  # the client's clock when it began to wait; 0: not yet
    given_up = False
    who: Hashable = None

    def __init__(self, pool_request: PoolRequest) -> None:
        self.pool_request = pool_request

    def quit(self) -> Quit:
        """Return the message that ends the search."""
        return Quit(self.ticket, int(self.pool_request.lease * 1e6), self.pool_request.key)


class ItemGrant(Grant):
    """The grant of one item. It is never shared and exists only while it is held, so it needs little of a grant."""

    __slots__ = ("end_by", "key", "renews")

    # The attributes that never change are the same for all items.
    weight, leader, queue, answer = 1, None, None, None
    sent = doubtful = waited = lowered = cut = False
    place = ahead = given = 0

    def __init__(self, pool_request: PoolRequest, key: str, ticket: str, fence: int, skew: float) -> None:
        request = self.request = pool_request.request
        self.name = request.name
        lease = self.lease = request.lease
        self.margin = lease / 10 + skew
        self.ticket = self.filed = ticket
        self.fence = fence
        self.key = key
        self.renews = pool_request.renew
        self.end_by: Give | Finish | Remove | None = None
        self.cap = NEVER
        self.deadline = self.failed = self.going = 0.0
        self.leaving = self.left = self.watched = False
        self.reason = self.story = ""

    @property
    def order(self) -> On:  # type: ignore[override]
        """Return the command that gives it up: by default it is given back."""
        return On(self.key, self.end_by or Give(self.ticket, self.fence))

    def confirm(self, at: float, left: int) -> None:
        Grant.confirm(self, at, left)
        if not self.renews:
            self.renew_at = NEVER


async def seek(session: Session, seeker: Seeker, until: float | None) -> LeaseBase | None:
    """Return a hold on an item, or None when the time is over. `until` is the client's clock: None forever, 0 only try.

    On any exception the caller must `undo(session, seeker)`.
    """
    pool_request = seeker.pool_request
    pools = session.pools()
    seeker.began = session.clock()
    doubt = seeker.sent and seeker.answer is None  # fast_item has sent it already, and it may have arrived
    heard = False
    retry = RETRY_FIRST
    while True:
        if session.called_off and seeker in session.called_off:
            await withdraw(session, seeker, "cancelled")
            return None
        again = seeker.sent
        answer, seeker.answer = seeker.answer, None
        try:
            if answer is None:
                answer = await session.call_pool(
                    pool_request.pool, seek_message(session, seeker, until == 0, again), until or None
                )
        except StoreError as error:
            if not heard or error.refused or (until is not None and session.clock() + retry >= until):
                raise
            await session.runtime.sleep(retry)
            retry = min(retry * 2, RETRY_MOST)
            continue
        heard = True
        retry = RETRY_FIRST
        reply = answer.reply
        if isinstance(reply, Taken):
            hold = have(session, seeker, reply, answer.at)
            if hold is not None:
                return hold
            nap = 0.0  # the reply took longer than the lease: ask if it is still ours
        elif isinstance(reply, Finished):
            what = f"{pool_request.key!r} of {pool_request.pool!r}"
            raise ConfigError(f"{what} is done. To process it again, remove it and then add it.")
        elif isinstance(reply, Queued):
            if seeker.place is None:
                seeker.first_place = reply.ahead + 1
                ahead = f"{reply.ahead} ahead in the queue"
                emit(
                    session, "waiting", pool_request.pool, seeker.ticket, 0, ahead,
                    contended=True, place=seeker.first_place,
                )  # fmt: skip
            seeker.place = reply.ahead + 1
            nap = min(reply.retry_in, sleep_span(reply.ahead)) / 1e6
        else:
            assert isinstance(reply, Busy | Absent | Nothing)
            nap = min(reply.due_in if isinstance(reply, Busy) else NEVER, sleep_span(0)) / 1e6
        clock = session.clock()
        if until is not None and clock >= until:
            if until == 0 and not doubt and not answer.again and isinstance(reply, Nothing | Busy | Absent):
                seeker.sent = False  # it left nothing behind
            await withdraw(session, seeker, "timeout")
            return None
        if nap:
            nap = max(min(nap, until - clock) if until is not None else nap, 0.0005)
            try:
                await pools.wait_for_wakeup(pool_request.pool, seeker.ticket, nap)
            except StoreError:  # it cannot listen; the next Seek shows if the store can be reached
                await session.runtime.sleep(min(nap, RETRY_MOST))


def seek_message(session: Session, seeker: Seeker, trying: bool, again: bool = False) -> Seek:
    """Return the message of this search. From here on the store may know the ticket."""
    pool_request = seeker.pool_request
    ticket = seeker.ticket = seeker.ticket or session.ticket()
    seeker.sent = True
    session.seeking[ticket] = seeker
    order: Seek = named(Seek, (
        ticket, pool_request.request.lease_us, not trying, session.backend.open_listener(), session.owner,
        pool_request.note, pool_request.key, again,
    ))  # fmt: skip
    return order


def have(session: Session, seeker: Seeker, reply: Taken, at: float) -> LeaseBase | None:
    """Accept the item, unless its time is over already."""
    pool_request = seeker.pool_request
    fence, left, body, key = reply
    grant = ItemGrant(pool_request, key, seeker.ticket, fence, session.backend.skew)
    grant.confirm(at, left)
    clock = session.clock()
    if clock >= grant.deadline or session.closing:
        return None
    grant.admitted = clock
    hold: Any = session.item(session, pool_request.request, seeker.who)
    hold._text = body
    hold._done = False
    hold._back_off = 0.0
    hold._grant = grant
    hold._since = clock
    hold.fence = fence
    hold._began, hold._place = seeker.began, seeker.first_place
    grant.holds = [hold]
    seeker.hold = hold
    session.grants[grant.ticket] = grant
    session.seeking.pop(grant.ticket, None)
    if grant.renew_at < session.wake_at:
        session.occupied(grant)
    if session.on_event is not None or heeded("acquired"):
        tell_acquired(session, hold, key)
    return hold  # type: ignore[no-any-return]


def undo(session: Session, seeker: Seeker) -> Coroutine[Any, Any, None]:
    """Undo a search that has ended with an exception. Call it where the exception is handled; what it returns may run
    in another task."""
    return withdraw(session, seeker, outcome_of(sys.exception()))


async def withdraw(session: Session, seeker: Seeker, outcome: Outcome) -> None:
    """Undo what a search that ends without an item has done. Never raises an error of the store."""
    if seeker.hold is not None:
        from .pool_release import give

        await give(session, seeker.hold, quiet=True)
    elif seeker.sent:
        seeker.sent = False
        pool_request = seeker.pool_request
        with session.mutex:
            clock = session.clock()
            until = clock + max(pool_request.lease, FORGET)
            session.schedule_release(
                PendingRelease(pool_request.pool, seeker.ticket, False, clock + 1.0, until, seeker.quit())
            )
        await flush_release(session, seeker.ticket, session.clock() + QUICKLY)
    session.seeking.pop(seeker.ticket, None)
    if seeker.hold is None and not seeker.given_up:
        seeker.given_up = True
        waited, place = session.clock() - seeker.began if seeker.began else 0.0, seeker.first_place
        refused = place > 0 or outcome == "timeout"
        emit(session, "given_up", seeker.pool_request.pool, seeker.ticket, 0, "", waited, outcome, refused, place)
    if session.ended is not None:
        session.ended.set()


async def timed_out(session: Session, seeker: Seeker, limit: float) -> LockTimeout:
    """Return the LockTimeout of a wait that has ended, with its sentence."""
    pool_request = seeker.pool_request
    there = ""
    try:
        if pool_request.key:
            answer = await session.call_pool(pool_request.pool, On(pool_request.key, Look()))
            item = answer.reply.item if isinstance(answer.reply, Looked) else None
            there = "it is not there" if item is None else f"taken by {item.owner}" if item.ticket else "it rests"
        else:
            counts = await session.pools().count(pool_request.pool)
            there = ", ".join(f"{number} {state}" for state, number in counts.items() if number) or "the pool is empty"
    except StoreError:
        pass
    waited = f"; you waited {limit:g} s" if limit else ""
    number = f", position {seeker.place} in the queue" if seeker.place is not None and limit else ""
    what = (
        f"{pool_request.key!r} of {pool_request.pool!r} could not be acquired"
        if pool_request.key
        else f"No item of {pool_request.pool!r} is free"
    )
    error = LockTimeout(f"{what} ({there or 'no answer'}){waited}{number}.")
    error.name, error.place, error.waited = pool_request.pool, seeker.place, limit
    return error
