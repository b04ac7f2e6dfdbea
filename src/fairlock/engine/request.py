"""Requests: the numbers that make a kind of lock, the options of a hold, and the messages that are sent for it.

Locks and items of pools have one engine. They differ in the messages that are made here and in pool_request.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..rules.locks import EXCLUSIVE, Acquire, Detach, Granted, Queued, Refused, Release, Renew
from ..rules.locks.state import CONFIRM_WINDOW

if TYPE_CHECKING:
    from .events import Measured
    from .grant import Grant, LeaseBase
    from .session import Session

PASSES = 32
BLOCK = PASSES + 1  # fences: one for the first holder, one for each to which it is passed on

named: Any = tuple.__new__  # makes a named tuple in half the time of its own constructor


class LockRequest:
    """A request for a lock. Made once for many acquires, so everything that follows from it is computed here."""

    __slots__ = (
        "at_least",
        "block",
        "capacity",
        "ended",
        "fair",
        "granted",
        "handle",
        "handoff",
        "key",
        "known",
        "lease",
        "lease_us",
        "max_hold",
        "measured",
        "message",
        "name",
        "note",
        "on_asked",
        "on_lost",
        "plain",
        "pool",
        "renews",
        "third",
        "together",
        "usable",
        "weight",
        "window",
        "window_usable",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        capacity: int,  # 0 = as stored
        weight: int,
        lease: float,
        fair: bool = True,
        handoff: bool = True,
        note: str = "",
        max_hold: float | None = None,
        at_least: float | None = None,
        on_lost: Callable[[LeaseBase], object] | None = None,
        handle: str = "",
        on_asked: Callable[[LeaseBase], object] | None = None,
    ) -> None:
        self.name = name
        self.pool = False
        self.message: type[Any] = Acquire
        self.granted: type[Any] = Granted
        self.ended: Any = Granted  # the replies to a release that show that it was held until then, beside Released
        self.renews = True
        self.capacity = capacity
        self.weight = weight
        self.lease = lease
        self.lease_us = int(lease * 1e6)
        self.third = lease / 3  # when it is renewed
        self.usable = lease - lease / 10  # what is left of it less the margin, without the skew of a store
        self.window = min(self.lease_us, CONFIRM_WINDOW)  # microseconds for which it is held unconfirmed
        self.window_usable = self.window / 1e6 - min(lease / 10, self.window / 4e6)
        self.fair = fair
        self.handoff = handoff
        self.note = note
        self.max_hold = max_hold
        self.at_least = at_least
        self.on_lost = on_lost
        self.on_asked = on_asked
        self.handle = handle  # the end of its tickets, by which others find it with a secret: see lease_handles.py
        self.key: str | None = None
        """Requests with the same key share a grant: same name, weight and lease. None: it needs a grant of its own.
        It is a text, because Python computes the hash of a text only once. No ticket begins with a space."""
        self.block = 1
        shared = capacity == EXCLUSIVE and fair and handoff and at_least is None and not handle
        if shared and (weight == EXCLUSIVE or max_hold is None):
            self.key = f" {weight} {lease} {name}"
            if weight == EXCLUSIVE:
                self.block = BLOCK
        self.together = self.key is not None and weight != EXCLUSIVE  # its waiters are granted it together
        self.plain = max_hold is None and at_least is None and not self.together  # see accept_batch.py
        self.measured: Measured | None = None  # what metrics keep of its holds; set by the first of them
        self.known: tuple[Any, ...] = None, None, (), ()
        """The listener and the owner of the last message, and all of its fields but the ticket: of one that waits, and
        of a try. Read it once: another thread may replace it."""

    def but(self, **changes: Any) -> LockRequest:
        """Return a copy with other values."""
        code = LockRequest.__init__.__code__
        same = {word: getattr(self, word) for word in code.co_varnames[1 : code.co_argcount]}
        return LockRequest(**(same | changes))

    # -- messages

    def fields(self, trying: bool, listener: str, owner: str) -> tuple[Any, ...]:
        """Return the fields of the message behind its ticket, and keep them for the next one."""
        waiting, tried = self._fields(True, listener, owner), self._fields(False, listener, owner)
        self.known = listener, owner, waiting, tried
        return tried if trying else waiting

    def _fields(self, wait: bool, listener: str, owner: str) -> tuple[Any, ...]:
        return self.capacity, self.weight, self.lease_us, wait, self.fair, self.block, listener, owner, self.note

    def release_message(self, session: Session, grant: Grant, hold: LeaseBase) -> Any:
        """Return the message that gives this grant up; with `at_least` it may have to stay closed for a while."""
        if self.at_least is not None and self.stay(hold, session.clock()) > 0:
            return Detach(grant.ticket, grant.fence, max(int(self.at_least * 1e6), 1), closed=True)
        return Release(grant.ticket, grant.doubtful or session.backend.may_duplicate, hold.fence)

    def renewal_message(self, grant: Grant, lease: int | None = None, body: str | None = None) -> Any:
        """Return the message that renews this grant. lease: the microseconds that it lasts from now on, if that is
        longer; body: the new one of an item."""
        return Renew(grant.ticket, grant.fence, grant.weight if grant.weight != self.weight else None, lease)

    def withdraw_message(self, grant: Grant, leave_tombstone: bool, lease: int | None = None) -> Any:
        """Return the message for a pending release: the ticket is given up, whatever it has."""
        return Release(grant.ticket, leave_tombstone, None, lease)

    def stay(self, hold: LeaseBase, clock: float) -> float:
        """Return for how many seconds it must stay closed after a release now."""
        return 0.0 if self.at_least is None else self.at_least - (clock - hold._since)

    # -- replies

    def waits_after(self, reply: Any, trying: bool) -> bool:
        """Return True if this reply means that the request waits, False if it is over."""
        return isinstance(reply, Queued)

    def renewed(self, reply: Any, grant: Grant) -> bool:
        """Return True if this reply to a renewal shows that the grant is held."""
        return isinstance(reply, Granted) and reply.fence == grant.fence

    def ends_exactly(self, hold: LeaseBase) -> bool:
        """Return True if a message that was sent before has the same reply again: any other reply is then a loss."""
        return False

    def refusal(self, reply: Any) -> Exception | None:
        """Return the error for a request that is over; None: it was only not granted in time."""
        from .refusal_errors import refusal

        return None if isinstance(reply, Refused) else refusal(self, reply)
