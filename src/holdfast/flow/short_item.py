"""The short way to an item and away from it: any that is free, and finished or given back, as two plain calls.

They do what pool.py and let_go.py do, step by step and in the same order, if the backend can make the step at once, and
leave everything that is not plain to the coroutines over there, which go on from where these stopped: as short.py does
for locks, and for the same reason.
"""

from __future__ import annotations

from typing import Any

from ..backends.contract import Unknown
from ..pool import Finish, Finished, Give, Given, On, Remove, Removed, Taken
from .acquire import named
from .desk import Desk
from .events import heeded
from .pool import Seeker, have, say_seek
from .release import over
from .seat import Hold

KEPT = (Finished, Given, Removed)


def take(desk: Desk, seeker: Seeker, trying: bool) -> Hold | None:
    """What he has got; None: go on with `seek`. On any exception: `withdraw`."""
    if desk.closing or desk.down:
        return None
    backend: Any = desk.backend
    try:
        at_once = backend.pools.at_once
    except AttributeError:
        return None
    try:
        answer = at_once(seeker.want.pool, say_seek(desk, seeker, trying))
    except Unknown:
        return None  # it was said, and perhaps heard: `seek` says it again, by the same ticket
    if answer is None:
        seeker.sent = False  # it was not said, or it has done nothing
        return None
    reply, at, _ = answer
    desk.heard = at
    if type(reply) is Taken:
        return have(desk, seeker, reply, at)
    seeker.answer = answer
    return None


def let_go(desk: Desk, hold: Hold, command: Finish | Give | Remove) -> bool:
    """Whether it has been let go; False: not yet. Then, and on any exception: `let_go` of the long way."""
    seat: Any = hold._seat
    with desk.mutex:
        if hold._released or hold._reason or seat.leaving or seat.going or desk.closing or desk.down:
            return False
        clock = desk.clock()
        if clock >= seat.deadline:
            return False
        seat.leaving = True
        seat.going = clock
        seat.end_by = command
    try:
        answer = desk.backend.pools.at_once(seat.name, named(On, (seat.key, command)))  # type: ignore[attr-defined]
    except Unknown:
        return False  # the long way says it again, and knows that it is not the first time
    if answer is None or type(answer.reply) not in KEPT:
        seat.going = 0.0
        return False
    desk.heard = answer.at
    seat.left = True
    if desk.debts:
        with desk.mutex:
            desk.debts.pop(seat.ticket, None)
    desk.seats.pop(seat.ticket, None)
    over(hold)
    if desk.on_event is not None or heeded("released"):
        desk.tell("released", seat.name, seat.ticket, hold.fence, seat.key)
    return True
