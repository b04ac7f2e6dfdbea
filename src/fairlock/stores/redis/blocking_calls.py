"""Calls of threads without a coroutine: one write, one read.

An uncontended lock uses the scripts with one key, a contended one the full step. Everything that takes more than one
request and its reply is left to `call`, and what a server reports about itself to the dispatcher.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...rules.locks import Acquire, Command, Granted, Release, Released
from ..base import Answer
from . import encoding, errors
from .encoding import pack
from .packed_commands import PackedCommands
from .reply_reader import NOT_YET, ReplyError

# Sent before a Release: the server then notifies the new holder before it replies to the releasing client.
PING = pack("PING")
RELEASED = Released(True)
new: Any = tuple.__new__


class NowaitCalls:
    where: str
    listeners: Any
    _commands: dict[str, PackedCommands]
    _clock: Callable[[], float]
    _node_of: Callable[[int], Any]
    _only_node: Any  # the server, if there is one only
    _nowait: bool  # whether the caller is a thread and no replica has to confirm a step

    def call_nowait(self, name: str, command: Command) -> Answer | None:
        """Make the commonest steps for threads: one write, one read, no coroutine. OutcomeUnknown if no reply came."""
        commands = self._commands.get(name)
        if commands is None or not self._nowait:
            return None
        clock, node = self._clock, self._only_node
        at = clock()
        if node is None:
            try:
                node = self._node_of(commands.slot)
            except LookupError:
                return None
        kind: Any = type(command)
        reply: Any = None
        fields: Any = command
        if not commands.contended:
            payload = commands.pack_fast(command)
            found = NOT_YET if payload is None else node.request_one(payload)
            if type(found) is int:
                # tuple.__new__ instead of the constructor of the named tuple, which takes as long as all of the above.
                reply = new(Granted, (found, fields[3], None)) if kind is Acquire else RELEASED
            elif found is None:
                commands.contended = True
            else:
                return None  # nothing was sent, or the server reports about itself: that is for the dispatcher
        if reply is None:  # the full step
            if kind is Release:
                found = node.request_one(PING + commands.pack_step(command), True)
            elif kind is Acquire and (not fields[4] or node in self.listeners.connections):
                found = node.request_one(commands.pack_step(command))
            else:
                return None
            if type(found) is ReplyError:
                errors.raise_if_begun(found)
                return None
            if found is NOT_YET or not found:
                return None
            try:
                reply, commands.contended = encoding.decode_step(found, command)
            except errors.UNREADABLE as bad:
                raise errors.unreadable(bad, name, self.where) from None
        answer: Answer = new(Answer, (reply, at, False))
        return answer
