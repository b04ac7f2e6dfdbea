"""The keeper: one per client. It renews every lease at a third of its length, pays debts, and keeps the store tidy.

Loss is not decided here: `Hold.lost` reads the clock. The keeper only learns from the store that a seat is gone, and
notices deadlines that have passed while it was at work. An eviction is learned within a second or so: by a hint where
the store sends hints, by a look at the record where it does not. Because a store that hangs also hangs the keeper,
somebody else looks at the clock for those who want to be called: the watch, which never talks to the store.

Both go home after a second with nothing to do and are called again when needed: a client that holds nothing costs no
thread, and can be forgotten without being closed.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..doorman import ALL, Admitted, NotInside, Renew
from ..errors import BackendError, ConfigError, RecordDamaged
from . import call_off
from .desk import SOON, Desk
from .events import stumbled
from .release import pay
from .reset import suspect
from .seat import NEVER, Hold, Seat

LINGER = 1.0
TIDY = 1.0
BRIEF = 0.3  # seconds: a hold that may be over in a moment is not attended to before the next round
GLANCE = 1.0  # seconds between two looks at a held name for which no hints come, unless the store says otherwise
LOOKS = 16  # such looks in one round; with more names held, each has its turn later


async def keep(desk: Desk) -> None:
    try:
        await _keep(desk)
    except BaseException:
        desk.keeping = False
        raise
    if not desk.closed:
        await _tidy(desk)


async def _keep(desk: Desk) -> None:
    """Until there is nothing left to keep. It says itself that it goes, under the mutex: the next one may be here."""
    idle_since: float | None = None
    retry_at = 0.0  # after a failure nothing is tried before this
    while True:
        with desk.mutex:
            clock = desk.clock()
            desk.wake_at = NEVER
            due = NEVER if desk.closed else _next_due(desk)
            if due == NEVER:
                idle_since = clock if idle_since is None else idle_since
                due = idle_since + LINGER
                if desk.closed or clock >= due:
                    desk.keeping = False
                    return
            else:
                idle_since = None
                due = max(due, retry_at)
            # In a time of many short turns it looks up by itself: to be called for each would cost more than the turn.
            desk.wake_at = due = min(due, clock + (SOON if clock - desk.hurried < LINGER else TIDY))
            desk.bell.clear()
        if due > clock:
            await desk.bell.wait(due - clock)
        if not desk.closed:
            retry_at = await _round(desk)


def _next_due(desk: Desk) -> float:
    seats = min((min(s.renew_at, s.cap) for s in desk.inside() if not s.leaving), default=NEVER)
    debts = min((d.due for d in desk.debts.values()), default=NEVER)
    return min(seats, debts)


async def _round(desk: Desk) -> float:
    """Do what is due. The time before which nothing should be tried again, after a failure."""
    clock = desk.clock()
    with desk.mutex:
        ours = {s.ticket: s for s in desk.inside()}
        for ticket in desk.backend.hinted(ours):  # evicted, most likely: ask now, not at a third of the lease
            ours[ticket].renew_at = clock
        seats = [s for s in ours.values() if min(s.renew_at, s.cap) <= clock and not s.leaving]
        debts = [d for d in desk.debts.values() if d.due <= clock]
        for debt in debts:
            if debt.until <= clock:
                desk.debts.pop(debt.ticket, None)
    try:
        # Whoever failed last goes last, so that one record that cannot be read does not cost the other leases.
        for seat in sorted(seats, key=lambda s: (s.failed, s.end())):
            await renew(desk, seat)
        for debt in debts:
            if debt.ticket in desk.debts and not await pay(desk, debt.ticket):
                with desk.mutex:
                    if debt.ticket in desk.debts:
                        desk.debts[debt.ticket] = desk.debts.pop(debt.ticket)
                return desk.clock() + 0.25
        await _attend(desk, ours.values())
        await _tidy(desk)
    except (BackendError, ConfigError):  # down, or damaged meanwhile: either way it cannot be asked
        shortest = min((s.lease for s in seats), default=10.0)
        return desk.clock() + min(shortest / 10, 1.0)
    except Exception:
        stumbled("the keeper stumbled; it goes on")
        return desk.clock() + 0.25
    return 0.0


async def _attend(desk: Desk, seats: Iterable[Seat]) -> None:
    """Receive hints for these from here on. What was sent before that is not received: those are asked for at once."""
    clock = desk.clock()
    held = [s for s in seats if clock - s.admitted >= BRIEF and not s.leaving]
    if not held:
        return
    locks = [s for s in held if s.order is None]
    since = await desk.backend.attend({s.name for s in locks}, {s.name for s in held if s.order is not None})
    for seat in locks:
        if seat.hears and seat.asked < since < NEVER:
            seat.renew_at = clock
    unheard = [s for s in locks if since == NEVER or not s.hears]
    if unheard:
        await _glance(desk, unheard, clock)


async def _glance(desk: Desk, seats: list[Seat], clock: float) -> None:
    """No hints come for these: look, the longest unseen first. A name that cannot be read has its turn last."""
    old = clock - getattr(desk.backend, "glance", GLANCE) * 0.9
    due = sorted((s for s in seats if s.asked < old), key=lambda s: s.asked)
    for name in list(dict.fromkeys(s.name for s in due))[:LOOKS]:
        same = [s for s in due if s.name == name]
        for seat in same:
            seat.asked = desk.clock()
        record, _ = await desk.backend.look(name)
        buried = {grave.ticket for grave in record.graves}
        for seat in same:
            if seat.ticket in buried or record.seat(seat.ticket) is None:
                seat.renew_at = clock


async def renew(desk: Desk, seat: Seat, lease: float | None = None) -> None:
    """Renew one seat, for a longer lease if one is given, or learn that it is lost. BackendError if the store cannot be
    asked."""
    if desk.clock() >= seat.cap:
        desk.lose(seat)
        return
    if seat.order is not None:
        from .item_renewal import renew as renew_item

        await renew_item(desk, seat)
        return
    in_time = desk.clock() < seat.deadline
    try:
        weight, span = seat.weight if seat.lowered else None, None if lease is None else int(lease * 1e6)
        answer = await desk.ask(seat.name, Renew(seat.ticket, seat.fence, weight, span))
    except RecordDamaged as damage:
        lose_damaged(desk, seat, damage)
        return
    except (BackendError, ConfigError):
        seat.failed = desk.clock()
        if seat.failed >= seat.deadline:
            desk.lose(seat)
        raise
    if seat.leaving or seat.reason:
        return
    reply = answer.reply
    if isinstance(reply, Admitted) and reply.fence == seat.fence:
        with desk.mutex:  # another thread may be shortening it, or letting it go: then it must not be filed again
            if seat.longer(reply.left) and not (seat.left or seat.leaving):
                if seat.weight == ALL:
                    desk.set_apart(seat)  # the passing on ends: those who wait did not ask for such a lease
                seat.lengthen(answer.at, reply.left)
            seat.confirm(answer.at, reply.left)
        desk.tell("renewed", seat.name, seat.ticket, seat.fence)
        return
    why = reply.why if isinstance(reply, NotInside) else None
    if why is not None and why.kind == "evicted":
        reason = f" ({why.reason})" if why.reason else ""
        desk.lose(seat, "evicted", f"{why.by or 'somebody'} evicted its holder{reason}")
    elif in_time:
        desk.lose(seat, "store_reset", "the store no longer knows it. Someone else may hold it now")
        suspect(desk)  # the others may be gone with it
    else:
        desk.lose(seat)


def lose_damaged(desk: Desk, seat: Seat, damage: RecordDamaged) -> None:
    """It cannot be renewed any more, and once it is repaired somebody else may be granted it: it is lost now."""
    desk.lose(seat, "store_reset", str(damage).rstrip("."))


async def _tidy(desk: Desk) -> None:
    try:
        await desk.backend.tidy()
    except (BackendError, ConfigError) as error:
        desk.set_down(str(error))


async def watch(desk: Desk) -> None:
    try:
        await _watch(desk)
    except BaseException:
        desk.watching = False
        raise


async def _watch(desk: Desk) -> None:
    idle_since: float | None = None
    while True:
        with desk.mutex:
            clock = desk.clock()
            watched = [s for s in desk.inside() if s.watched]
            due = min((s.end() for s in watched), default=NEVER)
            if desk.cancels:
                due = min(due, clock + call_off.LOOK)
            if due == NEVER:
                idle_since = clock if idle_since is None else idle_since
                due = idle_since + LINGER
                if desk.closed or clock >= due:
                    desk.watching = False
                    return
            else:
                idle_since = None
            desk.watch_at = due
            desk.watch_bell.clear()
        if due > clock:
            await desk.watch_bell.wait(due - clock)
        clock = desk.clock()
        if desk.cancels:
            call_off.look(desk)
        for seat in watched:
            if seat.end() <= clock and not seat.left:
                desk.lose(seat)


async def call_on_lost(hold: Hold) -> None:
    try:
        assert hold._wish.on_lost is not None
        result = hold._wish.on_lost(hold)
        if hasattr(result, "__await__"):
            await result
    except (Exception, SystemExit):
        stumbled(f"on_lost for {hold.name!r} raised")
