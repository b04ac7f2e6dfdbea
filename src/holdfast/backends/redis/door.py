"""What is remembered about one name: its keys, where they live, and its commands, packed as far as they repeat.

Of the commonest commands only the ticket and the fence are new each time; the rest is put together once.
"""

from __future__ import annotations

from typing import Any

from redis.crc import key_slot

from ...doorman import Command, Enter, Leave
from . import layout
from .scripts import ENTER, LEAVE, STEP, Script

NEVER = float("-inf")
KNOWN = 512  # ways of entering: owners, notes and leases that are kept packed

_tails: dict[tuple[Any, ...], bytes] = {}
_step_tails: dict[tuple[Any, ...], bytes] = {}


class Door:
    __slots__ = ("crowded", "enter", "keys", "leave", "listed", "slot", "steps", "word")

    def __init__(self, namespace: str, name: str) -> None:
        self.keys = layout.keys(namespace, name)
        self.slot = key_slot(self.keys[0].encode())
        self.enter = command_of(ENTER, self.keys[:1], 5)
        self.leave = command_of(LEAVE, self.keys[:1], 2)
        self.steps = _words("EVALSHA", STEP.sha, len(self.keys), *self.keys, layout.EARS)
        self.word = _words(self.keys[0])
        self.crowded = False  # others want it, too: the full step is worth sending first
        self.listed = NEVER  # since when the index has it from us

    def step(self, command: Command) -> bytes:
        """This command for the whole step."""
        size = 4 + len(self.keys)
        if type(command) is Enter:
            ticket = command[0].encode()
            tail = _step_tails.get(command[1:])
            if tail is None:
                if len(_step_tails) >= KNOWN:
                    _step_tails.clear()
                tail = _step_tails[command[1:]] = _words(*layout.words(command)[2:])
            return b"*%d\r\n%b$5\r\nenter\r\n$%d\r\n%b\r\n%b" % (size + 11, self.steps, len(ticket), ticket, tail)
        words = layout.words(command)
        return b"*%d\r\n%b%b" % (size + len(words), self.steps, _words(*words))

    def quick(self, command: Command) -> bytes | None:
        """This command for the scripts with one key; None: it is not for them."""
        if type(command) is Enter:
            ticket = command[0].encode()
            tail = tail_of(command)
            if not tail:
                return None
            head = layout.head(ticket)
            return b"%b$%d\r\n%b\r\n%b" % (self.enter, len(head), head, tail)
        if type(command) is Leave and not command.bury:
            head, number = layout.head(command[0].encode()), command[2]
            fence = b"" if number is None else b"%d" % number
            return b"%b$%d\r\n%b\r\n$%d\r\n%b\r\n" % (self.leave, len(head), head, len(fence), fence)
        return None


def tail_of(command: Enter) -> bytes:
    """All but the ticket, for the quick script; b'' if it is not for it."""
    tail = _tails.get(command[1:])
    return _tail(command) if tail is None else tail


def _tail(command: Enter) -> bytes:
    _, capacity, weight, lease, _, _, block, *_ = command
    tail = b""
    if 1 <= weight <= capacity:
        tail = _words(layout.tail(command), capacity, lease, block if weight == capacity and block > 1 else 1)
    if len(_tails) >= KNOWN:
        _tails.clear()
    _tails[command[1:]] = tail
    return tail


def _words(*words: str | bytes | int) -> bytes:
    data = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in data])


def command_of(script: Script, keys: list[str], more: int, *args: str) -> bytes:
    """An EVALSHA with these keys and arguments, to which so many arguments are still to be added."""
    count = 3 + len(keys) + len(args) + more
    return b"*%d\r\n%b" % (count, _words("EVALSHA", script.sha, len(keys), *keys, *args))
