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
    Enter,
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
from ...doorman.record import FRESH
from ...doorman.rules import patience

PREFIX = "holdfast:"
EARS = PREFIX + "ear:"
UNTOUCHED = 2  # of a seat whose holder is sure, and nothing has happened at its door since it came in
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
    return b"*%d\r\n%b" % (len(words), packed(*words))


def packed(*words: str | bytes | int) -> bytes:
    """Words of a command."""
    data = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in data])


def head(ticket: bytes) -> bytes:
    """How the seat of this one begins while it is there alone: 15 fields in MessagePack, a 1, and the ticket."""
    return b"\x9f\x01" + _text(ticket)


def tail(command: Enter) -> bytes:
    """How a seat at the door ends: all but the ticket and the times. Written out, so that the server need not."""
    block = max(command.block, 1) if command.weight == command.capacity else 1
    numbers = b"".join(map(_number, (block, command.weight, command.lease, patience(0))))
    texts = b"".join([_text(text.encode()) for text in (command.ear, command.owner, command.note)])
    return numbers + texts + bytes((0, UNTOUCHED, FRESH))


def _number(number: int) -> bytes:
    return b"\xcf" + number.to_bytes(8, "big")


def _text(text: bytes) -> bytes:
    size = len(text)
    if size < 32:
        return bytes((0xA0 | size,)) + text
    return (b"\xd9" + size.to_bytes(1, "big") if size < 256 else b"\xda" + size.to_bytes(2, "big")) + text


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
    limit = values[0]
    fence, places, seen = map(int, values[1:])
    if len(inside) == 1 and inside[0][-2] == 2:
        seen = inside[0][4]
    found = Record(
        int(limit.rstrip(b"!")), limit.endswith(b"!"), fence, places, seen,
        tuple(sorted([_entrant(e) for e in inside], key=lambda e: e.fence)), tuple([_entrant(e) for e in line]),
        tuple([Grave(t.decode(), int(float(until)), span, _why(why)) for t, until, span, *why in graves]),
    )  # fmt: skip
    return found, int(seconds) * 1_000_000 + int(micros)


def _entrant(raw: list[Any]) -> Entrant:
    _, ticket, fence, expires, since, block, weight, lease, patience, ear, owner, note, place, sure, passed = raw
    return Entrant(
        ticket.decode(), weight, lease, patience, block, ear.decode(), owner.decode(), note.decode(), place, since,
        expires, fence, sure > 0, passed,
    )  # fmt: skip


def _why(texts: list[bytes]) -> Why:
    return Why(*[text.decode() for text in texts])
