"""RemoteLocks for tasks: mutexes and readers-writer locks by type and number, with a ticket of the caller's own."""

from __future__ import annotations

from ...aio import Lease, Locks
from ...backends.contract import Event
from ...doorman import Admitted, Leave
from ...errors import LockError
from ...flow import check
from ...flow.check import Seconds
from ..remote_locks import HEARTBEAT, MUTEX, READERS, WRITER, StaleLock, enter_of, names_of, stale_in


class _Pending:
    """A writer who was refused, and whose place is kept for a while."""

    def __init__(self, name: str, ticket: str, note: str, until: float, inside: Event) -> None:
        self.name = name
        self.ticket = ticket
        self.note = note
        self.until = until
        self.inside = inside
        self.lease: Lease | None = None


class RemoteLocks:
    """Locks on resources that are named by a type and a number, on any store.

        remote = RemoteLocks(holdfast.aio.connect("postgresql://…"))
        if await remote.acquire_mutex_lock("order", 42, ticket):
            ...
            await remote.release_mutex_lock("order", 42, ticket)

    The same as `holdfast.recipes.RemoteLocks`, with a client of holdfast.aio.
    """

    def __init__(self, locks: Locks, *, pending: Seconds = 10) -> None:
        self._locks = locks
        self._keeps = check.seconds(pending, "pending")
        self._held: dict[tuple[str, str], Lease] = {}
        self._pending: dict[tuple[str, str], _Pending] = {}
        self._tending = False

    async def acquire_mutex_lock(
        self, resource_type: str, resource_id: int | str, ticket: str, *, timeout: Seconds = 0
    ) -> bool:
        """Whether it is ours now: nobody else has it in any way."""
        return await self._acquire(MUTEX, resource_type, resource_id, ticket, timeout)

    async def release_mutex_lock(self, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Give it back, by its ticket. False if there is no such hold (any more)."""
        return await self._release(MUTEX, resource_type, resource_id, ticket)

    async def acquire_readers_lock(
        self, resource_type: str, resource_id: int | str, ticket: str, *, timeout: Seconds = 0
    ) -> bool:
        """Whether we are among the readers now: nobody writes, and no writer waits."""
        return await self._acquire(READERS, resource_type, resource_id, ticket, timeout)

    async def release_readers_lock(self, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Give it back, by its ticket. False if there is no such hold (any more)."""
        return await self._release(READERS, resource_type, resource_id, ticket)

    async def acquire_writer_lock(
        self, resource_type: str, resource_id: int | str, ticket: str, *, timeout: Seconds = 0
    ) -> bool:
        """Whether we write now. One who is refused keeps a place for a while: try again with the same ticket."""
        name, note = names_of(WRITER, resource_type, resource_id, ticket)
        wait = check.seconds(timeout, "timeout") if timeout else 0.0
        clock = self._locks._desk.clock
        if (name, note) not in self._pending:
            if (name, note) in self._held and self._held[name, note].held:
                return False
            lease = await self._locks.rwlock(name, note=note, local_handoff=False).write().acquire(False)
            if lease is not None:
                self._held[name, note] = lease
                return True
        waiting = self._pending.get((name, note))
        if waiting is None:
            waiting = await self._stand(name, note, clock() + wait + self._keeps)
        waiting.until = max(waiting.until, clock() + wait + self._keeps)
        if wait and waiting.lease is None:
            await waiting.inside.wait(wait)
        lease = waiting.lease
        if lease is None:
            return False
        if self._pending.get((name, note)) is waiting:
            del self._pending[name, note]
        if lease.lost:
            return False
        self._held[name, note] = lease
        return True

    async def release_writer_lock(self, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        """Give it back, or the place of one who waits. False if there is neither (any more)."""
        waiting = self._pending.get(names_of(WRITER, resource_type, resource_id, ticket))
        if waiting is not None:
            waiting.until = 0.0
        return await self._release(WRITER, resource_type, resource_id, ticket) or waiting is not None

    async def stale(self, older_than: Seconds) -> list[StaleLock]:
        """The holds that have lasted longer than this, the oldest first. Ends none of them: see Locks.evict."""
        seconds = check.seconds(older_than, "older_than")
        return stale_in(await self._locks.snapshot("*,*"), seconds)

    # -- how

    async def _acquire(
        self, kind: str, resource_type: str, resource_id: int | str, ticket: str, timeout: Seconds
    ) -> bool:
        name, note = names_of(kind, resource_type, resource_id, ticket)
        mine = self._held.get((name, note))
        if mine is not None and mine.held:
            return False  # this ticket is in use
        both = self._locks.rwlock(name, note=note, local_handoff=False)  # each hold has a seat of its own
        lock = both.read() if kind == READERS else both.write()
        lease = await (lock.acquire(timeout=timeout) if timeout else lock.acquire(False))
        if lease is None:
            return False
        self._held[name, note] = lease
        return True

    async def _release(self, kind: str, resource_type: str, resource_id: int | str, ticket: str) -> bool:
        name, note = names_of(kind, resource_type, resource_id, ticket)
        lease = self._held.pop((name, note), None)
        if lease is not None:
            try:
                await lease.release()
                return not lease.lost
            except LockError:
                if not lease.lost:
                    self._held[name, note] = lease  # it may be tried again
                    raise
                return False
        desk = self._locks._desk
        record, _ = await desk.backend.look(name)
        found = [each for each in record.inside if each.note == note]
        for each in found:
            await desk.ask(name, Leave(each.ticket, True))
        return bool(found)

    async def _stand(self, name: str, note: str, until: float) -> _Pending:
        desk = self._locks._desk
        waiting = self._pending[name, note] = _Pending(name, desk.ticket(), note, until, desk.colour.event())
        if not self._tending:
            self._tending = True
            desk.colour.spawn(self._tend(), "holdfast-writers")
        await self._say(waiting)  # now, so that the place is had when the caller is told
        return waiting

    async def _say(self, waiting: _Pending) -> None:
        """One word of one who waits: that he is still there. He may be inside by it."""
        desk = self._locks._desk
        enter = enter_of(desk.owner, self._locks._lease, waiting.ticket, waiting.note)
        if isinstance((await desk.ask(waiting.name, enter)).reply, Admitted):
            waiting.lease = await self._locks.attach(waiting.name, waiting.ticket)
            waiting.inside.set()

    async def _tend(self) -> None:
        """Keep the places of those who wait, and give up those of whom nothing was heard for too long."""
        while self._pending:
            await self._locks._desk.colour.sleep(HEARTBEAT)
            for key, one in list(self._pending.items()):
                try:
                    if self._locks._desk.clock() < one.until:
                        if one.lease is None:
                            await self._say(one)
                    elif self._pending.pop(key, None) is not None:
                        if one.lease is not None:
                            await one.lease.release()
                        else:
                            await self._locks._desk.ask(one.name, Leave(one.ticket, True))
                except LockError:
                    if self._locks._desk.closed:
                        self._pending.clear()
        self._tending = False
