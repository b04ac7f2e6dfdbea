"""How a thread waits behind others of its own client: on a raw lock, until a holder passes its grant on.

It is the beginning of what `acquire` does, without coroutines: hundreds of threads that want the same thing pass it on
to each other by tens of thousands a second, and then every call between two of them counts. Whatever is not as plain as
that (its time is over, it was woken for nothing, it is to lead and has to wait) is left to `acquire`, which looks for
itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..engine.acquire import called
from ..engine.events import heeded, tell_acquired, tell_waiting
from ..engine.fast_acquire import enter
from ..engine.local_queue import stand_by
from ..engine.session import Session
from .lease import Lease

if TYPE_CHECKING:
    from .runtime import ThreadEvent

LONGEST = 0.5  # seconds; a longer wait is in no hurry, and `acquire` may have something to report to it


def behind(session: Session, lease: Lease, limit: float | None) -> bool:
    """Return True if acquired; False: the caller must go on with `get`. On any exception the caller must undo it."""
    event: ThreadEvent = session.runtime.event()  # type: ignore[assignment]
    with session.mutex:
        grant = session.grants.get(lease._request.key)
        if grant is None:
            return False
        stand_by(grant, lease, event)
    tell_waiting(session, lease, len(grant.queue or ()) or 1, "", "behind others of this client")
    if not event.block(LONGEST if limit is None or limit > LONGEST else limit):
        return False
    grant = lease._grant
    if lease not in grant.holds:
        with session.mutex:
            leads = called(session, lease)
        return leads and enter(session, lease, False)
    if grant.renew_at < session.wake_at or grant.watched or grant.cap < session.wake_at:
        session.occupied(grant)
    if session.on_event is not None or heeded("acquired"):
        tell_acquired(session, lease)
    return True
