"""One client of fairlock for each client of redis-py.

A recipe is given a client of redis-py, often a new one with each lock. But leases need one keeper and waiters one
listening connection for the whole process, so the same client, or another one of the same pool, always has the same
`Locks`. They last as long as the pool does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ..sync import Locks

if TYPE_CHECKING:
    from redis import Redis, RedisCluster

_known: WeakKeyDictionary[Any, Locks] = WeakKeyDictionary()


def client_for(client: Redis | RedisCluster) -> Locks:
    """Return the client of fairlock. ConfigError if this is no client of redis-py, or one for asyncio."""
    pool = getattr(client, "connection_pool", client)
    found = _known.get(pool)
    if found is None:
        from .. import connect

        found = connect(client)
        found.session.ends_with_process = False  # as with redis-py: what is not released stays for its timeout
        found = _known.setdefault(pool, found)  # no I/O yet, so one too many costs nothing
    return found

