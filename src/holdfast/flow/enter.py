"""Around a hold: entering and leaving `with`, reentrancy, the rule against waiting for oneself, timeouts as sentences.

Colourless like the rest; the two faces differ only in how they call it.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable

from ..errors import AlreadyHeld, BackendError, LockTimeout
from . import short
from .acquire import acquire, release, withdraw
from .desk import Desk
from .events import warn
from .party import Guest
from .seat import Hold, Wish


def get_at_once(
    desk: Desk, wish: Wish, limit: float | None, guest: Guest, who: Hashable, reentrant: bool
) -> Hold | None:
    """A hold that takes no waiting; or None: go on with `get`. On any exception: withdraw."""
    guest.who = who
    if reentrant or (limit is None and (wish.name, who) in desk.entered):
        return None
    return short.enter(desk, wish, guest, limit == 0)


async def get_soon(
    desk: Desk, wish: Wish, limit: float | None, guest: Guest, who: Hashable, reentrant: bool
) -> Hold | None:
    """A hold that takes one message and its answer; or None: go on with `get`. On any exception: withdraw."""
    guest.who = who
    if reentrant or (limit is None and (wish.name, who) in desk.entered):
        return None
    return await short.enter_soon(desk, wish, guest, limit == 0)


async def get(desk: Desk, wish: Wish, limit: float | None, guest: Guest, who: Hashable, reentrant: bool) -> Hold | None:
    """A hold within `limit` seconds (None: for ever, 0: only a try), or None. On any exception: withdraw."""
    guest.who = who
    if reentrant:
        hold = _again(desk, wish, who)
        if hold is not None:
            return hold
    if limit is None:
        await _not_for_oneself(desk, wish, who)
    until = limit if not limit else desk.clock() + limit
    hold = await acquire(desk, wish, until, guest)
    if hold is not None and reentrant:
        desk.nested[wish.name, who] = hold
    return hold


def _again(desk: Desk, wish: Wish, who: Hashable) -> Hold | None:
    """One more hold on the seat that this thread or task has already."""
    first = desk.nested.get((wish.name, who))
    if first is None:
        return None
    seat = first._seat
    with desk.mutex:
        mine = any(h._who == who for h in seat.holds)  # it may have been passed on: then the seat is another's
        if not mine or seat.reason or seat.leaving or seat.left or desk.clock() >= seat.end():
            del desk.nested[wish.name, who]
            return None
        if seat.weight < wish.weight:
            return None
        hold = desk.hold(desk, seat, first.fence, wish, who, desk.clock())
        seat.holds.append(hold)
    return hold


async def _not_for_oneself(desk: Desk, wish: Wish, who: Hashable) -> None:
    held = [h for h in desk.entered.get((wish.name, who), ()) if h.held]
    for hold in [h for h in held if _was_left(h)]:
        held.remove(hold)
        _no_longer_entered(desk, hold)
        await release(desk, hold, quiet=True)
    if held and wish.capacity and sum(h._seat.weight for h in held) + wish.weight > wish.capacity:
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


def enter(desk: Desk, hold: Hold, depth: int) -> None:
    """Mark a hold as entered by `with`, where the caller stands."""
    frame = sys._getframe(depth)
    hold._entered = (frame, frame.f_lasti)
    desk.entered.setdefault((hold._wish.name, hold._who), []).append(hold)


def leave_at_once(desk: Desk, hold: Hold) -> bool:
    """Leave `with`, if that takes no waiting. False: go on with `leave`."""
    _no_longer_entered(desk, hold)
    return short.leave(desk, hold)


async def leave_soon(desk: Desk, hold: Hold) -> bool:
    """Leave `async with`, if that takes one message and its answer. False, or any exception: go on with `leave`."""
    _no_longer_entered(desk, hold)
    return await short.leave_soon(desk, hold)


def _no_longer_entered(desk: Desk, hold: Hold) -> None:
    hold._entered = None
    key = (hold._wish.name, hold._who)
    entered = desk.entered.get(key)
    if entered is not None and hold in entered:
        entered.remove(hold)
        if not entered:
            desk.entered.pop(key, None)


async def leave(desk: Desk, hold: Hold, error: BaseException | None) -> None:
    """Leave `with`. A loss is raised only if the body was clean, else noted on its exception; a store that is down is
    logged, and the keeper goes on trying."""
    _no_longer_entered(desk, hold)
    if not hold._released and hold._desk.clock() >= hold._seat.end():
        hold.lost  # noqa: B018  # the body went on after its end: that is a loss even if nobody took the seat
    await release(desk, hold, quiet=True)
    if hold._reason and hold._reason != "forked":
        loss = hold._loss()
        if error is None:
            raise loss
        error.add_note(str(loss))


async def timed_out(desk: Desk, wish: Wish, guest: Guest, limit: float) -> LockTimeout:
    """The sentence for a wait that was over too early: who holds it, how long I waited, where I stood."""
    party = guest.party
    place = party.ahead + 1 if party is not None and party.waited else None
    inside = ""
    holders: tuple[str, ...] = ()
    try:
        record, now = await desk.backend.look(wish.name)
    except BackendError:
        pass
    else:
        holders = tuple(e.owner for e in record.inside)
        labels = [f"{e.owner}{f' ({e.note})' if e.note else ''}" for e in record.inside[:3]]
        if len(record.inside) > 3:
            labels.append(f"{len(record.inside) - 3} others")
        if labels:
            inside = f"is held by {' and '.join(labels)} for {duration((now - record.inside[0].since) / 1e6)}"
    waited = f"; you waited {duration(limit)}" if limit else ""
    number = f", number {place} in line" if place is not None and limit else ""
    error = LockTimeout(f"{wish.name!r} {inside or 'was not to be had'}{waited}{number}.")
    error.name, error.holders, error.place, error.waited = wish.name, holders, place, limit
    return error


def duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 9.95 and round(seconds, 1) % 1 else f"{max(seconds, 0):.0f} s"


async def get_all(
    desk: Desk, wishes: Iterable[tuple[Wish, bool]], limit: float | None, who: Hashable, guests: list[Guest]
) -> dict[str, Hold]:
    """All of them, in the order of their names, under one deadline; LockTimeout if one is not to be had in time.

    On any exception the caller must give back what there is: `put_back(desk, guests)`.
    """
    begun = desk.clock()
    holds: dict[str, Hold] = {}
    for wish, reentrant in sorted(wishes, key=lambda w: w[0].name):
        rest = None if limit is None else max(limit - (desk.clock() - begun), 0.0)
        guest = Guest(wish)
        guests.append(guest)
        hold = await get(desk, wish, rest, guest, who, reentrant)
        if hold is None:
            raise await timed_out(desk, wish, guest, limit or 0.0)
        guest.hold = holds[wish.name] = hold
    return holds


async def put_back(desk: Desk, guests: Iterable[Guest]) -> None:
    for guest in reversed(list(guests)):
        await withdraw(desk, guest) if guest.party is not None else await _drop(desk, guest)


async def _drop(desk: Desk, guest: Guest) -> None:
    if guest.hold is not None:
        await release(desk, guest.hold, quiet=True)


async def close(desk: Desk) -> None:
    """Release what is held, try once to pay what is owed, and close the store. Nothing raises, nothing hangs."""
    if desk.closed:
        return
    desk.closing = True
    for seat in list(desk.seats.values()):
        for hold in list(seat.holds):
            if seat.order is not None:
                from .let_go import give

                await give(desk, hold, quiet=True)
            else:
                await release(desk, hold, quiet=True)
    from .acquire import pay

    for ticket in list(desk.debts):
        await pay(desk, ticket)
    desk.closed = True
    desk.bell.set()
    desk.watch_bell.set()
    try:
        await desk.backend.tidy()
    except BackendError as error:
        warn(f"Closing {desk.backend.where}: {error}")
    await desk.backend.close()


def warn_dropped(desk: Desk) -> None:
    """A client was forgotten while it held something. A finalizer must not raise, so it only warns."""
    try:
        import warnings

        names = ", ".join(sorted({seat.name for seat in list(desk.seats.values())}))
        warnings.warn(f"a client of {desk.backend.where} was dropped while holding {names}", ResourceWarning, 3)
    except Exception:
        pass
