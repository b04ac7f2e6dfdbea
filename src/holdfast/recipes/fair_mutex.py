"""FairMutex: lock, unlock, and whoever asks first gets it first.

It is a lock of holdfast with its options chosen: the doorman has the line, the lease is the time after which a silent
holder loses the lock, and without hand-off inside a process the order is that of asking, over all processes.
docs/recipes.md tells how the usual description of such a mutex, three Redis keys and a BLPOP, maps to this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..client import Lease, Lock
from ..flow.check import Seconds
from .clients import locks_of

if TYPE_CHECKING:
    from redis import Redis, RedisCluster


class FairMutex(Lock):
    """A mutex by name on a Redis server; those who wait get it in the order in which they asked.

        mutex = FairMutex(client, "orders")
        with mutex:
            ...

    `lock_time`: after how many seconds others get in if the holder dies or falls silent. While it lives it keeps the
    lock, however long it works. It is the same lock as `holdfast.connect(client).lock(key)`, and does all that such a
    one does. Bad input: ConfigError.
    """

    def __init__(self, redis: Redis | RedisCluster, key: str, lock_time: Seconds = 30) -> None:
        locks = locks_of(redis)
        chosen = locks.lock(key, lease=lock_time, local_handoff=False)
        super().__init__(locks, chosen._wish, timeout=None, reentrant=False)

    def lock(self) -> Lease:
        """Wait for it. The lease tells how it goes on: its `fence`, whether it is `lost`.

        BackendError if the server cannot be reached. Ctrl-C leaves nothing behind, neither a lock nor a place in line.
        """
        lease = self.acquire()
        assert lease is not None, "who waits for ever does not give up"
        return lease

    def unlock(self) -> None:
        """Give it back; the next in line is let in by this very step.

        NotHeld if this object does not have it, LeaseLost if it was lost before, so that others may have had it.
        """
        self.release()
