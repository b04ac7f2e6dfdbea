"""What a client knows about a place it wants or has inside: the seat, and the holds on it.

A *seat* is one ticket of this client: first it is asked for, then it is inside and kept alive by the keeper. A *hold*
is what somebody wants or has of it: one at a time with a lock that is passed on inside the process (each with a fence
of its own), several at once with readers who came together.

Loss is a state, not a log line. `deadline` counts from the client's clock before the request that the answer rests on,
less a margin, so `lost` turns true before the store could give the seat away, whatever happens to the keeper. Once
seen, it is final: nobody is told "lost" and then "held" again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Hashable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Literal

from ..backends.contract import NEVER as NEVER
from ..backends.contract import Answer, Event
from ..errors import LeaseLost, LossReason, NotHeld
from .pickling import NotPickled
from .wish import Wish

if TYPE_CHECKING:
    from ..pool import On
    from .desk import Desk


class Seat:
    """One ticket. Slots: what is read ten times in a turn is worth setting once."""

    __slots__ = (
        "admitted", "ahead", "answer", "asked", "cap", "cut", "deadline", "doubtful", "failed", "fence", "filed",
        "given", "going", "holds", "leader", "lease", "leaving", "left", "line", "lowered", "margin", "name", "order",
        "place", "reason", "renew_at", "sent", "story", "ticket", "waited", "watched", "weight", "wish",
    )  # fmt: skip

    hears = True  # the store knows where to send it a hint

    def __init__(self, wish: Wish, ticket: str, skew: float, filed: object = None) -> None:
        self.wish = wish
        self.ticket = ticket + wish.handle if wish.handle else ticket
        self.name = wish.name
        self.weight = wish.weight
        self.lease = wish.lease
        self.margin = wish.lease / 10 + skew
        self.filed = filed or ticket  # where the desk has it: under what others who want the same look for

        # While it is asked for
        self.leader: Hold | None = None  # who asks for it
        self.line: deque[Hold] | None = None  # those who stand by and want the same, in the order in which they came
        self.sent = False  # the store may know this ticket
        self.doubtful = False  # an Enter of this ticket may still be under way, even if a later one was answered
        self.waited = False  # the store has put it in line
        self.answer: Answer | None = None  # one that the leader has not looked at yet
        self.place = 0
        self.ahead = 0

        # While it is ours
        self.holds: list[Hold] = []
        self.fence = 0  # the first of its block: renewals name it. 0: it is not inside
        self.given = 0  # how often it has been passed on
        self.lowered = False  # by a downgrade, whose message may not have arrived: renewals repeat the weight
        self.deadline = 0.0
        self.asked = 0.0  # the client's clock before the last request whose reply showed it inside
        self.renew_at = NEVER
        self.cap = NEVER  # when the present holder's max_hold ends
        self.cut = False  # its lease may have become shorter: nothing makes it longer any more
        self.failed = 0.0  # when the store could not be asked to renew it
        self.admitted = 0.0
        self.watched = False
        self.leaving = False
        self.going = 0.0  # when its Leave was sent for the first time
        self.left = False
        self.reason: LossReason | Literal[""] = ""  # why it was lost
        self.story = ""
        self.order: On | None = None  # of an item of a pool: how it is let go

    def confirm(self, at: float, left: int) -> None:
        """The store said, to a request sent at `at`, that so many microseconds are left."""
        self.asked = at
        seconds = left / 1e6
        if seconds > self.lease:
            seconds = self.lease
        margin = self.margin
        if margin > seconds / 4:
            margin = seconds / 4
        deadline = at + seconds - margin
        if deadline > self.deadline:
            self.deadline = deadline
            self.renew_at = at + seconds / 3

    def shorten(self, at: float, lease: float) -> None:
        """From `at` on its lease is shorter, or may be: no older or later word makes it last longer."""
        self.cut = True
        self.lease = lease
        self.deadline = min(self.deadline, at + lease - min(self.margin, lease / 2))
        self.renew_at = min(self.renew_at, at + lease / 3)

    def longer(self, left: int) -> bool:
        """Whether so many microseconds mean that its lease has been extended: here, or by another client."""
        return left > self.lease * 1e6 + 1 and not self.cut

    def lengthen(self, at: float, left: int) -> None:
        """The store said, to a request sent at `at`, that its lease is longer now. A max_hold ends no sooner."""
        lease = left / 1e6
        self.margin += (lease - self.lease) / 10
        self.lease = lease
        if self.cap != NEVER:
            self.cap = max(self.cap, at + lease)

    def end(self) -> float:
        return min(self.deadline, self.cap)

    def give(self, hold: Hold, fence: int, clock: float, beside: Sequence[Hold] = ()) -> None:
        """To this one, alone or beside others. Under the desk's mutex if others may want it, too.

        A Ctrl-C may come between any two lines: the last one is what counts.
        """
        wish = hold._wish
        hold._seat = self
        hold._since = clock
        hold.fence = fence
        self.cap = NEVER if wish.max_hold is None else clock + wish.max_hold
        if wish.on_lost is not None:
            self.watched = True
        self.holds = [*beside, hold]


class Attached(Seat):
    """One that was taken over by its ticket: in the store nobody stands behind it."""

    __slots__ = ()
    hears = False


NOWHERE = Seat(Wish("", 0, 1, 0.0), "", 0.0)
"""Where somebody sits who has no seat yet."""


class Hold(NotPickled):
    """What somebody wants, and then has: the part of a lease that both faces share."""

    __slots__ = (
        "__weakref__", "_by", "_desk", "_entered", "_event", "_home", "_reason", "_released", "_seat", "_since",
        "_warn_at", "_who", "_wish", "fence",
    )  # fmt: skip

    def __init__(self, desk: Desk, wish: Wish, who: Hashable = None) -> None:
        self._desk = desk
        self._wish = wish
        self._who = who  # the thread or task
        self._seat = NOWHERE
        self._since = 0.0
        self.fence = 0
        """Greater than every number given out before for this name. Hand it to what you protect: docs/fences.md."""
        self._released = False
        self._reason: LossReason | Literal[""] = ""
        self._home: list[Hold] | None = None
        self._entered: tuple[FrameType, int] | None = None  # where its `with` stands
        self._by: object = None  # what it was entered by
        self._event: Event | None = None  # of one who stands by
        self._warn_at: float | None = None  # it waits without limit for what it holds itself: when to say so

    @property
    def name(self) -> str:
        return self._wish.name

    @property
    def _what(self) -> str:
        """How it is called in a sentence."""
        return repr(self.name)

    @property
    def ticket(self) -> str:
        return self._seat.ticket

    @property
    def owner(self) -> str:
        return self._desk.owner

    @property
    def _where(self) -> str:
        """The file and line of its `with`."""
        if self._entered is None:
            return "?"
        frame, instruction = self._entered
        code = frame.f_code
        line = next((line for start, end, line in code.co_lines() if start <= instruction < end), None)
        return f"{code.co_filename.rpartition('/')[2]}:{line or '?'}"

    @property
    def since(self) -> float:
        """When it was acquired, as time.time() tells it."""
        return time.time() - (self._desk.clock() - self._since)

    @property
    def lost(self) -> bool:
        """Whether it has been lost. Reads the clock, asks nobody, and once true stays true."""
        if self._reason:
            return True
        if self._released:
            return False
        seat = self._seat
        if not seat.reason and self._desk.clock() < (seat.deadline if seat.deadline < seat.cap else seat.cap):
            return False
        self._desk.lose(seat)
        self._reason = seat.reason
        return True

    @property
    def held(self) -> bool:
        """Whether it is held: neither released nor lost. A release that did not reach the store may have, so: False."""
        return not self._released and not self._seat.leaving and not self.lost

    @property
    def reason(self) -> LossReason | None:
        """Why it was lost: expired, evicted, unreachable, max_hold, forked, store_reset; None if it was not."""
        return self._reason or None if self.lost else None

    def remaining(self) -> float:
        """For how many seconds it is certainly still held if the store is never reached again; 0.0 when it is not.

        In the first moments after waiting in line that may be a second or two: until the keeper has confirmed it.
        """
        if not self.held:
            return 0.0
        return max(self._seat.end() - self._desk.clock(), 0.0)

    def ensure_held(self) -> None:
        """Nothing, or LeaseLost (or NotHeld after a release). Call it before each step that must not happen twice."""
        if self._released or (self._seat.leaving and not self._reason):
            raise NotHeld(f"The lease on {self._what} was released.")
        if self.lost:
            raise self._loss()

    def _loss(self) -> LeaseLost:
        error = LeaseLost(f"The lease on {self._what} was lost: {self._seat.story or self._reason}.")
        error.reason = self._reason or self._seat.reason or "expired"
        return error

    def _told_lost(self) -> None:
        """Called once, when the loss is noticed."""

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        state = "released" if self._released else "lost" if self.lost else f"{self.remaining():.1f} s left"
        return f"<{type(self).__name__} {self._what} fence {self.fence}, {state}>"
