"""A grant, and the holds on it.

A *grant* is one ticket of this client: first it is requested, then it is held and the keeper renews it. A *hold* is the
share of one thread or task in it: one at a time for a lock that is passed on inside the process (each with a fence of
its own), several at once for readers that waited together.

A loss is a state, not a log line. `deadline` counts from the client's clock before the request of the last reply, less
a margin, so `lost` turns True before the store could grant the lock to another client, whatever happens to the keeper.
Once seen, it is final: a hold is never "lost" and then "held" again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Hashable, Sequence
from os import getpid
from types import FrameType
from typing import TYPE_CHECKING, Literal, NamedTuple

from .. import forks
from ..errors import LeaseLost, LossReason, NotHeld
from ..stores.base import NEVER as NEVER
from ..stores.base import Event
from .grant_state import LOST, QUEUED, RELEASED, RELEASING, REQUESTING
from .refuse_pickling import NotPickled
from .request import LockRequest

if TYPE_CHECKING:
    from .session import Session


class Loss(NamedTuple):
    reason: LossReason
    detail: str


class Grant:
    """The grant of one ticket. It has slots, because its attributes are read often."""

    __slots__ = (
        "asked", "cap", "cut", "deadline", "doubtful", "failed", "fence", "holds", "lease", "loss", "place", "queue",
        "renew_at", "request", "since", "state", "ticket", "weight",
    )  # fmt: skip

    is_notified = True  # the store knows where to send its wake-ups

    def __init__(self, request: LockRequest, ticket: str, leader: LeaseBase | None = None) -> None:
        self.request = request
        self.ticket = ticket + request.handle if request.handle else ticket
        self.state = REQUESTING
        # The hold that asks, then those that hold.
        self.holds: tuple[LeaseBase, ...] = (leader,) if leader is not None else ()
        self.queue: deque[LeaseBase] | None = None  # the holds that wait for the same grant, in the order of arrival
        self.doubtful = False  # a request with this ticket may still be under way, even if a later one was answered
        self.place: tuple[int, int] | None = None  # in the queue of the store: how many are ahead, and its number
        self.weight = request.weight  # lower than that of the request after a downgrade: renewals repeat it
        self.lease = request.lease
        self.cut = False  # its lease may have become shorter: nothing makes it longer any more
        self.fence = 0  # the first of its block: renewals contain it. 0: not granted
        # When it was granted. Before that: when the last request that was answered by Queued was sent. While it is
        # RELEASING: when its Release was sent for the first time.
        self.since = 0.0
        self.deadline = 0.0
        self.cap = NEVER  # when the present holder's max_hold ends
        self.renew_at = NEVER
        self.asked = 0.0  # the client's clock before the last request whose reply showed the grant
        self.failed = 0.0  # when the store could not be asked to renew it
        self.loss: Loss | None = None

    @property
    def name(self) -> str:
        return self.request.name

    @property
    def reason(self) -> LossReason | Literal[""]:
        """The reason of its loss."""
        return self.loss.reason if self.loss is not None else ""

    @property
    def detail(self) -> str:
        """Return the key of an item, '' of a lock; also '' if another thread has just released it."""
        return next((hold._detail for hold in self.holds), "")

    @property
    def watched(self) -> bool:
        """True if one of its holds must learn of a loss in time."""
        return any(hold._watched for hold in self.holds)

    @property
    def known(self) -> bool:
        """True if the store may know this ticket."""
        return self.doubtful or self.state is not REQUESTING or self.fence > 0

    def confirm(self, at: float, left: int, skew: float) -> None:
        """Note that the reply to a request sent at `at` gave it this many microseconds."""
        self.asked = at
        seconds = min(left / 1e6, self.lease)
        margin = min(self.lease / 10 + skew, seconds / 4)
        deadline = at + seconds - margin
        if deadline > self.deadline:
            self.deadline = deadline
            self.renew_at = at + seconds / 3 if self.request.renews else NEVER

    def shorten(self, at: float, lease: float, skew: float) -> None:
        """Note that from `at` on its lease may be shorter: no other reply makes it longer."""
        self.cut = True
        self.deadline = min(self.deadline, at + lease - min(self.lease / 10 + skew, lease / 2))
        self.lease = lease
        self.renew_at = min(self.renew_at, at + lease / 3)

    def longer(self, left: int) -> bool:
        """Return True if this many microseconds mean that its lease was extended, here or by another client."""
        return left > self.lease * 1e6 + 1 and not self.cut

    def lengthen(self, at: float, left: int) -> None:
        """Note that the reply to a request sent at `at` gave it a longer lease. A max_hold ends no sooner."""
        self.lease = left / 1e6
        if self.cap != NEVER:
            self.cap = max(self.cap, at + self.lease)

    def end(self) -> float:
        return min(self.deadline, self.cap)

    def give(self, hold: LeaseBase, fence: int, clock: float, beside: Sequence[LeaseBase] = ()) -> None:
        """Give the grant to this hold, alone or beside others. Under the session's mutex if others may want it, too.

        A Ctrl-C may come between any two lines: the last one is what counts.
        """
        request = hold._request
        hold._grant = self
        hold._since = clock
        hold.fence = fence
        self.cap = NEVER if request.max_hold is None else clock + request.max_hold
        self.holds = (*beside, hold)


class Attached(Grant):
    """A grant that was attached by its ticket: in the store it has no listener."""

    __slots__ = ()
    is_notified = False


NOWHERE = Grant(LockRequest("", 0, 1, 0.0), "")
"""The grant of a hold that has none yet."""
NOWHERE.state = RELEASED


class LeaseBase(NotPickled):
    """A request and then a hold: the part of a lease that threads and asyncio share."""

    __slots__ = (
        "__weakref__", "_began", "_by", "_closed_until", "_ended", "_entered", "_event", "_grant", "_home",
        "_instruction", "_outer", "_place", "_reason", "_released", "_request", "_session", "_since", "_warn_at",
        "_watched", "_who", "fence",
    )  # fmt: skip

    _closed_until: float  # after a release that keeps it closed (at_least): surely until then, by the client's clock
    _instruction: int  # of its `with`, in that frame
    _outer: LeaseBase | None  # the one that the same thread or task has entered before

    def __init__(self, session: Session, request: LockRequest, who: Hashable = None) -> None:
        self._session = session
        self._request = request
        self._who = who  # the thread or task
        self._grant = NOWHERE
        self._since = 0.0
        self._began = 0.0  # the client's clock when it began to wait; 0: it was acquired at once
        self._place = 0  # its first position in a queue; 0: it has not waited in one
        self._ended = False  # its last event was emitted
        self.fence = 0
        """Greater than every number given out before for this name. Hand it to what you protect: docs/fences.md."""
        self._released = False
        self._reason: LossReason | Literal[""] = ""
        self._home: list[LeaseBase] | None = None
        self._entered: FrameType | None = None  # the frame of its `with`; _instruction and _outer are set then, too
        self._by: object = None  # what it was entered by
        self._event: Event | None = None  # of a hold in the local queue
        self._warn_at: float | None = None  # it waits without limit for what it holds itself: when to warn
        self._watched = request.on_lost is not None

    @property
    def _leads(self) -> bool:
        """True if this is the hold that asks for its grant."""
        grant = self._grant
        return self in grant.holds and (grant.state is REQUESTING or grant.state is QUEUED)

    @property
    def _has(self) -> bool:
        """True if its grant was given to it, whatever has become of it since."""
        grant = self._grant
        return grant.fence > 0 and self in grant.holds and grant.state is not REQUESTING and grant.state is not QUEUED

    @property
    def name(self) -> str:
        return self._request.name

    @property
    def _what(self) -> str:
        """Return its name in a sentence."""
        return repr(self.name)

    @property
    def _detail(self) -> str:
        """Return what events report beside its name."""
        return ""

    @property
    def ticket(self) -> str:
        return self._grant.ticket

    @property
    def owner(self) -> str:
        return self._session.owner

    @property
    def _where(self) -> str:
        """Return the file and line of its `with`."""
        frame = self._entered  # read once: another thread may leave it
        if frame is None:
            return "?"
        code, instruction = frame.f_code, self._instruction
        line = next((line for start, end, line in code.co_lines() if start <= instruction < end), None)
        return f"{code.co_filename.rpartition('/')[2]}:{line or '?'}"

    @property
    def since(self) -> float:
        """The time.time() at which it was acquired."""
        return time.time() - (self._session.clock() - self._since)

    @property
    def lost(self) -> bool:
        """True if it has been lost. Reads the clock, does no I/O, and once True stays True."""
        if getpid() != forks.process:
            forks.notice()
        if self._reason:
            return True
        if self._released:
            return False
        grant = self._grant
        end = grant.deadline if grant.deadline < grant.cap else grant.cap
        if grant.state is not LOST and self._session.clock() < end:
            return False
        self._session.lose(grant)
        self._reason = grant.reason
        return True

    @property
    def held(self) -> bool:
        """True if it is neither released nor lost. False also after a release that may not have reached the store."""
        return not self._released and self._grant.state is not RELEASING and not self.lost

    @property
    def reason(self) -> LossReason | None:
        """The reason of its loss: expired, evicted, unreachable, max_hold, forked, store_reset; None if it was not."""
        return self._reason or None if self.lost else None

    def remaining(self) -> float:
        """Return for how many seconds it is held even if the store is never reached again; 0.0 if it is not held.

        In the first moments after waiting in the queue that may be a second or two: until the keeper has confirmed it.
        """
        if not self.held:
            return 0.0
        return max(self._grant.end() - self._session.clock(), 0.0)

    def ensure_held(self) -> None:
        """Raise LeaseLost if it is lost, NotHeld after a release. Call it before a step that must not happen twice."""
        if self._released or (self._grant.state is RELEASING and not self._reason):
            raise NotHeld(f"The lease on {self._what} was released.")
        if self.lost:
            raise self._loss()

    def _loss(self) -> LeaseLost:
        loss = self._grant.loss
        error = LeaseLost(f"The lease on {self._what} was lost: {loss.detail if loss is not None else self._reason}.")
        error.reason = self._reason or self._grant.reason or "expired"
        return error

    def _notice_loss(self) -> None:
        """Called once, when the loss is noticed."""

    def __repr__(self) -> str:
        state = "released" if self._released else "lost" if self.lost else f"{self.remaining():.1f} s left"
        return f"<{type(self).__name__} {self._what} fence {self.fence}, {state}>"
