"""Around a hold: entering and leaving `with`, reentrancy, the rule against waiting for oneself, timeouts as sentences.

Written once, like the rest of the engine; the two faces differ only in how they call it.
"""

from __future__ import annotations

from collections.abc import Coroutine, Hashable, Iterable
from types import FrameType
from typing import Any

from ..errors import AlreadyHeld, LockTimeout, StoreError
from ..rules.locks import EXCLUSIVE
from ..stores import deadline
from .acquire import acquire, begin_acquire
from .grant import LeaseBase
from .grant_state import HELD
from .release import flush_release, release
from .request import LockRequest
from .session import Session
from .withdraw_request import QUICKLY, withdraw


async def get(session: Session, hold: LeaseBase, limit: float | None, reentrant: bool = False) -> bool:
    """Return True if acquired within `limit` seconds (None: forever, 0: only a try). On any exception call `undo`."""
    if reentrant and await _again(session, hold):
        return True
    until = session.clock() + limit if limit else None
    if begin_acquire(session, hold, limit == 0) is not None:
        hold._grant.doubtful = False  # `acquire` sends it
    had = await acquire(session, hold, until, limit == 0)
    if had and reentrant:
        session.nested[hold._request.name, hold._who] = hold
    return had


async def _again(session: Session, hold: LeaseBase) -> bool:
    """Return True if this is one more hold on the grant that this thread or task has already.

    This reads the clock: if its time is over, that is a loss, and final. The keeper might renew it yet, and then its
    own holder would be refused by it; so the grant is given up first.
    """
    request, who = hold._request, hold._who
    first = session.nested.get((request.name, who))
    if first is None:
        return False
    grant = first._grant
    with session.mutex:
        mine = any(h._who == who for h in grant.holds)  # it may have been passed on: then it belongs to another
        clock = session.clock()
        if mine and grant.state is HELD and clock < grant.end():
            if grant.weight < request.weight:
                return False
            hold._grant, hold._since, hold.fence = grant, clock, first.fence
            grant.holds = (*grant.holds, hold)
            hold._ended = True  # it has no events: the first one has
            return True
        del session.nested[request.name, who]
    if mine and grant.state is HELD:
        session.lose(grant)
        await flush_release(session, grant.ticket, clock + QUICKLY)
    return False


def undo(session: Session, hold: LeaseBase) -> Coroutine[Any, Any, None]:
    """Undo everything so far: the hold is neither entered nor held nor waited for. As `withdraw`, call it where the
    exception is handled."""
    no_longer_entered(session, hold)
    return withdraw(session, hold)


async def refuse_own(session: Session, hold: LeaseBase) -> None:
    """AlreadyHeld if this thread or task holds what it is about to wait for without limit."""
    request = hold._request
    with session.mutex:
        entered = entered_by(session, hold._who)
    held = [h for h in entered if h.name == request.name and h.held]
    for left in [h for h in held if _was_left(h)]:
        held.remove(left)
        no_longer_entered(session, left)
        await release(session, left, quiet=True)
    if not held:
        return
    limit = request.capacity
    if limit != EXCLUSIVE:  # the store knows the size of a semaphore: an operator's number wins
        limit = (await session.backend.look(request.name))[0].capacity
    if sum(h._grant.weight for h in held) + request.weight > limit:
        kind = "thread" if session.runtime.blocking else "task"
        raise AlreadyHeld(
            f"This {kind} already holds {request.name!r} (with, {held[0]._where}); waiting would never end. "
            "Use reentrant=True or another name."
        )


def _was_left(hold: LeaseBase) -> bool:
    """Return True if its `with` has ended without __exit__: a Ctrl-C came just before the first line of __exit__.

    Python cannot prevent that. But a `with` statement that is being entered again, in the same call of the same
    function, has certainly been left.
    """
    frame = hold._entered  # read once: another thread may leave it
    if frame is None:
        return False
    from opcode import opmap

    instruction = hold._instruction
    code = frame.f_code.co_code
    return frame.f_lasti == instruction and code[instruction] == opmap.get("BEFORE_WITH")


def enter(session: Session, hold: LeaseBase, frame: FrameType) -> None:
    """Mark a hold as entered by a `with` in this frame. One that is entered already has its place here from now on."""
    if hold._entered is not None:
        no_longer_entered(session, hold)
    with session.mutex:  # another thread may leave what this one has entered
        hold._outer = session.entered.get(hold._who)  # first: a Ctrl-C may come between any two lines
        hold._instruction, hold._entered = frame.f_lasti, frame
        session.entered[hold._who] = hold


