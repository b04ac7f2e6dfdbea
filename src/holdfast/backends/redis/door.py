"""What is remembered about one name: its keys, where they live, and its commands, packed as far as they repeat.

Of the commonest commands only the ticket and the fence are new each time; the rest is put together once.
"""

from __future__ import annotations

from typing import Any

from redis.crc import key_slot

from ...doorman import Command, Enter, Leave
from . import layout
from .layout import packed
from .scripts import ENTER, LEAVE, STEP, Script

NEVER = float("-inf")
KNOWN = 512  # ways of entering: owners, notes and leases that are kept packed
USUAL = 32  # characters of a ticket
LEAST, MOST = 10**15, 10**16 - 1  # sixteen digits, as fences have until the year 2286

_tails: dict[tuple[Any, ...], bytes] = {}
_step_tails: dict[tuple[Any, ...], bytes] = {}


class Door:
    __slots__ = ("_begin", "_last", "_leave", "_steps", "crowded", "keys", "listed", "slot", "word")

    def __init__(self, namespace: str, name: str) -> None:
        self.keys = layout.keys(namespace, name)
        self.slot = key_slot(self.keys[0].encode())
        usual = layout.head(bytes(USUAL))
        seat = b"$%d\r\n%b" % (len(usual), usual[:-USUAL])
        self._begin = command_of(ENTER, self.keys[:1], 5) + seat
        self._leave = command_of(LEAVE, self.keys[:1], 2) + seat
        self._last: tuple[tuple[Any, ...], bytes] = (), b""  # an Enter's fields, and what comes behind its ticket
        self._steps = packed("EVALSHA", STEP.sha, len(self.keys), *self.keys, layout.EARS)
        self.word = packed(self.keys[0])
        self.crowded = False  # others want it, too: the full step is worth sending first
        self.listed = NEVER  # since when the index has it from us

    def quick(self, command: Command) -> bytes | None:
        """This command for the scripts with one key; None: it is not for them."""
        if type(command) is Enter:
            ticket = command[0].encode()
            fields, rest = self._last  # one look: another thread may come with others
            if command[1:] != fields:
                tail = tail_of(command)
                if not tail:
                    return None
                rest = b"\r\n" + tail
                self._last = command[1:], rest
            if len(ticket) == USUAL:
                return b"%b%b%b" % (self._begin, ticket, rest)
            return command_of(ENTER, self.keys[:1], 5) + packed(layout.head(ticket)) + rest[2:]
        if type(command) is Leave and not command[1] and command[3] is None:
            ticket, number = command[0].encode(), command[2]
            if len(ticket) == USUAL and number is not None and LEAST <= number <= MOST:
                return b"%b%b\r\n$16\r\n%d\r\n" % (self._leave, ticket, number)
            return command_of(LEAVE, self.keys[:1], 2) + packed(layout.head(ticket), "" if number is None else number)
        return None

    def step(self, command: Command) -> bytes:
        """This command for the whole step."""
        size = 4 + len(self.keys)
        if type(command) is Enter:
            ticket = command[0].encode()
            tail = _step_tails.get(command[1:])
            if tail is None:
                if len(_step_tails) >= KNOWN:
                    _step_tails.clear()
                tail = _step_tails[command[1:]] = packed(*layout.words(command)[2:])
            return b"*%d\r\n%b$5\r\nenter\r\n$%d\r\n%b\r\n%b" % (size + 11, self._steps, len(ticket), ticket, tail)
        if type(command) is Leave and command[3] is None:
            ticket, number = command[0].encode(), command[2]
            fence = b"" if number is None else b"%d" % number
            return b"*%d\r\n%b$5\r\nleave\r\n$%d\r\n%b\r\n$1\r\n%d\r\n$%d\r\n%b\r\n$0\r\n\r\n" % (
                size + 5, self._steps, len(ticket), ticket, command[1], len(fence), fence
            )  # fmt: skip
        words = layout.words(command)
        return b"*%d\r\n%b%b" % (size + len(words), self._steps, packed(*words))


def tail_of(command: Enter) -> bytes:
    """All but the ticket, for the quick script; b'' if it is not for it."""
    tail = _tails.get(command[1:])
    return _tail(command) if tail is None else tail


def _tail(command: Enter) -> bytes:
    _, capacity, weight, lease, _, _, block, *_ = command
    tail = b""
    if 1 <= weight <= capacity:
        tail = packed(layout.tail(command), capacity, lease, block if weight == capacity and block > 1 else 1)
    if len(_tails) >= KNOWN:
        _tails.clear()
    _tails[command[1:]] = tail
    return tail


def command_of(script: Script, keys: list[str], more: int, *args: str) -> bytes:
    """An EVALSHA with these keys and arguments, to which so many arguments are still to be added."""
    count = 3 + len(keys) + len(args) + more
    return b"*%d\r\n%b" % (count, packed("EVALSHA", script.sha, len(keys), *keys, *args))
