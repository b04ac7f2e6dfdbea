"""What a client knows about a place it has inside: the seat, and the holds on it.

A *seat* is one ticket inside, kept alive by the keeper. A *hold* is what somebody has of it: one at a time with a lock
that is passed on inside the process (each with a fence of its own), several at once with readers who came together.

Loss is a state, not a log line. `deadline` counts from the client's clock before the request that the answer rests on,
less a margin, so `lost` turns true before the store could give the seat away, whatever happens to the keeper. Once
seen, it is final: nobody is told "lost" and then "held" again.
"""

import time
from collections.abc import Callable, Hashable
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

from ..errors import LeaseLost, NotHeld

if TYPE_CHECKING:
    from ..pool import On
    from .desk import Desk
    from .party import Party

NEVER = float("inf")


class Wish(NamedTuple):
    """What somebody wants: the numbers that make a kind of lock, and how the hold is to be kept."""

    name: str
    capacity: int  # 0 = as stored
    weight: int
    lease: float
    fair: bool = True
    handoff: bool = True
    note: str = ""
    max_hold: float | None = None
    at_least: float | None = None
    on_lost: "Callable[[Hold], object] | None" = None


class Seat:
    """One ticket inside. What has not happened to it yet is said by the class: cheaper than twenty assignments."""

    given = 0  # how often it has been passed on
    lowered = False  # by a downgrade, whose message may not have arrived: renewals repeat the weight
    deadline = 0.0
    renew_at = 0.0
    cap = NEVER  # when the present holder's max_hold ends
    failed = 0.0  # when the store could not be asked to renew it
    admitted = 0.0
    leaving = False
    going = 0.0  # when its Leave was sent for the first time
    doubtful = False  # an Enter of its ticket may still be under way
    left = False
    reason = ""  # why it was lost
    story = ""
    watched = False
    order: "On | None" = None  # of an item of a pool: how it is let go

    def __init__(
        self,
        name: str,
        ticket: str,
        fence: int,
        block: int,
        weight: int,
        lease: float,
        skew: float,
        party: "Party | None" = None,
    ) -> None:
        self.name = name
        self.ticket = ticket
        self.fence = fence  # the first of its block: renewals name it
        self.block = block
        self.weight = weight
        self.lease = lease
        self.margin = lease / 10 + skew
        self.party = party
        self.holds: list[Hold] = []

    def confirm(self, at: float, left: int) -> None:
        """The store said, to a request sent at `at`, that so many microseconds are left."""
        seconds = min(left / 1e6, self.lease)
        deadline = at + seconds - min(self.margin, seconds / 4)
        if deadline > self.deadline:
            self.deadline = deadline
            self.renew_at = at + seconds / 3

    def shorten(self, at: float, lease: float) -> None:
        """From `at` on its lease is shorter, or may be: no older or later word makes it last longer."""
        self.lease = lease
        self.deadline = min(self.deadline, at + lease - min(self.margin, lease / 2))
        self.renew_at = min(self.renew_at, at + lease / 3)

    def end(self) -> float:
        return min(self.deadline, self.cap)


class Hold:
    """The part of a lease that both faces share: what it is, and whether it is still held."""

    _released = False
    _reason = ""
    _home: "list[Hold] | None" = None
    _entered: tuple[FrameType, int] | None = None  # where its `with` stands

    def __init__(self, desk: "Desk", seat: Seat, fence: int, wish: Wish, who: Hashable, since: float) -> None:
        self._desk = desk
        self._seat = seat
        self._wish = wish
        self._who = who
        self._since = since
        self.fence: int = fence
        """Greater than every number given out before for this name. Hand it to what you protect: docs/fences.md."""

    @property
    def name(self) -> str:
        return self._seat.name

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
    def reason(self) -> str | None:
        """Why it was lost: expired, evicted, unreachable, max_hold, forked, store_reset; None if it was not."""
        return self._reason if self.lost else None

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
        error.reason = self._reason or self._seat.reason
        return error

    def _told_lost(self) -> None:
        """Called once, when the loss is noticed."""

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        state = "released" if self._released else "lost" if self.lost else f"{self.remaining():.1f} s left"
        return f"<{type(self).__name__} {self._what} fence {self.fence}, {state}>"
