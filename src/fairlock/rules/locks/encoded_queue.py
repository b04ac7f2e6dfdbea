"""A queue as a row contains it: the waiters are text, which is decoded when a step reads it.

A state with a long queue is read and written again and again, and a step looks at one or two of its waiters: the head,
the next one, and itself. So the others stay text. Whether one of them has expired or was passed over is known from one
number, `fresh_until`, which is kept beside them.

Where all waiters are decoded after all, those that were seen before are looked up.
"""

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from ..json_text import parse, to_json
from .state import FRESH, Entry

SEPARATOR = "],\t["  # between two waiters: JSON allows a tab there, and escapes it within strings

_FIELDS = len(Entry._fields)
_TICKET, _EXPIRES, _PASSED = (itemgetter(Entry._fields.index(name)) for name in ("ticket", "expires", "passed"))

REMEMBERED = 4096  # of the waiters
_entries: dict[str, Entry] = {}  # by their text
_texts: dict[int, tuple[Entry, str]] = {}  # by their identity, which is theirs for as long as they are kept here


def _remember(entry: Entry, text: str) -> str:
    if len(_texts) >= REMEMBERED:
        _texts.clear()
        _entries.clear()
    _texts[id(entry)] = entry, text
    _entries[text] = entry
    return text


def _encode_entry(entry: Entry) -> str:
    """Return a waiter as text, without the brackets around it."""
    known = _texts.get(id(entry))
    return known[1] if known is not None else _remember(entry, to_json(entry)[1:-1])


def _decode_entry(text: str) -> Entry:
    known = _entries.get(text)
    if known is None:
        fields = parse(f"[{text}]")
        if len(fields) != _FIELDS:
            raise ValueError(f"not a waiter: {text[:80]}")
        known = tuple.__new__(Entry, fields)
        _remember(known, text)
    return known


class EncodedQueue(tuple[Entry, ...]):
    """At least one waiter; an empty queue is a plain tuple.

    To Python it is a tuple of the texts, so that its length and its truth cost nothing; an index, a slice and an
    iteration give entries.
    """

    fresh_until: int
    """No waiter expires before this time, and none was passed over; 0: that is not known."""

    texts: tuple[str, ...]

    def has(self, ticket: str) -> bool:
        start = f'"{ticket}",' if ticket.isalnum() and ticket.isascii() else to_json((ticket,))[1:-1] + ","
        for text in self.texts:  # noqa: SIM110 - a generator would take twice as long
            if text.startswith(start):
                return True
        return False

    def __iter__(self) -> Iterator[Entry]:
        return map(_decode_entry, self.texts)

    def __getitem__(self, index: Any) -> Any:
        found: Any = tuple.__getitem__(self, index)
        if type(found) is str:
            return _decode_entry(found)
        return make_queue(found, self.fresh_until) if found else ()

    def __add__(self, more: Any) -> Any:
        fresh, texts = self.fresh_until, self.texts
        for e in more:
            fresh = min(fresh, e.expires if e.passed == FRESH else 0)
            texts += (_encode_entry(e),)
        return make_queue(texts, fresh)

    def __contains__(self, entry: object) -> bool:
        return entry in tuple(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, EncodedQueue) and other.texts == self.texts:
            return True
        return tuple(self) == tuple(other) if isinstance(other, tuple) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> Any:
        return make_queue, (self.texts, self.fresh_until)


def make_queue(texts: Iterable[str], fresh_until: int) -> EncodedQueue:
    queue = tuple.__new__(EncodedQueue, texts)
    queue.texts = tuple(texts)
    queue.fresh_until = fresh_until
    return queue


def is_in(queue: tuple[Entry, ...], ticket: str) -> bool:
    """Return True if this ticket is in this queue."""
    return queue.has(ticket) if type(queue) is EncodedQueue else ticket in map(_TICKET, queue)


def fresh_until(queue: tuple[Entry, ...]) -> int:
    """Return a time before which no waiter of this queue expires; 0 if it has none, or if one was passed over."""
    if type(queue) is EncodedQueue:
        return queue.fresh_until
    return min(map(_EXPIRES, queue)) if queue and not any(map(_PASSED, queue)) else 0


def encoded_entries(queue: tuple[Entry, ...]) -> tuple[str, ...] | list[str]:
    """Return the waiters as text, without the brackets around each."""
    return queue.texts if type(queue) is EncodedQueue else [_encode_entry(e) for e in queue]
