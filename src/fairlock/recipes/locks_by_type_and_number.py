"""RemoteLocks: mutexes and readers-writer locks by type and number of a resource, with a ticket of the caller's own.

The caller gives each hold a ticket, any text, which may be used again later. Every process that knows it may release
the hold. Internally each hold has a ticket of ours that is never used again, so that a late message of an earlier hold
cannot end a later one of the same name. The lease of a hold is kept while its client lives, and ends when it is gone.
locks_by_type_and_number_base.py has the logic; docs/recipes-remote-locks.md compares it with the usual description, a
table of mutexes and one of doormen.
"""

from __future__ import annotations

from ..engine import validate
from ..engine.run_sync import run
from ..engine.validate import Seconds
from ..sync import Locks
from .locks_by_type_and_number_base import MUTEX, READERS, RemoteHolds, StaleLock, stale_in

__all__ = ["RemoteLocks", "StaleLock"]


class RemoteLocks(RemoteHolds[Locks]):
    """Locks on resources that are named by a type and a number, on any store.

        remote = RemoteLocks(fairlock.connect("postgresql://…"))
        if remote.acquire_mutex_lock("order", 42, ticket):
            ...
            remote.release_mutex_lock("order", 42, ticket)

    Each call returns True or False; StoreError if the store cannot be reached, ConfigError for a bad type, number or
    ticket. Without `timeout` an acquire is one attempt, to be repeated by the caller; with one it waits that long. A
    ticket that is in use is refused. `pending`: for how many seconds after its last call a refused writer keeps its
    place, in which it keeps new readers out.
    """

    def acquire_mutex_lock(
        self, resource_type: str, resource_id: int | str, ticket: str, *, timeout: Seconds = 0
    ) -> bool:
        """Return True if acquired: no other client holds it in any way."""
        return run(self._acquire(MUTEX, resource_type, resource_id, ticket, timeout))

    def release_mutex_lock(self, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Release it by its ticket. Return False if there is no such hold (any more)."""
        return run(self._release(MUTEX, resource_type, resource_id, ticket))

    def acquire_readers_lock(
        self, resource_type: str, resource_id: int | str, ticket: str, *, timeout: Seconds = 0
    ) -> bool:
        """Return True if acquired for reading: there is no writer, and none waits."""
        return run(self._acquire(READERS, resource_type, resource_id, ticket, timeout))

    def release_readers_lock(self, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Release it by its ticket. Return False if there is no such hold (any more)."""
        return run(self._release(READERS, resource_type, resource_id, ticket))

    def acquire_writer_lock(
        self, resource_type: str, resource_id: int | str, ticket: str, *, timeout: Seconds = 0
    ) -> bool:
        """Return True if acquired for writing. A refused writer keeps a place for a while: repeat with its ticket."""
        return run(self._write(resource_type, resource_id, ticket, timeout))

    def release_writer_lock(self, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Release it, or the place of a writer that waits. Return False if there is neither (any more)."""
        return run(self._give_up(resource_type, resource_id, ticket))

    def stale(self, older_than: Seconds) -> list[StaleLock]:
        """Return the holds that have lasted longer than this, the oldest first. Ends none of them: see Locks.evict."""
        seconds = validate.seconds(older_than, "older_than")
        return stale_in(self._locks.snapshot("*,*"), seconds)
