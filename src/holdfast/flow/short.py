"""The short way in and out: what a lock that nobody else wants needs, as two plain calls.

They do what acquire.py and release.py do, step by step and in the same order, for the commonest case, and nothing else:
nobody of this client waits for the same thing, and the backend can make the step at once. Passing on to one who does
wait takes no more than that, either. Whatever is not as plain as that is left to the coroutines over there, which go on
from where these stopped: a coroutine that never has to wait costs as much as ten lines of what it does.

Between two messages the processor has forgotten us, so here every call and every object counts three times.
"""

from __future__ import annotations

from ..backends.contract import Unknown
from ..doorman import Admitted, Leave, Left
from .acquire import named, say_enter, take_seat
from .desk import Desk
from .events import heeded
from .party import may_pass_on, pass_on
from .release import over
from .seat import NOWHERE, Hold, Seat


def enter(desk: Desk, hold: Hold, trying: bool) -> bool:
    """Whether it is had; False: go on with `acquire`. On any exception: `withdraw`."""
    wish, seat = hold._wish, hold._seat
    if desk.closing or desk.down:
        return False
    if seat.leader is not hold:
        if wish.key in desk.seats:
            return False
        seat = hold._seat = Seat(wish, desk.ticket(), desk.backend.skew, wish.key)
        seat.leader = hold
        if desk.seats.setdefault(seat.filed, seat) is not seat:
            hold._seat = NOWHERE  # another thread was quicker
            return False
    elif seat.sent:
        return False  # by one who led before: what became of that is for `acquire`
    try:
        answer = desk.backend.at_once(wish.name, say_enter(desk, seat, trying))
    except Unknown:
        return False  # it was said, and perhaps heard: `acquire` says it again, by the same ticket
    if answer is None:
        seat.sent = seat.doubtful = False  # it was not said
        return False
    reply, at, again = answer
    desk.heard = at
    seat.doubtful = again
    if type(reply) is Admitted:
        return take_seat(desk, hold, seat, reply.fence, at, reply.left)
    seat.answer = answer
    return False


def leave(desk: Desk, hold: Hold) -> bool:
    """Whether the hold has been given back; False: nothing has happened. Then, and on any exception: `release`."""
    seat = hold._seat
    if not goes(desk, hold, seat):
        return hold._released and not hold._reason
    command = named(Leave, (seat.ticket, seat.doubtful or desk.backend.doubles, hold.fence, None))
    try:
        answer = desk.backend.at_once(seat.name, command)
    except Unknown:
        seat.leaving = False  # it goes all the same: `release` says it again, and knows that it is not the first
        return False
    if answer is None or type(answer.reply) is not Left or not answer.reply.held:
        seat.leaving = False
        seat.going = 0.0
        return False
    desk.heard = answer.at
    seat.left = True
    with desk.mutex:
        alone = not seat.line and desk.seats.get(seat.filed) is seat
        if alone:
            del desk.seats[seat.filed]
    if not alone:
        desk.unseat(seat)
    over(hold)
    if desk.on_event is not None or heeded("released"):
        desk.tell("released", seat.name, seat.ticket, hold.fence)
    return True


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
        if seat.line and may_pass_on(seat, clock):
            pass_on(seat, clock)
            over(hold)
            return False
        seat.leaving = True
        seat.going = clock
    return True
