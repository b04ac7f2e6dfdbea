"""Checksums of items: the body of a row is [format, body, checksum], and the checksum is about all of the row.

One statement takes any item, so the checksum is checked and written inside of it. A damaged row is skipped: it costs
that item, and no other.

SQLite calls only `zlib.crc32` for that, which is written in C. Rejected alternative: functions in Python. A signal that
comes during the statement is handled in the first of them, and SQLite drops what they raise: Ctrl-C would become an
error of the store.
"""

import sqlite3
import zlib
from collections.abc import Callable
from typing import Any

from ...rules.pools import BROKEN, ItemState
from ...rules.pools.codec import BODY, decode_body, encode_body

FIELDS = "pool, key, score, fence, ticket, lease, owner, note"
ROW = (str, str, int, int, str, int, str, str, str)

_START = "rtrim(rtrim(body, ']'), '0123456789')"  # of a sealed body: all before its checksum, with the comma
_TEXT = f"replace(substr({_START}, 1, length({_START}) - 1), char(9), '') || ']'"  # what the checksum is about


def sealed_again(*fields: str) -> str:
    """Return the SQL for the body of a sound row with the checksum of these fields: pool, key, score and so on."""
    text = " || char(31) || ".join(f"({field})" for field in fields) + " || " + _TEXT
    return f"{_START} || fairlock_crc32(coalesce(CAST({text} AS BLOB), x'')) || ']'"


_TYPES = {str: "text", int: "integer"}
SOUND = " AND ".join(
    [f"typeof({field})='{_TYPES[kind]}'" for field, kind in zip([*FIELDS.split(", "), "body"], ROW, strict=True)]
    + [f"body GLOB '[[]{BODY[1:]}*' AND body = {sealed_again(*FIELDS.split(', '))}"]
)


def sealed(pool: str, item: ItemState) -> str:
    """Return the text for the column `body`."""
    return encode_body(item.body, pool, *item[:7])


def unsealed(pool: str, row: tuple[Any, ...]) -> ItemState:
    """Return the item in this row of `COLUMNS`. ValueError if it is damaged."""
    if tuple(map(type, (pool, *row))) != ROW:
        raise ValueError("values of wrong types")
    return ItemState._make((*row[:7], decode_body(row[7], pool, *row[:7])))


def shown(pool: str, row: tuple[Any, ...]) -> ItemState:
    """Return the item for people: a damaged one has the score BROKEN."""
    try:
        return unsealed(pool, row)
    except ValueError:
        key = row[0]
        return ItemState(key if type(key) is str else repr(key), BROKEN)


def register(connection: sqlite3.Connection) -> None:
    connection.create_function("fairlock_crc32", 1, zlib.crc32, deterministic=True)


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
