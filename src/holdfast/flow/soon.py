"""The short way in and out for tasks: the steps of short.py, each cut in two where the answer is awaited.

What is said goes out with all that is said in the same turn of the loop. The coroutine in between is the face's own, so
that there is one of them for a step, and no more: whoever comes in by `async with` runs through these lines a thousand
times in one turn, and then they are what it costs. Tasks change plain data only between two awaits, so no mutex.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from ..doorman import Enter
from .acquire import take_seat
from .desk import Desk
from .events import heeded
from .release import over
from .seat import Hold, Seat
from .short import goes
from .wish import Wish


def knock(desk: Desk, hold: Hold) -> Awaitable[Any] | None:
    """Say that this one wants in. What is to be awaited, for `sit`; None: go on with `get`. On any exception: undo."""
    wish = hold._wish
    soon = wish.soon
    if soon is None or soon.of is not desk.backend:
        prepare(desk, wish)
        return None
    if wish.key in desk.seats or desk.closing or desk.down:
        return None
    ticket = desk.ticket()
    seat = hold._seat = Seat(wish, ticket, 0.0, wish.key)
    seat.leader = hold
    desk.seats[seat.filed] = seat
    at = seat.admitted = desk.clock()
    asked = soon.enter(seat.ticket, at)
    if asked is not None:
        seat.sent = seat.doubtful = True
    return asked


def prepare(desk: Desk, wish: Wish) -> None:
    """From the second time on this wish can be said soon, if the backend can."""
    soon = getattr(desk.backend, "soon", None)
    wish.soon = None if soon is None or desk.backend.doubles or desk.backend.skew else soon(wish.name, Enter(
        "", wish.capacity, wish.weight, wish.span, True, wish.fair, wish.block, desk.backend.ear, desk.owner, wish.note,
    ))  # fmt: skip


def sit(desk: Desk, hold: Hold, found: Any) -> bool:
    """Whether it is had; False: go on with `get`. What take_seat() does, for one who gets the whole room and lease."""
    seat = hold._seat
    seat.doubtful = False
    if found is None:
        return False
    at = seat.admitted
    desk.heard = at
    wish = hold._wish
    if not wish.plain:
        return take_seat(desk, hold, seat, int(found), at, wish.span)
    clock = desk.clock()
    lease = wish.lease
    deadline = at + lease - lease / 10
    if clock >= deadline or desk.closing:
        return False
    seat.deadline = deadline
    seat.asked = at
    renew_at = seat.renew_at = at + lease / 3
    seat.admitted = hold._since = clock
    seat.fence = hold.fence = found
    seat.holds = [hold]
    seat.leader = None
    if renew_at < desk.wake_at:
        desk.seated(seat)
    if desk.on_event is not None or heeded("acquired"):
        desk.tell("acquired", wish.name, seat.ticket, found)
    return True


def go(desk: Desk, hold: Hold) -> Awaitable[Any] | None:
    """Say that this one goes. What is to be awaited, for `gone`; None: it is released, or go on with `release`."""
    soon = hold._wish.soon
    seat = hold._seat
    if soon is None or soon.of is not desk.backend or seat.doubtful or not goes(desk, hold, seat):
        return None
    asked = soon.leave(seat.ticket, hold.fence)
    if asked is None:
        stays(seat)
    return asked


def stays(seat: Seat) -> None:
    """Nothing was said, or not what was wanted: go on with `release`, which says it as if for the first time."""
    seat.leaving = False
    seat.going = 0.0


def gone(desk: Desk, hold: Hold, found: Any) -> bool:
    """Whether it is released; False: go on with `release`."""
    seat = hold._seat
    if found is None:
        stays(seat)
        return False
    seat.left = True
    seats = desk.seats
    if seat.line is None and seats.get(seat.filed) is seat:
        del seats[seat.filed]
    else:
        desk.unseat(seat)
    over(hold)
    if desk.on_event is not None or heeded("released"):
        desk.tell("released", seat.name, seat.ticket, hold.fence)
    return True
