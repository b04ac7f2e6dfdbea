"""A record as text: one JSON array, so that it is short, quick, and readable with nothing but a SELECT.

Arrays and not objects: half the size and half the time. The first element is the number of the format.
"""

import json
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from typing import Any

from .record import Entrant, Grave, Record, Why

FORMAT = 1

_encoder = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False)
# JSONEncoder makes a new encoder in C for every call, which takes longer than what it then does. Ours is made once, if
# this Python has one and makes it of the same parts.
try:
    _pieces = c_make_encoder(None, _encoder.default, encode_basestring, None, ":", ",", False, False, True)
except TypeError:
    _pieces = None


def encode(record: Record) -> str:
    if _pieces is None:
        return _encoder.encode((FORMAT, *record))
    return "".join(_pieces((FORMAT, *record), 0))


def decode(text: str) -> Record:
    """The record in this text. ValueError if it is none, or of a newer format."""
    try:
        parts: list[Any] = json.loads(text)
        if parts[0] == FORMAT:
            _, capacity, fixed, fence, places, seen, inside, line, graves = parts
            return Record(
                capacity, fixed, fence, places, seen,
                tuple([Entrant(*e) for e in inside]),
                tuple([Entrant(*e) for e in line]),
                tuple([Grave(ticket, until, span, Why(*why)) for ticket, until, span, why in graves]),
            )  # fmt: skip
    except (TypeError, ValueError, LookupError, RecursionError) as bad:
        raise ValueError(f"not a doorman's record: {text[:80]!r}") from bad
    raise ValueError(f"a record of format {parts[0]!r}; this version of holdfast reads format {FORMAT}")


def owners(record: Record) -> str:
    """Who is inside, for people."""
    inside = record.inside
    if not inside:
        return ""
    return inside[0].owner if len(inside) == 1 else ", ".join([e.owner for e in inside])
