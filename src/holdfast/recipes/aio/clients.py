"""One client of holdfast for each client of redis.asyncio; see the same file for threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ...aio import Locks, connect

if TYPE_CHECKING:
    from redis.asyncio import Redis, RedisCluster

_known: WeakKeyDictionary[Any, Locks] = WeakKeyDictionary()


def locks_of(client: Redis | RedisCluster) -> Locks:
    """Those of this event loop: a client that outlives its loop, as in `asyncio.run` twice, starts afresh in the next.

    ConfigError if this is no client of redis.asyncio.
    """
    pool = getattr(client, "connection_pool", client)
    found = _known.get(pool)
    if found is None or not found._colour.at_home():
        found = _known[pool] = connect(client)
    return found
