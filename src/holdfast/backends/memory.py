"""Doormen and pools in memory, under a lock: the reference that every other backend is compared with.

`memory://` is private to its client; `memory://NAME` is shared by all clients of the process, of both colours.
"""

import threading
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable
from itertools import count

from ..doorman import EMPTY, Command, Record, Wake, apply
from ..errors import RecordDamaged
from ..pool import NOBODY, STATES, Hint, Item, Line, Order
from ..pool.counter import step
from .contract import Answer, Colour, Event, Pushed
from .names import SEPARATOR, glob
from .pool_contract import PoolAnswer


def _microseconds() -> int:
    return _BASE + time.monotonic_ns() // 1000


_BASE = (time.time_ns() - time.monotonic_ns()) // 1000

_shared: dict[str, "Hub"] = {}
_shared_mutex = threading.Lock()
_numbers = count(1)


class Hub:
    """The records, and who listens. `now` may be replaced by a clock that is turned by hand."""

    def __init__(self, now: Callable[[], int] = _microseconds) -> None:
        self.now = now
        self.mutex = threading.Lock()
        self.records: dict[str, Record] = {}
        self.racks: dict[str, Rack] = {}
        self.ears: dict[str, MemoryBackend] = {}

    @classmethod
    def named(cls, name: str) -> "Hub":
        with _shared_mutex:
            return _shared.setdefault(name, cls())


class MemoryBackend:
    span = "process"
    skew = 0.0
    pushes_grants = False
    doubles = False

    def __init__(self, hub: Hub, colour: Colour, namespace: str = "", where: str = "memory://") -> None:
        self.hub = hub
        self.colour = colour
        self.where = where
        self.prefix = namespace + SEPARATOR if namespace else ""
        self.ear = f"memory-{next(_numbers)}"
        self._hints: dict[str, Pushed] = {}
        self._waiting: dict[str, Event] = {}
        self.pools = MemoryPools(self)
        hub.ears[self.ear] = self

    async def ask(self, name: str, command: Command) -> Answer:
        return self.at_once(name, command)

    def at_once(self, name: str, command: Command) -> Answer:
        at = self.colour.clock()
        key = self.prefix + name
        hub = self.hub
        with hub.mutex:
            record = hub.records.get(key, EMPTY)
            everyone = (*record.inside, *record.line)
            dead = {e.ticket for e in everyone if e.ear and e.ear not in hub.ears} if everyone else ()
            record, reply, woken = apply(record, command, hub.now(), (), dead)
            hub.records[key] = record
        for wake in woken:
            listener = hub.ears.get(wake.ear)
            if listener is not None:
                listener.hear(wake)
        return Answer(reply, at)

    def hear(self, wake: Wake | Hint) -> None:
        """From any thread."""
        if len(self._hints) > 1000:
            self._hints.clear()
        self._hints[wake.ticket] = Pushed(wake.ticket)
        event = self._waiting.get(wake.ticket)
        if event is not None:
            event.set()

    def wake_here(self, tickets: Collection[str]) -> None:
        for ticket in tickets:
            self.hear(Wake(self.ear, ticket))

    async def changed(self, name: str, ticket: str, timeout: float) -> Pushed | None:
        event = self._waiting[ticket] = self.colour.event()
        try:
            if ticket not in self._hints:
                await event.wait(timeout)
            return self._hints.pop(ticket, None)
        finally:
            self._waiting.pop(ticket, None)

    def hinted(self, tickets: Iterable[str]) -> list[str]:
        return [t for t in tickets if self._hints.pop(t, None) is not None] if self._hints else []

    async def attend(self, locks: Collection[str], pools: Collection[str]) -> float:
        return 0.0

    async def look(self, name: str) -> tuple[Record, int]:
        return self.hub.records.get(self.prefix + name, EMPTY), self.hub.now()

    async def looks(self, pattern: str) -> tuple[list[tuple[str, Record | RecordDamaged]], int]:
        matches = glob(pattern)
        with self.hub.mutex:
            everything = sorted(self.hub.records.items())
        found = [(k[len(self.prefix) :], r) for k, r in everything if k.startswith(self.prefix)]
        return [(name, r) for name, r in found if SEPARATOR not in name and matches(name)], self.hub.now()

    async def repair(self, name: str) -> list[str]:
        return []  # nobody else can write it

    async def tidy(self) -> None:
        pass

    async def ping(self) -> None:
        pass

    async def close(self) -> None:
        self.hub.ears.pop(self.ear, None)

    def forked(self) -> None:
        """The child starts with an empty house: what it sees is a copy, and its parent's seats are not its own."""
        self.hub.records.clear()
        self.hub.racks.clear()
        self.hub.mutex = threading.Lock()

    def beacon(self) -> int | None:
        return None

    async def doctor(self) -> list[tuple[str, str]]:
        return [("note", "Locks in memory reach only this process and end with it.")]

    def schema(self) -> str:
        return "-- memory:// needs nothing.\n"


