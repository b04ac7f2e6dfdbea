"""The keys of a resource in Redis; encodes commands and grants, decodes replies and states.

All keys of a resource share one hash tag, so they are in one slot whatever its name is. Braces in names are encoded
because Redis Cluster would use them as a tag.
"""

from __future__ import annotations

from typing import Any

from ...rules.locks import (
    Acquire,
    Command,
    Done,
    Entry,
    Granted,
    LockState,
    Mismatch,
    NotHolder,
    Queued,
    Refused,
    Released,
    Reply,
    Revoked,
    Tombstone,
    Why,
)
from ...rules.locks.state import FRESH
from ...rules.locks.step import poll_ttl

PREFIX = "fairlock:"
LISTENERS = PREFIX + "listener:"
UNTOUCHED = 2  # in a confirmed grant: no step has changed the state since it was granted
PARTS = ("queue", "waiter_expiry", "holders", "unconfirmed", "tombstones")

IDLE = 600_000_000
"""For how many microseconds a state is kept after everything in it has ended. Fences rise afterwards, too."""
IDLE_IF_FIXED = 366 * 86400 * 1_000_000
"""The same for a resource whose capacity was set by Resize, so that it is remembered."""


def tag(namespace: str, name: str) -> str:
    """Join namespace and name inside one hash tag. `%` and braces are percent-encoded, the separator is not."""
    full = f"{namespace}\x1f{name}" if namespace else name
    return full.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")


def keys(namespace: str, name: str) -> list[str]:
    state = f"{PREFIX}{{{tag(namespace, name)}}}"
    return [state, *[f"{state}:{part}" for part in PARTS]]


def pack(*args: str | bytes | int) -> bytes:
    """Pack one command as RESP."""
    return b"*%d\r\n%b" % (len(args), pack_args(*args))


def pack_args(*args: str | bytes | int) -> bytes:
    """Pack arguments of a command as RESP."""
    data = [arg if isinstance(arg, bytes) else str(arg).encode() for arg in args]
    return b"".join([b"$%d\r\n%b\r\n" % (len(arg), arg) for arg in data])


def grant_head(ticket: bytes) -> bytes:
    """The first bytes of the grant of an only holder: 15 fields in MessagePack, alone = 1, and the ticket."""
    return b"\x9f\x01" + _text(ticket)


def grant_tail(command: Acquire) -> bytes:
    """The rest of such a grant after its times. It is packed here, so that the server need not."""
    block = max(command.block, 1) if command.weight == command.capacity else 1
    numbers = b"".join(map(_number, (block, command.weight, command.lease, poll_ttl(0))))
    texts = b"".join([_text(text.encode()) for text in (command.listener, command.owner, command.note)])
    return numbers + texts + bytes((0, UNTOUCHED, FRESH))


def _number(number: int) -> bytes:
    return b"\xcf" + number.to_bytes(8, "big")


def _text(text: bytes) -> bytes:
    size = len(text)
    if size < 32:
        return bytes((0xA0 | size,)) + text
    return (b"\xd9" + size.to_bytes(1, "big") if size < 256 else b"\xda" + size.to_bytes(2, "big")) + text


def message_args(command: Command) -> list[str]:
    """The arguments of this command for the full step: its name and its fields."""
    return [type(command).__name__.lower(), *[_arg(field) for field in command]]


def _arg(field: Any) -> str:
    if field is None:
        return ""
    return str(int(field)) if isinstance(field, bool) else str(field)


def decode_reply(raw: list[bytes]) -> Reply:
    kind, *fields = raw
    if kind == b"granted":
        return Granted(int(fields[0]), int(fields[1]))
    if kind == b"queued":
        return Queued(int(fields[0]), int(fields[1]), int(fields[2]))
    if kind == b"refused":
        return Refused()
    if kind == b"released":
        return Released(fields[0] == b"1")
    if kind == b"mismatch":
        return Mismatch(int(fields[0]))
    if kind == b"notholder":
        return NotHolder(_why(fields) if fields else None)
    if kind == b"revoked":
        return Revoked(_why(fields))
    assert kind == b"done", kind
    return Done(tuple([field.decode() for field in fields]))


def decode_state(raw: list[Any]) -> tuple[LockState, int]:
    """Decode the reply of read_state.lua: the state and the server's time."""
    values, holders, queue, tombstones, (seconds, micros) = raw
    limit = values[0]
    fence, places, seen = map(int, values[1:])
    if len(holders) == 1 and holders[0][-2] == 2:
        seen = holders[0][4]
    found = LockState(
        int(limit.rstrip(b"!")), limit.endswith(b"!"), fence, places, seen,
        tuple(sorted([_entry(e) for e in holders], key=lambda e: e.fence)), tuple([_entry(e) for e in queue]),
        tuple([Tombstone(t.decode(), int(float(until)), span, _why(why)) for t, until, span, *why in tombstones]),
    )  # fmt: skip
    return found, int(seconds) * 1_000_000 + int(micros)


def _entry(raw: list[Any]) -> Entry:
    _, ticket, fence, expires, since, block, weight, lease, poll_ttl, listener, owner, note, *rest = raw
    place, confirmed, passed = rest
    return Entry(
        ticket.decode(), weight, lease, poll_ttl, block, listener.decode(), owner.decode(), note.decode(), place, since,
        expires, fence, confirmed > 0, passed,
    )  # fmt: skip


def _why(texts: list[bytes]) -> Why:
    return Why(*[text.decode() for text in texts])
