"""One item of a pool that cannot be read: what is said of it, and what its repair makes of it.

Apart from `damage`, because most programs use no pool and start-up time counts.
"""

import json
from typing import Any

from ..errors import RecordDamaged
from ..pool import BROKEN, DONE, Item
from ..pool.wire import decode_body
from .damage import damaged, fence_after
from .names import SEPARATOR


def item_damaged(pool: str, key: object, where: str, why: object) -> RecordDamaged:
    """`pool`: with its namespace."""
    name = pool.rpartition(SEPARATOR)[2]
    return damaged(name, where, why, f"The item {key!r} of the pool {name!r}")


def aside(key: str, fence: Any, left: object, now: int) -> Item:
    """What a damaged item becomes when it is repaired: done, so that nobody works on it, with what is left of it."""
    if isinstance(left, bytes):
        left = left.decode("utf-8", "replace")
    return Item(key, DONE, fence_after(fence, now), body=json.dumps({"damaged": str(left)[:1000]}))


def sound(pool: str, kept: Item) -> Item:
    """An item from a row of columns whose checksum is about pool, key and body. ValueError if it is damaged."""
    body = decode_body(kept.body, pool, kept.key)
    if kept.score == BROKEN:
        raise ValueError("it was found damaged")
    return Item._make((*kept[:7], body))


def shown(pool: str, kept: Item) -> Item:
    """The same for people: one that is damaged is called so."""
    try:
        return sound(pool, kept)
    except ValueError:
        return Item(kept.key, BROKEN)
