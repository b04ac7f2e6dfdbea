"""What RemoteLocks does, written once for threads and for asyncio: the holds of one client by the callers' own tickets.

Each key, a lock's name and a note with kind and ticket, is in at most one of these states: being acquired, held, or the
place of a writer that was refused. A call reserves its key before it sends anything, so that two calls with one ticket
never make two holds or two places. The mutex guards these tables and is never held while something is sent.

A writer waits under a ticket of ours. Its Enter is repeated by every call of its own, and between them by one thread or
task for all, because nobody listens for it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..backends import patience
from ..doorman import ALL, Admitted, Enter, Leave
from ..errors import ConfigError, LockError
from ..flow import check
from ..flow.check import Seconds
from ..flow.desk import FORGET, Debt
from ..flow.look import Snapshot
from ..flow.release import pay

MUTEX, READERS, WRITER = "mutex", "readers", "writer"
HEARTBEAT = 0.25  # seconds between two Enters of a writer that waits
SOON = 1.0  # seconds for which a call waits for another one of its ticket that has just been admitted

Key = tuple[str, str]  # the name of the lock, and the note by which its holds are found


class StaleLock(NamedTuple):
    """A hold that has lasted for long."""

    resource_type: str
    resource_id: str
    kind: str
    """mutex, readers or writer."""
    ticket: str
    owner: str
    """Whose client it is."""
    acquired_at: float
    """Seconds since 1970, by the store's clock."""


class Place:
    """The place of a writer that was refused. It is kept for a while after the last call of its ticket."""

    def __init__(self, key: Key, ticket: str, changed: Any) -> None:
        self.key = key
        self.ticket = ticket
        self.until = 0.0
        self.changed = changed  # set when the writer is inside, or the place is gone
        self.lease: Any = None
        self.attaching = False


