"""Shortcuts to acquire and release a lock that no other client wants, as two plain calls.

They do what acquire.py and release.py do, step by step and in the same order, for the most frequent case and nothing
else: no other thread or task of this client waits for the lock, and the backend can make the step at
once. Passing on to one that does wait needs no more than that. Everything else is left to the coroutines there,
which go on from where these stopped: a coroutine that never waits costs as much as ten lines of its work.

Between two messages the caches of the processor have gone cold, so every call and every object here costs threefold.
"""

from __future__ import annotations

from ..rules.locks import Granted, Release, Released
from ..stores.base import OutcomeUnknown
from .acquire import accept_grant, acquire_message, named
from .events import heeded, tell_released
from .grant import NOWHERE, Grant, LeaseBase
from .local_queue import may_pass_on, pass_on
from .release import over
from .session import Session


def enter(session: Session, hold: LeaseBase, trying: bool) -> bool:
    """Return True if acquired; False: the caller must go on with `acquire`. On any exception it must `withdraw`."""
    request, grant = hold._request, hold._grant
    if session.closing or session.down:
        return False
    if grant.leader is not hold:
        if request.key in session.grants:
            return False
        grant = hold._grant = Grant(request, session.ticket(hold._who), session.backend.skew, request.key)
        grant.leader = hold
        if session.grants.setdefault(grant.filed, grant) is not grant:
            hold._grant = NOWHERE  # another thread was faster
            return False
    elif grant.sent:
        return False  # by an earlier leader: `acquire` handles its outcome
    try:
        answer = session.backend.call_nowait(request.name, acquire_message(session, grant, trying))
    except OutcomeUnknown:
        return False  # it was sent and may have arrived: `acquire` repeats it with the same ticket
    if answer is None:
        grant.sent = grant.doubtful = False  # it was not sent
        return False
    reply, at, again = answer
    session.heard = at
    grant.doubtful = again
    if type(reply) is Granted:
        return accept_grant(session, hold, grant, reply.fence, at, reply.left)
    grant.answer = answer
    return False


def leave(session: Session, hold: LeaseBase) -> bool:
    """Return True if released; False: nothing has happened. Then, and on any exception, the caller must `release`."""
    grant = hold._grant
    if not goes(session, hold, grant):
        passed_on = hold._released and not hold._reason
        if passed_on and (session.on_event is not None or heeded("released")):
            tell_released(session, hold)
        return passed_on
    command = named(Release, (grant.ticket, grant.doubtful or session.backend.may_duplicate, hold.fence, None))
    try:
        answer = session.backend.call_nowait(grant.name, command)
    except OutcomeUnknown:
        grant.leaving = False  # it is released all the same: `release` repeats it, and knows that it is not the first
        return False
    if answer is None or type(answer.reply) is not Released or not answer.reply.held:
        grant.leaving = False
        grant.going = 0.0
        return False
    session.heard = answer.at
    grant.left = True
    with session.mutex:
        alone = not grant.queue and session.grants.get(grant.filed) is grant
        if alone:
            del session.grants[grant.filed]
    if not alone:
        session.drop_grant(grant)
    over(hold)
    if session.on_event is not None or heeded("released"):
        tell_released(session, hold)
    return True


def goes(session: Session, hold: LeaseBase, grant: Grant) -> bool:
    """Return True if this hold can simply be released: from here on it is leaving. Or it was passed on."""
    with session.mutex:
        if (
            hold._released or hold._reason or grant.leaving or grant.going or len(grant.holds) != 1
            or grant.holds[0] is not hold or hold._request.at_least is not None or session.closing or session.down
        ):  # fmt: skip
            return False
        clock = session.clock()
        if clock >= grant.deadline or clock >= grant.cap:
            return False
        if grant.queue and may_pass_on(grant, clock):
            pass_on(grant, clock)
            over(hold)
            return False
        grant.leaving = True
        grant.going = clock
    return True
