"""Room for the statements of threads that may wait for a locked row: they never use all connections.

A statement that needs a row which a transaction has locked (`lease.seal`) waits, and so does its connection. One
connection is left for reads, and for the renewals of leases, which skip such a row.
"""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import Any

from ..deadline import limit
from .url import CONNECTIONS, RESERVED

WAITING = CONNECTIONS - RESERVED  # such statements at the same time

Room = SimpleQueue[None]
"""It has an entry for each statement that may be sent now. A thread takes one, and puts it back."""


def make_room() -> Room:
    room: Room = SimpleQueue()
    for _ in range(WAITING):
        room.put(None)
    return room


def wait_for_room(room: Room, timeout: float, pool: Any) -> bool:
    """Wait until there is room. Return False if that takes too long."""
    try:
        room.get(True, limit(timeout))
        return True
    except Empty:
        # Unless the connections are busy, a Ctrl-C came right after another thread was admitted. This one makes up for
        # it when it has finished.
        return bool(pool.checkedout() < WAITING)
