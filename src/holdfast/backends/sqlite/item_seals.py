"""Checksums of items: the body of a row is [format, body, checksum], and the checksum is about all of the row.

One statement takes any item, so the checksum is checked and written by functions that SQLite calls. A row that is
damaged is passed over: it costs that item, and no other.
"""

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from ...pool import BROKEN, Item
from ...sealed import seal, unseal

FORMAT = 2
FIELDS = "pool, key, score, fence, ticket, lease, owner, note"
SOUND = f"holdfast_sound({FIELDS}, body)"
ROW = (str, str, int, int, str, int, str, str, str)


def sealed(pool: str, item: Item) -> str:
    """What stands in the column of the body."""
    return seal(f"[{FORMAT},{item.body}]", _beside(pool, *item[:7]))


def unsealed(pool: str, row: tuple[Any, ...]) -> Item:
    """The item in this row of `COLUMNS`. ValueError if it is damaged."""
    if tuple(map(type, (pool, *row))) != ROW:
        raise ValueError("values of wrong types")
    text = unseal(row[7], _beside(pool, *row[:7]))
    begin = f"[{FORMAT},"
    if not text.startswith(begin):
        raise ValueError(f"an item of another format than {FORMAT}")
    return Item._make((*row[:7], text[len(begin) : -1]))


def shown(pool: str, row: tuple[Any, ...]) -> Item:
    """The same for people: one that is damaged is called so."""
    try:
        return unsealed(pool, row)
    except ValueError:
        key = row[0]
        return Item(key if type(key) is str else repr(key), BROKEN)


def register(connection: sqlite3.Connection) -> None:
    connection.create_function("holdfast_sound", 9, _is_sound, deterministic=True)
    connection.create_function("holdfast_sealed", 9, _sealed_again, deterministic=True)


def cut_items(execute: Callable[..., sqlite3.Cursor], now: int) -> None:
    """After a reboot: no item is due later than its own span from now. What is damaged stays as it is."""
    rows = execute(f"SELECT rowid, {FIELDS}, body FROM holdfast_items WHERE score>=0 AND score>?+lease", (now,))
    for rowid, pool, *row in rows.fetchall():
        try:
            item = unsealed(pool, tuple(row))
        except ValueError:
            continue
        item = item._replace(score=now + item.lease)
        execute("UPDATE holdfast_items SET score=?, body=? WHERE rowid=?", (item.score, sealed(pool, item), rowid))


def aside(row: tuple[Any, ...], now: int) -> Item:
    """What a damaged row becomes when it is repaired: done, so that nobody works on it, with what is left of it."""
    left = [each.decode("utf-8", "replace") if isinstance(each, bytes) else each for each in row]
    fence = left[2] if type(left[2]) is int and 0 <= left[2] < now else now
    return Item(left[0], -1, fence, "", 0, "", "", json.dumps({"damaged": str(left[7])[:1000]}))


def _beside(*fields: Any) -> str:
    return "\x1f".join(map(str, fields))


def _is_sound(*row: Any) -> bool:
    try:
        unsealed(row[0], row[1:])
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _sealed_again(*row: Any) -> str:
    """The new numbers of a row that is sound, and its body of before."""
    body = row[8]
    return seal(body.rpartition(",")[0] + "]", _beside(*row[:8]))
