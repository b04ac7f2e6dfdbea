"""RemoteLocks for threads and for asyncio, written once: the holds of one client by the callers' own tickets.

Each key, a lock's name and a note with kind and ticket, is in at most one of these states: being acquired, held, or the
place of a writer that was refused. A call reserves its key before it sends anything, so that two calls with one ticket
never make two holds or two places. The mutex guards these tables and is never held while something is sent.

A writer waits under a ticket of ours. Its Acquire is repeated by every call of its own, and between them by one thread
or task for all, because no listener waits for it.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple

from ..engine import validate
from ..engine.snapshots import Snapshot
from ..engine.validate import Seconds
from ..errors import ConfigError, LockError
from ..rules.locks import EXCLUSIVE, Acquire, Granted, Release
from ..stores import deadline
from .await_if_needed import Client, await_if_needed

MUTEX, READERS, WRITER = "mutex", "readers", "writer"
HEARTBEAT = 0.25  # seconds between two Acquires of a writer that waits
SOON = 1.0  # seconds for which a call waits for another one of its ticket that has just been granted

Key = tuple[str, str]  # the name of the lock, and the note by which its holds are found


class StaleLock(NamedTuple):
    """A hold that has lasted for long."""

    resource_type: str
    resource_id: str
    kind: str
    """mutex, readers or writer."""
    ticket: str
    owner: str
    """The label of its client."""
    acquired_at: float
    """Seconds since 1970, by the store's clock."""


class Place:
    """The place of a writer that was refused. It is kept for a while after the last call of its ticket."""

    def __init__(self, key: Key, ticket: str, changed: Any) -> None:
        self.key = key
        self.ticket = ticket
        self.until = 0.0
        self.changed = changed  # set when the writer holds the lock, or the place is given up
        self.lease: Any = None
        self.attaching = False


