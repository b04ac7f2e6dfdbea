"""RemoteLocks: mutexes and readers-writer locks by type and number of a resource, with a ticket of the caller's own.

The caller gives each hold a ticket, any text, which may be used again later. Every process that knows it may give the
hold back. Inside, each hold has a ticket of ours that is never used again, so that a late message of an earlier hold
cannot end a later one of the same name. The lease of a hold is kept while its client lives, and ends when it is gone.
remote_holds.py has the logic; docs/recipes.md maps the usual description, a table of mutexes and one of doormen, to it.
"""

from __future__ import annotations

from ..client import Locks
from ..flow import check
from ..flow.check import Seconds
from ..flow.run import run
from .remote_holds import MUTEX, READERS, RemoteHolds, StaleLock, stale_in

__all__ = ["RemoteLocks", "StaleLock"]


class RemoteLocks(RemoteHolds):
    """Locks on resources that are named by a type and a number, on any store.

        remote = RemoteLocks(holdfast.connect("postgresql://…"))
        if remote.acquire_mutex_lock("order", 42, ticket):
            ...
            remote.release_mutex_lock("order", 42, ticket)

    Each call answers True or False; BackendError if the store cannot be reached, ConfigError for a bad type, number or
    ticket. Without `timeout` an acquire is one try, to be repeated by the caller; with one it waits that long. A ticket
    that is in use is refused. `pending`: for how many seconds after its last call a writer that was refused keeps its
    place, in which it keeps new readers out.
    """

    def __init__(self, locks: Locks, *, pending: Seconds = 10) -> None:
        super().__init__(locks, pending=pending)

    def acquire_mutex_lock(
        self, resource_type: str, resource_id: int | str, ticket: str, *, timeout: Seconds = 0
    ) -> bool:
        """Whether it is ours now: nobody else has it in any way."""
        return run(self._acquire(MUTEX, resource_type, resource_id, ticket, timeout))

    def release_mutex_lock(self, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Give it back, by its ticket. False if there is no such hold (any more)."""
        return run(self._release(MUTEX, resource_type, resource_id, ticket))

    def acquire_readers_lock(
        self, resource_type: str, resource_id: int | str, ticket: str, *, timeout: Seconds = 0
    ) -> bool:
        """Whether we are among the readers now: nobody writes, and no writer waits."""
        return run(self._acquire(READERS, resource_type, resource_id, ticket, timeout))

    def release_readers_lock(self, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Give it back, by its ticket. False if there is no such hold (any more)."""
        return run(self._release(READERS, resource_type, resource_id, ticket))

    def acquire_writer_lock(
        self, resource_type: str, resource_id: int | str, ticket: str, *, timeout: Seconds = 0
    ) -> bool:
        """Whether we write now. A writer that is refused keeps a place for a while: repeat it with the same ticket."""
        return run(self._write(resource_type, resource_id, ticket, timeout))

    def release_writer_lock(self, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Give it back, or the place of a writer that waits. False if there is neither (any more)."""
        return run(self._give_up(resource_type, resource_id, ticket))

    def stale(self, older_than: Seconds) -> list[StaleLock]:
        """The holds that have lasted longer than this, the oldest first. Ends none of them: see Locks.evict."""
        seconds = check.seconds(older_than, "older_than")
        return stale_in(self._locks.snapshot("*,*"), seconds)
