"""Locks and pools in memory, under a mutex: the reference implementation that every other backend is compared with.

`memory://` is private to its client; `memory://NAME` is shared by all clients of the process, of both runtimes.
"""

import threading
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable
from itertools import count
from typing import TYPE_CHECKING

from ..rules.locks import EMPTY, Command, LockState, Wakeup, apply
from ..rules.pools import NOBODY, ItemState, Order, WorkerQueue
from ..rules.pools.step import step
from .base import Answer, Backend, PoolAnswer, Pools, Pushed, Runtime, SeenLock
from .keys import SEPARATOR, glob, split_key
from .wakeups import WakeupInbox

if TYPE_CHECKING:
    from ..rules.locks.audit_lines import AuditLine


def _microseconds() -> int:
    return _BASE + time.monotonic_ns() // 1000


_BASE = (time.time_ns() - time.monotonic_ns()) // 1000

_shared: dict[str, "Hub"] = {}
_numbers = count(1)


class Hub:
    """The records and the listeners. `now` may be replaced by a manual clock."""

    def __init__(self, now: Callable[[], int] = _microseconds) -> None:
        self.now = now
        self.mutex = threading.Lock()
        self.records: dict[str, LockState] = {}
        self.busy: set[str] = set()  # keys of the records that have holders or waiters; others may be among them
        self.racks: dict[str, Rack] = {}
        self.listeners: dict[str, MemoryBackend] = {}
        self.audit: dict[str, list[AuditLine]] = {}

    def wake(self, woken: Iterable[Wakeup]) -> None:
        for wakeup in woken:
            listener = self.listeners.get(wakeup.listener)
            if listener is not None:
                listener.wake_here((wakeup.ticket,))

    @classmethod
    def named(cls, name: str) -> "Hub":
        return _shared.setdefault(name, cls())


class MemoryBackend(Backend):
    scope = "process"

    def __init__(self, hub: Hub, runtime: Runtime, namespace: str = "", where: str = "memory://") -> None:
        self.hub = hub
        self.runtime = runtime
        self.where = where
        self.namespace = namespace
        self.prefix = namespace + SEPARATOR if namespace else ""
        self.listener = f"memory-{next(_numbers)}"
        self._inbox = WakeupInbox(threading.Lock)
        self._pools = MemoryPools(self)
        hub.listeners[self.listener] = self
        self.keeper_key = hub

    @property
    def pools(self) -> "MemoryPools":
        return self._pools

    async def call(self, name: str, command: Command) -> Answer:
        return self.call_nowait(name, command)

    def call_nowait(self, name: str, command: Command) -> Answer:
        at = self.runtime.clock()
        key = self.prefix + name
        hub = self.hub
        with hub.mutex:
            record = hub.records.get(key, EMPTY)
            everyone = (*record.holders, *record.queue)
            dead = {e.ticket for e in everyone if e.listener and e.listener not in hub.listeners} if everyone else ()
            record, reply, woken = apply(record, command, hub.now(), (), dead)
            if record.holders or record.queue:
                hub.busy.add(key)
                hub.records[key] = record
            else:
                hub.records[key] = record
                hub.busy.discard(key)
        hub.wake(woken)
        return Answer(reply, at)

    def wake_here(self, tickets: Collection[str]) -> None:
        self._inbox.wake_here(tickets)

    async def wait_for_wakeup(self, name: str, ticket: str, timeout: float) -> Pushed | None:
        return await self._inbox.wait(ticket, self.runtime.event(), timeout)

    def take_wakeups(self, tickets: Iterable[str]) -> Collection[str]:
        return self._inbox.take_wakeups(tickets)

    async def attend(self, locks: Collection[str], pools: Collection[str]) -> float:
        return 0.0

    async def look(self, name: str) -> tuple[LockState, int]:
        return self.hub.records.get(self.prefix + name, EMPTY), self.hub.now()

    async def looks(self, pattern: str, idle: bool = False, namespaces: bool = False) -> tuple[list[SeenLock], int]:
        matches, records = glob(pattern), self.hub.records
        with self.hub.mutex:
            keys = list(records) if idle else [key for key in self.hub.busy if key in records]
            read = [SeenLock(*(split_key(key) or ("", "")), records[key]) for key in keys]
        own = self.namespace
        found = [one for one in read if matches(one.name) and (namespaces or one.namespace == own)]
        return sorted(found, key=lambda one: one[:2]), self.hub.now()

    async def audit(self, name: str) -> list["AuditLine"]:
        return self.hub.audit.get(self.prefix + name, [])

    async def add_audit(self, name: str, line: "AuditLine") -> None:
        from ..rules.locks.audit_lines import add

        key = self.prefix + name
        with self.hub.mutex:
            self.hub.audit[key] = add(self.hub.audit.get(key, []), line._replace(at=self.hub.now() / 1e6))

    async def repair(self, name: str) -> list[str]:
        return []  # no other client can write it

    async def ping(self) -> None:
        pass

    async def close(self) -> None:
        self.hub.listeners.pop(self.listener, None)

    def forked(self) -> None:
        """Start empty: the child has a copy, and its parent's grants are not its own."""
        self.hub.records.clear()
        self.hub.busy.clear()
        self.hub.racks.clear()
        self.hub.audit.clear()
        self.hub.mutex = threading.Lock()
        self._inbox.clear()

    async def doctor(self) -> list[tuple[str, str]]:
        return [("note", "Locks in memory reach only this process and end with it.")]


