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
    """The command for step.lua: its name and its fields."""
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
    texts = [field.decode() for field in fields]
    if kind == b"notinside":
        return NotInside(Why(*texts) if texts else None)
    if kind == b"gone":
        return Gone(Why(*texts))
    assert kind == b"done", kind
    return Done(tuple(texts))


def record(raw: list[Any]) -> tuple[Record, int]:
    """What look.lua gave: the record and the server's time."""
    door = _hash(raw[0])
    inside = [_entrant(door[":" + t.decode()]) for t in raw[2]]
    if "a" in door:
        inside.append(_entrant(door["a"]))
    graves = []
    for name, until in zip(raw[3][::2], raw[3][1::2], strict=True):
        ticket = name.decode()
        span, kind, by, reason = door["#" + ticket].split("\t")
        graves.append(Grave(ticket, int(float(until)), int(span), Why(kind, by, reason)))
    seconds, micros = raw[4]
    found = Record(
        int(door.get("c", 0)), door.get("x") == "1", int(door.get("f", 0)), int(door.get("p", 0)),
        int(door.get("s", 0)), tuple(sorted(inside, key=lambda e: e.fence)),
        tuple([_entrant(door[":" + t.decode()]) for t in raw[1]]), tuple(graves),
    )  # fmt: skip
    return found, int(seconds) * 1_000_000 + int(micros)


def _hash(flat: list[bytes] | dict[bytes, bytes]) -> dict[str, str]:
    pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
    return {field.decode(): value.decode() for field, value in pairs}


def _entrant(packed: str) -> Entrant:
    ticket, expires, fence, block, weight, lease, patience, *rest = packed.split("\t")
    ear, owner, note, place, since, sure, passed = rest
    return Entrant(
        ticket, int(weight), int(lease), int(patience), int(block), ear, owner, note, int(place), int(since),
        int(expires), int(fence), sure == "1", int(passed),
    )  # fmt: skip
