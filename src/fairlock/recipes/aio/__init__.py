"""The recipes for asyncio: `FairMutex` and `RedisPyLock` with clients of redis.asyncio, `RemoteLocks` on any store."""

from .fair_mutex import FairMutex as FairMutex
from .locks_by_type_and_number import RemoteLocks as RemoteLocks
from .redis_py_lock import RedisPyLock as RedisPyLock

__all__ = ["FairMutex", "RedisPyLock", "RemoteLocks"]
