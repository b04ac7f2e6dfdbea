"""One item of a pool that cannot be read: the error that reports it, and what its repair makes of it.

Apart from `damaged_records`, because most programs use no pool and start-up time counts.
"""

import json
from typing import Any

from ..errors import RecordDamaged
from ..rules.pools import BROKEN, DONE, ItemState
from ..rules.pools.codec import decode_body
from .damaged_records import damaged, fence_after
from .keys import SEPARATOR


def item_damaged(pool: str, key: object, where: str, why: object) -> RecordDamaged:
    """`pool`: with its namespace."""
    name = pool.rpartition(SEPARATOR)[2]
    return damaged(name, where, why, f"The item {key!r} of the pool {name!r}")


def aside(key: str, fence: Any, left: object, now: int) -> ItemState:
    """Return the item that a repair puts in its place: done, so that no worker takes it, with the rest of its data."""
    if isinstance(left, bytes):
        left = left.decode("utf-8", "replace")
    return ItemState(key, DONE, fence_after(fence, now), body=json.dumps({"damaged": str(left)[:1000]}))


def sound(pool: str, kept: ItemState) -> ItemState:
    """Return an item from a row of columns whose checksum is about pool, key and body. ValueError if it is damaged."""
    if None in kept:
        raise ValueError("a column has no value")
    body = decode_body(kept.body, pool, kept.key)
    if kept.score == BROKEN:
        raise ValueError("it was found damaged")
    return tuple.__new__(ItemState, (*kept[:7], body))


def shown(pool: str, kept: ItemState) -> ItemState:
    """Return the item for people: one that is damaged is called so."""
    try:
        return sound(pool, kept)
    except ValueError:
        return ItemState(kept.key, BROKEN)
