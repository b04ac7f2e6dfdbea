"""One client of fairlock for each client of redis.asyncio; see the same file for threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from ...aio import Locks, connect
from ...aio.runtime import TaskRuntime

if TYPE_CHECKING:
    from redis.asyncio import Redis, RedisCluster

_known: WeakKeyDictionary[Any, Locks] = WeakKeyDictionary()


def client_for(client: Redis | RedisCluster) -> Locks:
    """Return the client of this event loop: a redis client that outlives its loop has a new one in the next loop.

    ConfigError if this is no client of redis.asyncio.
    """
    pool = getattr(client, "connection_pool", client)
    found = _known.get(pool)
    if found is None or not cast(TaskRuntime, found.session.runtime).is_in_own_loop():
        found = _known[pool] = connect(client)
    return found
