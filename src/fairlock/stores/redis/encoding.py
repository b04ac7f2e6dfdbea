"""The keys of a resource in Redis; encodes commands and grants, decodes replies and states.

All keys of a resource share one hash tag, so they are in one slot whatever its name is. Braces in names are encoded
because Redis Cluster would use them as a tag.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

from ...rules.locks import (
    ASKED,
    Acquire,
    Command,
    Detach,
    Done,
    Entry,
    Granted,
    LockState,
    Mismatch,
    NotHolder,
    Queued,
    Refused,
    Release,
    Released,
    Renew,
    Reply,
    Revoked,
    Tombstone,
    Why,
)
from .reply_reader import new

PREFIX = "fairlock:"
LISTENERS = PREFIX + "listener:"
FORMAT = 3
"""The number of the format of a state: its first byte. Format 2 was MessagePack in a hash, and had no such byte."""
RELEASED, NOT_RELEASED = Released(True), Released(False)
PARTS = ("queue", "holders", "unconfirmed", "tombstones")

IDLE = 600_000_000
"""For how many microseconds a state is kept after everything in it has ended. Fences rise afterwards, too."""
IDLE_IF_FIXED = 366 * 86400 * 1_000_000
"""The same for a resource whose capacity was set by Resize, so that it is remembered."""


def tag(namespace: str, name: str) -> str:
    """Join namespace and name inside one hash tag. `%` and braces are percent-encoded, the separator is not."""
    full = f"{namespace}\x1f{name}" if namespace else name
    return full.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")


def state_key(namespace: str, name: str) -> str:
    """Return the key of the state. Those of everything else with this name begin with it."""
    return f"{PREFIX}{{{tag(namespace, name)}}}"


def keys(namespace: str, name: str) -> list[str]:
    return _with_parts(state_key(namespace, name))


def _with_parts(state: str) -> list[str]:
    return [state, *[f"{state}:{part}" for part in PARTS]]


@cache
def around_state(size: int) -> list[bytes]:
    """Return what is packed around the key of a state of this size, which is in all keys of its lock: `join` these by
    it."""
    mark = "\x01" * size
    return pack_args(*_with_parts(mark)).split(mark.encode())


def pack(*args: str | bytes | int) -> bytes:
    """Pack one command as RESP."""
    return b"*%d\r\n%b" % (len(args), pack_args(*args))


def pack_args(*args: str | bytes | int) -> bytes:
    """Pack arguments of a command as RESP."""
    data = [arg if isinstance(arg, bytes) else str(arg).encode() for arg in args]
    return b"".join([b"$%d\r\n%b\r\n" % (len(arg), arg) for arg in data])


# Sent before a Release: the server then notifies the new holder before it replies to the releasing client.
PING = pack("PING")


def sized(text: bytes) -> bytes:
    """Return a text as an entry contains it, behind its size."""
    return len(text).to_bytes(2, "little") + text


def amounts(command: Acquire, block: int) -> bytes:
    """Pack block, weight and lease of this command as an entry contains them."""
    return struct.pack("<3d", max(block, 1), command.weight, command.lease)


def texts(command: Acquire) -> bytes:
    """Return the texts of this command that follow its ticket in an entry."""
    return b"".join([sized(text.encode()) for text in (command.listener, command.owner, command.note)])


def options(command: Acquire) -> bytes:
    """Capacity, wait and fair of this command, as the step reads them."""
    return struct.pack("<dBB", command.capacity, command.wait, command.fair)


def fast_args(command: Acquire | Release) -> tuple[bytes, ...]:
    """Return the arguments of fast_acquire.lua or fast_release.lua for this command."""
    own = sized(command.ticket.encode())
    if isinstance(command, Release):
        return own, b"" if command.fence is None else b"%d" % command.fence
    return own, *fast_tail(command)


def fast_tail(command: Acquire) -> tuple[bytes, bytes, bytes]:
    """Return all but the first of the arguments of fast_acquire.lua: they are the same for every ticket."""
    block = command.block if command.weight == command.capacity else 1
    return amounts(command, block), texts(command), struct.pack("<d", command.capacity)


def message_args(command: Command) -> list[str | bytes]:
    """Return the arguments of this command for the full step: its name and its fields."""
    if type(command) is Acquire:
        entry = amounts(command, command.block) + sized(command.ticket.encode()) + texts(command)
        return ["acquire", options(command), entry]
    return [type(command).__name__.lower(), *[_arg(field) for field in command]]


def _arg(field: Any) -> str:
    if field is None:
        return ""
    return str(int(field)) if isinstance(field, bool) else str(field)


def decode_step(raw: Any, command: Command) -> tuple[Reply, bool]:
    """Decode the reply of the step to this command. Return also whether the fast scripts do not work next."""
    if type(raw) is int:
        if type(command) is Renew or type(command) is Detach:
            return new(Granted, (command[1], raw, None)), False
        if type(command) is Acquire:  # from the parts that it shares with these
            return new(Granted, (raw, command[3], None)), False
        return RELEASED, raw != 1
    if type(raw[0]) is int:
        return new(Queued, raw), True
    return decode_reply(raw[:-1]), raw[-1] != b"1"


def decode_reply(raw: list[bytes]) -> Reply:
    kind, *fields = raw
    if kind == b"granted":
        asked = Why(ASKED, fields[2].decode(), fields[3].decode()) if len(fields) > 2 else None
        return new(Granted, (int(fields[0]), int(fields[1]), asked))  # type: ignore[no-any-return]
    if kind == b"queued":
        return new(Queued, (int(fields[0]), int(fields[1]), int(fields[2])))  # type: ignore[no-any-return]
    if kind == b"refused":
        return Refused()
    if kind == b"released":
        return RELEASED if fields[0] == b"1" else NOT_RELEASED
    if kind == b"mismatch":
        return Mismatch(int(fields[0]))
    if kind == b"notholder":
        return NotHolder(_why(fields) if fields else None)
    if kind == b"revoked":
        return Revoked(_why(fields))
    assert kind == b"done", kind
    return Done(tuple([field.decode() for field in fields]))


def decode_state(raw: list[Any]) -> tuple[LockState, int]:
    """Decode the reply of read_state.lua: the state and the server's time. ValueError if it is not a state."""
    numbers, holders, queue, tombstones, time = raw
    found = LockState()
    if numbers:
        fence, seen, places, _, _, _, capacity, *_ = map(int, struct.unpack("<11d", numbers[2:]))
        found = LockState(
            capacity, numbers[1:2] == b"!", fence, max(places, 0), seen,
            tuple(sorted([_entry(e) for e in holders], key=lambda e: e.fence)), tuple([_entry(e) for e in queue]),
            tuple([_tombstone(*each) for each in tombstones]),
        )  # fmt: skip
    return found, decode_time(time)


