"""The short way in and out: what a lock that nobody else wants needs, as two plain calls.

They do what acquire.py does, step by step and in the same order, for the commonest case, and nothing else: nobody of
this client waits for the same thing, and the backend can make the step at once. Whatever is not as plain as that is
left to the coroutines over there, which go on from where these stopped: a coroutine that never has to wait costs as
much as ten lines of what it does.
"""

from __future__ import annotations

from ..backends.contract import Answer, Unknown
from ..doorman import Admitted, Leave, Left
from .acquire import over, say_enter, take_seat
from .desk import Desk
from .party import Guest, Party, key_of
from .seat import Hold, Seat, Wish


def enter(desk: Desk, wish: Wish, guest: Guest, trying: bool) -> Hold | None:
    """A hold; or None: go on with `acquire`. On any exception: `withdraw`."""
    party = _first(desk, wish, guest)
    if party is None:
        return None
    command = say_enter(desk, party, trying)
    try:
        answer = desk.at_once(wish.name, command)
    except Unknown:
        return None  # it was said, and perhaps heard: `acquire` says it again, by the same ticket
    return _seat(desk, guest, party, answer)


async def enter_soon(desk: Desk, wish: Wish, guest: Guest, trying: bool) -> Hold | None:
    """The same for tasks: what is said goes out with all that is said in this turn of the loop."""
    soon = desk.soon
    if soon is None or desk.closing or desk.down:
        return None
    party = _first(desk, wish, guest)
    if party is None:
        return None
    try:
        answer = await soon(wish.name, say_enter(desk, party, trying))
    except Unknown:
        return None
    if answer is not None:
        desk.heard = answer.at
    return _seat(desk, guest, party, answer)


def _first(desk: Desk, wish: Wish, guest: Guest) -> Party | None:
    """A party of its own; None: others of this client want the same."""
    key = key_of(wish)
    with desk.mutex:
        if key is not None and key in desk.parties:
            return None
        guest.party = party = Party(wish, key)
        guest.leads = True
        party.leader = guest
        if key is not None:
            desk.parties[key] = party
    return party


def _seat(desk: Desk, guest: Guest, party: Party, answer: Answer | None) -> Hold | None:
    if answer is None:
        party.sent = party.unanswered = False  # it was not said
        return None
    party.unanswered = answer.again
    reply = answer.reply
    if type(reply) is Admitted:
        return take_seat(desk, guest, party, reply.fence, answer.at, reply.left)
    party.answer = answer
    return None


def leave(desk: Desk, hold: Hold) -> bool:
    """Whether the hold has been given back; False: nothing has happened, go on with `release`."""
    seat = hold._seat
    if not _goes(desk, hold, seat):
        return False
    try:
        answer = desk.at_once(seat.name, Leave(seat.ticket, seat.doubtful or desk.backend.doubles, hold.fence))
    except Unknown:
        seat.leaving = False  # it is going all the same: `release` says it again, and knows that it is not the first
        return False
    return _left(desk, hold, seat, answer)


async def leave_soon(desk: Desk, hold: Hold) -> bool:
    """The same for tasks. On any exception, too: go on with `release`."""
    seat = hold._seat
    soon = desk.soon
    if soon is None or desk.closing or desk.down or not _goes(desk, hold, seat):
        return False
    try:
        command = Leave(seat.ticket, seat.doubtful or desk.backend.doubles, hold.fence)
        answer = await soon(seat.name, command)
    except Unknown:
        seat.leaving = False
        return False
    except BaseException:
        seat.leaving = False
        raise
    return _left(desk, hold, seat, answer)


def _goes(desk: Desk, hold: Hold, seat: Seat) -> bool:
    """Whether this one can simply leave. From here on it is leaving."""
    with desk.mutex:
        party = seat.party
        if (
            hold._released or hold._reason or seat.leaving or seat.going or len(seat.holds) != 1
            or (party is not None and party.line) or hold._wish.at_least is not None
        ):  # fmt: skip
            return False
        clock = desk.clock()
        if clock >= seat.end():
            return False
        seat.leaving = True
        seat.going = clock
    return True


def _left(desk: Desk, hold: Hold, seat: Seat, answer: Answer | None) -> bool:
    if answer is None or type(answer.reply) is not Left or not answer.reply.held:
        seat.leaving = False
        seat.going = 0.0
        return False
    seat.left = True
    desk.unseat(seat)
    over(hold)
    desk.tell("released", seat.name, seat.ticket, hold.fence)
    return True
