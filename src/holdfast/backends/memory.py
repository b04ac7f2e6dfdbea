"""The doorman in memory, under a lock: the reference that every other backend is compared with.

`memory://` is private to its client; `memory://NAME` is shared by all clients of the process, of both colours.
"""

import threading
import time
from collections.abc import Callable, Iterable
from itertools import count

from ..doorman import EMPTY, Command, Record, Wake, apply
from .contract import Answer, Colour, Event, Pushed
from .names import SEPARATOR, glob


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

    def hear(self, wake: Wake) -> None:
        """From any thread."""
        if len(self._hints) > 1000:
            self._hints.clear()
        self._hints[wake.ticket] = Pushed(wake.ticket)
        event = self._waiting.get(wake.ticket)
        if event is not None:
            event.set()

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

    async def look(self, name: str) -> tuple[Record, int]:
        return self.hub.records.get(self.prefix + name, EMPTY), self.hub.now()

    async def looks(self, pattern: str) -> tuple[list[tuple[str, Record]], int]:
        matches = glob(pattern)
        with self.hub.mutex:
            everything = sorted(self.hub.records.items())
        found = [(k[len(self.prefix) :], r) for k, r in everything if k.startswith(self.prefix)]
        return [(name, r) for name, r in found if SEPARATOR not in name and matches(name)], self.hub.now()

    async def tidy(self) -> None:
        pass

    async def ping(self) -> None:
        pass

    async def close(self) -> None:
        self.hub.ears.pop(self.ear, None)

    def forked(self) -> None:
        """The child starts with an empty house: what it sees is a copy, and its parent's seats are not its own."""
        self.hub.records.clear()
        self.hub.mutex = threading.Lock()

    def beacon(self) -> int | None:
        return None

    async def doctor(self) -> list[tuple[str, str]]:
        return [("note", "Locks in memory reach only this process and end with it.")]

    def schema(self) -> str:
        return "-- memory:// needs nothing.\n"
