"""An item and a queue as text: one JSON array each, so that one plain SELECT shows them.

They begin with a word, not with a number like the state of a lock, so that neither is ever taken for the other. A store
with columns for the numbers of an item keeps only its body as text; other stores keep all of it. The last element is a
checksum (checksum.py); that of an item also covers its score, which is stored beside it.
"""

import json
from collections.abc import Sequence
from typing import Any

from ..checksum import seal, unseal
from .state import NOBODY, ItemState, Worker, WorkerQueue

ITEM, LINE = "item2", "line2"  # the kind of text, and the number of its format
QUEUE_START = '["line'  # the start of the text of a queue, of any format
ITEM_START = '["item'  # and of an item
BODY = "[2,"  # the start of a body in a column of its own: the number of the format

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode


def is_queue_text(text: object) -> bool:
    """Return True if this is the text of a queue of workers, of any format, and not that of a lock or an item."""
    return type(text) is str and text.startswith(QUEUE_START)


def is_item_text(text: object) -> bool:
    """Return True if this is the text of an item, of any format."""
    return type(text) is str and text.startswith(ITEM_START)


def encode_queue(queue: WorkerQueue) -> str:
    return seal(_encode((LINE, *queue)))


def decode_queue(text: str | None) -> WorkerQueue:
    """Return the queue in this text; for None an empty one. ValueError if it is not a queue, or of a newer format."""
    if text is None:
        return NOBODY
    places, seen, workers, watchers = _parts(text, LINE, 4)
    try:
        return WorkerQueue(places, seen, tuple(map(Worker._make, workers)), tuple(map(Worker._make, watchers)))
    except TypeError as bad:
        raise ValueError(f"not a queue of workers: {text[:80]!r}") from bad


def encode_item(item: ItemState) -> str:
    """Return what a store without columns for it keeps beside key, score and owner."""
    return seal(_encode((ITEM, item.fence, item.ticket, item.lease, item.note, item.body)), str(item.score))


def decode_item(key: str, score: int, owner: str, text: str) -> ItemState:
    """Return the item in this text. ValueError if it is not an item, or of a newer format."""
    fence, ticket, lease, note, body = _parts(text, ITEM, 5, str(score))
    return ItemState(key, score, fence, ticket, lease, owner, note, body)


def encode_body(body: str, *beside: object) -> str:
    """Return a body as a store with columns keeps it: [format, body, checksum]. The checksum also covers `beside`."""
    return seal(f"{BODY}{body}]", _beside(beside))


def decode_body(text: str, *beside: object) -> str:
    """Return the body. ValueError if it is damaged, or of another format."""
    body = unseal(text, _beside(beside))
    if not body.startswith(BODY):
        raise ValueError("an item of another format")
    return body[len(BODY) : -1]


def _beside(fields: Sequence[object]) -> str:
    return "\x1f".join(map(str, fields))


def _parts(text: str, word: str, number: int, beside: str = "") -> list[Any]:
    try:
        parts: list[Any] = json.loads(unseal(text, beside))
        if parts[0] == word and len(parts) == number + 1:
            return parts[1:]
    except (TypeError, ValueError, LookupError, RecursionError) as bad:
        raise ValueError(f"not a row of a pool: {str(text)[:80]!r} ({bad})") from bad
    raise ValueError(f"the row is of format {parts[0]!r}; this version of fairlock reads {word!r}")
