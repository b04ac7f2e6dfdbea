"""A store with a mind of its own: it applies the pure rules atomically, one message at a time, and pushes wake-ups.

That is what Redis with scripts is. Its pushes may name the grant (`pushes_grants`) or be plain hints. It can know who
is unreachable or dead, lose its data, step its clock, be cut off, and refuse connections.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from fairlock.stores.base import Backend
from tests.simulation.engine_under_test import EngineUnderTest
from tests.simulation.network import FINE, Wire
from tests.simulation.world import Park, Process, World

TIME_OUT = 0.5  # after so long without an answer the outcome is unknown
START = 1_000_000_000  # the store's clock when the world begins, in microseconds


class Server:
    def __init__(
        self, world: World, engine: EngineUnderTest, pushes_grants: bool = False, may_duplicate: bool = False
    ) -> None:
        self.world = world
        self.engine = engine
        self.pushes_grants = pushes_grants
        self.may_duplicate = may_duplicate
        self.requests = Wire(world)
        self.replies = Wire(world)
        self.pushes = Wire(world)
        self.clock_offset = START
        self.records: dict[str, Any] = {}
        self.backends: dict[str, ServerBackend] = {}
        self.refuses = False
        self.time_out = TIME_OUT
        self.commands = 0
        self.asked: dict[str, int] = {}  # by process
        self.tickets: list[tuple[str, str]] = []  # (name, ticket), in the order in which their first Acquire came
        self._known: set[str] = set()
        self.witness: Any = None

    def now(self) -> int:
        return int(self.world.now * 1e6) + self.clock_offset

    def slack(self, trying: bool) -> float:
        """Return what silence costs beyond a time-out: the last request and the Release; for a try, five requests."""
        return 2 * self.time_out + 0.5 + (4 * self.time_out + 1.0 if trying else 0.0)

    def wires(self) -> list[Wire]:
        return [self.requests, self.replies, self.pushes]

    def client(self, process: Process) -> ServerBackend:
        return ServerBackend(self, process)

    def record(self, name: str) -> Any:
        return self.records.get(name, self.engine.locks.EMPTY)

    def step(self, name: str, command: Any, who: str = "store") -> Any:
        record = self.record(name)
        everyone = (*record.holders, *record.queue)
        unreachable = {e.ticket for e in everyone if self._listener(e.listener) == "unreachable"}
        dead = {e.ticket for e in everyone if self._listener(e.listener) == "dead"}
        record, reply, woken = self.engine.locks.apply(record, command, self.now(), unreachable, dead)
        self.records[name] = record
        if type(reply).__name__ in ("Granted", "Queued") and type(command).__name__ == "Acquire":
            self.witness.no_ghost(command.listener, command.ticket)
        if type(command).__name__ == "Detach":
            self.witness.kept.add(command.ticket)
        self.commands += 1
        self.world.note("store", who + ": {} -> {}", command, reply)
        if type(command).__name__ == "Acquire" and command.ticket not in self._known:
            self._known.add(command.ticket)
            self.tickets.append((name, command.ticket))
        for wake in woken:
            listener = self.backends.get(wake.listener)
            if listener is not None:
                deliver = partial(listener.process.do, listener.hear, wake)
                fate = "lost" if listener.cut else listener.push_fate
                self.pushes.carry(deliver, fate, "the push {} to {}", wake, wake.listener)
        return reply

    def _listener(self, listener: str) -> str:
        listener = self.backends.get(listener)
        return listener.process.listener if listener is not None else "alive"

    # -- what can befall it

    def lose_data(self, backup: dict[str, Any]) -> None:
        self.world.note("store", "loses its data" if not backup else "is put back to an older state")
        self.records = dict(backup)

    def backup(self) -> dict[str, Any]:
        return dict(self.records)

    def step_clock(self, seconds: float) -> None:
        self.world.note("store", f"its clock steps by {seconds:+.2f} s")
        self.clock_offset += int(seconds * 1e6)


class ServerBackend(Backend):
    """The client's end."""

    where = "sim://server"
    scope = "machines"
    repair = ping = looks = None  # type: ignore[assignment]  # no scene calls them

    def __init__(self, server: Server, process: Process) -> None:
        self.server = server
        self.process = process
        self.engine = server.engine
        self.time_out = server.time_out
        self.pushes_grants = server.pushes_grants
        self.may_duplicate = server.may_duplicate
        self.listener = f"listener-{process.name}"
        self.fates: list[tuple[str, str]] = []  # of the next messages, by decree: (request, reply)
        self.push_fate = ""
        self.listens = True
        self.cut = False  # nothing of this client gets through
        self._hints: dict[str, Any] = {}
        self._waiting: dict[str, Park] = {}
        server.backends[self.listener] = self

    def open_listener(self) -> str:
        return self.listener

    async def call(self, name: str, command: Any) -> Any:
        server, process = self.server, self.process
        at = process.clock()
        park = Park()
        go, back = ("lost", "") if self.cut else self.fates.pop(0) if self.fates else ("", "")
        who = process.name
        server.asked[who] = server.asked.get(who, 0) + 1
        if server.refuses:
            await process_sleep(process, 0.0005)
            raise self.engine.errors.StoreError("sim://server refuses connections. Start it.")

        def arrive() -> None:
            if not server.refuses:
                reply = server.step(name, command, who)
                deliver = partial(process.do, park.wake, reply)
                server.replies.carry(deliver, back, "the reply {} to {}", reply, who)

        server.requests.carry(arrive, go, "{} of {}", command, who)
        process.later(self.time_out, park.wake, None)
        reply = await park
        if reply is None:
            raise self.engine.base.OutcomeUnknown(f"no answer in {self.time_out} s")
        return self.engine.base.Answer(reply, at)

    def hear(self, wake: Any) -> None:
        fence = wake.fence if self.pushes_grants else 0
        self._hints[wake.ticket] = self.engine.base.Pushed(wake.ticket, wake.place, fence)
        park = self._waiting.get(wake.ticket)
        if park is not None:
            park.wake()

    def wake_here(self, tickets: Any) -> None:
        for ticket in tickets:
            self._hints[ticket] = self.engine.base.Pushed(ticket)
            park = self._waiting.get(ticket)
            if park is not None:
                park.wake()

    async def wait_for_wakeup(self, name: str, ticket: str, timeout: float) -> Any:
        if self.server.refuses or not self.listens:
            raise self.engine.errors.StoreError("sim://server refuses connections. Start it.")
        if ticket not in self._hints:
            park = self._waiting[ticket] = Park()
            self.process.later(timeout, park.wake)
            try:
                await park
            finally:
                self._waiting.pop(ticket, None)
        return self._hints.pop(ticket, None)

    def take_wakeups(self, tickets: Any) -> list[str]:
        return [t for t in list(tickets) if self._hints.pop(t, None) is not None]

    async def attend(self, locks: Any, pools: Any) -> float:
        return 0.0

    async def look(self, name: str) -> tuple[Any, int]:
        await process_sleep(self.process, FINE.least)
        return self.server.record(name), self.server.now()

    async def tidy(self) -> None:
        pass

    async def close(self) -> None:
        pass


async def process_sleep(process: Process, seconds: float) -> None:
    park = Park()
    process.later(seconds, park.wake)
    await park
