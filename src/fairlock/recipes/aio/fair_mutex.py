"""FairMutex for tasks: lock and unlock, first come, first served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...aio import Lease, Lock
from ...engine.validate import Seconds
from .client_per_redis_client import client_for

if TYPE_CHECKING:
    from redis.asyncio import Redis, RedisCluster


class FairMutex(Lock):
    """A mutex by name on a Redis server; waiters acquire it in the order of their requests.

        mutex = FairMutex(client, "orders")
        async with mutex:
            ...

    The same as `fairlock.recipes.FairMutex`, with a client of redis.asyncio.
    """

    def __init__(self, redis: Redis | RedisCluster, key: str, lock_time: Seconds = 30) -> None:
        locks = client_for(redis)
        chosen = locks.lock(key, lease=lock_time, local_handoff=False)
        super().__init__(locks, chosen._request, timeout=None, reentrant=False)

    async def lock(self) -> Lease:
        """Wait for it. Return the lease: its `fence`, and whether it is `lost`.

        StoreError if the server cannot be reached. A cancelled task leaves nothing behind, neither a lock nor a
        place in the queue.
        """
        lease = await self.acquire()
        assert lease is not None, "a wait without a timeout ends with a lease"
        return lease

    async def unlock(self) -> None:
        """Release it; the same step grants it to the next in the queue.

        NotHeld if this object does not hold it, LeaseLost if it was lost before, so that others may have held it.
        """
        await self.release()