class Rack:
    """The items of one pool: by key, by ticket, and in the order in which they are due.

    What counts is `items`, which changes in one assignment. The other two follow from it: a Ctrl-C in the middle of a
    change leaves them behind, and then they are worked out again.
    """

    def __init__(self) -> None:
        self.queue = NOBODY
        self.items: dict[str, ItemState] = {}
        self._order: list[tuple[int, str]] = []
        self._tickets: dict[str, str] = {}
        self._changing = False

    def settle(self) -> None:
        """Before each step: complete one that was interrupted."""
        if self._changing:
            self._order = sorted((item.score, key) for key, item in self.items.items())
            self._tickets = {item.ticket: key for key, item in self.items.items() if item.ticket}
            self._changing = False

    def get(self, key: str) -> ItemState | None:
        return self.items.get(key)

    def put(self, item: ItemState) -> None:
        self._changing = True
        self._forget(item.key)
        self.items[item.key] = item
        insort(self._order, (item.score, item.key))
        if item.ticket:
            self._tickets[item.ticket] = item.key
        self._changing = False

    def drop(self, key: str) -> None:
        self._changing = True
        self._forget(key)
        del self.items[key]
        self._changing = False

    def _forget(self, key: str) -> None:
        item = self.items.get(key)
        if item is not None:
            del self._order[bisect_left(self._order, (item.score, key))]
            if self._tickets.get(item.ticket) == key:
                del self._tickets[item.ticket]

    def due(self, now: int, limit: int) -> list[ItemState]:
        first = bisect_left(self._order, (0, ""))
        found = self._order[first : min(first + limit, self._after(now))]
        return [self.items[key] for _, key in found]

    def _after(self, now: int) -> int:
        return bisect_right(self._order, now, key=lambda each: each[0])

    def coming(self, now: int) -> ItemState | None:
        at = self._after(now)
        return self.items[self._order[at][1]] if at < len(self._order) else None

    def of(self, ticket: str) -> ItemState | None:
        key = self._tickets.get(ticket)
        return self.items[key] if key is not None else None

    def late(self, now: int) -> list[ItemState]:
        return [item for item in self.items.values() if item.score > now + item.lease]


class MemoryPools(Pools):
    def __init__(self, backend: MemoryBackend, prefix: str | None = None) -> None:
        self._backend = backend
        self._prefix = backend.prefix if prefix is None else prefix

    async def call(self, pool: str, order: Order) -> PoolAnswer:
        return self.call_nowait(pool, order)

    def call_nowait(self, pool: str, order: Order) -> PoolAnswer:
        hub = self._backend.hub
        at = self._backend.runtime.clock()
        with hub.mutex:
            rack = hub.racks.setdefault(self._prefix + pool, Rack())
            rack.settle()
            waiting = (*rack.queue.workers, *rack.queue.watchers)
            dead = {w.ticket for w in waiting if w.listener and w.listener not in hub.listeners} if waiting else set()
            rack.queue, reply, wakeups = step(rack, rack.queue, order, hub.now(), dead)
        hub.wake(wakeups)
        return PoolAnswer(reply, at)

    async def wait_for_wakeup(self, pool: str, ticket: str, timeout: float) -> None:
        await self._backend.wait_for_wakeup(pool, ticket, timeout)

    async def all(self, pool: str) -> tuple[list[ItemState], int]:
        with self._backend.hub.mutex:
            rack = self._backend.hub.racks.get(self._prefix + pool)
            return sorted(rack.items.values()) if rack is not None else [], self._backend.hub.now()

    async def names(self, pattern: str, idle: bool = False) -> list[tuple[str, str]]:
        matches = glob(pattern)
        racks = list(self._backend.hub.racks.items())
        found = [split_key(key) for key, rack in racks if rack.items or rack.queue.workers or rack.queue.watchers]
        return [name for name in found if name is not None and matches(name[1])]

    def in_namespace(self, namespace: str) -> "MemoryPools":
        return MemoryPools(self._backend, namespace + SEPARATOR if namespace else "")

    async def queue(self, pool: str) -> WorkerQueue:
        rack = self._backend.hub.racks.get(self._prefix + pool)
        return rack.queue if rack is not None else NOBODY
