"""The commands of one lock, packed as far as they repeat; and its keys and their slot.

In the commonest commands only the ticket and the fence are new each time; the rest is packed once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from redis.crc import key_slot

from ...rules.locks import Acquire, Command, Release
from . import encoding
from .encoding import pack_args
from .lua_scripts import FAST_ACQUIRE, FAST_RELEASE, STEP, Script

KNOWN = 512  # combinations of owner, note and lease that are kept packed
USUAL = 32  # characters of a ticket
LEAST, MOST = 10**15, 10**16 - 1  # sixteen digits, as fences have until the year 2286

_tails: dict[tuple[Any, ...], bytes] = {}
P = TypeVar("P")


class PackedByName(dict[str, P]):
    """What is packed for each name, made when it is first asked for. With too many names it begins again."""

    def __init__(self, most: int, pack: Callable[[str], P]) -> None:
        super().__init__()
        self._most = most
        self._pack = pack

    def __missing__(self, name: str) -> P:
        if len(self) >= self._most:
            self.clear()
        packed = self[name] = self._pack(name)
        return packed


class PackedCommands:
    __slots__ = (
        "_acquire", "_last_step", "_release", "_release_step", "_steps", "contended", "keys", "last", "packed_key",
        "slot",
    )  # fmt: skip

    def __init__(self, namespace: str, name: str) -> None:
        self.keys = encoding.keys(namespace, name)
        self.slot = key_slot(self.keys[0].encode())
        usual = b"$%d\r\n%b" % (USUAL + 2, encoding.sized(bytes(USUAL))[:-USUAL])
        self._acquire = begin_evalsha(FAST_ACQUIRE, self.keys[:1], 4) + usual
        self._release = begin_evalsha(FAST_RELEASE, self.keys[:1], 2) + usual
        self.last: tuple[tuple[Any, ...], bytes] = (), b""
        """The fields of the last Acquire behind its ticket, and these packed for fast_acquire.lua; b'': not possible.
        Read it once: another thread may replace it."""
        self._steps = pack_args("EVALSHA", STEP.sha, len(self.keys), *self.keys)
        self._last_step: tuple[tuple[Any, ...], bytes, bytes] = (), b"", b""  # the same for the step, around the ticket
        self._release_step = b"*%d\r\n%b%b$%d\r\n" % (8 + len(self.keys), self._steps, pack_args("release"), USUAL)
        self.packed_key = pack_args(self.keys[0])
        self.contended = False  # others want it, too: send the full step first

    def pack_fast(self, command: Command) -> bytes | None:
        """Pack this command for the scripts with one key; None: they do not support it."""
        if type(command) is Acquire:
            ticket = command[0].encode()
            fields, tail = self.last
            if command[1:] != fields:
                tail = self.pack_tail(command[1:])
            if not tail:
                return None
            if len(ticket) == USUAL:
                return b"%b%b\r\n%b" % (self._acquire, ticket, tail)
            return begin_evalsha(FAST_ACQUIRE, self.keys[:1], 4) + pack_args(encoding.sized(ticket)) + tail
        if type(command) is Release and not command[1] and command[3] is None:
            ticket, number = command[0].encode(), command[2]
            if len(ticket) == USUAL and number is not None and LEAST <= number <= MOST:
                return b"%b%b\r\n$16\r\n%d\r\n" % (self._release, ticket, number)
            return begin_evalsha(FAST_RELEASE, self.keys[:1], 2) + pack_args(*encoding.fast_args(command))
        return None

    def pack_tail(self, fields: tuple[Any, ...]) -> bytes:
        """Pack these fields of an Acquire, all behind the ticket, for fast_acquire.lua, and keep them; b'' if it does
        not support them. All locks of a client share these bytes, so a batch is found by them.
        """
        tail = _tails.get(fields)
        if tail is None:
            command = Acquire("", *fields)
            tail = pack_args(*encoding.fast_tail(command)) if 1 <= command.weight <= command.capacity else b""
            if len(_tails) >= KNOWN:
                _tails.clear()
            _tails[fields] = tail
        self.last = fields, tail
        return tail

    def pack_step(self, command: Command) -> bytes:
        """Pack this command for the full step."""
        if type(command) is Acquire:
            ticket = command[0].encode()
            if len(ticket) == USUAL:
                fields, before, after = self._last_step
                if command[1:] != fields:
                    before, after = self._keep_step(command)
                return b"%b%b%b" % (before, ticket, after)
        elif type(command) is Release and not command[1] and command[3] is None:
            ticket, number = command[0].encode(), command[2]
            if len(ticket) == USUAL and number is not None and LEAST <= number <= MOST:
                return b"%b%b\r\n$1\r\n0\r\n$16\r\n%d\r\n$0\r\n\r\n" % (self._release_step, ticket, number)
        words = encoding.message_args(command)
        return b"*%d\r\n%b%b" % (3 + len(self.keys) + len(words), self._steps, pack_args(*words))

    def _keep_step(self, command: Acquire) -> tuple[bytes, bytes]:
        """Pack this command as far as it is the same for every usual ticket: what is before the ticket and after it."""
        before = encoding.amounts(command, command.block) + encoding.sized(bytes(USUAL))[:-USUAL]
        after = encoding.texts(command)
        words = pack_args("acquire", encoding.options(command))
        size = len(before) + USUAL + len(after)
        before = b"*%d\r\n%b%b$%d\r\n%b" % (6 + len(self.keys), self._steps, words, size, before)
        after += b"\r\n"
        self._last_step = command[1:], before, after
        return before, after


def begin_evalsha(script: Script, keys: list[str], more: int) -> bytes:
    """Pack an EVALSHA with these keys, to which `more` arguments must be appended."""
    return b"*%d\r\n%b" % (3 + len(keys) + more, pack_args("EVALSHA", script.sha, len(keys), *keys))
