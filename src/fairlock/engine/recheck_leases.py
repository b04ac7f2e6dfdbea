"""React at once when a store may have lost its data: check every lease.

A backend finds that out by itself (a file that was replaced, a connection that broke), or one lease does when it is
renewed. Either way the keeper asks for every lease now, not at a third of its length. Only the store's reply ends a
lease, because a connection may break, and a file may be replaced by its own copy, without any harm.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .session import Session


def follow(session: Session) -> None:
    """Make the backend call `suspect`, without keeping alive a client that was dropped without being closed."""
    there = weakref.ref(session)

    def reset() -> None:
        alive = there()
        if alive is not None:
            suspect(alive)

    session.backend.notify_reset(reset)


def suspect(session: Session) -> None:
    """Renew every lease now."""
    with session.mutex:
        clock = session.clock()
        held = session.holders()
        for grant in held:
            grant.renew_at = min(grant.renew_at, clock)
        if held:
            session.wake_keeper(clock)


def look_up(session: Session) -> None:
    """Make the keeper check now what the backend knows, not within a second."""
    with session.mutex:
        if session.keeping:
            session.wake_keeper(session.clock())
