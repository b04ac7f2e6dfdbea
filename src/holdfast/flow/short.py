"""The short way in and out: what a lock that nobody else wants needs, as two plain calls.

They do what acquire.py and release.py do, step by step and in the same order, for the commonest case, and nothing else:
nobody of this client waits for the same thing, and the backend can make the step at once. Passing on to one who does
wait takes no more than that, either. Whatever is not as plain as that is left to the coroutines over there, which go on
from where these stopped: a coroutine that never has to wait costs as much as ten lines of what it does.
"""

from __future__ import annotations

from ..backends.contract import Answer, Unknown
from ..doorman import Admitted, Leave, Left
from .acquire import named, say_enter, take_seat
from .desk import Desk
from .events import heeded
from .party import may_pass_on, pass_on
from .release import over
from .seat import NOWHERE, Hold, Seat


def enter(desk: Desk, hold: Hold, trying: bool) -> bool:
    """Whether it is had; False: go on with `acquire`. On any exception: `withdraw`."""
    seat = _first(desk, hold)
    if seat is None or desk.closing or desk.down:
        return False
    command = say_enter(desk, seat, trying)
    try:
        answer = desk.backend.at_once(seat.name, command)
    except Unknown:
        return False  # it was said, and perhaps heard: `acquire` says it again, by the same ticket
    return _sits(desk, hold, seat, answer)


def _first(desk: Desk, hold: Hold) -> Seat | None:
    """A seat to ask for; None: others of this client want the same."""
    wish = hold._wish
    if wish.key in desk.seats:
        return None
    seat = hold._seat = Seat(wish, desk.ticket(), desk.backend.skew, wish.key)
    seat.leader = hold
    if desk.seats.setdefault(seat.filed, seat) is not seat:
        hold._seat = NOWHERE  # another thread was quicker
        return None
    return seat


def _sits(desk: Desk, hold: Hold, seat: Seat, answer: Answer | None) -> bool:
    if answer is None:
        seat.sent = seat.doubtful = False  # it was not said
        return False
    desk.heard = answer.at
    seat.doubtful = answer.again
    reply = answer.reply
    if type(reply) is Admitted:
        return take_seat(desk, hold, seat, reply.fence, answer.at, reply.left)
    seat.answer = answer
    return False


def leave(desk: Desk, hold: Hold) -> bool:
    """Whether the hold has been given back; False: nothing has happened. Then, and on any exception: `release`."""
    seat = hold._seat
    if not goes(desk, hold, seat):
        return hold._released and not hold._reason
    try:
        answer = desk.backend.at_once(seat.name, _say_leave(desk, hold, seat))
    except Unknown:
        seat.leaving = False  # it is going all the same: `release` says it again, and knows that it is not the first
        return False
    return _left(desk, hold, seat, answer)


def goes(desk: Desk, hold: Hold, seat: Seat) -> bool:
    """Whether this one can simply leave: from here on it is leaving. Or it has been passed on, and all is done."""
    with desk.mutex:
        if (
            hold._released or hold._reason or seat.leaving or seat.going or len(seat.holds) != 1
            or seat.holds[0] is not hold or hold._wish.at_least is not None or desk.closing or desk.down
        ):  # fmt: skip
            return False
        clock = desk.clock()
        if clock >= seat.deadline or clock >= seat.cap:
            return False
        if seat.line:
            if may_pass_on(seat, clock):
                pass_on(seat, clock)
                over(hold)
            return False
        seat.leaving = True
        seat.going = clock
    return True


def _say_leave(desk: Desk, hold: Hold, seat: Seat) -> Leave:
    return named(Leave, (seat.ticket, seat.doubtful or desk.backend.doubles, hold.fence))


def _left(desk: Desk, hold: Hold, seat: Seat, answer: Answer | None) -> bool:
    if answer is None or type(answer.reply) is not Left or not answer.reply.held:
        seat.leaving = False
        seat.going = 0.0
        return False
    desk.heard = answer.at
    seat.left = True
    desk.unseat(seat)
    over(hold)
    if desk.on_event is not None or heeded("released"):
        desk.tell("released", seat.name, seat.ticket, hold.fence)
    return True