class RemoteHolds(Generic[Client]):
    """The logic of RemoteLocks. `locks` is a client of either face; what its methods return is awaited if needed."""

    def __init__(self, locks: Client, *, pending: Seconds = 10) -> None:
        self._locks: Any = locks
        self._keeps = validate.seconds(pending, "pending")
        self._mutex = locks.session.runtime.mutex()
        self._acquiring: set[Key] = set()
        self._held: dict[Key, Any] = {}
        self._places: dict[Key, Place] = {}
        self._tending = False

    async def _acquire(
        self, kind: str, resource_type: str, resource_id: int | str, ticket: str, timeout: Seconds
    ) -> bool:
        """Acquire a mutex, or the lock as one of the readers. Return False also if this ticket is in use."""
        key = key_for(kind, resource_type, resource_id, ticket)
        with self._mutex:
            if key in self._acquiring or self._is_held(key):
                return False
            self._acquiring.add(key)
        try:
            both = self._locks.rwlock(key[0], note=key[1], local_handoff=False)  # each hold has a grant of its own
            lock = both.read() if kind == READERS else both.write()
            lease = await await_if_needed(lock.acquire(timeout=timeout) if timeout else lock.acquire(False))
            if lease is not None:
                with self._mutex:
                    self._held[key] = lease
            return lease is not None
        finally:
            with self._mutex:
                self._acquiring.discard(key)

    def _is_held(self, key: Key) -> bool:
        """Call this under the mutex."""
        mine = self._held.get(key)
        return mine is not None and mine.held

    async def _release(self, kind: str, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Also what another process holds by this ticket."""
        key = key_for(kind, resource_type, resource_id, ticket)
        with self._mutex:
            lease = self._held.pop(key, None)
        if lease is not None:
            try:
                await await_if_needed(lease.release())
                return not lease.lost
            except LockError:
                if lease.lost:
                    return False
                with self._mutex:
                    self._held.setdefault(key, lease)  # it may be tried again
                raise
        session = self._locks.session
        state, _ = await session.read(key[0])
        found = [each for each in state.holders if each.note == key[1]]
        for each in found:
            await session.call(key[0], Release(each.ticket, True))
        return bool(found)

    # -- writers

    async def _write(self, resource_type: str, resource_id: int | str, ticket: str, timeout: Seconds) -> bool:
        key = key_for(WRITER, resource_type, resource_id, ticket)
        wait = validate.seconds(timeout, "timeout") if timeout else 0.0
        token = deadline.begin(wait)
        try:
            return await self._wait(key, wait)
        finally:
            deadline.end(token)

    async def _wait(self, key: Key, wait: float) -> bool:
        session = self._locks.session
        end = session.clock() + wait
        with self._mutex:
            if self._is_held(key):
                return False  # this ticket is in use
            place = self._places.get(key)
            if place is None:
                place = self._places[key] = Place(key, session.new_ticket(), session.runtime.event())
            place.until = max(place.until, end + self._keeps)
            begin = not self._tending
            self._tending = True
        if begin:
            try:
                session.start(self._tend(), "fairlock-writers")
            except BaseException:
                self._tending = False  # the next call tries it again
                raise
        await self._send_acquire(place)
        if place.attaching:  # by another call of this ticket, or between two
            await place.changed.wait(max(SOON, end - session.clock()))
        while not self._claim(place):
            rest = end - session.clock()
            if rest <= 0 or self._places.get(key) is not place:
                return False
            await place.changed.wait(rest)
        return True

    async def _give_up(self, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Release what a writer holds, and its place. False if there is neither."""
        key = key_for(WRITER, resource_type, resource_id, ticket)
        with self._mutex:
            place = self._places.pop(key, None)
        if place is not None:
            await self._withdraw(place)
            return True
        return await self._release(WRITER, resource_type, resource_id, ticket)

    async def _send_acquire(self, place: Place) -> None:
        """Send its Acquire: it keeps its place by that, or is granted the lock."""
        session = self._locks.session
        name, note = place.key
        lease_us = int(session.default_lease * 1_000_000)
        acquire = Acquire(place.ticket, EXCLUSIVE, EXCLUSIVE, lease_us, True, True, 1, "", session.owner, note)
        if not isinstance(await session.call(name, acquire), Granted):
            return
        with self._mutex:
            if place.attaching or place.lease is not None or self._places.get(place.key) is not place:
                return
            place.attaching = True
        try:
            lease = await await_if_needed(self._locks.attach(name, place.ticket))
        finally:
            place.attaching = False
        with self._mutex:
            there = self._places.get(place.key) is place
            if there:
                place.lease = lease
        place.changed.set()
        if not there:
            await await_if_needed(lease.release())  # it was given up meanwhile

    def _claim(self, place: Place) -> bool:
        """Return True if this call has the lock: of several calls with one ticket, the first."""
        with self._mutex:
            if place.lease is None or self._places.get(place.key) is not place:
                return False
            del self._places[place.key]
            if place.lease.lost:
                return False
            self._held[place.key] = place.lease
            return True

    async def _withdraw(self, place: Place) -> None:
        """Release or withdraw a place that is in no table any more; the keeper does it later if the store is down."""
        place.changed.set()
        if place.lease is not None:
            await await_if_needed(place.lease.release())
            return
        await self._locks.session.release_ticket(place.key[0], place.ticket)

    async def _tend(self) -> None:
        """Keep the places of those that wait, and give up those whose ticket was not used for too long."""
        session = self._locks.session
        while True:
            await session.runtime.sleep(HEARTBEAT)
            clock = session.clock()
            with self._mutex:
                if session.closed:
                    self._places.clear()
                if not self._places:
                    self._tending = False
                    return
                late = [place for place in self._places.values() if clock >= place.until]
                for place in late:
                    del self._places[place.key]
                waiting = [place for place in self._places.values() if place.lease is None]
            for work in [self._withdraw(place) for place in late] + [self._send_acquire(place) for place in waiting]:
                try:
                    await work
                except LockError:
                    pass  # the next round is a moment away, and the keeper has the pending releases


def stale_in(shot: Snapshot, seconds: float) -> list[StaleLock]:
    found = []
    for resource in shot.resources:
        kind_of, _, number = resource.name.rpartition(",")
        for each in resource.holders:
            kind, _, ticket = each.note.partition(" ")
            if kind in (MUTEX, READERS, WRITER) and each.held_for > seconds:
                at = shot.now - each.held_for
                found.append(StaleLock(kind_of, number, kind, ticket, each.owner, at))
    return sorted(found, key=lambda each: each.acquired_at)


def key_for(kind: str, resource_type: str, resource_id: int | str, ticket: str) -> Key:
    """Return the name of the lock and the note by which its holds are found. ConfigError for a bad argument."""
    if not ticket or not isinstance(ticket, str):
        raise ConfigError("A ticket is a text that is not empty.")
    if "," in str(resource_id):
        raise ConfigError("The number of a resource must not contain a comma.")
    return validate.name(f"{resource_type},{resource_id}"), validate.label(f"{kind} {ticket}", "A ticket")
