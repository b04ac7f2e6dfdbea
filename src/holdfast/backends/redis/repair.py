"""What a server keeps under one name and no script can read: found by a look and by a full step, and deleted.

There is no checksum here. Fences go on rising all the same: the next one comes from the server's clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...doorman import Renew
from ...errors import RecordDamaged
from ...pool import BROKEN, Quit
from . import pool_layout, scripts, trouble
from .courier import Parcel
from .layout import pack

if TYPE_CHECKING:
    from .backend import RedisBackend

NOBODY = "repair"  # a ticket that nobody has
POOL = (b"hash", b"zset", b"zset", b"zset", b"zset")  # the types of a pool's keys


async def repair(backend: RedisBackend, name: str) -> list[str]:
    """A sentence for each thing done."""
    return [*await _door(backend, name), *await _pool(backend, name)]


async def _door(backend: RedisBackend, name: str) -> list[str]:
    door = backend.door(name)
    try:
        await backend.look(name)
        await backend._courier.bring(Parcel(door.slot, door.step(Renew(NOBODY)), scripts.STEP))
    except (RecordDamaged, trouble.Garbage):
        await _send(backend, door, "DEL", *door.keys)
        return [f"The record of {name!r} was deleted; its next fence is above {await backend._time()}."]
    return []


async def _pool(backend: RedisBackend, name: str) -> list[str]:
    """What is of another type is deleted, the queue if it cannot be read, and items one by one."""
    pools = backend.pools
    one = pools.door(name)
    done: list[str] = []
    for key, kind in zip(one.keys, POOL, strict=True):
        (found,) = await _send(backend, one, "TYPE", key)
        if found not in (b"none", kind, "none", kind.decode()):
            await _send(backend, one, "DEL", key)
            done.append(f"Of the pool {name!r} the key {key!r} was deleted; it was of another type.")
    try:
        await pools.line(name)
        await backend._courier.bring(Parcel(one.slot, one.full(Quit(NOBODY, 0)), pool_layout.STEP))
    except (RecordDamaged, trouble.Garbage):
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
    """Move the damaged items of this pool to where no step finds them, until they are repaired. Whether any was moved:
    then a step that stumbled over one may be sent again."""
    one = backend.pools.door(name)
    moved = 0
    for item in (await backend.pools.all(name))[0]:
        if item.score == BROKEN:
            (changed,) = await _send(backend, one, "ZADD", one.keys[1], "XX", "CH", str(BROKEN), item.key)
            moved += changed
    return moved > 0


async def _send(backend: RedisBackend, where: Any, *words: str) -> list[Any]:
    found: list[Any] = await backend._courier.bring(Parcel(where.slot, pack(*words)))
    return found
