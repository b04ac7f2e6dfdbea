"""Getting out: the flow from a hold to nothing.

    release   passes the seat on to the next of the party, or leaves
    pay       says a Leave that is owed

short.py has the way out of a lock that nobody else wants, without waiting and so without coroutines.
"""

from __future__ import annotations

from ..backends import patience
from ..doorman import Admitted, Keep, Leave, Left
from ..errors import BackendError, ConfigError, RecordDamaged
from .desk import FORGET, Debt, Desk
from .events import warn
from .party import may_pass_on, pass_on, passed_on
from .seat import Hold, Seat


async def release(desk: Desk, hold: Hold, quiet: bool = False) -> None:
    """Give the hold back: to the next of the party, or to the doorman. A second time does nothing.

    Raises LeaseLost if it had been lost, BackendError if the store cannot be told (the keeper goes on trying, and it
    may be called again). quiet: neither; it is reported and kept as a debt.
    """
    seat = hold._seat
    with desk.mutex:
        if hold._released:
            return
        lost = bool(hold._reason)
        if not lost and not seat.leaving:
            if passed_on(seat, hold):
                over(hold)
                return
            if len(seat.holds) > 1:
                seat.holds.remove(hold)  # readers who came together: the last one leaves
                over(hold)
                return
            clock = desk.clock()
            if not desk.closing and may_pass_on(seat, clock):
                pass_on(seat, clock)
                over(hold)
                return
            seat.leaving = True
    if lost:
        over(hold)
        desk.leave_soon(seat)
        if not quiet and hold._reason != "forked":
            raise hold._loss()
        return
    await _leave(desk, seat, hold, quiet)


def over(hold: Hold) -> None:
    """This one has nothing any more."""
    hold._released = True
    seat = hold._seat
    if hold._home is not None:
        try:
            hold._home.remove(hold)
        except ValueError:
            pass  # a second time
    nested = hold._desk.nested
    if nested:
        key = hold._wish.name, hold._who
        if nested.get(key) is hold:
            rest = [h for h in seat.holds if h._who == hold._who and not h._released]
            if rest:  # released in another order than taken: what is left still counts
                nested[key] = rest[0]
            else:
                nested.pop(key, None)
    if seat.left:
        seat.holds = []  # or the two would keep each other alive until the collector comes


async def _leave(desk: Desk, seat: Seat, hold: Hold, quiet: bool) -> None:
    clock = desk.clock()
    wish = hold._wish
    stay = 0.0
    if wish.at_least is not None:
        stay = wish.at_least - (clock - hold._since)
    first = not seat.going
    seat.going = seat.going or clock
    bury = seat.doubtful or desk.backend.doubles
    command: Leave | Keep = Leave(seat.ticket, bury, hold.fence)
    if stay > 0:
        command = Keep(seat.ticket, seat.fence, max(int(stay * 1e6), 1), closed=True)
    try:
        answer = await desk.ask(seat.name, command)
    except (BackendError, ConfigError) as error:
        if hold._released:  # by the closing of this client
            return
        with desk.mutex:
            until = clock + max(seat.lease, FORGET)
            desk.owe(Debt(seat.name, seat.ticket, bury, clock + max(stay, 0.1), until))
        desk.unseat(seat)
        if not quiet:
            raise
        over(hold)
        warn(f"The release of {seat.name!r} did not reach the store ({error}); it is tried again until the lease ends.")
        return
    except BaseException:
        with desk.mutex:
            desk.owe(Debt(seat.name, seat.ticket, True, clock, clock + max(seat.lease, FORGET)))
        desk.unseat(seat)
        raise
    seat.left = True
    with desk.mutex:
        desk.debts.pop(seat.ticket, None)
    desk.unseat(seat)
    kept = isinstance(answer.reply, Admitted) or (isinstance(answer.reply, Left) and answer.reply.held)
    if (answer.again or not first or desk.backend.doubles) and seat.going < seat.deadline:
        kept = True  # an earlier try had done it, or the keeper, or another thread that released it too
    if desk.closing:
        kept = True  # close() releases what other threads are releasing, too: that it is gone proves nothing
    if seat.going < seat.deadline <= desk.clock():
        kept = True  # it ended while we were asking
    over(hold)
    if kept:
        desk.tell("released", seat.name, seat.ticket, hold.fence)
        return
    if not seat.reason:  # else it has been told while we were asking
        seat.reason = hold._reason = "expired"
        seat.story = "it had ended before it was released. Someone else may have held it meanwhile"
        desk.tell("lost", seat.name, seat.ticket, hold.fence, seat.story)
    if not quiet:
        raise hold._loss()


async def pay(desk: Desk, ticket: str, until: float | None = None) -> bool:
    """Try to pay one debt now. False: it stays with the keeper."""
    debt = desk.debts.get(ticket)
    if debt is None or desk.closed or patience.over():
        return False
    before = None if until is None else patience.begin(until - desk.clock(), 0.0)
    try:
        if debt.order is not None:
            from .orders import order

            await order(desk, debt.name, debt.order, until)
        else:
            await desk.ask(debt.name, Leave(ticket, debt.bury, None, debt.lease), until)
    except RecordDamaged:
        pass  # there is nothing to leave: its repair empties it
    except (BackendError, ConfigError):
        return False
    finally:
        if before is not None:
            patience.end(before)
    with desk.mutex:
        desk.debts.pop(ticket, None)
    return True
