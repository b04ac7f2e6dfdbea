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
from .reply_reader import ReplyError

# Sent before a Release: the server then notifies the new holder before it replies to the releasing client.
PING = pack("PING")
RELEASED = Released(True)
NUMBER = ord(":")
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
        """The commonest steps, for threads: one write, one read, no coroutine. OutcomeUnknown if no reply came."""
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
        if commands.contended:
            return self._step_nowait(name, commands, node, command, at)
        payload = commands.pack_fast(command)
        raw = payload and node.request_raw(payload)
        if not raw:
            return None  # nothing was sent, or the server reports about itself: that is for the dispatcher
        if raw[0] != NUMBER:
            commands.contended = True
            return self._step_nowait(name, commands, node, command, at)
        # tuple.__new__ instead of the constructor of the named tuple, which takes as long as all of the above.
        if type(command) is Acquire:
            answer: Answer = new(Answer, (new(Granted, (int(raw[1:]), command[3], None)), at, False))
        else:
            answer = new(Answer, (RELEASED, at, False))
        return answer

    def _step_nowait(
        self, name: str, commands: PackedCommands, node: Any, command: Command, at: float
    ) -> Answer | None:
        """The same with the full step, for contended locks."""
        if type(command) is Release:
            found = node.request_many(PING + commands.pack_step(command), 2)
        elif type(command) is Acquire and (not command.wait or self.listeners.listens_at(node)):
            found = node.request_many(commands.pack_step(command), 1)
        else:
            return None
        raw = found and found[-1]
        if not raw or type(raw) is ReplyError:
            if raw:
                errors.raise_if_begun(raw)
            return None
        try:
            reply, commands.contended = encoding.decode_step(raw, command)
        except errors.UNREADABLE as bad:
            raise errors.unreadable(bad, name, self.where) from None
        answer: Answer = new(Answer, (reply, at, False))
        return answer
