"""The smallest Store there is: rows in a dict. An example to begin a new store with, and a place for faults.

`CasBackend` makes a whole backend of it, as of any other store; under a clock that is turned by hand this runs the very
engine that serves the databases. All stores on one `Shelf` see the same rows, whatever the colour of their clients.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import count

from ..backends.contract import Colour, Event, Pushed, Row, Sample, Seen, Written
from ..doorman import Wake


class Shelf:
    """What would be the server: the rows, the time, and who listens."""

    def __init__(self, now: Callable[[], int] = lambda: time.monotonic_ns() // 1000) -> None:
        self.now = now
        self.mutex = threading.Lock()
        self.rows: dict[str, tuple[Row, int]] = {}
        self.stores: dict[str, DictStore] = {}
        self.numbers = count(1)


class DictStore:
    where = "dict:"
    span = "process"
    trust = 10.0
    skew = 0.0
    gathers = True

    def __init__(self, shelf: Shelf, colour: Colour) -> None:
        self.shelf = shelf
        self.ear = f"dict-{next(shelf.numbers)}"
        self._colour = colour
        self._heard: set[str] = set()
        self._waiting: dict[str, Event] = {}
        shelf.stores[self.ear] = self

    def now(self) -> Sample | None:
        at = self._colour.clock()  # before the sample: what is granted counts from here
        return Sample(self.shelf.now(), at)

    # -- rows

    async def read(self, key: str, settle: bool = False) -> Seen:
        at = self._colour.clock()
        with self.shelf.mutex:
            return self._seen(key, at)

    def _seen(self, key: str, at: float) -> Seen:
        row, version = self.shelf.rows.get(key, (None, None))
        return Seen(row, version, self.shelf.now(), at)

    async def write(self, row: Row, expected: int | str | None, now: int, woken: Sequence[Wake]) -> Written | Seen:
        at = self._colour.clock()
        with self.shelf.mutex:
            seen = self._seen(row.key, at)
            if seen.version != expected or now > seen.now:
                return seen
            version = random.getrandbits(62)  # not counted: versions never recur, even after a loss of data
            self.shelf.rows[row.key] = (row, version)
        await self.wake(woken)
        return Written(version, seen.now, at)

    async def scan(self, prefix: str) -> list[Seen]:
        at = self._colour.clock()
        with self.shelf.mutex:
            return [self._seen(key, at) for key in self.shelf.rows if key.startswith(prefix)]

    async def between(self, prefix: str, low: int, high: int, limit: int) -> list[Seen]:
        """With this it keeps pools, too."""
        found = [seen for seen in await self.scan(prefix) if seen.row is not None and low <= seen.row.score <= high]
        return sorted(found, key=lambda seen: (seen.row.score, seen.row.key) if seen.row else (0, ""))[:limit]

    async def delete(self, key: str, expected: int | str) -> bool:
        with self.shelf.mutex:
            if key in self.shelf.rows and self.shelf.rows[key][1] == expected:
                del self.shelf.rows[key]
                return True
            return False

    # -- hints

    async def wake(self, woken: Sequence[Wake]) -> None:
        for wake in woken:
            store = self.shelf.stores.get(wake.ear)
            if store is not None:
                store.hear(wake.ticket)

    def hear(self, ticket: str) -> None:
        """From any thread."""
        self._heard.add(ticket)
        event = self._waiting.get(ticket)
        if event is not None:
            event.set()

    def wake_here(self, tickets: Collection[str]) -> None:
        for ticket in tickets:
            self.hear(ticket)

    async def changed(self, key: str, ticket: str, timeout: float, ears: Collection[str]) -> Pushed | None:
        event = self._waiting[ticket] = self._colour.event()
        try:
            if ticket not in self._heard:  # a hint may come between the step and this wait
                await event.wait(timeout)
            if ticket not in self._heard:
                return None
            self._heard.discard(ticket)
            return Pushed(ticket)
        finally:
            self._waiting.pop(ticket, None)

    def silent(self, ears: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        gone = frozenset(ear for ear in ears if ear not in self.shelf.stores)
        return frozenset(), gone

    # -- the rest

    async def tidy(self) -> None:
        pass

    async def ping(self) -> None:
        pass

    async def close(self) -> None:
        self.shelf.stores.pop(self.ear, None)

    def forked(self) -> None:
        self.shelf.mutex = threading.Lock()
        self.shelf.rows.clear()  # what the child sees is a copy

    def beacon(self) -> int | None:
        return None

    async def doctor(self) -> list[tuple[str, str]]:
        return [("note", "A dict ends with its process.")]

    def schema(self) -> str:
        return "-- a dict needs nothing\n"
