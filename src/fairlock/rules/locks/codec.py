"""The state of a lock as text: one JSON array, so that it is short, fast, and readable with nothing but a SELECT.

Arrays and not objects: half the size and half the time. The first element is the number of the format, the last one a
checksum (checksum.py). The waiters stay text until something looks at them (encoded_queue.py): with 32 of them a step
takes a quarter of the time.
"""

from typing import Any
from zlib import crc32

from ..checksum import unseal
from ..json_text import parse, to_json
from ..other_format import other_format
from .encoded_queue import SEPARATOR, encoded_entries, fresh_until, make_queue
from .state import CLOSED, EMPTY, WAITED_FOR, Entry, LockState, Tombstone, Why

FORMAT = 3

_FIRST = ",\t["  # before the first waiter
_LAST = "]\t],"  # after the last one
_PLAIN = SEPARATOR.replace("\t", "")  # no tab counts for the checksum: a store with a column of type JSON drops them
_last: tuple[object, LockState] = object(), EMPTY  # the text that was decoded last, and its state; at first: no text
_new = tuple.__new__  # makes a named tuple in half the time of its own constructor; its length is checked elsewhere
_ENTRY = len(Entry._fields)


def encode(record: LockState) -> str:
    queue = record[6]
    if not queue:
        text = to_json((FORMAT, *record))
        return f"{text[:-1]},{crc32(text.encode())}]"
    start = f"{to_json((FORMAT, *record[:6]))[:-1]},[{fresh_until(queue)},"
    end = to_json(record[7]) if record[7] else "[]"
    texts = encoded_entries(queue)
    total = crc32(f"{start}[{_PLAIN.join(texts)}]],{end}]".encode())
    return f"{start}\t[{SEPARATOR.join(texts)}]\t],{end},{total}]"


def decode(text: str) -> LockState:
    """Return the state in this text. ValueError if it is not a state, damaged, or of another format."""
    global _last
    known, state = _last  # a row is often read twice: by the waiter that is woken, and for its release
    if text == known:
        return state
    state = _decode(text)
    _last = text, state
    return state


def _decode(text: str) -> LockState:
    sealed = text
    try:
        body, _, end = text.rpartition(",")
        head, found, rest = body.partition(_FIRST)
        parts: list[Any]
        if found:
            middle, found, tail = rest.rpartition(_LAST)
            if not found:
                raise ValueError("its queue has no end")
            texts = middle.split(SEPARATOR)
            if end == f"{crc32(f'{head},[{_PLAIN.join(texts)}]],{tail}]'.encode())}]":
                parts = parse(f"{head}],{tail}]")
            else:
                found, parts = "", parse(unseal(text))
        else:
            body += "]"
            parts = parse(body if end == f"{crc32(body.encode())}]" else unseal(text))
        if parts[0] == FORMAT:
            _, capacity, fixed, fence, places, seen, holders, queue, tombstones = parts
            waiters: Any = ()
            if found:
                (fresh_until,) = queue
                waiters = make_queue(texts, fresh_until)
            elif queue:
                waiters = tuple([Entry._make(e) for e in queue[1:]])
            inside = []
            for e in holders:
                if len(e) != _ENTRY:
                    raise ValueError("an entry is incomplete")
                inside.append(_new(Entry, e))
            if tombstones:
                tombstones = [Tombstone(ticket, until, span, Why(*why)) for ticket, until, span, why in tombstones]
            return _new(LockState, (capacity, fixed, fence, places, seen, tuple(inside), waiters, tuple(tombstones)))
    except (AttributeError, TypeError, ValueError, LookupError, RecursionError) as bad:
        begin, _, first = sealed[:12].partition(",")[0].partition("[") if type(sealed) is str else ("", "", "")
        if first.isdecimal() and not begin and int(first) != FORMAT:
            raise other_format(first, FORMAT) from bad
        shown = sealed[:80] if type(sealed) is str else repr(sealed)
        raise ValueError(f"not the state of a lock: {shown} ({bad})") from bad
    raise other_format(parts[0], FORMAT)


def owners(record: LockState) -> str:
    """Return the owners of the holders, for people; '' only if there are neither holders nor waiters."""
    holders = record.holders
    if not holders:
        return WAITED_FOR if record.queue else ""
    return (holders[0].owner or CLOSED) if len(holders) == 1 else ", ".join([e.owner or CLOSED for e in holders])