class RemoteHolds:
    """Colourless: `locks` is a client of either face, and what its methods return is awaited if it has to be."""

    def __init__(self, locks: Any, *, pending: Seconds = 10) -> None:
        self._locks = locks
        self._keeps = check.seconds(pending, "pending")
        self._mutex = locks._desk.colour.mutex()
        self._acquiring: set[Key] = set()
        self._held: dict[Key, Any] = {}
        self._places: dict[Key, Place] = {}
        self._tending = False

    async def _acquire(
        self, kind: str, resource_type: str, resource_id: int | str, ticket: str, timeout: Seconds
    ) -> bool:
        """A mutex, or one of the readers. False also if this ticket is in use."""
        key = key_of(kind, resource_type, resource_id, ticket)
        with self._mutex:
            if key in self._acquiring or self._is_held(key):
                return False
            self._acquiring.add(key)
        try:
            both = self._locks.rwlock(key[0], note=key[1], local_handoff=False)  # each hold has a seat of its own
            lock = both.read() if kind == READERS else both.write()
            lease = await settled(lock.acquire(timeout=timeout) if timeout else lock.acquire(False))
            if lease is not None:
                with self._mutex:
                    self._held[key] = lease
            return lease is not None
        finally:
            with self._mutex:
                self._acquiring.discard(key)

    def _is_held(self, key: Key) -> bool:
        """Under the mutex."""
        mine = self._held.get(key)
        return mine is not None and mine.held

    async def _release(self, kind: str, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Also what another process holds by this ticket."""
        key = key_of(kind, resource_type, resource_id, ticket)
        with self._mutex:
            lease = self._held.pop(key, None)
        if lease is not None:
            try:
                await settled(lease.release())
                return not lease.lost
            except LockError:
                if lease.lost:
                    return False
                with self._mutex:
                    self._held.setdefault(key, lease)  # it may be tried again
                raise
        desk = self._locks._desk
        record, _ = await desk.backend.look(key[0])
        found = [each for each in record.inside if each.note == key[1]]
        for each in found:
            await desk.ask(key[0], Leave(each.ticket, True))
        return bool(found)

    # -- writers

    async def _write(self, resource_type: str, resource_id: int | str, ticket: str, timeout: Seconds) -> bool:
        key = key_of(WRITER, resource_type, resource_id, ticket)
        wait = check.seconds(timeout, "timeout") if timeout else 0.0
        token = patience.begin(wait)
        try:
            return await self._wait(key, wait)
        finally:
            patience.end(token)

    async def _wait(self, key: Key, wait: float) -> bool:
        desk = self._locks._desk
        end = desk.clock() + wait
        with self._mutex:
            if self._is_held(key):
                return False  # this ticket is in use
            place = self._places.get(key)
            if place is None:
                place = self._places[key] = Place(key, desk.ticket(), desk.colour.event())
            place.until = max(place.until, end + self._keeps)
            begin = not self._tending
            self._tending = True
        if begin:
            self._begin()
        await self._enter(place)
        if place.attaching:  # by another call of this ticket, or between two
            await place.changed.wait(max(SOON, end - desk.clock()))
        while not self._claim(place):
            rest = end - desk.clock()
            if rest <= 0 or self._places.get(key) is not place:
                return False
            await place.changed.wait(rest)
        return True

    async def _give_up(self, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Release what a writer holds, and its place. False if there is neither."""
        key = key_of(WRITER, resource_type, resource_id, ticket)
        with self._mutex:
            place = self._places.pop(key, None)
        if place is not None:
            await self._vacate(place)
            return True
        return await self._release(WRITER, resource_type, resource_id, ticket)

    async def _enter(self, place: Place) -> None:
        """Send its Enter: it keeps its place by that, or is inside."""
        desk = self._locks._desk
        name, note = place.key
        span = int(self._locks._lease * 1_000_000)
        enter = Enter(place.ticket, ALL, ALL, span, True, True, 1, "", desk.owner, note)
        if not isinstance((await desk.ask(name, enter)).reply, Admitted):
            return
        with self._mutex:
            if place.attaching or place.lease is not None or self._places.get(place.key) is not place:
                return
            place.attaching = True
        try:
            lease = await settled(self._locks.attach(name, place.ticket))
        finally:
            place.attaching = False
        with self._mutex:
            there = self._places.get(place.key) is place
            if there:
                place.lease = lease
        place.changed.set()
        if not there:
            await settled(lease.release())  # it was given up meanwhile

    def _claim(self, place: Place) -> bool:
        """Whether this call has the lock: of several calls with one ticket, the first."""
        with self._mutex:
            if place.lease is None or self._places.get(place.key) is not place:
                return False
            del self._places[place.key]
            if place.lease.lost:
                return False
            self._held[place.key] = place.lease
            return True

    async def _vacate(self, place: Place) -> None:
        """It is in no table any more: leave. What the store cannot be told now, the keeper tells it later."""
        place.changed.set()
        if place.lease is not None:
            await settled(place.lease.release())
            return
        desk = self._locks._desk
        clock = desk.clock()
        with desk.mutex:
            desk.owe(Debt(place.key[0], place.ticket, True, clock, clock + max(self._locks._lease, FORGET)))
        await pay(desk, place.ticket)

    def _begin(self) -> None:
        try:
            self._locks._desk.start(self._tend(), "holdfast-writers")
        except BaseException:
            self._tending = False  # the next call tries it again
            raise

    async def _tend(self) -> None:
        """Keep the places of those that wait, and give up those whose ticket was not used for too long."""
        desk = self._locks._desk
        while True:
            await desk.colour.sleep(HEARTBEAT)
            clock = desk.clock()
            with self._mutex:
                if desk.closed:
                    self._places.clear()
                if not self._places:
                    self._tending = False
                    return
                late = [place for place in self._places.values() if clock >= place.until]
                for place in late:
                    del self._places[place.key]
                waiting = [place for place in self._places.values() if place.lease is None]
            for work in [self._vacate(place) for place in late] + [self._enter(place) for place in waiting]:
                try:
                    await work
                except LockError:
                    pass  # the next round is a moment away, and what is owed is with the keeper


async def settled(result: Any) -> Any:
    """What a method of either face comes to."""
    return await result if hasattr(result, "__await__") else result


def stale_in(shot: Snapshot, seconds: float) -> list[StaleLock]:
    found = []
    for resource in shot.resources:
        kind_of, _, number = resource.name.rpartition(",")
        for each in resource.inside:
            kind, _, ticket = each.note.partition(" ")
            if kind in (MUTEX, READERS, WRITER) and each.held_for > seconds:
                at = shot.now - each.held_for
                found.append(StaleLock(kind_of, number, kind, ticket, each.owner, at))
    return sorted(found, key=lambda each: each.acquired_at)


def key_of(kind: str, resource_type: str, resource_id: int | str, ticket: str) -> Key:
    """The name of the lock, and the note by which its holds are found. ConfigError for a bad word."""
    if not ticket or not isinstance(ticket, str):
        raise ConfigError("A ticket is a text that is not empty.")
    if "," in str(resource_id):
        raise ConfigError("The number of a resource has no comma in it.")
    return check.name(f"{resource_type},{resource_id}"), check.label(f"{kind} {ticket}", "A ticket")
