"""Sends a command to the server of its slot, and again, or to another server, when the reply asks for that.

A server may reply that it does not have the script, that the slot has moved or is moving, that it is loading, or that
it has become a replica. Each of these means that nothing was done, so the same command is sent again, with the same
ticket, for a bounded time. Other errors are raised as a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from redis.crc import key_slot

from ...errors import ConfigError, StoreError
from ..base import Backend, OutcomeUnknown, Runtime
from ..deadline import over
from .encoding import pack
from .errors import error_code, error_for
from .lua_scripts import Script
from .reply_reader import ReplyError
from .topology import Topology

RETRY_FOR = 0.5  # seconds for which a server may reply 'not now' or 'not here'; the engine retries for longer
NAP = 0.02
ASKING = pack("ASKING")
NOT_NOW = ("TRYAGAIN", "BUSY", "CLUSTERDOWN")
NOT_HERE = ("LOADING", "MASTERDOWN", "READONLY")  # and where there is one server only, nowhere


class RoutedCommand(NamedTuple):
    """A command with its slot, and what is sent with it in the same write."""

    slot: int
    command: bytes
    script: Script | None = None
    before: bytes = b""  # a command whose reply is ignored
    after: bytes = b""  # one command more


def script_command(script: Script, keys: Sequence[str], *args: str | bytes | int) -> RoutedCommand:
    """Return the command that runs this script, for the slot of its keys."""
    payload = pack("EVALSHA", script.sha, len(keys), *keys, *args)
    return RoutedCommand(key_slot(keys[0].encode()), payload, script)


class Dispatcher(Backend):
    """The part of the backend that sends."""

    runtime: Runtime
    topology: Topology

    async def send(self, request: RoutedCommand) -> list[Any]:
        """Return the reply to the command, and to the one after it. An error reply to the first is raised.

        OutcomeUnknown if it was sent and no reply came. After StoreError the same may be sent again, too.
        """
        slot, command, script, before, after = request
        until = self.runtime.clock() + RETRY_FOR
        ask, load = "", b""  # the server that an ASK names; the command that loads the script
        while True:
            first = ASKING if ask else before
            ahead = (1 if load else 0) + (1 if first else 0)  # replies that are ignored
            try:
                try:
                    node = self.topology.named(ask) if ask else self.topology.node(slot)
                except LookupError:
                    node = await self.topology.find(slot)
                replies: list[Any] = await node.request(load + first + command + after, ahead + (2 if after else 1))
            except StoreError as error:
                # Nothing was sent. With a cluster or sentinels another server may take over in a moment.
                if not self.topology.moves or error.refused:
                    raise
                ask = ""
                await self._pause(until, error)
                await self._learn(until)
                continue
            found = replies[ahead:]
            if type(found[0]) is not ReplyError:
                return found
            if load and type(replies[0]) is ReplyError:
                raise error_for(self.where, replies[0])
            reply = found[0]
            code = error_code(str(reply))
            if code == "NOSCRIPT" and script is not None and not load:
                load = pack("SCRIPT", "LOAD", script.text)
                continue
            ask, load = "", b""
            if code == "ASK":
                ask = str(reply).split()[2]
            elif code == "MOVED":
                await self._pause(until, error_for(self.where, reply), 0)
                await self._learn(until)
                self.topology.moved(slot, str(reply).split()[2])
                continue
            elif code in NOT_NOW or (code in NOT_HERE and self.topology.moves):
                await self._pause(until, error_for(self.where, reply))
                if code not in ("TRYAGAIN", "BUSY"):
                    await self._learn(until)
            else:
                raise error_for(self.where, reply)
            if self.runtime.clock() > until:
                raise OutcomeUnknown(f"it replies {code}")

    async def _pause(self, until: float, error: Exception, nap: float = NAP) -> None:
        if self.runtime.clock() + nap > until or over():
            if self.topology.moves and isinstance(error, StoreError):
                raise OutcomeUnknown(str(error)) from error  # the engine retries for longer, and counts it
            raise error
        if nap:
            await self.runtime.sleep(nap)

    async def _learn(self, until: float) -> None:
        """Find the responsible server; repeat that if no server knows it yet."""
        while True:
            try:
                return await self.topology.learn()
            except ConfigError:
                raise
            except StoreError as error:
                if error.refused or not self.topology.moves:
                    raise
                await self._pause(until, error, 0.1)
