"""The doorman inside a Redis server: the rules run there, as Lua, on native structures.

The commonest steps (into an empty room, out of it) are scripts with one key; all else is the full step. The client
remembers per name which of the two is worth sending first. Where a name's server is, and what to do when it is not
there any more, is the courier's business; how wake-ups arrive is the ears'.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from redis.crc import key_slot

from ...doorman import Admitted, Command, Enter, Keep, Leave, Left, Record, Renew
from ...errors import BackendError, RecordDamaged
from ..contract import NEVER, Answer, Colour, Pushed, Unknown, unanswered
from ..names import glob
from . import layout, trouble
from .at_once import LIST_AGAIN, PING, AtOnce
from .atlas import Atlas
from .courier import Courier, Parcel
from .door import Door, command_of
from .layout import pack
from .pools import KeepsPools
from .reading import Said
from .scripts import ENTER, LEAVE, LOOK, STEP

if TYPE_CHECKING:
    from .together import Together

NAMES = layout.PREFIX + "names"
FORGET = 7 * 86400  # seconds after which an unused name leaves the index
KNOWN = 4096  # names whose keys are kept at hand
PATIENCE_OF_WAIT = 500  # milliseconds for which replicas are waited for; a try waits no longer than 0.7 s for a reply
CONFIRMED = (Enter, Renew, Keep)


class RedisBackend(AtOnce, KeepsPools):
    span = "machines"
    skew = 0.0
    doubles = False

    def __init__(
        self, where: str, colour: Colour, namespace: str, atlas: Atlas, ears: Any, min_replicas: int = 0
    ) -> None:
        self.where = where
        self.colour = colour
        self.namespace = namespace
        self.atlas = atlas
        # Whoever is let in by somebody else's step must hear from the replicas itself. And an event loop may be blocked
        # for longer than the moment for which a grant by push is good.
        self.pushes_grants = colour.blocking and not min_replicas
        self.min_replicas = min_replicas
        self._confirm = pack("WAIT", min_replicas, PATIENCE_OF_WAIT) if min_replicas else b""
        self.ears = ears(colour, self._new_ear())
        self._courier = Courier(atlas, colour, where)
        self._clock = colour.clock
        self._node_of = atlas.node
        self._plain = colour.blocking and not min_replicas
        self._doors: dict[str, Door] = {}
        self._index = f"{NAMES}:{namespace}" if namespace else NAMES
        self._slot_of_names = key_slot(self._index.encode())
        self._breaks = 0

    def _new_ear(self) -> str:
        self.ear = os.urandom(8).hex()
        return layout.EARS + self.ear

    # -- one step

    def soon(self, name: str, command: Enter) -> Together | None:
        """For tasks: what enters like this and leaves again, by any ticket, with one message for all of one turn.

        None: there is no such short way; ask.
        """
        if self.colour.blocking or self._confirm:
            return None
        from .together import way_of

        return way_of(self, name, command)

    async def ask(self, name: str, command: Command) -> Answer:
        try:
            door = self.door(name)
            at = self.colour.clock()
            if at - door.listed > LIST_AGAIN:
                await self._list(name, door, at)
                at = self.colour.clock()
            if not door.crowded:
                payload = door.quick(command)
                if payload is not None:
                    entering = type(command) is Enter
                    after = self._confirm if entering else b""
                    script = ENTER if entering else LEAVE
                    found = await self._courier.bring(Parcel(door.slot, payload, script, after=after))
                    if found[0] is not None:
                        if after:
                            await self._replicated(found[1], door, command)
                        if entering:
                            return Answer(Admitted(int(found[0]), command.lease), at)  # type: ignore[union-attr, arg-type]
                        return Answer(Left(True), at)
                    at = self.colour.clock()
                door.crowded = True
            if type(command) is Enter and command.wait:
                await self._listen(door)
            # PING first, and the server writes to the clients that a step has let in before it replies to this one.
            before = PING if type(command) is Leave else b""
            payload = door.step(command)
            after = self._confirm if type(command) in CONFIRMED else b""
            raw, *confirmed = await self._courier.bring(Parcel(door.slot, payload, STEP, before, after))
            door.crowded = raw.pop() != b"1"
            reply = layout.reply(raw)
            if confirmed and type(reply) is Admitted:
                await self._replicated(confirmed[0], door, command)
            return Answer(reply, at)
        except trouble.UNREADABLE as bad:
            raise trouble.unreadable(bad, name, self.where) from None

    async def _replicated(self, count: Any, door: Door, command: Command) -> None:
        """Who is in counts only when enough replicas know it. Otherwise a new one goes again, and it is said."""
        if type(count) is Said:
            raise trouble.said_no(self.where, count)
        if count >= self.min_replicas:
            return
        if type(command) is Enter:
            await self._courier.bring(Parcel(door.slot, door.step(Leave(command.ticket)), STEP))
        few = f"{count} of {self.min_replicas} replicas have" if count else "no replica has"
        raise BackendError(
            f"{self.where}: {few} confirmed it in {PATIENCE_OF_WAIT / 1000:g} s, so it does not count "
            "(min_replicas). Are the replicas running and connected?"
        )

    def door(self, name: str) -> Door:
        door = self._doors.get(name)
        if door is None:
            if len(self._doors) >= KNOWN:
                self._doors.clear()
            door = self._doors[name] = Door(self.namespace, name)
        return door

    # -- waiting

    async def _listen(self, door: Any) -> None:
        """Be subscribed where this one lives, so that its script finds a listener there."""
        try:
            await self.ears.listen(await self.atlas.find(door.slot))
        except BackendError as error:
            if not self.atlas.moves or error.refused:
                raise
            await self.atlas.learn()  # who only waits asks nothing else, so nobody else would find the new one
            await self.ears.listen(await self.atlas.find(door.slot))

    async def changed(self, name: str, ticket: str, timeout: float) -> Pushed | None:
        pushed: Pushed | None = await self.ears.wait(ticket, timeout)
        return pushed

    def notify_reset(self, call: Callable[[], None]) -> None:
        self.ears.on_break = call

    def wake_here(self, tickets: Collection[str]) -> None:
        self.ears.wake_here(tickets)

    def hinted(self, tickets: Iterable[str]) -> Collection[str]:
        tickets = list(tickets)
        self.ears.drain()
        breaks = self.ears.breaks + self.atlas.breaks
        if breaks != self._breaks:
            # It may be another server that we talk to now, or the same without its data: ask for each whether it is
            # still there. That takes no right to look at the server's run_id, and sees a restart as well.
            self._breaks = breaks
            return tickets
        found: Collection[str] = self.ears.hinted(tickets)
        return found

    async def attend(self, locks: Collection[str], pools: Collection[str]) -> float:
        """Be subscribed at each server where one of these is kept."""
        doors: list[Any] = [self.door(name) for name in locks] + [self.pools.door(name) for name in pools]
        try:
            for door in doors if self.atlas.many else doors[:1]:
                await self._listen(door)
        except (Unknown, BackendError):
            return NEVER  # whether it can be asked, the look tells that the keeper takes in its place
        since: float = self.ears.since
        return since

    # -- looking

    async def look(self, name: str) -> tuple[Record, int]:
        door = self._doors.get(name) or Door(self.namespace, name)
        payload = command_of(LOOK, door.keys, 0)
        try:
            return layout.record((await self._read(Parcel(door.slot, payload, LOOK)))[0])
        except trouble.UNREADABLE as bad:
            raise trouble.unreadable(bad, name, self.where) from None

    async def repair(self, name: str) -> list[str]:
        from .repair import repair

        return await repair(self, name)

    async def looks(self, pattern: str) -> tuple[list[tuple[str, Record | RecordDamaged]], int]:
        matches = glob(pattern)
        found: list[tuple[str, Record | RecordDamaged]] = []
        raw = (await self._read(Parcel(self._slot_of_names, pack("ZRANGE", self._index, 0, -1))))[0]
        now = await self._time()
        for name in sorted(n.decode("utf-8", "replace") for n in raw):
            if matches(name):
                try:
                    record, now = await self.look(name)
                except RecordDamaged as damage:
                    found.append((name, damage))
                    continue
                if record.fence:
                    found.append((name, record))
        return found, now

    async def _read(self, parcel: Parcel) -> list[Any]:
        """What changes nothing leaves nothing in doubt: it is asked for again, and no answer is no answer."""
        try:
            return await self._courier.bring(parcel)
        except Unknown:  # a connection that has been idle may have been dead for long
            pass
        try:
            return await self._courier.bring(parcel)
        except Unknown as doubt:
            raise unanswered(self.where, doubt) from None

    async def _time(self) -> int:
        found = (await self._read(Parcel(self._slot_of_names, pack("TIME"))))[0]
        return int(found[0]) * 1_000_000 + int(found[1])

    # -- the house

    async def _list(self, name: str, door: Door, at: float) -> None:
        """Put a name into the index that `ls` reads. No script may do that: in a cluster it lies elsewhere."""
        now = int(time.time())
        put = pack("ZADD", self._index, now, name)
        forget = pack("ZREMRANGEBYSCORE", self._index, "-inf", now - FORGET)
        _, tidied = await self._courier.bring(Parcel(self._slot_of_names, put, after=forget))
        if type(tidied) is Said:
            raise trouble.said_no(self.where, tidied)
        door.listed = at

    async def tidy(self) -> None:
        """Nothing: the server keeps itself."""

    async def ping(self) -> None:
        await self._time()

    async def close(self) -> None:
        await self.ears.close()
        await self.atlas.close()

    def forked(self) -> None:
        self.ears.forget(self._new_ear())
        self.atlas.forget()

    def beacon(self) -> int | None:
        return None

    async def doctor(self) -> list[tuple[str, str]]:
        from .doctor import examine

        home = await self.atlas.find(self._slot_of_names)
        extra = self._rights_beside()
        return await examine(
            self.where, self._talk, lambda: self.ears.listen(home), extra, self._database, self.min_replicas
        )

    async def _talk(self, payload: bytes, replies: int) -> list[Any]:
        """The doctor's commands, as they are: to the server that has the key which they name, or to any."""
        import re

        keys = re.findall(rb"holdfast:(?:\{[^}\r\n]+\}|names)", payload)
        node = await self.atlas.find(key_slot(keys[-1]) if keys else self._slot_of_names)
        found: list[Any] = await node.talk(payload, replies)
        return found

    def schema(self) -> str:
        from . import rights

        return rights.text(self.where, self._rights_beside())

    def _rights_beside(self) -> tuple[str, ...]:
        """What this client needs beside the commands of all."""
        from . import rights

        extra: tuple[str, ...] = rights.DATABASE if self._database else ()
        extra += rights.CLUSTER if self.atlas.many else ()
        return extra + (rights.REPLICAS if self.min_replicas else ())

    @property
    def _database(self) -> int:
        number = self.where.rpartition("/")[2]
        return int(number) if number.isdecimal() and "/" in self.where[9:] else 0
