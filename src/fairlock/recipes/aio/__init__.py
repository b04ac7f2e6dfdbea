"""The recipes for asyncio: `FairMutex` and `RedisPyLock` with clients of redis.asyncio, `RemoteLocks` on any store."""

from .fair_mutex import FairMutex as FairMutex
from .redis_py_lock import RedisPyLock as RedisPyLock
from .remote_locks import RemoteLocks as RemoteLocks

__all__ = ["FairMutex", "RedisPyLock", "RemoteLocks"]
