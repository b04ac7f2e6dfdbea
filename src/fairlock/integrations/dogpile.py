"""dogpile.cache: one process of all machines creates a value, the others wait for it or get the old one.

    region = make_region().configure("dogpile.cache.redis", …, wrap=[Mutexes(locks)])

A region asks its backend for a mutex. Most backends have none that reaches further than a process. Those of Redis and
memcached have one with `distributed_lock`: without a queue, and a creator that dies blocks the key until it expires.
"""

from __future__ import annotations

from typing import Any

from dogpile.cache.api import CacheMutex, KeyType
from dogpile.cache.proxy import ProxyBackend

from fairlock import Lock, Locks, safe_name


class Mutexes(ProxyBackend):
    """A proxy for any backend of dogpile.cache, whose mutexes are locks of this client.

    prefix: the names are this and the key. Other options as for `lock`; a `max_hold` ends a creator that hangs.
    """

    def __init__(self, locks: Locks, *, prefix: str = "dogpile:", **options: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self._locks, self._prefix, self._options = locks, prefix, options

    def get_mutex(self, key: KeyType) -> CacheMutex:
        return _Mutex(self._locks.lock(safe_name(f"{self._prefix}{key}"), **self._options))


class _Mutex(CacheMutex):
    def __init__(self, lock: Lock) -> None:
        self._lock = lock

    def acquire(self, wait: bool = True) -> bool:
        return self._lock.acquire(blocking=wait) is not None

    def release(self) -> None:
        self._lock.release()

    def locked(self) -> bool:
        return self._lock.locked()
