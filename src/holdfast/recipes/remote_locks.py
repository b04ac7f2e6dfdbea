"""RemoteLocks: mutexes and readers-writer locks by type and number of a resource, with a ticket of the caller's own.

The caller gives each hold a ticket, any text that he may use again later, and whoever knows it may give the hold back,
in any process. Inside, each hold has a ticket of ours that is never used again, so that a late message of an earlier
hold cannot end a later one of the same name. The lease of a hold is kept while its client lives, and ends when it is
gone. docs/recipes.md maps the usual description, a table of mutexes and one of doormen, to this one.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from ..client import Lease, Locks
from ..doorman import ALL, Admitted, Enter, Leave
from ..errors import ConfigError, LockError
from ..flow import check
from ..flow.check import Seconds
from ..flow.look import Snapshot
from ..flow.run import run

MUTEX, READERS, WRITER = "mutex", "readers", "writer"
HEARTBEAT = 0.25  # seconds between two words of a writer who waits


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


class _Pending:
    """A writer who was refused, and whose place is kept for a while."""

    def __init__(self, name: str, ticket: str, note: str, until: float) -> None:
        self.name = name
        self.ticket = ticket
        self.note = note
        self.until = until
        self.inside = threading.Event()
        self.lease: Lease | None = None


class RemoteLocks:
    """Locks on resources that are named by a type and a number, on any store.

        remote = RemoteLocks(holdfast.connect("postgresql://…"))
        if remote.acquire_mutex_lock("order", 42, ticket):
            ...
            remote.release_mutex_lock("order", 42, ticket)

    Each call answers True or False; BackendError if the store cannot be reached, ConfigError for a bad type, number or
    ticket. Without `timeout` an acquire is one try, to be repeated by the caller; with one it waits so long. `pending`:
    for how many seconds after his last try a writer who was refused keeps his place, in which he keeps new readers out.
    """

    def __init__(self, locks: Locks, *, pending: Seconds = 10) -> None:
        self._locks = locks
        self._keeps = check.seconds(pending, "pending")
        self._mutex = threading.Lock()
        self._held: dict[tuple[str, str], Lease] = {}
        self._pending: dict[tuple[str, str], _Pending] = {}
        self._tending: threading.Thread | None = None

    def acquire_mutex_lock(
        self, resource_type: str, resource_id: int | str, ticket: str, *, timeout: Seconds = 0
    ) -> bool:
        """Whether it is ours now: nobody else has it in any way."""
        return self._acquire(MUTEX, resource_type, resource_id, ticket, timeout)

    def release_mutex_lock(self, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Give it back, by its ticket. False if there is no such hold (any more)."""
        return self._release(MUTEX, resource_type, resource_id, ticket)

    def acquire_readers_lock(
        self, resource_type: str, resource_id: int | str, ticket: str, *, timeout: Seconds = 0
    ) -> bool:
        """Whether we are among the readers now: nobody writes, and no writer waits."""
        return self._acquire(READERS, resource_type, resource_id, ticket, timeout)

    def release_readers_lock(self, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Give it back, by its ticket. False if there is no such hold (any more)."""
        return self._release(READERS, resource_type, resource_id, ticket)

    def acquire_writer_lock(
        self, resource_type: str, resource_id: int | str, ticket: str, *, timeout: Seconds = 0
    ) -> bool:
        """Whether we write now. One who is refused keeps a place for a while: try again with the same ticket."""
        name, note = names_of(WRITER, resource_type, resource_id, ticket)
        wait = check.seconds(timeout, "timeout") if timeout else 0.0
        clock = self._locks._desk.clock
        with self._mutex:
            waiting = self._pending.get((name, note))
            if waiting is not None:
                waiting.until = clock() + wait + self._keeps
        if waiting is None:
            if (name, note) in self._held and self._held[name, note].held:
                return False
            lease = self._locks.rwlock(name, note=note, local_handoff=False).write().acquire(False)
            if lease is not None:
                self._held[name, note] = lease
                return True
            waiting = self._stand(name, note, clock() + wait + self._keeps)
        if not waiting.inside.wait(wait):
            return False
        with self._mutex:
            self._pending.pop((name, note), None)
            lease = waiting.lease
            if lease is None or lease.lost:
                return False
            self._held[name, note] = lease
            return True

    def release_writer_lock(self, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Give it back, or the place of one who waits. False if there is neither (any more)."""
        name, note = names_of(WRITER, resource_type, resource_id, ticket)
        with self._mutex:
            waiting = self._pending.get((name, note))
            if waiting is not None:
                waiting.until = 0.0
        return self._release(WRITER, resource_type, resource_id, ticket) or waiting is not None

    def stale(self, older_than: Seconds) -> list[StaleLock]:
        """The holds that have lasted longer than this, the oldest first. Ends none of them: see Locks.evict."""
        seconds = check.seconds(older_than, "older_than")
        return stale_in(self._locks.snapshot("*,*"), seconds)

    # -- how

    def _acquire(self, kind: str, resource_type: str, resource_id: int | str, ticket: str, timeout: Seconds) -> bool:
        name, note = names_of(kind, resource_type, resource_id, ticket)
        mine = self._held.get((name, note))
        if mine is not None and mine.held:
            return False  # this ticket is in use
        both = self._locks.rwlock(name, note=note, local_handoff=False)  # each hold has a seat of its own
        lock = both.read() if kind == READERS else both.write()
        lease = lock.acquire(timeout=timeout) if timeout else lock.acquire(False)
        if lease is None:
            return False
        self._held[name, note] = lease
        return True

    def _release(self, kind: str, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        name, note = names_of(kind, resource_type, resource_id, ticket)
        lease = self._held.pop((name, note), None)
        if lease is not None:
            try:
                lease.release()
                return not lease.lost
            except LockError:
                if not lease.lost:
                    self._held[name, note] = lease  # it may be tried again
                    raise
                return False
        desk = self._locks._desk
        record, _ = run(desk.backend.look(name))
        found = [each for each in record.inside if each.note == note]
        for each in found:
            run(desk.ask(name, Leave(each.ticket, True)))
        return bool(found)

    def _stand(self, name: str, note: str, until: float) -> _Pending:
        with self._mutex:
            waiting = _Pending(name, self._locks._desk.ticket(), note, until)
            self._pending[name, note] = waiting
            if self._tending is None:
                self._tending = threading.Thread(target=self._tend, name="holdfast-writers", daemon=True)
                self._tending.start()
            self._say(waiting)  # now, so that the place is had when the caller is told
        return waiting

    def _say(self, waiting: _Pending) -> None:
        """One word of one who waits: that he is still there. He may be inside by it."""
        desk = self._locks._desk
        enter = enter_of(desk.owner, self._locks._lease, waiting.ticket, waiting.note)
        if isinstance(run(desk.ask(waiting.name, enter)).reply, Admitted):
            waiting.lease = self._locks.attach(waiting.name, waiting.ticket)
            waiting.inside.set()

    def _tend(self) -> None:
        """Keep the places of those who wait, and give up those of whom nothing was heard for too long."""
        pause = threading.Event()
        while True:
            pause.wait(HEARTBEAT)
            with self._mutex:
                waiting = list(self._pending.items())
                if not waiting:
                    self._tending = None
                    return
            for key, one in waiting:
                try:
                    if self._locks._desk.clock() < one.until:
                        if not one.inside.is_set():
                            self._say(one)
                        continue
                    with self._mutex:
                        gone = self._pending.pop(key, None) is not None
                    if gone and one.lease is not None:
                        one.lease.release()
                    elif gone:
                        run(self._locks._desk.ask(one.name, Leave(one.ticket, True)))
                except LockError:
                    if self._locks._desk.closed:
                        self._pending.clear()


def enter_of(owner: str, lease: float, ticket: str, note: str) -> Enter:
    """What a writer says who waits without listening."""
    return Enter(ticket, ALL, ALL, int(lease * 1_000_000), True, True, 1, "", owner, note)


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


def names_of(kind: str, resource_type: str, resource_id: int | str, ticket: str) -> tuple[str, str]:
    """The name of the lock, and the note by which its holds are found."""
    if not ticket or not isinstance(ticket, str):
        raise ConfigError("A ticket is a text that is not empty.")
    if "," in str(resource_id):
        raise ConfigError("The number of a resource has no comma in it.")
    return check.name(f"{resource_type},{resource_id}"), check.label(f"{kind} {ticket}", "A ticket")
