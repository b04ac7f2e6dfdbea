"""ZMutexSet: mutexes as the members of one sorted set, of which a worker acquires any that is free.

The set is the whole state: a member is a mutex, its score is when it was acquired or updated last (0: never), in
microseconds of the server's clock, and one that was not updated for the timeout is free again. Other programs that keep
such a set share it: their mutexes exclude ours. The scripts are in
redis_sorted_set_mutexes_lua.py.

A pool of fairlock is the same idea with a fence, a body, renewal and a queue; use that if you need not share the set.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..engine import validate
from ..engine.boot_clock import boot_clock
from ..engine.validate import Seconds
from ..errors import ConfigError
from . import redis_sorted_set_mutexes_lua as lua
from .pubsub_waiter import PubSubWaiter
from .repeat_lost_calls import repeat_if_lost

if TYPE_CHECKING:
    from redis import Redis, RedisCluster

Mutex = tuple[str, int]

LATE = 0.0005  # seconds after the time at which one expires


class ZMutexSet:
    """A sorted set of mutexes; a holder that stops updating its mutex loses it.

        mutexes = ZMutexSet(client, timeout_seconds=60)
        mutexes.create("gpu-0")
        mutex = mutexes.acquire(timeout=10)   # ("gpu-0", 1763251200000000), or None
        mutex = mutexes.update(mutex)         # within 60 seconds, again and again
        mutexes.release(mutex, clean_up=False)

    `timeout_seconds`: how long a mutex lasts without an update; nothing is renewed by itself. `revalidate_seconds`: how
    often a waiter polls although nothing was published. One object serves all threads. Bad input: ConfigError. What the
    client raises (`redis.exceptions`) is not changed, after three attempts.
    """

    def __init__(
        self,
        redis: Redis | RedisCluster,
        zsetname: str = "zmutex",
        timeout_seconds: Seconds = 60,
        revalidate_seconds: Seconds = 1,
    ) -> None:
        from ..stores.redis.address_from_client import refuse_runtime

        refuse_runtime(redis, blocking=True)
        self._redis: Any = redis
        self._timeout = int(validate.seconds(timeout_seconds, "timeout_seconds") * 1e6)
        self._revalidate = validate.seconds(revalidate_seconds, "revalidate_seconds")
        name = validate.name(zsetname, "zsetname")
        self._keys = [name, _companion(name, hasattr(redis, "nodes_manager"))]
        self._channel = f"fairlock:zmutex:{name}"
        pool = getattr(redis, "connection_pool", None)
        db = pool.connection_kwargs.get("db") or 0 if pool is not None else 0
        self._waiter = PubSubWaiter(self._redis, [self._channel, f"__keyspace@{db}__:{name}"])
        self._scripts: dict[str, Callable[..., Any]] = {}

    def create(self, lock_id: str) -> bool:
        """Create a mutex, free at once. Return False if there is one of this name."""
        return bool(self._run_script(lua.CREATE, os.urandom(16).hex(), validate.name(lock_id, "lock_id"))[0])

    def acquire(self, timeout: Seconds | None = 0, lock_id: str | None = None) -> Mutex | None:
        """Return any free mutex, or the one of this name, as (name, timestamp); None if there was none in time.

        Waits at most `timeout` seconds (None: forever), also for one that is not created yet. A waiter is woken by
        `create` and `release`, when a mutex expires, and when other programs change the set if the server publishes
        that (`notify-keyspace-events` with K and z); else it polls every `revalidate_seconds`.
        """
        name = "" if lock_id is None else validate.name(lock_id, "lock_id")
        limit = validate.timeout(timeout)
        until = None if limit is None else boot_clock() + limit
        ticket = os.urandom(16).hex()
        try:
            found, _ = self._run_script(lua.ACQUIRE, ticket, name)
            if len(found) == 2 or limit == 0:
                return _mutex(found)
            with self._waiter as rings:
                while True:
                    found, _ = self._run_script(lua.ACQUIRE, ticket, name)
                    left = None if until is None else until - boot_clock()
                    if len(found) == 2 or (left is not None and left <= 0):
                        return _mutex(found)
                    nap = min(self._revalidate, int(found[0]) / 1e6 + LATE if int(found[0]) > 0 else self._revalidate)
                    rings = self._waiter.wait(rings, nap if left is None else min(nap, left))
        except BaseException:
            self._withdraw(ticket)
            raise

    def update(self, mutex: Mutex | None) -> Mutex | None:
        """Keep it: return the same mutex with its new timestamp. None if it has expired, or another client holds it."""
        if mutex is None:
            return None
        name, score = _checked(mutex)
        found, _ = self._run_script(lua.UPDATE, os.urandom(16).hex(), name, score)
        return None if found is None else (name, int(found))

    def release(self, mutex: Mutex | None, clean_up: bool = True) -> Mutex | None:
        """Release it: its name is removed from the set, or, without clean_up, it is free for the next client.

        Return (name, 0) if that was done; None if it had expired, or another client holds it.
        """
        if mutex is None:
            return None
        name, score = _checked(mutex)
        (found, over), again = self._run_script(lua.RELEASE, os.urandom(16).hex(), name, score, int(bool(clean_up)))
        done = found == 1 or (found == -1 and again and not over)  # by the attempt whose reply was lost
        return (name, 0) if done else None

    def delete(self, lock_id: str) -> bool:
        """Remove a mutex, even if it is held. Return False if there was none."""
        found, again = self._run_script(lua.DELETE, "", validate.name(lock_id, "lock_id"))
        return bool(found) or again

    def get_stale(self, include_unattended: bool = True, include_expired: bool = True) -> list[str]:
        """Return the names that no client holds: never acquired (or released), and acquired but not updated in time."""
        (unattended, expired), _ = self._run_script(lua.STALE, "")
        found = (unattended if include_unattended else []) + (expired if include_expired else [])
        return [_text(name) for name in found]

    def _withdraw(self, ticket: str) -> None:
        """Undo an interrupted acquire. If that fails, the timeout ends it."""
        try:
            self._run_script(lua.WITHDRAW, ticket)
        except Exception:
            pass

    def _run_script(self, script: str, ticket: str, *arguments: str | int) -> tuple[Any, bool]:
        """Return the script's reply, and True if it was repeated because a reply was lost."""
        call = self._scripts.get(script)
        if call is None:
            call = self._scripts[script] = self._redis.register_script(lua.OPEN + script)
        return repeat_if_lost(lambda: call(self._keys, [ticket, self._timeout, self._channel, *arguments]))

    def __repr__(self) -> str:
        return f"<ZMutexSet {self._keys[0]!r}>"


def _companion(name: str, cluster: bool) -> str:
    """Return the key of the companion, in the same slot of a cluster."""
    if name.partition("{")[2].partition("}")[0] and "}" in name.partition("{")[2]:
        return f"{name}:fairlock"  # it has a hash tag
    if "}" in name and cluster:
        raise ConfigError(f"In a Cluster, zsetname has no brace, or a whole hash tag like {{jobs}}:all, not {name!r}.")
    return f"{{{name}}}:fairlock"


def _mutex(found: list[Any]) -> Mutex | None:
    return (_text(found[0]), int(found[1])) if len(found) == 2 else None


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _checked(mutex: Mutex) -> tuple[str, int]:
    try:
        name, score = mutex
        return validate.name(_text(name), "The name of a mutex"), int(score)
    except (TypeError, ValueError):
        raise ConfigError(f"A mutex is (name, timestamp) as acquire() or update() returns it, not {mutex!r}.") from None
