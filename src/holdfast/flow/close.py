"""The end of a client: what it holds is released, what it waits for is given up, what it owes is sent once more.

`close` may come at any moment, also while other threads or tasks are in the middle of an acquire. Those are woken and
end with the error of a closed client; each undoes what it had got to. An acquire that does not end in time, because the
store does not reply, is undone from here: its ticket is buried, so that a late request of it finds a tombstone.

At the normal end of the interpreter all clients are closed too, so that nobody waits a whole lease for a process that
simply ended. (A client of asyncio is closed when its loop ends, if somebody ends it: aio/colour.py.)
"""

from __future__ import annotations

import atexit
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..backends import patience
from ..errors import BackendError, ConfigError
from .desk import FORGET, Debt, Desk
from .events import warn
from .fork import desks, remember
from .release import pay, release
from .seat import Seat

if TYPE_CHECKING:
    from .pool import Seeker

PATIENCE = 2.0  # seconds for which acquires under way may take to end by themselves
AT_EXIT = 0.5  # the same at the end of the interpreter: threads that wait are daemons, which it does not wait for
GLANCE = 0.05  # seconds between two looks at them
LIMIT = 3.0  # seconds since the last reply after which nothing more is sent


async def close(desk: Desk, wait: float = PATIENCE) -> None:
    """Release what is held, end the acquires under way, try once to send what is owed, and close the store.

    Never raises what the store replies, and never hangs. A second time does nothing.
    """
    if desk.closed:
        return
    with desk.mutex:
        desk.closing = True
        desk.ended = desk.ended or desk.colour.event()
    await _end_acquires(desk, desk.clock() + wait)
    before = patience.begin(LIMIT)
    try:
        await _give_up(desk)
    finally:
        patience.end(before)
    desk.closed = True
    desk.bell.set()
    desk.watch_bell.set()
    try:
        await desk.backend.tidy()
    except (BackendError, ConfigError) as error:
        warn(f"Closing {desk.backend.where}: {error}")
    await desk.backend.close()


async def _give_up(desk: Desk) -> None:
    """Release what is held and send what is owed, as long as the store replies."""
    until = desk.clock() + LIMIT
    for hold in [hold for seat in desk.inside() for hold in seat.holds]:
        patience.begin(until - desk.clock(), 0.0)
        if patience.over():
            return
        if hold._seat.order is None:
            await release(desk, hold, quiet=True)
        else:
            from .let_go import give

            await give(desk, hold, quiet=True)
        if hold.ticket not in desk.debts:
            until = desk.clock() + LIMIT
    for ticket in list(desk.debts):
        patience.begin(until - desk.clock(), 0.0)
        if patience.over():
            return
        if await pay(desk, ticket):
            until = desk.clock() + LIMIT


async def _end_acquires(desk: Desk, until: float) -> None:
    """Wait until all acquires under way have ended, and undo those that have not ended by then."""
    assert desk.ended is not None
    while under_way := _under_way(desk):
        left = until - desk.clock()
        if left <= 0:
            break
        desk.ended.clear()
        _call_off(desk, under_way)
        if _under_way(desk):
            await desk.ended.wait(min(left, GLANCE))
    with desk.mutex:
        clock = desk.clock()
        for each in under_way:
            if each.sent and each.ticket:
                lease = each.lease if isinstance(each, Seat) else each.want.lease
                name, quit = (each.name, None) if isinstance(each, Seat) else (each.want.pool, each.quit())
                desk.owe(Debt(name, each.ticket, True, clock, clock + max(lease, FORGET), quit))


def _under_way(desk: Desk) -> list[Seat | Seeker]:
    """The acquires that have neither ended nor got what they want, and the releases that have not been answered."""
    seats = list(desk.seats.values())
    return [
        *(seat for seat in seats if seat.leader is not None or seat.line or (seat.leaving and not seat.left)),
        *list(desk.seeking.values()),
    ]


def _call_off(desk: Desk, under_way: Iterable[Seat | Seeker]) -> None:
    """Have these acquires look up, now."""
    desk.backend.wake_here([each.ticket for each in under_way if each.ticket])
    with desk.mutex:
        events = [hold._event for seat in desk.seats.values() for hold in seat.line or ()]
    for event in events:
        if event is not None:
            event.set()


def warn_dropped(desk: Desk) -> None:
    """A client was forgotten while it held something. A finalizer must not raise, so it only warns."""
    try:
        import warnings

        names = ", ".join(sorted({seat.name for seat in desk.inside()}))
        warnings.warn(f"a client of {desk.backend.where} was dropped while holding {names}", ResourceWarning, 3)
    except Exception:
        pass


def close_at_exit(desk: Desk) -> None:
    """Close it when the interpreter ends, before the driver of its store closes the connections: of what is registered,
    the last is called first, and most drivers are imported by connect()."""
    remember(desk)
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)


def _at_exit() -> None:
    for desk in list(desks):
        if desk.ends_with_process and not desk.closed and (desk.seats or desk.seeking or desk.debts):
            try:
                desk.colour.finish(_close_for_good(desk))
            except Exception:
                pass  # there is nobody left who could read it


async def _close_for_good(desk: Desk) -> None:
    desk.exiting = desk.colour.current()
    await close(desk, AT_EXIT)
