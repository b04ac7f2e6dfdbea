"""A row of a store as a row of the table: key STRING, score NUMBER, owner STRING, body JSON.

A key of the table has at most 64 bytes, and a name up to 200. So each part of a key that does not fit is replaced by
a digest of it, and the body then keeps the whole key beside the record: {"name": …, "record": …}. The parts are the
namespace, the pool and the name itself. Each has its own limit, whatever comes behind it, so that all keys of a
namespace and all items of a pool still begin with the same characters, and one range of keys finds them.

Rejected alternative: a digest of the whole key. It is shorter, and no range finds the items of a pool any more.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

from ...errors import StoreError
from ..base import Row
from ..keys import SEPARATOR

ALL = "SELECT t.key, t.score, t.owner, t.body FROM {table} t"
LONGEST = 64  # bytes of a key
MARK = "\x1e"  # before a digest; no name contains it
BITS = 112  # of a digest; two names with the same one are refused, not mixed up
DIGEST = 20  # bytes of a digest with its mark
NEXT = chr(ord(SEPARATOR) + 1)


def table_key(key: str) -> str:
    """Return the key of the table for this key, or for the beginning of keys, if that ends with a separator."""
    if len(key) <= DIGEST and key.isascii():
        return key
    parts = key.split(SEPARATOR)
    last = len(parts) - 1
    kept: list[str] = []
    used = 0  # bytes, with the separators
    for number, part in enumerate(parts):
        size = len(part.encode())
        if number and not parts[number - 1]:
            room = LONGEST - used - 1 - DIGEST  # the name of a pool: items come behind it
        elif number == last:
            room = LONGEST - used
        else:
            room = DIGEST  # a namespace
        if size > room:
            part, size = _digest(part), DIGEST
        kept.append(part)
        used += size + 1
    return SEPARATOR.join(kept)


def _digest(part: str) -> str:
    from hashlib import blake2b  # only for long names

    return MARK + urlsafe_b64encode(blake2b(part.encode(), digest_size=BITS // 8).digest()).decode().rstrip("=")


def key_range(prefix: str) -> tuple[str, str]:
    """Between which keys of the table all those lie that begin with this, which ends with a separator.

    The upper end is the character that follows the separator: it comes next in every order of texts, by bytes and by
    the halves of UTF-16 alike.
    """
    low = table_key(prefix)
    return low, low[: -len(SEPARATOR)] + NEXT


def to_value(row: Row) -> dict[str, Any]:
    key = table_key(row.key)
    body = json.loads(row.body)
    kept = body if key == row.key else {"name": row.key, "record": body}
    return {"key": key, "score": row.score, "owner": row.owner, "body": kept}


def from_value(value: dict[str, Any], asked: str | None = None) -> Row:
    """Return the row in this value, as it was asked for by this key. If it does not have our shape, its body is one
    that cannot be decoded: it is damaged, and costs this one name."""
    key, body, score, owner = value["key"], value.get("body"), value.get("score"), value.get("owner")
    if isinstance(body, dict) and body.keys() == {"name", "record"} and type(body["name"]) is str:
        key, body = body["name"], body["record"]
        if asked is not None and key != asked:
            raise StoreError(
                f"The row of {asked!r} belongs to {key!r}: they have the same digest. Choose another name."
            )
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    if asked is not None and key != asked:
        key, text = asked, f"no name: {text}"  # a long name that its body does not have
    return Row(key, score if type(score) is int else 0, owner if type(owner) is str else "", text)
