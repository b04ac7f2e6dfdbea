"""Where a resource lives in Redis, how a command is written, and how replies and records are read.

All keys of a resource share one hash tag, so they lie in one slot whatever its name; braces in names are encoded, for
Redis Cluster would take them as a tag.
"""

from __future__ import annotations

from typing import Any

from ...doorman import (
    Admitted,
    Command,
    Done,
    Entrant,
    Gone,
    Grave,
    Left,
    Mismatch,
    NotInside,
    Record,
    Refused,
    Reply,
    Waiting,
    Why,
)

PREFIX = "holdfast:"
EARS = PREFIX + "ear:"
PARTS = ("line", "due", "room", "unsure", "graves")

IDLE = 600_000_000
"""For how many microseconds a record is kept after the end of all that it says. Fences rise all the same afterwards."""
IDLE_IF_FIXED = 366 * 86400 * 1_000_000
"""The same for one whose size was set by resize, so that it is remembered."""


def tag(namespace: str, name: str) -> str:
    """Namespace and name inside one hash tag. `%` and braces are percent-encoded, the separator is none of them."""
    full = f"{namespace}\x1f{name}" if namespace else name
    return full.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")


def keys(namespace: str, name: str) -> list[str]:
    door = f"{PREFIX}{{{tag(namespace, name)}}}"
    return [door, *[f"{door}:{part}" for part in PARTS]]


def pack(*words: str | bytes | int) -> bytes:
    """One command as the wire wants it."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)


def words(command: Command) -> list[str]:
    """The command for the full step: its name and its fields."""
    return [type(command).__name__.lower(), *[_word(field) for field in command]]


def _word(field: Any) -> str:
    if field is None:
        return ""
    return str(int(field)) if isinstance(field, bool) else str(field)


def reply(raw: list[bytes]) -> Reply:
    kind, *fields = raw
    if kind == b"admitted":
        return Admitted(int(fields[0]), int(fields[1]))
    if kind == b"waiting":
        return Waiting(int(fields[0]), int(fields[1]), int(fields[2]))
    if kind == b"refused":
        return Refused()
    if kind == b"left":
        return Left(fields[0] == b"1")
    if kind == b"mismatch":
        return Mismatch(int(fields[0]))
    if kind == b"notinside":
        return NotInside(_why(fields) if fields else None)
    if kind == b"gone":
        return Gone(_why(fields))
    assert kind == b"done", kind
    return Done(tuple([field.decode() for field in fields]))


def record(raw: list[Any]) -> tuple[Record, int]:
    """What look.lua gave: the record and the server's time."""
    values, inside, line, graves, (seconds, micros) = raw
    capacity, fixed, fence, places, seen = map(int, values)
    found = Record(
        capacity, bool(fixed), fence, places, seen,
        tuple(sorted([_entrant(e) for e in inside], key=lambda e: e.fence)), tuple([_entrant(e) for e in line]),
        tuple([Grave(t.decode(), int(float(until)), span, _why(why)) for t, until, span, *why in graves]),
    )  # fmt: skip
    return found, int(seconds) * 1_000_000 + int(micros)


def _entrant(raw: list[Any]) -> Entrant:
    ticket, expires, fence, block, weight, lease, patience, ear, owner, note, place, since, sure, passed = raw
    return Entrant(
        ticket.decode(), weight, lease, patience, block, ear.decode(), owner.decode(), note.decode(), place, since,
        expires, fence, sure == 1, passed,
    )  # fmt: skip


def _why(texts: list[bytes]) -> Why:
    return Why(*[text.decode() for text in texts])
