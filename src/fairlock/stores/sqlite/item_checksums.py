"""Checksums of items: the body of a row is [format, body, checksum], and the checksum is about all of the row.

One statement takes any item, so the checksum is checked and written by functions that SQLite calls. A damaged
row is skipped: it costs that item, and no other.
"""

import sqlite3
from collections.abc import Callable
from typing import Any

from ...rules.pools import BROKEN, ItemState
from ...rules.pools.codec import BODY, decode_body, encode_body

FIELDS = "pool, key, score, fence, ticket, lease, owner, note"
SOUND = f"fairlock_sound({FIELDS}, body)"
ROW = (str, str, int, int, str, int, str, str, str)


def sealed(pool: str, item: ItemState) -> str:
    """Return the text for the column `body`."""
    return encode_body(item.body, pool, *item[:7])


def unsealed(pool: str, row: tuple[Any, ...]) -> ItemState:
    """Return the item in this row of `COLUMNS`. ValueError if it is damaged."""
    if tuple(map(type, (pool, *row))) != ROW:
        raise ValueError("values of wrong types")
    return ItemState._make((*row[:7], decode_body(row[7], pool, *row[:7])))


def shown(pool: str, row: tuple[Any, ...]) -> ItemState:
    """The same for people: a damaged one has the score BROKEN."""
    try:
        return unsealed(pool, row)
    except ValueError:
        key = row[0]
        return ItemState(key if type(key) is str else repr(key), BROKEN)


def register(connection: sqlite3.Connection) -> None:
    connection.create_function("fairlock_sound", 9, _is_sound, deterministic=True)
    connection.create_function("fairlock_sealed", 9, _sealed_again, deterministic=True)


def cut_items(execute: Callable[..., sqlite3.Cursor], now: int) -> None:
    """After a reboot: no item is due later than its own span from now. What is damaged stays as it is."""
    rows = execute(f"SELECT rowid, {FIELDS}, body FROM fairlock_items WHERE score>=0 AND score>?+lease", (now,))
    for rowid, pool, *row in rows.fetchall():
        try:
            item = unsealed(pool, tuple(row))
        except ValueError:
            continue
        item = item._replace(score=now + item.lease)
        execute("UPDATE fairlock_items SET score=?, body=? WHERE rowid=?", (item.score, sealed(pool, item), rowid))


def _is_sound(*row: Any) -> bool:
    try:
        unsealed(row[0], row[1:])
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _sealed_again(*row: Any) -> str:
    """Return the body of a sound row with the checksum of its new numbers."""
    body = row[8]
    return encode_body(body.rpartition(",")[0].removeprefix(BODY), *row[:8])
