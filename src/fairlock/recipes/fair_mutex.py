"""FairMutex: lock and unlock, first come, first served.

It is a lock of fairlock with its options chosen: it has a queue, its lease is the time after which a silent holder
loses the lock, and without hand-off inside a process the order is that of the requests, over all processes.
docs/recipes-fair-mutex.md maps the usual description of such a mutex, three Redis keys and a BLPOP, to this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..engine.validate import Seconds
from ..sync import Lease, Lock
from .client_per_redis_client import client_for

if TYPE_CHECKING:
    from redis import Redis, RedisCluster


class FairMutex(Lock):
    """A mutex by name on a Redis server; waiters acquire it in the order of their requests.

        mutex = FairMutex(client, "orders")
        with mutex:
            ...

    `lock_time`: the seconds after which others acquire it if the holder dies or hangs. While the holder lives it keeps
    the lock, however long it works. It is the same lock as `fairlock.connect(client).lock(key)`, with everything that
    such a lock does. Bad input: ConfigError.
    """

    def __init__(self, redis: Redis | RedisCluster, key: str, lock_time: Seconds = 30) -> None:
        locks = client_for(redis)
        chosen = locks.lock(key, lease=lock_time, local_handoff=False)
        super().__init__(locks, chosen._request, timeout=None, reentrant=False)

    def lock(self) -> Lease:
        """Wait for it. Return the lease: its `fence`, and whether it is `lost`.

        StoreError if the server cannot be reached. Ctrl-C leaves nothing behind, neither a lock nor a place in
        the queue.
        """
        lease = self.acquire()
        assert lease is not None, "a wait without a timeout ends with a lease"
        return lease

    def unlock(self) -> None:
        """Release it; the same step grants it to the next in the queue.

        NotHeld if this object does not hold it, LeaseLost if it was lost before, so that others may have held it.
        """
        self.release()
