"""Letting go of an item: giving it back, finishing it, removing it. One flow, for all of them fail in the same ways."""

from __future__ import annotations

from ..errors import BackendError, NotHeld
from ..pool import Finish, Finished, Give, Given, Remove, Removed
from .desk import FORGET, Debt, Desk
from .events import warn
from .orders import order as say
from .pool import ItemSeat
from .release import over
from .seat import Hold


async def give(desk: Desk, hold: Hold, after: float = 0.0, body: str | None = None, quiet: bool = False) -> None:
    await let_go(desk, hold, Give(hold.ticket, hold.fence, int(after * 1e6), body), quiet)


async def finish(desk: Desk, hold: Hold, body: str | None = None, quiet: bool = False) -> None:
    await let_go(desk, hold, Finish(hold.ticket, hold.fence, body), quiet)


async def delete(desk: Desk, hold: Hold) -> None:
    await let_go(desk, hold, Remove(hold.ticket, hold.fence))


async def let_go(desk: Desk, hold: Hold, command: Give | Finish | Remove, quiet: bool = False) -> None:
    """It is ours no more. A second time does nothing; but to finish or remove what has been let go in another way
    raises NotHeld, or LeaseLost.

    Raises LeaseLost if it had been lost, BackendError if the store cannot be told (the keeper goes on trying, and it
    may be called again). quiet: neither; it is reported and kept as a debt.
    """
    seat = hold._seat
    assert isinstance(seat, ItemSeat)
    with desk.mutex:
        if hold._released:
            if quiet or isinstance(command, Give):
                return
            raise_if_it_ended_otherwise(hold, seat, command)
            return
        lost = bool(hold._reason)
        if not lost:
            seat.leaving = True
            seat.end_by = command
    if lost:
        over(hold)
        desk.leave_soon(seat)
        if not quiet and hold._reason != "forked":
            raise hold._loss()
        return
    first = not seat.going
    clock = desk.clock()
    seat.going = seat.going or clock
    order = seat.order
    debt = Debt(seat.name, seat.ticket, False, clock + 0.1, clock + max(seat.lease, FORGET), order)
    try:
        answer = await say(desk, seat.name, order)
    except BackendError as error:
        with desk.mutex:
            desk.owe(debt)
        desk.unseat(seat)
        if not quiet:
            raise
        over(hold)
        warn(f"Letting go of {hold._what} did not reach the store ({error}); it is tried again until the lease ends.")
        return
    except BaseException:
        with desk.mutex:
            desk.owe(debt._replace(due=clock))
        desk.unseat(seat)
        raise
    seat.left = True
    with desk.mutex:
        desk.debts.pop(seat.ticket, None)
    desk.unseat(seat)
    over(hold)
    kept = isinstance(answer.reply, Given | Finished | Removed)
    if (answer.again or not first) and seat.going < seat.deadline:
        kept = True  # an earlier try had done it, or the keeper, or another thread that let go of it, too
    if kept:
        desk.tell("released", seat.name, seat.ticket, hold.fence, seat.key)
        return
    if not seat.reason:
        seat.reason = hold._reason = "expired"
        seat.story = "its lease had ended, and someone else has had it meanwhile"
        desk.tell("lost", seat.name, seat.ticket, hold.fence, seat.story)
    if not quiet:
        raise hold._loss()


ENDS = {Give: "given back", Finish: "finished", Remove: "removed"}


def raise_if_it_ended_otherwise(hold: Hold, seat: ItemSeat, command: Finish | Remove) -> None:
    if hold._reason and hold._reason != "forked":
        raise hold._loss()
    if type(seat.end_by) is not type(command):
        ended = ENDS[type(seat.end_by or Give)]
        raise NotHeld(f"{hold._what} was {ended}, so it cannot be {ENDS[type(command)]}. Acquire it again.")


async def leave(desk: Desk, hold: Hold, done: bool, back_off: float, error: BaseException | None) -> None:
    """Leave `with`: a clean body has finished it, or gives it back; a failed one gives it back for later.

    A loss is raised only if the body was clean, else noted on its exception.
    """
    if not hold._released and desk.clock() >= hold._seat.end():
        hold.lost  # noqa: B018  # the body went on after its end: that is a loss even if nobody took the item
    if done and error is None:
        await finish(desk, hold, quiet=True)
    else:
        await give(desk, hold, back_off if error is not None else 0.0, quiet=True)
    if hold._reason and hold._reason != "forked":
        loss = hold._loss()
        if error is None:
            raise loss
        error.add_note(str(loss))
