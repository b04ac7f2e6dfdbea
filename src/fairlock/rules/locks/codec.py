"""The state of a lock as text: one JSON array, so that it is short, fast, and readable with nothing but a SELECT.

Arrays and not objects: half the size and half the time. The first element is the number of the format, the last one a
checksum (checksum.py).

A state with a long queue is read and written again and again while hardly any waiter in it changes. So the waiters are
separated by tabs, which JSON allows there and escapes within strings, and each is encoded or decoded once: later it is
looked up. With 32 waiters that takes a tenth of the time.
"""

import json
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from typing import Any

from ..checksum import seal, unseal
from .state import CLOSED, Entry, LockState, Tombstone, Why

FORMAT = 2

_encoder = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False)
# JSONEncoder makes a new encoder in C for every call, which takes longer than the encoding. This one is made once, if
# this Python has it and makes it from the same parts.
try:
    _pieces = c_make_encoder(None, _encoder.default, encode_basestring, None, ":", ",", False, False, True)
except TypeError:
    _pieces = None


_TAB = ",\t"  # between two in the queue

REMEMBERED = 4096  # of the waiters
_entries: dict[str, Entry] = {}  # by their text
_texts: dict[int, tuple[Entry, str]] = {}  # by their identity, which is theirs for as long as they are kept here


def encode(record: LockState) -> str:
    queue = record.queue
    if not queue:
        return seal(_json((FORMAT, *record)))
    known = map(_texts.get, map(id, queue))
    texts = [one[1] if one else "" for one in known]
    if "" in texts:
        texts = [text or _remember(e, _json(e)) for text, e in zip(texts, queue, strict=True)]
    return seal(f"{_json((FORMAT, *record[:6]))[:-1]},[\t{_TAB.join(texts)}\t],{_json(record.tombstones)}]")


def _json(value: tuple[Any, ...]) -> str:
    return "".join(_pieces(value, 0)) if _pieces is not None else _encoder.encode(value)


def _remember(entry: Entry, text: str) -> str:
    if len(_texts) >= REMEMBERED:
        _texts.clear()
        _entries.clear()
    _texts[id(entry)] = entry, text
    _entries[text] = entry
    return text


def decode(text: str) -> LockState:
    """Return the state in this text. ValueError if it is not a state, damaged, or of another format."""
    sealed = text
    try:
        text = unseal(text)
        head, tabs, rest = text.partition(",[\t")
        middle, _, tail = rest.rpartition("\t],")
        parts: list[Any] = _parse(f"{head},[],{tail}" if tabs else text)
        if parts[0] == FORMAT:
            _, capacity, fixed, fence, places, seen, holders, queue, tombstones = parts
            return LockState(
                capacity, fixed, fence, places, seen,
                tuple([Entry._make(e) for e in holders]),
                tuple(_line(middle.split(_TAB))) if tabs else tuple([Entry._make(e) for e in queue]),
                tuple([Tombstone(ticket, until, span, Why(*why)) for ticket, until, span, why in tombstones]),
            )  # fmt: skip
    except (TypeError, ValueError, LookupError, RecursionError) as bad:
        begin, _, first = sealed[:12].partition(",")[0].partition("[") if type(sealed) is str else ("", "", "")
        if first.isdecimal() and not begin and int(first) != FORMAT:
            raise ValueError(_other_format(first)) from bad
        found = sealed[:80] if type(sealed) is str else repr(sealed)
        raise ValueError(f"not the state of a lock: {found} ({bad})") from bad
    raise ValueError(_other_format(parts[0]))


def _other_format(found: object) -> str:
    return f"a record of format {found}; this version of fairlock reads format {FORMAT}"


def _parse(text: str) -> Any:
    """Like json.loads, which spends half of its time on finding the decoder."""
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        raise ValueError("not JSON") from None
    return value if end == len(text) else json.loads(text)


_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def _line(texts: list[str]) -> list[Entry]:
    known = list(map(_entries.get, texts))
    if not all(known):
        new = [text for text, e in zip(texts, known, strict=True) if e is None]
        parsed = list(map(Entry._make, _parse(f"[{','.join(new)}]")))
        fresh = dict(zip(new, parsed, strict=True))
        for text, e in fresh.items():
            _remember(e, text)
        known = [e or fresh[text] for text, e in zip(texts, known, strict=True)]
    return known  # type: ignore[return-value]


def owners(record: LockState) -> str:
    """Return the owners of the holders, for people."""
    holders = record.holders
    if not holders:
        return ""
    return (holders[0].owner or CLOSED) if len(holders) == 1 else ", ".join([e.owner or CLOSED for e in holders])