def decode_time(raw: list[bytes]) -> int:
    """Decode the reply to TIME."""
    seconds, micros = raw
    return int(seconds) * 1_000_000 + int(micros)


def _entry(raw: bytes) -> Entry:
    times, amounts = struct.unpack_from("<5d", raw, 1), struct.unpack_from("<3d", raw, 43)
    (fence, expires, since, poll_ttl, place), (block, weight, lease) = map(int, times), map(int, amounts)
    ticket, listener, owner, note = _texts(raw, 67, 4)
    return Entry(
        ticket, weight, lease, poll_ttl, block, listener, owner, note, place, since, expires, fence, raw[41] == 1,
        raw[42],
    )  # fmt: skip


def _tombstone(ticket: bytes, until: bytes, text: bytes) -> Tombstone:
    (span,) = struct.unpack_from("<d", text)
    return Tombstone(ticket.decode(), int(float(until)), int(span), Why(*_texts(text, 8, 3)))


def _texts(raw: bytes, at: int, count: int) -> list[str]:
    found = []
    for _ in range(count):
        end = at + 2 + int.from_bytes(raw[at : at + 2], "little")
        found.append(raw[at + 2 : end].decode())
        at = end
    if at != len(raw):
        raise ValueError(f"not an entry: {raw[:80]!r}")
    return found


def _why(texts: list[bytes]) -> Why:
    return Why(*[text.decode() for text in texts])