def entered_by(session: Session, who: Hashable) -> list[LeaseBase]:
    """Under the mutex: return the holds that this thread or task has entered by `with`, the innermost first."""
    found, hold = [], session.entered.get(who)
    while hold is not None:
        found.append(hold)
        hold = hold._outer
    return found


def enter_instead(session: Session, old: LeaseBase, new: LeaseBase) -> None:
    """Put a hold into the place of another one that the same thread or task has entered: its `with` leaves this one."""
    new._by = old._by
    with session.mutex:
        found = entered_by(session, old._who)
        if old in found:
            place = found.index(old)
            new._outer, new._instruction, new._entered = old._outer, old._instruction, old._entered
            if place:
                found[place - 1]._outer = new
            else:
                session.entered[new._who] = new


def no_longer_entered(session: Session, hold: LeaseBase) -> None:
    """Mark a hold as not entered any more, by whichever thread or task."""
    with session.mutex:
        if session.entered.get(hold._who) is hold:
            if hold._outer is None:
                del session.entered[hold._who]
            else:
                session.entered[hold._who] = hold._outer
        else:
            for inner in entered_by(session, hold._who):
                if inner._outer is hold:
                    inner._outer = hold._outer
        frame, hold._entered = hold._entered, None  # or its objects would live as long as the lease
    del frame  # not under the mutex: what ends with it may use this client


async def leave(session: Session, hold: LeaseBase, error: BaseException | None) -> None:
    """Leave `with`. A loss is raised only if the body was clean, else noted on its exception; a store that is down is
    logged, and the keeper goes on trying."""
    no_longer_entered(session, hold)
    if not hold._released and hold._session.clock() >= hold._grant.end():
        hold.lost  # noqa: B018  # the body went on after its end: that is a loss even if the lock was not acquired by another
    await release(session, hold, quiet=True)
    raise_loss(hold, error)


def raise_loss(hold: LeaseBase, error: BaseException | None) -> None:
    """At the end of `with`: raise a loss if the body was clean, else note it on its exception."""
    if hold._reason and hold._reason != "forked":
        loss = hold._loss()
        if error is None:
            raise loss
        error.add_note(str(loss))


async def timed_out(session: Session, hold: LeaseBase, limit: float) -> LockTimeout:
    """Return the LockTimeout of a wait that has ended: the holder, how long this one waited, its place in the queue."""
    from .snapshots import duration, in_the_way, resource  # here, because most programs have no timeout

    request = hold._request
    grant = hold._grant if hold._event is None else session.grants.get(request.key)
    place = grant.place[0] + 1 if grant is not None and grant.place is not None else None
    held = ""
    holders: tuple[str, ...] = ()
    try:
        record, now = await session.backend.look(request.name)
    except StoreError:
        pass
    else:
        found = resource(request.name, record, now).holders
        holders = tuple(one.owner for one in found if one.owner)
        held = in_the_way(found)
    waited = f"; you waited {duration(limit)}" if limit else ""
    number = f", position {place} in the queue" if place is not None and limit else ""
    deadlock = ""
    if held and limit:
        from .deadlock_behind_timeout import find_own_ring

        deadlock = str(await find_own_ring(session, hold, limit) or "")
    also = f" This is a {deadlock}." if deadlock else ""
    error = LockTimeout(f"{request.name!r} {held or 'could not be acquired'}{waited}{number}.{also}")
    error.name, error.holders, error.place, error.waited = request.name, holders, place, limit
    error.deadlock = deadlock
    return error


async def get_all(
    session: Session,
    requests: Iterable[tuple[LockRequest, bool]],
    limit: float | None,
    who: Hashable,
    holds: list[LeaseBase],
) -> dict[str, LeaseBase]:
    """Acquire all of them, in the order of their names, under one deadline; LockTimeout if one is not acquired in time.

    On any exception the caller must give back what there is: `put_back(session, holds)`.
    """
    begun = session.clock()
    before = None if limit is None else deadline.begin(limit)
    try:
        for request, reentrant in sorted(requests, key=lambda w: w[0].name):
            rest = None if limit is None else max(limit - (session.clock() - begun), 0.0)
            hold = session.hold(session, request, who)
            holds.append(hold)
            if not await get(session, hold, rest, reentrant):
                raise await timed_out(session, hold, limit or 0.0)
    finally:
        if before is not None:
            deadline.end(before)
    return {hold.name: hold for hold in holds}


async def put_back(session: Session, holds: Iterable[LeaseBase]) -> None:
    for hold in reversed(list(holds)):
        await undo(session, hold)
