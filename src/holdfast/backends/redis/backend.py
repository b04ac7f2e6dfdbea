"""The doorman inside a Redis server: the rules run there, as Lua, on native structures.

The commonest steps (into an empty room, out of it) are scripts with one key; everything else is step.lua. The client
remembers per name which of the two is worth sending first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable
from typing import Any, Protocol

from ...doorman import Admitted, Command, Enter, Leave, Left, Record
from ...errors import BackendError
from ..contract import Answer, Colour, Event, Pushed, Unknown
from ..names import glob
from . import layout, trouble
from .layout import pack
from .scripts import ENTER, LEAVE, LOOK, STEP, Script

NAMES = layout.PREFIX + "names"
FORGET = 7 * 86400  # seconds after which an unused name leaves the index
LIST_AGAIN = 3600.0
NEVER = float("-inf")


class Wire(Protocol):
    async def talk(self, payload: bytes, replies: int) -> list[Any]: ...

    def forget(self) -> None: ...

    async def close(self) -> None: ...


class Ears(Protocol):
    async def listen(self) -> None: ...

    async def wait(self, event: Event, timeout: float) -> None: ...

    def forget(self) -> None: ...

    async def close(self) -> None: ...


class RedisBackend:
    span = "machines"
    skew = 0.0
    pushes_grants = True
    doubles = False

    def __init__(self, where: str, colour: Colour, namespace: str, wire: Wire) -> None:
        self.where = where
        self.colour = colour
        self.namespace = namespace
        self.ear = os.urandom(8).hex()
        self.wire = wire
        self.ears: Ears
        self._keys: dict[str, list[str]] = {}
        self._crowded: set[str] = set()
        self._hints: dict[str, Pushed] = {}
        self._waiting: dict[str, Event] = {}
        self._listed: dict[str, float] = {}  # names that the index has from us, and since when

    # -- one step

    async def ask(self, name: str, command: Command) -> Answer:
        at = self.colour.clock()
        if at - self._listed.get(name, NEVER) > LIST_AGAIN:
            await self._list(name, at)
            at = self.colour.clock()
        keys = self._keys.get(name) or self._place(name)
        if name not in self._crowded:
            if type(command) is Enter and 1 <= command.weight <= command.capacity:
                ticket, capacity, weight, lease, _, _, block, ear, owner, note = command
                block = block if weight == capacity and block > 1 else 1
                fence = await self._call(ENTER, keys[:1], (ticket, capacity, weight, lease, block, ear, owner, note))
                if fence is not None:
                    return Answer(Admitted(int(fence), lease), at)
            elif type(command) is Leave and not command.bury:
                fence = "" if command.fence is None else command.fence
                if await self._call(LEAVE, keys[:1], (command.ticket, fence)) is not None:
                    return Answer(Left(True), at)
            self._crowded.add(name)
            at = self.colour.clock()
        if type(command) is Enter and command.wait:
            await self.ears.listen()
        raw = await self._call(STEP, keys, (layout.EARS, *layout.words(command)))
        if raw.pop() == b"1":
            self._crowded.discard(name)
        return Answer(layout.reply(raw), at)

    def at_once(self, name: str, command: Command) -> Answer | None:
        return None

    def _place(self, name: str) -> list[str]:
        if len(self._keys) > 4096:
            self._keys.clear()
            self._crowded.clear()
        keys = self._keys[name] = layout.keys(self.namespace, name)
        return keys

    async def _call(self, script: Script, keys: list[str], args: tuple[Any, ...]) -> Any:
        rest = (len(keys), *keys, *args)
        found = (await self.wire.talk(pack("EVALSHA", script.sha, *rest), 1))[0]
        if isinstance(found, Exception) and str(found).startswith("No matching script"):
            payload = pack("SCRIPT", "LOAD", script.text) + pack("EVALSHA", script.sha, *rest)
            loaded, found = await self.wire.talk(payload, 2)
            if isinstance(loaded, Exception):
                found = loaded
        if isinstance(found, Exception):
            raise trouble.said_no(self.where, found)
        return found

    # -- waiting

    def hear(self, ticket: str, place: int, fence: int) -> None:
        """A wake-up arrived, for one who waits here or is about to."""
        if len(self._hints) > 1000:
            self._hints.clear()
        self._hints[ticket] = Pushed(ticket, place, fence)
        event = self._waiting.get(ticket)
        if event is not None:
            event.set()

    async def changed(self, name: str, ticket: str, timeout: float) -> Pushed | None:
        event = self._waiting[ticket] = self.colour.event()
        try:
            if ticket not in self._hints:
                try:
                    await self.ears.listen()
                except BackendError:
                    await self.colour.sleep(min(timeout, 0.1))
                await self.ears.wait(event, timeout)
            return self._hints.pop(ticket, None)
        finally:
            self._waiting.pop(ticket, None)

    def hinted(self, tickets: Iterable[str]) -> Collection[str]:
        return [ticket for ticket in tickets if self._hints.pop(ticket, None) is not None]

    # -- looking

    async def look(self, name: str) -> tuple[Record, int]:
        return layout.record(await self._call(LOOK, layout.keys(self.namespace, name), ()))

    async def looks(self, pattern: str) -> tuple[list[tuple[str, Record]], int]:
        matches = glob(pattern)
        found = []
        raw = (await self.wire.talk(pack("ZRANGE", self._index, 0, -1), 1))[0]
        if isinstance(raw, Exception):
            raise trouble.said_no(self.where, raw)
        now = await self._time()
        for name in sorted(n.decode() for n in raw):
            if matches(name):
                record, now = await self.look(name)
                if record.fence:
                    found.append((name, record))
        return found, now

    @property
    def _index(self) -> str:
        return f"{NAMES}:{self.namespace}" if self.namespace else NAMES

    async def _time(self) -> int:
        found = (await self.wire.talk(pack("TIME"), 1))[0]
        if isinstance(found, Exception):
            raise trouble.said_no(self.where, found)
        return int(found[0]) * 1_000_000 + int(found[1])

    # -- the house

    async def _list(self, name: str, at: float) -> None:
        """Put a name into the index that `ls` reads. No script may do that: in a cluster it lies elsewhere."""
        now = int(time.time())
        payload = pack("ZADD", self._index, now, name) + pack("ZREMRANGEBYSCORE", self._index, "-inf", now - FORGET)
        for found in await self.wire.talk(payload, 2):
            if isinstance(found, Exception):
                raise trouble.said_no(self.where, found)
        if len(self._listed) > 4096:
            self._listed.clear()
        self._listed[name] = at

    async def tidy(self) -> None:
        pass

    async def ping(self) -> None:
        try:
            await self._time()
        except Unknown as doubt:
            raise BackendError(f"{self.where} does not answer: {doubt}.") from None

    async def close(self) -> None:
        await self.ears.close()
        await self.wire.close()

    def forked(self) -> None:
        self.ear = os.urandom(8).hex()
        self.wire.forget()
        self.ears.forget()

    def beacon(self) -> int | None:
        return None

    async def doctor(self) -> list[tuple[str, str]]:
        from .doctor import examine

        return await examine(self.where, self.wire.talk, self.ears.listen)

    def schema(self) -> str:
        from . import rights

        return rights.text(self.where, rights.DATABASE if self.where[-1].isdecimal() and "/" in self.where[9:] else ())