class Rack:
    """The items of one pool: by key, by ticket, and in the order in which they are due.

    What counts is `items`, which changes in one assignment. The other two follow from it: a Ctrl-C in the middle of a
    change leaves them behind, and then they are worked out again.
    """

    def __init__(self) -> None:
        self.line = NOBODY
        self.items: dict[str, Item] = {}
        self._order: list[tuple[int, str]] = []
        self._tickets: dict[str, str] = {}
        self._changing = False

    def settle(self) -> None:
        """Before each step: make good for one that was interrupted."""
        if self._changing:
            self._order = sorted((item.score, key) for key, item in self.items.items())
            self._tickets = {item.ticket: key for key, item in self.items.items() if item.ticket}
            self._changing = False

    def get(self, key: str) -> Item | None:
        return self.items.get(key)

    def put(self, item: Item) -> None:
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

    def due(self, now: int, limit: int) -> list[Item]:
        first = bisect_left(self._order, (0, ""))
        found = self._order[first : min(first + limit, self._after(now))]
        return [self.items[key] for _, key in found]

    def _after(self, now: int) -> int:
        return bisect_right(self._order, now, key=lambda each: each[0])

    def coming(self, now: int) -> Item | None:
        at = self._after(now)
        return self.items[self._order[at][1]] if at < len(self._order) else None

    def of(self, ticket: str) -> Item | None:
        key = self._tickets.get(ticket)
        return self.items[key] if key is not None else None

    def late(self, now: int) -> list[Item]:
        return [item for item in self.items.values() if item.score > now + item.lease]


class MemoryPools:
    def __init__(self, backend: MemoryBackend) -> None:
        self._backend = backend

    async def ask(self, pool: str, order: Order) -> PoolAnswer:
        return self._step(pool, order)

    def at_once(self, pool: str, order: Order) -> PoolAnswer | None:
        return self._step(pool, order)

    def _step(self, pool: str, order: Order) -> PoolAnswer:
        hub = self._backend.hub
        at = self._backend.colour.clock()
        with hub.mutex:
            rack = hub.racks.setdefault(self._backend.prefix + pool, Rack())
            rack.settle()
            waiting = (*rack.line.workers, *rack.line.watchers)
            dead = {w.ticket for w in waiting if w.ear and w.ear not in hub.ears} if waiting else set()
            rack.line, reply, hints = step(rack, rack.line, order, hub.now(), dead)
        for hint in hints:
            listener = hub.ears.get(hint.ear)
            if listener is not None:
                listener.hear(hint)
        return PoolAnswer(reply, at)

    async def changed(self, pool: str, ticket: str, timeout: float) -> None:
        await self._backend.changed(pool, ticket, timeout)

    async def all(self, pool: str) -> tuple[list[Item], int]:
        with self._backend.hub.mutex:
            rack = self._backend.hub.racks.get(self._backend.prefix + pool)
            return sorted(rack.items.values()) if rack is not None else [], self._backend.hub.now()

    async def count(self, pool: str) -> dict[str, int]:
        items, now = await self.all(pool)
        found = dict.fromkeys(STATES, 0)
        for item in items:
            found[item.state(now)] += 1
        return found

    async def line(self, pool: str) -> Line:
        rack = self._backend.hub.racks.get(self._backend.prefix + pool)
        return rack.line if rack is not None else NOBODY
