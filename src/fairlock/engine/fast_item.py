"""Shortcuts to acquire any free item, and to finish it or give it back, as two plain calls.

They do what pool_acquire.py and pool_release.py do, step by step and in the same order, if the backend can do it
at once. Everything else is left to the coroutines there, which go on from where these stopped: as fast_acquire.py does
for locks, and for the same reason.
"""

from __future__ import annotations

from typing import Any

from ..rules.pools import Finish, Finished, Give, Given, On, Remove, Removed, Taken
from ..stores.base import OutcomeUnknown
from .acquire import named
from .events import heeded, tell_released
from .grant import LeaseBase
from .pool_acquire import Seeker, have, seek_message
from .release import over
from .session import Session

KEPT = (Finished, Given, Removed)


def take(session: Session, seeker: Seeker, trying: bool) -> LeaseBase | None:
    """Return the hold on an item; None: go on with `seek`. On any exception the caller must `withdraw`."""
    if session.closing or session.down:
        return None
    backend: Any = session.backend
    try:
        at_once = backend.pools.call_nowait
    except AttributeError:
        return None
    try:
        answer = at_once(seeker.pool_request.pool, seek_message(session, seeker, trying))
    except OutcomeUnknown:
        return None  # it was sent and may have arrived: `seek` repeats it with the same ticket
    if answer is None:
        seeker.sent = False  # it was not sent, or it has done nothing
        return None
    reply, at, _ = answer
    session.heard = at
    if type(reply) is Taken:
        return have(session, seeker, reply, at)
    seeker.answer = answer
    return None


def let_go(session: Session, hold: LeaseBase, command: Finish | Give | Remove) -> bool:
    """Return True if the item was given up; False: not yet. Then, and on any exception, the caller must `let_go`."""
    grant: Any = hold._grant
    with session.mutex:
        if hold._released or hold._reason or grant.leaving or grant.going or session.closing or session.down:
            return False
        clock = session.clock()
        if clock >= grant.deadline:
            return False
        grant.leaving = True
        grant.going = clock
        grant.end_by = command
    try:
        answer = session.pools().call_nowait(grant.name, named(On, (grant.key, command)))
    except OutcomeUnknown:
        return False  # `let_go` repeats it, and knows that it is not the first time
    if answer is None or type(answer.reply) not in KEPT:
        grant.going = 0.0
        return False
    session.heard = answer.at
    grant.left = True
    if session.pending_releases:
        with session.mutex:
            session.pending_releases.pop(grant.ticket, None)
    session.grants.pop(grant.ticket, None)
    over(hold)
    if session.on_event is not None or heeded("released"):
        tell_released(session, hold, grant.key)
    return True
