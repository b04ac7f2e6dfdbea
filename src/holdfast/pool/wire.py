"""An item and a line as text: one JSON array each, so that one plain SELECT shows them.

They begin with a word, not with a number as a doorman's record does, so that neither is ever taken for the other. A
store with columns for an item's numbers keeps only its body as text; the others keep all of it. The last element is a
checksum (sealed.py); that of an item is also about its score, which stands beside it.
"""

import json
from collections.abc import Sequence
from typing import Any

from ..sealed import seal, unseal
from .item import NOBODY, Item, Line, Worker

ITEM, LINE = "item2", "line2"  # what it is, and the number of the format
BODY = "[2,"  # how the body of an item begins where it has a column of its own: the number of the format

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode


def encode_line(line: Line) -> str:
    return seal(_encode((LINE, *line)))


def decode_line(text: str | None) -> Line:
    """The line in this text; None: there is none yet. ValueError if it is no line, or of a newer format."""
    if text is None:
        return NOBODY
    places, seen, workers, watchers = _parts(text, LINE, 4)
    try:
        return Line(places, seen, tuple(map(Worker._make, workers)), tuple(map(Worker._make, watchers)))
    except TypeError as bad:
        raise ValueError(f"not a line of workers: {text[:80]!r}") from bad


def encode_item(item: Item) -> str:
    """What a store without columns of its own keeps beside key, score and owner."""
    return seal(_encode((ITEM, item.fence, item.ticket, item.lease, item.note, item.body)), str(item.score))


def decode_item(key: str, score: int, owner: str, text: str) -> Item:
    """ValueError if it is no item, or of a newer format."""
    fence, ticket, lease, note, body = _parts(text, ITEM, 5, str(score))
    return Item(key, score, fence, ticket, lease, owner, note, body)


def encode_body(body: str, *beside: object) -> str:
    """What a store with columns keeps of a body: [format, body, checksum]. `beside`: what else that is about."""
    return seal(f"{BODY}{body}]", _beside(beside))


def decode_body(text: str, *beside: object) -> str:
    """ValueError if it is damaged, or of another format."""
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
        raise ValueError(f"not what is kept of a pool: {str(text)[:80]!r} ({bad})") from bad
    raise ValueError(f"{parts[0]!r} is kept there; this version of holdfast reads {word!r}")
