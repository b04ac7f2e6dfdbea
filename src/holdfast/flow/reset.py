"""What the client knows, its leases know at once: the store may have lost what it kept.

A backend finds that out by itself (a file that was replaced, a connection that broke), or one lease does when it is
renewed. Either way the keeper asks for every lease now, not at a third of its length. Only the store's reply ends a
lease, because a connection may break, and a file may be replaced by its own copy, without any harm.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .desk import Desk


def follow(desk: Desk) -> None:
    """Have the backend call `suspect`. It must not keep alive a client that was dropped without being closed."""
    notify = getattr(desk.backend, "notify_reset", None)
    if notify is None:
        return
    there = weakref.ref(desk)

    def reset() -> None:
        alive = there()
        if alive is not None:
            suspect(alive)

    notify(reset)


def suspect(desk: Desk) -> None:
    """Ask for every lease now."""
    with desk.mutex:
        clock = desk.clock()
        held = desk.inside()
        for seat in held:
            seat.renew_at = min(seat.renew_at, clock)
        if held:
            desk.ring(clock)


def look_up(desk: Desk) -> None:
    """Have the keeper look now at what the backend knows, not within a second."""
    with desk.mutex:
        if desk.keeping:
            desk.ring(desk.clock())
