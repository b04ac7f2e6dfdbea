"""Those of one client who want the same thing share one seat: a party.

One of them, the leader, talks to the store; the others stand by. When the seat is inside and the lock is exclusive,
each holder passes it on to the next one, with the next fence of the block, a bounded number of times and for a bounded
time, so that other processes keep their turn. Readers who waited together go in together; who comes later needs a
seat of his own, or a writer would starve.

All of this is plain data under the desk's mutex; the waiting is in acquire.py.
"""

from __future__ import annotations

from collections import deque

from ..backends.contract import Event
from .seat import Hold, Seat

PASSING = 0.1


def stand_by(seat: Seat, hold: Hold, event: Event) -> None:
    """This one wants the same."""
    hold._event = event
    if seat.line is None:
        seat.line = deque()
    seat.line.append(hold)


def lead(seat: Seat, heir: Hold) -> None:
    """This one of those who stand by leads from here on."""
    seat.leader = heir
    _call(seat, heir)


def may_pass_on(seat: Seat, clock: float) -> bool:
    return (
        bool(seat.line)
        and not seat.reason
        and not seat.leaving
        and not seat.lowered
        and seat.given + 1 < seat.wish.block
        and clock - seat.admitted < PASSING
        and clock < seat.deadline
    )


def pass_on(seat: Seat, clock: float) -> None:
    """To the next who stands by, with the next fence of the block, without asking anybody."""
    line = seat.line
    assert line
    heir = line[0]
    seat.given += 1
    seat.give(heir, seat.fence + seat.given, clock)
    line.popleft()
    assert heir._event is not None
    heir._event.set()


def passed_on(seat: Seat, hold: Hold) -> bool:
    """Whether somebody else has what this one had, by a release that a Ctrl-C has broken off: then it is told now."""
    if not seat.holds or hold in seat.holds:
        return False
    _call(seat, seat.holds[0])
    return True


def let_in(seat: Seat, clock: float) -> None:
    """Readers who waited together go in together."""
    while seat.line:
        other = seat.line[0]
        seat.give(other, seat.fence, clock, seat.holds)
        _call(seat, other)


def _call(seat: Seat, hold: Hold) -> None:
    if seat.line and seat.line[0] is hold:
        seat.line.popleft()
    if hold._event is not None:
        hold._event.set()
