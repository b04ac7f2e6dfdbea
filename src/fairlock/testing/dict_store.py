"""The smallest Store: rows in a dict. An example to begin a new store with, and a place for faults.

`CasBackend` makes a whole backend of it, as of any other store; with a manual clock this runs the same
engine that serves the databases. All stores of one `DictServer` see the same rows, with any runtime.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import count

from ..rules.locks import Wakeup
from ..stores.base import Pushed, Row, RowSnapshot, Runtime, Sample, ScoredStore, Written
from ..stores.wakeups import WakeupInbox


class DictServer:
    """Stands for the server: the rows, the time, and the listeners."""

    def __init__(self, now: Callable[[], int] = lambda: time.monotonic_ns() // 1000) -> None:
        self.now = now
        self.mutex = threading.Lock()
        self.rows: dict[str, tuple[Row, int]] = {}
        self.stores: dict[str, DictStore] = {}
        self.numbers = count(1)


class DictStore(ScoredStore):
    where = "dict:"
    scope = "process"
    cache_ttl = 10.0
    shares_steps = True

    def __init__(self, server: DictServer, runtime: Runtime) -> None:
        self.server = server
        self.listener = f"dict-{next(server.numbers)}"
        self._runtime = runtime
        self.inbox = WakeupInbox(runtime.mutex)
        server.stores[self.listener] = self

    def now(self) -> Sample | None:
        at = self._runtime.clock()  # before the sample: what is granted counts from here
        return Sample(self.server.now(), at)

    # -- rows

    async def read(self, key: str, settle: bool = False) -> RowSnapshot:
        at = self._runtime.clock()
        with self.server.mutex:
            return self._seen(key, at)

    def _seen(self, key: str, at: float) -> RowSnapshot:
        row, version = self.server.rows.get(key, (None, None))
        return RowSnapshot(row, version, self.server.now(), at)

    async def write(
        self, row: Row, expected: int | str | None, now: int, woken: Sequence[Wakeup]
    ) -> Written | RowSnapshot:
        at = self._runtime.clock()
        with self.server.mutex:
            seen = self._seen(row.key, at)
            if seen.version != expected or now > seen.now:
                return seen
            version = random.getrandbits(62)  # not counted: versions never recur, even after a loss of data
            self.server.rows[row.key] = (row, version)
        await self.wake(woken)
        return Written(version, seen.now, at)

    async def scan(self, prefix: str) -> list[RowSnapshot]:
        at = self._runtime.clock()
        with self.server.mutex:
            return [self._seen(key, at) for key in self.server.rows if key.startswith(prefix)]

    async def between(self, prefix: str, low: int, high: int, limit: int) -> list[RowSnapshot]:
        """Return the rows with a score in this range. With this method the store has pools."""
        found = [seen for seen in await self.scan(prefix) if seen.row is not None and low <= seen.row.score <= high]
        return sorted(found, key=lambda seen: (seen.row.score, seen.row.key) if seen.row else (0, ""))[:limit]

    async def delete(self, key: str, expected: int | str) -> bool:
        with self.server.mutex:
            if key in self.server.rows and self.server.rows[key][1] == expected:
                del self.server.rows[key]
                return True
            return False

    # -- wake-ups

    async def wake(self, woken: Sequence[Wakeup]) -> None:
        for wake in woken:
            store = self.server.stores.get(wake.listener)
            if store is not None:
                store.inbox.deliver(Pushed(wake.ticket))

    def wake_here(self, tickets: Collection[str]) -> None:
        self.inbox.wake_here(tickets)

    async def wait_for_wakeup(self, key: str, ticket: str, timeout: float, listeners: Collection[str]) -> Pushed | None:
        return await self.inbox.wait(ticket, self._runtime.event(), timeout)

    def liveness(self, listeners: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        gone = frozenset(listener for listener in listeners if listener not in self.server.stores)
        return frozenset(), gone

    # -- the rest

    async def close(self) -> None:
        self.server.stores.pop(self.listener, None)

    def forked(self) -> None:
        self.server.mutex = threading.Lock()
        self.server.rows.clear()  # what the child sees is a copy

    async def doctor(self) -> list[tuple[str, str]]:
        return [("note", "A dict ends with its process.")]
