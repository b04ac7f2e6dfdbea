"""Repairs the keys of one name that no script can read: finds them by a read and a full step, and deletes them.

There is no checksum here. Fences still rise: the next one comes from the server's clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import RecordDamaged
from ...rules.locks import Renew
from ...rules.pools import BROKEN, Quit
from . import errors, lua_scripts, pool_encoding
from .encoding import pack
from .send_and_redirect import RoutedCommand

if TYPE_CHECKING:
    from .store import RedisBackend

NOBODY = "repair"  # a ticket that no client has
POOL = (b"hash", b"zset", b"zset", b"zset", b"zset")  # the types of a pool's keys


async def repair(backend: RedisBackend, name: str) -> list[str]:
    """Repair the lock and the pool of this name. Returns a sentence for each change."""
    return [*await _repair_lock(backend, name), *await _repair_pool(backend, name)]


async def _repair_lock(backend: RedisBackend, name: str) -> list[str]:
    commands = backend.commands_for(name)
    try:
        await backend.look(name)
        renewal = commands.pack_step(Renew(NOBODY))
        await backend.send(RoutedCommand(commands.slot, renewal, lua_scripts.STEP))
    except (RecordDamaged, errors.Garbage):
        await _send(backend, commands, "DEL", *commands.keys)
        return [f"The record of {name!r} was deleted; its next fence is above {await backend._time()}."]
    return []


async def _repair_pool(backend: RedisBackend, name: str) -> list[str]:
    """Delete keys of another type, the queue if it cannot be read, and damaged items one by one."""
    pools = backend.pools
    one = pools.known[name]
    done: list[str] = []
    for key, kind in zip(one.keys, POOL, strict=True):
        (found,) = await _send(backend, one, "TYPE", key)
        if found not in (b"none", kind, "none", kind.decode()):
            await _send(backend, one, "DEL", key)
            done.append(f"Of the pool {name!r} the key {key!r} was deleted; it was of another type.")
    try:
        await pools.queue(name)
        await backend.send(RoutedCommand(one.slot, one.pack_step(Quit(NOBODY, 0)), pool_encoding.STEP))
    except (RecordDamaged, errors.Garbage):
        await _send(backend, one, "DEL", *one.keys[2:])
        await _send(backend, one, "HDEL", one.keys[0], "s", "p")
        done.append(f"The queue of the pool {name!r} was emptied; its workers join again by themselves.")
    for item in (await pools.all(name))[0]:
        if item.score == BROKEN:
            await _send(backend, one, "ZREM", one.keys[1], item.key)
            await _send(backend, one, "HDEL", one.keys[0], "#" + item.key, "=" + item.key)
            done.append(f"The item {item.key!r} of the pool {name!r} was removed.")
    return done


async def set_apart(backend: RedisBackend, name: str) -> bool:
    """Move the damaged items of this pool to a score that no step finds, until they are repaired. Returns whether any
    was moved: then a step that found one may be sent again."""
    one = backend.pools.known[name]
    moved = 0
    for item in (await backend.pools.all(name))[0]:
        if item.score == BROKEN:
            (changed,) = await _send(backend, one, "ZADD", one.keys[1], "XX", "CH", str(BROKEN), item.key)
            moved += changed
    return moved > 0


async def _send(backend: RedisBackend, where: Any, *words: str) -> list[Any]:
    found: list[Any] = await backend.send(RoutedCommand(where.slot, pack(*words)))
    return found
