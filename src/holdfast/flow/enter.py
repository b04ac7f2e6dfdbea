"""Around a hold: entering and leaving `with`, reentrancy, the rule against waiting for oneself, timeouts as sentences.

Colourless like the rest; the two faces differ only in how they call it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from types import FrameType

from ..backends import patience
from ..doorman import ALL
from ..errors import AlreadyHeld, BackendError, LockTimeout
from .acquire import QUICKLY, acquire, withdraw
from .desk import Desk
from .look import duration, in_the_way, resource
from .release import pay, release
from .seat import Hold
from .wish import Wish


async def get(desk: Desk, hold: Hold, limit: float | None, reentrant: bool) -> bool:
    """Whether it is had within `limit` seconds (None: for ever, 0: only a try). On any exception: undo."""
    if reentrant and await _again(desk, hold):
        return True
    if limit is None and hold._who in desk.entered:
        await _not_for_oneself(desk, hold)
    until = limit if not limit else desk.clock() + limit
    had = await acquire(desk, hold, until)
    if had and reentrant:
        desk.nested[hold._wish.name, hold._who] = hold
    return had


async def _again(desk: Desk, hold: Hold) -> bool:
    """Whether this is one more hold on the seat that this thread or task has already.

    To ask for it is a look at the clock: if its time is over, that is a loss, for good. The keeper might renew it yet,
    and then its own holder would be refused by it; so the seat is given up first.
    """
    wish, who = hold._wish, hold._who
    first = desk.nested.get((wish.name, who))
    if first is None:
        return False
    seat = first._seat
    with desk.mutex:
        mine = any(h._who == who for h in seat.holds)  # it may have been passed on: then the seat is another's
        clock = desk.clock()
        if mine and not (seat.reason or seat.leaving or seat.left or clock >= seat.end()):
            if seat.weight < wish.weight:
                return False
            hold._seat, hold._since, hold.fence = seat, clock, first.fence
            seat.holds = [*seat.holds, hold]
            return True
        del desk.nested[wish.name, who]
    if mine and not (seat.leaving or seat.left):
        desk.lose(seat)
        await pay(desk, seat.ticket, clock + QUICKLY)
    return False


async def undo(desk: Desk, hold: Hold) -> None:
    """Whatever had been got to: it is neither entered nor held nor waited for."""
    no_longer_entered(desk, hold)
    await withdraw(desk, hold)


async def _not_for_oneself(desk: Desk, hold: Hold) -> None:
    wish = hold._wish
    held = [h for h in desk.entered.get(hold._who, ()) if h.name == wish.name and h.held]
    for left in [h for h in held if _was_left(h)]:
        held.remove(left)
        no_longer_entered(desk, left)
        await release(desk, left, quiet=True)
    if not held:
        return
    limit = wish.capacity
    if limit != ALL:  # of a semaphore the store knows the number: an operator's counts, whatever this program asks for
        limit = (await desk.backend.look(wish.name))[0].capacity
    if sum(h._seat.weight for h in held) + wish.weight > limit:
        kind = "thread" if desk.colour.blocking else "task"
        raise AlreadyHeld(
            f"This {kind} already holds {wish.name!r} (with, {held[-1]._where}); waiting would never end. "
            "Use reentrant=True or another name."
        )


def _was_left(hold: Hold) -> bool:
    """Whether its `with` is over although nobody told us: a Ctrl-C came just before the first line of our __exit__.

    Python cannot prevent that. But a `with` statement that is being entered again, in the same call of the same
    function, has certainly been left.
    """
    if hold._entered is None:
        return False
    from opcode import opmap

    frame, instruction = hold._entered
    code = frame.f_code.co_code
    return frame.f_lasti == instruction and code[instruction] == opmap.get("BEFORE_WITH")


def enter(desk: Desk, hold: Hold, frame: FrameType) -> None:
    """Mark a hold as entered by `with`, which stands in this frame."""
    hold._entered = (frame, frame.f_lasti)
    stack = desk.entered.get(hold._who)
    if stack is None:
        desk.entered[hold._who] = [hold]
    else:
        stack.append(hold)


def no_longer_entered(desk: Desk, hold: Hold) -> None:
    stack = desk.entered.get(hold._who)
    if stack is not None:
        if stack and stack[-1] is hold:
            stack.pop()
        elif hold in stack:
            stack.remove(hold)
        if not stack:
            desk.entered.pop(hold._who, None)
    hold._entered = None  # or the frame and what it holds would live as long as the lease


async def leave(desk: Desk, hold: Hold, error: BaseException | None) -> None:
    """Leave `with`. A loss is raised only if the body was clean, else noted on its exception; a store that is down is
    logged, and the keeper goes on trying."""
    no_longer_entered(desk, hold)
    if not hold._released and hold._desk.clock() >= hold._seat.end():
        hold.lost  # noqa: B018  # the body went on after its end: that is a loss even if nobody took the seat
    await release(desk, hold, quiet=True)
    if hold._reason and hold._reason != "forked":
        loss = hold._loss()
        if error is None:
            raise loss
        error.add_note(str(loss))


async def timed_out(desk: Desk, hold: Hold, limit: float) -> LockTimeout:
    """The sentence for a wait that was over too early: who holds it, how long I waited, where I stood."""
    wish = hold._wish
    seat = hold._seat if hold._event is None else desk.seats.get(wish.key)
    place = seat.ahead + 1 if seat is not None and seat.waited else None
    inside = ""
    holders: tuple[str, ...] = ()
    try:
        record, now = await desk.backend.look(wish.name)
    except BackendError:
        pass
    else:
        found = resource(wish.name, record, now).inside
        holders = tuple(one.owner for one in found if one.owner)
        inside = in_the_way(found)
    waited = f"; you waited {duration(limit)}" if limit else ""
    number = f", number {place} in line" if place is not None and limit else ""
    error = LockTimeout(f"{wish.name!r} {inside or 'could not be acquired'}{waited}{number}.")
    error.name, error.holders, error.place, error.waited = wish.name, holders, place, limit
    return error


async def get_all(
    desk: Desk, wishes: Iterable[tuple[Wish, bool]], limit: float | None, who: Hashable, holds: list[Hold]
) -> dict[str, Hold]:
    """All of them, in the order of their names, under one deadline; LockTimeout if one is not to be had in time.

    On any exception the caller must give back what there is: `put_back(desk, holds)`.
    """
    begun = desk.clock()
    before = None if limit is None else patience.begin(limit)
    try:
        for wish, reentrant in sorted(wishes, key=lambda w: w[0].name):
            rest = None if limit is None else max(limit - (desk.clock() - begun), 0.0)
            hold = desk.hold(desk, wish, who)
            holds.append(hold)
            if not await get(desk, hold, rest, reentrant):
                raise await timed_out(desk, hold, limit or 0.0)
    finally:
        if before is not None:
            patience.end(before)
    return {hold.name: hold for hold in holds}


async def put_back(desk: Desk, holds: Iterable[Hold]) -> None:
    for hold in reversed(list(holds)):
        await undo(desk, hold)
