"""Finds the deadlock that a wait which has timed out was part of, so that its LockTimeout can name it.

The store does not know everything: threads of one client that wait for each other have one place in the queue, and a
lock that was passed on has another holder than its ticket shows. This client knows, so it corrects what it reads.

Most timeouts cost nothing here: a ring needs a hold of the same thread or task, for which another one waits.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import LockError
from . import snapshots
from .events import short
from .find_deadlocks import Ring, find_rings, in_both
from .grant import Grant, LeaseBase
from .session import Session
from .snapshots import Holder, Snapshot, Waiter

LOOKS = 8  # names that are read to find out if another one waits for them
BETWEEN_LOOKS = 0.05  # seconds


async def find_own_ring(session: Session, hold: LeaseBase, waited: float) -> Ring | None:
    """Return the ring that this wait was part of, or None. Two snapshots must agree. It raises no error of the
    store."""
    try:
        if not await _is_in_the_way(session, hold):
            return None
        first = await _rings(session, hold, waited)
        if not first:
            return None
        await session.runtime.sleep(min(BETWEEN_LOOKS, waited))
        return next(iter(in_both(first, await _rings(session, hold, waited))), None)
    except LockError:
        return None


async def _is_in_the_way(session: Session, hold: LeaseBase) -> bool:
    """Return True if another one waits for something that this thread or task holds."""
    mine = [grant for grant in session.holders() if any(h._who is hold._who for h in list(grant.holds))]
    if any(grant.queue for grant in mine):
        return True
    for name in list(dict.fromkeys(grant.name for grant in mine if not grant.request.pool))[:LOOKS]:
        if (await session.backend.look(name))[0].queue:
            return True
    return False


async def _rings(session: Session, hold: LeaseBase, waited: float) -> list[Ring]:
    own = _own_wait(session, hold, waited)
    seen = _corrected(session, await snapshots.snapshot(session, "*"), hold, own)
    return [ring for ring in find_rings(seen) if own.ticket in ring.tickets]


def _own_wait(session: Session, hold: LeaseBase, waited: float) -> Waiter:
    request = hold._request
    return Waiter(session.owner, request.note, "this wait", request.weight, waited, 0.0, session.thread(hold._who))


def _corrected(session: Session, seen: Snapshot, hold: LeaseBase, own: Waiter) -> Snapshot:
    """Return the snapshot with the threads of this client, and with the wait that has just ended at its end."""
    with session.mutex:
        grants = {short(grant.ticket): grant for grant in session.grants.values()}
        local: dict[str, list[Waiter]] = {}
        for grant in grants.values():
            local.setdefault(grant.name, []).extend(_local_queue(session, grant, hold))
        resources = []
        for one in seen.resources:
            holders = tuple(h for each in one.holders for h in _threads(session, each, grants.get(each.ticket)))
            queue = [_leader(session, each, grants.get(each.ticket)) for each in one.queue]
            queue += local.get(one.name, [])
            if one.name == hold.name:
                queue.append(own)
            resources.append(one._replace(holders=holders, queue=tuple(queue)))
    return seen._replace(resources=tuple(resources))


def _local_queue(session: Session, grant: Grant, hold: LeaseBase) -> Iterator[Waiter]:
    for number, each in enumerate(grant.queue or ()):
        if each is not hold:
            request, waited = each._request, session.clock() - each._began
            ticket = f"{short(grant.ticket)}/{number}"
            yield Waiter(session.owner, request.note, ticket, request.weight, waited, 0.0, session.thread(each._who))


def _threads(session: Session, shown: Holder, grant: Grant | None) -> Iterator[Holder]:
    if grant is None or not grant.holds or not grant.fence:
        yield shown
        return
    for each in grant.holds:
        yield shown._replace(thread=session.thread(each._who))


def _leader(session: Session, shown: Waiter, grant: Grant | None) -> Waiter:
    if grant is None or not grant.holds:
        return shown
    return shown._replace(thread=session.thread(grant.holds[0]._who))
