"""RemoteLocks for tasks: mutexes and readers-writer locks by type and number, with a ticket of the caller's own."""

from __future__ import annotations

from ...aio import Locks
from ...engine import validate
from ...engine.validate import Seconds
from ..locks_by_type_and_number_base import MUTEX, READERS, RemoteHolds, StaleLock, stale_in


class RemoteLocks(RemoteHolds[Locks]):
    """Locks on resources that are named by a type and a number, on any store.

        remote = RemoteLocks(fairlock.aio.connect("postgresql://…"))
        if await remote.acquire_mutex_lock("order", 42, ticket):
            ...
            await remote.release_mutex_lock("order", 42, ticket)

    The same as `fairlock.recipes.RemoteLocks`, with a client of fairlock.aio.
    """

    async def acquire_mutex_lock(
        self, resource_type: str, resource_id: int | str, ticket: str, *, timeout: Seconds = 0
    ) -> bool:
        """Return True if acquired: no other client holds it in any way."""
        return await self._acquire(MUTEX, resource_type, resource_id, ticket, timeout)

    async def release_mutex_lock(self, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Release it by its ticket. Return False if there is no such hold (any more)."""
        return await self._release(MUTEX, resource_type, resource_id, ticket)

    async def acquire_readers_lock(
        self, resource_type: str, resource_id: int | str, ticket: str, *, timeout: Seconds = 0
    ) -> bool:
        """Return True if acquired for reading: there is no writer, and none waits."""
        return await self._acquire(READERS, resource_type, resource_id, ticket, timeout)

    async def release_readers_lock(self, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Release it by its ticket. Return False if there is no such hold (any more)."""
        return await self._release(READERS, resource_type, resource_id, ticket)

    async def acquire_writer_lock(
        self, resource_type: str, resource_id: int | str, ticket: str, *, timeout: Seconds = 0
    ) -> bool:
        """Return True if acquired for writing. A refused writer keeps a place for a while: repeat with its ticket."""
        return await self._write(resource_type, resource_id, ticket, timeout)

    async def release_writer_lock(self, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Release it, or the place of a writer that waits. Return False if there is neither (any more)."""
        return await self._give_up(resource_type, resource_id, ticket)

    async def stale(self, older_than: Seconds) -> list[StaleLock]:
        """Return the holds that have lasted longer than this, the oldest first. Ends none of them: see Locks.evict."""
        seconds = validate.seconds(older_than, "older_than")
        return stale_in(await self._locks.snapshot("*,*"), seconds)
