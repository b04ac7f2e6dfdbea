"""A record as text: one JSON array, so that it is short, quick, and readable with nothing but a SELECT.

Arrays and not objects: half the size and half the time. The first element is the number of the format, the last
one a checksum (sealed.py).

A record with a long line is read and written again and again while hardly anybody in it changes. So those in line stand
between tabs, which JSON allows there and escapes within strings, and each is translated once: what was read or written
before is looked up. With 32 in line that takes a tenth of the time.
"""

import json
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from typing import Any

from ..sealed import seal, unseal
from .record import CLOSED, Entrant, Grave, Record, Why

FORMAT = 2

_encoder = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False)
# JSONEncoder makes a new encoder in C for every call, which takes longer than what it then does. Ours is made once, if
# this Python has one and makes it of the same parts.
try:
    _pieces = c_make_encoder(None, _encoder.default, encode_basestring, None, ":", ",", False, False, True)
except TypeError:
    _pieces = None


_TAB = ",\t"  # between two in line

REMEMBERED = 4096  # of those in line
_entrants: dict[str, Entrant] = {}  # by their text
_texts: dict[int, tuple[Entrant, str]] = {}  # by their identity, which is theirs for as long as they are kept here


def encode(record: Record) -> str:
    line = record.line
    if not line:
        return seal(_json((FORMAT, *record)))
    known = map(_texts.get, map(id, line))
    texts = [one[1] if one else "" for one in known]
    if "" in texts:
        texts = [text or _remember(e, _json(e)) for text, e in zip(texts, line, strict=True)]
    return seal(f"{_json((FORMAT, *record[:6]))[:-1]},[\t{_TAB.join(texts)}\t],{_json(record.graves)}]")


def _json(value: tuple[Any, ...]) -> str:
    return "".join(_pieces(value, 0)) if _pieces is not None else _encoder.encode(value)


def _remember(entrant: Entrant, text: str) -> str:
    if len(_texts) >= REMEMBERED:
        _texts.clear()
        _entrants.clear()
    _texts[id(entrant)] = entrant, text
    _entrants[text] = entrant
    return text


def decode(text: str) -> Record:
    """The record in this text. ValueError if it is none, damaged, or of another format."""
    sealed = text
    try:
        text = unseal(text)
        head, tabs, rest = text.partition(",[\t")
        middle, _, tail = rest.rpartition("\t],")
        parts: list[Any] = _parse(f"{head},[],{tail}" if tabs else text)
        if parts[0] == FORMAT:
            _, capacity, fixed, fence, places, seen, inside, line, graves = parts
            return Record(
                capacity, fixed, fence, places, seen,
                tuple([Entrant._make(e) for e in inside]),
                tuple(_line(middle.split(_TAB))) if tabs else tuple([Entrant._make(e) for e in line]),
                tuple([Grave(ticket, until, span, Why(*why)) for ticket, until, span, why in graves]),
            )  # fmt: skip
    except (TypeError, ValueError, LookupError, RecursionError) as bad:
        begin, _, first = sealed[:12].partition(",")[0].partition("[") if type(sealed) is str else ("", "", "")
        if first.isdecimal() and not begin and int(first) != FORMAT:
            raise ValueError(_other_format(first)) from bad
        raise ValueError(f"not a doorman's record: {sealed[:80] if type(sealed) is str else sealed!r} ({bad})") from bad
    raise ValueError(_other_format(parts[0]))


def _other_format(found: object) -> str:
    return f"a record of format {found}; this version of holdfast reads format {FORMAT}"


def _parse(text: str) -> Any:
    """As json.loads, of which half the time goes into finding out how it is to be done."""
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        raise ValueError("not JSON") from None
    return value if end == len(text) else json.loads(text)


_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def _line(texts: list[str]) -> list[Entrant]:
    known = list(map(_entrants.get, texts))
    if not all(known):
        new = [text for text, e in zip(texts, known, strict=True) if e is None]
        parsed = list(map(Entrant._make, _parse(f"[{','.join(new)}]")))
        fresh = dict(zip(new, parsed, strict=True))
        for text, e in fresh.items():
            _remember(e, text)
        known = [e or fresh[text] for text, e in zip(texts, known, strict=True)]
    return known  # type: ignore[return-value]


def owners(record: Record) -> str:
    """Who is inside, for people."""
    inside = record.inside
    if not inside:
        return ""
    return (inside[0].owner or CLOSED) if len(inside) == 1 else ", ".join([e.owner or CLOSED for e in inside])
