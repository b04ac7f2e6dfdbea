"""The recipes for asyncio, with clients of redis.asyncio: `FairMutex` and `RedisPyLock`."""

from .fair_mutex import FairMutex as FairMutex
from .redis_py_lock import RedisPyLock as RedisPyLock

__all__ = ["FairMutex", "RedisPyLock"]
