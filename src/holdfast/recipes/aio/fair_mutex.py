"""FairMutex for tasks: lock, unlock, and whoever asks first gets it first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...aio import Lease, Lock
from ...flow.check import Seconds
from .clients import locks_of

if TYPE_CHECKING:
    from redis.asyncio import Redis, RedisCluster


class FairMutex(Lock):
    """A mutex by name on a Redis server; those who wait get it in the order in which they asked.

        mutex = FairMutex(client, "orders")
        async with mutex:
            ...

    The same as `holdfast.recipes.FairMutex`, with a client of redis.asyncio.
    """

    def __init__(self, redis: Redis | RedisCluster, key: str, lock_time: Seconds = 30) -> None:
        locks = locks_of(redis)
        chosen = locks.lock(key, lease=lock_time, local_handoff=False)
        super().__init__(locks, chosen._wish, timeout=None, reentrant=False)

    async def lock(self) -> Lease:
        """Wait for it. The lease tells how it goes on: its `fence`, whether it is `lost`.

        BackendError if the server cannot be reached. A cancelled task leaves nothing behind, neither a lock nor a
        place in line.
        """
        lease = await self.acquire()
        assert lease is not None, "who waits for ever does not give up"
        return lease

    async def unlock(self) -> None:
        """Give it back; the next in line is let in by this very step.

        NotHeld if this object does not have it, LeaseLost if it was lost before, so that others may have had it.
        """
        await self.release()
