"""The shortcut of fast_acquire.py for tasks: each step is cut in two where the reply is awaited.

All messages of one turn of the loop are sent together. The coroutine in between belongs to fairlock.aio, so that there
is one for a step and no more: a thousand tasks may run through these lines in one turn, and then each line costs. Tasks
change plain data only between two awaits, so there is no mutex.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from ..rules.locks import Acquire
from .acquire import accept_grant
from .events import heeded, tell_acquired, tell_released
from .fast_acquire import goes
from .grant import Grant, LeaseBase
from .release import over
from .request import LockRequest
from .session import Session


def knock(session: Session, hold: LeaseBase) -> Awaitable[Any] | None:
    """Send Acquire. Returns what to await, for `sit`; None: go on with `get`. On any exception call `undo`."""
    request = hold._request
    soon = request.soon
    if soon is None or soon.of is not session.backend:
        prepare(session, request)
        return None
    if request.key in session.grants or session.closing or session.down:
        return None
    ticket = session.ticket(hold._who)
    grant = hold._grant = Grant(request, ticket, 0.0, request.key)
    grant.leader = hold
    session.grants[grant.filed] = grant
    at = grant.admitted = session.clock()
    asked = soon.enter(grant.ticket, at)
    if asked is not None:
        grant.sent = grant.doubtful = True
    return asked


def prepare(session: Session, request: LockRequest) -> None:
    """Prepare the shortcut for the next use of this request, if the backend has one."""
    backend = session.backend
    if backend.may_duplicate or backend.skew:
        request.soon = None
        return
    request.soon = backend.soon(request.name, Acquire(
        "", request.capacity, request.weight, request.lease_us, True, request.fair, request.block,
        backend.open_listener(), session.owner, request.note,
    ))  # fmt: skip


def sit(session: Session, hold: LeaseBase, found: Any) -> bool:
    """Return True if acquired; False: go on with `get`. Like accept_grant(), for an exclusive grant."""
    grant = hold._grant
    grant.doubtful = False
    if found is None:
        return False
    at = grant.admitted
    session.heard = at
    request = hold._request
    if not request.plain:
        return accept_grant(session, hold, grant, int(found), at, request.lease_us)
    clock = session.clock()
    lease = request.lease
    deadline = at + lease - lease / 10
    if clock >= deadline or session.closing:
        return False
    grant.deadline = deadline
    grant.asked = at
    renew_at = grant.renew_at = at + lease / 3
    grant.admitted = hold._since = clock
    grant.fence = hold.fence = found
    grant.holds = [hold]
    grant.leader = None
    if renew_at < session.wake_at:
        session.occupied(grant)
    if session.on_event is not None or heeded("acquired"):
        tell_acquired(session, hold)
    return True


def go(session: Session, hold: LeaseBase) -> Awaitable[Any] | None:
    """Send Release. Returns what to await, for `gone`; None: it is released, or go on with `release`."""
    soon = hold._request.soon
    grant = hold._grant
    if soon is None or soon.of is not session.backend or grant.doubtful:
        return None
    if not goes(session, hold, grant):
        if hold._released and not hold._reason:
            tell_released(session, hold)  # it was passed on
        return None
    asked = soon.leave(grant.ticket, hold.fence)
    if asked is None:
        stays(grant)
    return asked


def stays(grant: Grant) -> None:
    """Nothing was sent, or another reply came: go on with `release`, which sends it as if for the first time."""
    grant.leaving = False
    grant.going = 0.0


def gone(session: Session, hold: LeaseBase, found: Any) -> bool:
    """Return True if released; False: go on with `release`."""
    grant = hold._grant
    if found is None:
        stays(grant)
        return False
    grant.left = True
    grants = session.grants
    if grant.queue is None and grants.get(grant.filed) is grant:
        del grants[grant.filed]
    else:
        session.drop_grant(grant)
    over(hold)
    if session.on_event is not None or heeded("released"):
        tell_released(session, hold)
    return True
