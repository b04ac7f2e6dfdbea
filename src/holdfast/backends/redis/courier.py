"""Takes a command to where its slot lives, and there again, or elsewhere, when the server there says so.

What a server says about itself is no news for the flows: that it does not know the script (any more), that the slot has
moved or is just moving, that it is loading, that it has become a replica. All of it means that nothing was done, so the
same command is sent again, with the same ticket, for a bounded time. What is left is said as a sentence.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...errors import BackendError, ConfigError
from ..contract import Colour, Unknown
from ..patience import over
from .atlas import Atlas
from .layout import pack
from .reading import Said
from .scripts import Script
from .trouble import code_of, said_no

PATIENCE = 0.5  # seconds for which a server may say 'not now' or 'not here'; the flows have some more
NAP = 0.02
ASKING = pack("ASKING")
NOT_NOW = ("TRYAGAIN", "BUSY", "CLUSTERDOWN")
NOT_HERE = ("LOADING", "MASTERDOWN", "READONLY")  # and where there is one server only, nowhere


class Parcel(NamedTuple):
    """A command, and what goes with it in the same write."""

    slot: int
    command: bytes
    script: Script | None = None
    before: bytes = b""  # a command whose reply nobody wants
    after: bytes = b""  # one command more


class Courier:
    def __init__(self, atlas: Atlas, colour: Colour, where: str) -> None:
        self.atlas = atlas
        self._colour = colour
        self._where = where

    async def bring(self, parcel: Parcel) -> list[Any]:
        """The reply to the command, and to the one after it. An error to the first is raised as a sentence.

        Unknown if it was sent and no answer came. Whoever gets BackendError may send the same again, too.
        """
        slot, command, script, before, after = parcel
        until = self._colour.clock() + PATIENCE
        load = False
        ask = ""
        while True:
            payload, ahead = command, 0
            if ask:
                payload, ahead = ASKING + payload, 1
            elif before:
                payload, ahead = before + payload, 1
            if load and script is not None:
                payload, ahead = pack("SCRIPT", "LOAD", script.text) + payload, ahead + 1
            wanted = ahead + 1
            if after:
                payload, wanted = payload + after, wanted + 1
            try:
                try:
                    node = self.atlas.named(ask) if ask else self.atlas.node(slot)
                except LookupError:
                    node = await self.atlas.find(slot)
                replies: list[Any] = await node.talk(payload, wanted)
            except BackendError as error:
                # Nothing was sent. With a cluster or sentinels somebody else may take over in a moment.
                if not self.atlas.moves or error.refused:
                    raise
                ask = ""
                await self._wait(until, error)
                await self._learn(until)
                continue
            found = replies[ahead:]
            if type(found[0]) is not Said:
                return found
            if load and type(replies[0]) is Said:
                raise said_no(self._where, replies[0])
            said = found[0]
            code = code_of(str(said))
            if code == "NOSCRIPT" and not load:
                load = True
                continue
            load, ask = False, ""
            if code == "ASK":
                ask = str(said).split()[2]
            elif code == "MOVED":
                await self._wait(until, said_no(self._where, said), 0)
                await self._learn(until)
                self.atlas.moved(slot, str(said).split()[2])
                continue
            elif code in NOT_NOW or (code in NOT_HERE and self.atlas.moves):
                await self._wait(until, said_no(self._where, said))
                if code not in ("TRYAGAIN", "BUSY"):
                    await self._learn(until)
            else:
                raise said_no(self._where, said)
            if self._colour.clock() > until:
                raise Unknown(f"it says {code}")

    async def _wait(self, until: float, error: Exception, nap: float = NAP) -> None:
        if self._colour.clock() + nap > until or over():
            if self.atlas.moves and isinstance(error, BackendError):
                raise Unknown(str(error)) from error  # the flows have more patience, and count it
            raise error
        if nap:
            await self._colour.sleep(nap)

    async def _learn(self, until: float) -> None:
        """Find out who is responsible, again and again if nobody knows just now."""
        while True:
            try:
                return await self.atlas.learn()
            except ConfigError:
                raise
            except BackendError as error:
                if error.refused or not self.atlas.moves:
                    raise
                await self._wait(until, error, 0.1)
