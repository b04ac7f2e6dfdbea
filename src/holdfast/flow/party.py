"""Those of one client who want the same thing share one place in line: a party.

One of them, the leader, talks to the store; the others stand by. When the party is inside and the lock is exclusive,
each holder passes it on to the next one, with the next fence of the block, a bounded number of times and for a bounded
time, so that other processes keep their turn. Readers who waited together go in together; who comes later needs a
place of his own, or a writer would starve.

All of this is plain data under the desk's mutex; the waiting is in acquire.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

from ..backends.contract import Answer, Event
from ..doorman import ALL
from .seat import Hold, Seat, Wish

PASSES = 32
PASSING = 0.1
BLOCK = PASSES + 1


class Guest:
    """One who wants in: leading its party, standing by, or with a hold already in its hands."""

    party: Party | None = None
    event: Event | None = None
    hold: Hold | None = None
    leads = False
    who: Hashable = None  # the thread or task
    warn_at: float | None = None  # it waits without limit for what it holds itself: say so if it still does by then

    def __init__(self, wish: Wish) -> None:
        self.wish = wish


class Party:
    ticket = ""
    seat: Seat | None = None
    leader: Guest | None = None
    unanswered = False  # an Enter of this ticket may still be under way, even if a later one was answered
    sent = False  # the store may know this ticket
    waited = False  # the store has put it in line
    answer: Answer | None = None  # one that the leader has not looked at yet
    place = 0
    ahead = 0

    def __init__(self, wish: Wish, key: object) -> None:
        self.wish = wish
        self.key = key  # None: a party of one, never joined
        self.block = BLOCK if key is not None and wish.weight == ALL else 1
        self.line: deque[Guest] = deque()  # standing by, in the order in which they came

    def lead(self, heir: Guest) -> None:
        """Under the desk's mutex: this one of those who stand by leads from here on."""
        heir.leads = True
        self.leader = heir
        self.line.remove(heir)
        assert heir.event is not None
        heir.event.set()

    def may_pass_on(self, clock: float) -> bool:
        seat = self.seat
        return (
            seat is not None
            and bool(self.line)
            and not seat.reason
            and not seat.leaving
            and seat.given + 1 < seat.block
            and clock - seat.admitted < PASSING
            and clock < seat.deadline
        )


def key_of(wish: Wish) -> object:
    """Who may share a place: same name, same weight, same lease. None: nobody; it needs a place of its own."""
    name, capacity, weight, lease, fair, handoff, _, max_hold, at_least, _ = wish
    if capacity != ALL or not fair or not handoff or at_least is not None or (weight != ALL and max_hold is not None):
        return None
    return name, weight, lease
