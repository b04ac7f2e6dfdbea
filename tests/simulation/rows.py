"""A store that can only compare and swap one row, under the real `CasBackend`: what a database is.

A write may conflict, be applied although the client got no reply, or be applied long after the client gave up
waiting for it: only its version condition protects the row then. Wake-ups are sent by the writer after the write, get
lost and come late. Reads fail, too. `estimates` is how the client knows the time without asking: not at all, by a
shared clock (SQLite's boot clock), or by the last sample plus what has passed since ("elapsed"; there a woken client
reads the row, which may show the grant). "embedded" is a shared clock, too, half of the writes and
reads need no wire, and hints name the grant.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from fairlock.stores.base import Store
from tests.simulation.engine_under_test import EngineUnderTest
from tests.simulation.network import Wire
from tests.simulation.server import START, TIME_OUT, process_sleep
from tests.simulation.world import Park, Process, World


class Rows:
    pushes_grants = False
    may_duplicate = False

    def __init__(
        self, world: World, engine: EngineUnderTest, estimates: str = "none", trust: float = 0.0, hints: bool = True
    ) -> None:
        self.world = world
        self.engine = engine
        self.estimates = estimates
        self.cache_ttl = trust
        self.hints = hints
        self.requests = Wire(world)
        self.replies = Wire(world)
        self.pushes = Wire(world)
        self.clock_offset = START
        self.rows: dict[str, tuple[Any, int]] = {}
        self.stores: dict[str, RowStore] = {}
        self.refuses = False
        self.time_out = TIME_OUT
        self.spurious = 0.0  # chance that a write conflicts for no reason
        self.commands = 0
        self.asked: dict[str, int] = {}
        self.witness: Any = None

    def now(self) -> int:
        return int(self.world.now * 1e6) + self.clock_offset

    def slack(self, trying: bool) -> float:
        """As for a server, but one step may need four writes of unknown outcome and as many reads."""
        return 8 * (2 * self.time_out + 0.5 + (4 * self.time_out + 1.0 if trying else 0.0))

    def wires(self) -> list[Wire]:
        return [self.requests, self.replies, self.pushes]

    def client(self, process: Process) -> Any:
        store = RowStore(self, process)
        return self.engine.cas.CasBackend(store, store.runtime)

    def record(self, name: str) -> Any:
        row, _ = self.rows.get(name, (None, None))
        return self.engine.locks.EMPTY if row is None else self.engine.locks.codec.decode(row.body)

    def step(self, name: str, command: Any, who: str = "store") -> Any:
        """A step made by the operator, with nobody in between."""
        record, reply, woken = self.engine.locks.apply(self.record(name), command, self.now())
        wire = self.engine.locks.codec
        row = self.engine.base.Row(name, record.fence, wire.owners(record), wire.encode(record))
        self.rows[name] = (row, self.world.random.getrandbits(62))
        self.world.note("store", who + ": {} -> {}", command, reply)
        self.send(woken)
        return reply

    def send(self, woken: Any) -> None:
        for wake in woken:
            listener = self.stores.get(wake.listener)
            if listener is not None and self.hints:
                deliver = partial(listener.process.do, listener.hear, wake)
                fate = "lost" if listener.cut else listener.push_fate
                self.pushes.carry(deliver, fate, "the wake-up {} to {}", wake, wake.listener)

    def lose_data(self, backup: dict[str, Any]) -> None:
        """Versions never recur: what comes back from a backup has new ones."""
        self.world.note("store", "loses its data" if not backup else "is put back to an older state")
        self.rows = {key: (row, self.world.random.getrandbits(62)) for key, (row, _) in backup.items()}

    def backup(self) -> dict[str, Any]:
        return dict(self.rows)

    def step_clock(self, seconds: float) -> None:
        self.world.note("store", f"its clock steps by {seconds:+.2f} s")
        self.clock_offset += int(seconds * 1e6)


class RowStore(Store):
    """The client's end: a Store as the contract describes it."""

    where = "sim://rows"
    scope = "machines"
    scan = delete = None  # type: ignore[assignment]  # no scene calls them

    def __init__(self, rows: Rows, process: Process) -> None:
        from tests.simulation.world import SimRuntime

        self.rows = rows
        self.process = process
        self.engine = rows.engine
        self.time_out = rows.time_out
        self.contract = rows.engine.base
        self.runtime = SimRuntime(process)
        self.cache_ttl = rows.cache_ttl
        self.shares_steps = rows.estimates != "embedded"  # as SQLite, whose steps take no time, does not
        self.listener = f"listener-{process.name}"
        self.fates: list[tuple[str, str]] = []
        self.write_fates: list[tuple[str, str]] = []
        self.push_fate = ""
        self.cut = False  # nothing of this client gets through
        self._sample: Any = None
        self._hints: dict[str, Any] = {}
        self._waiting: dict[str, Park] = {}
        rows.stores[self.listener] = self
        self.has_nowait = rows.estimates == "embedded"
        self.pushes_grants = rows.estimates in ("embedded", "elapsed")

    def now(self) -> Any:
        if self.rows.estimates in ("shared", "embedded"):
            return self.contract.Sample(self.rows.now(), self.process.clock())
        if self.rows.estimates == "elapsed" and self._sample is not None:
            now, at, received = self._sample
            passed = self.process.clock() - received
            return self.contract.Sample(now + int(passed * 1e6), at) if passed < 1.0 else None
        return None

    def _count(self) -> None:
        self.rows.asked[self.process.name] = self.rows.asked.get(self.process.name, 0) + 1

    async def _call(self, call: Any, go: str, back: str, what: str, *things: Any) -> Any:
        """call() at the store; its result, or None if no reply came in time."""
        rows, process = self.rows, self.process
        self._count()
        if rows.refuses:
            await process_sleep(process, 0.0005)
            raise self.engine.errors.StoreError("sim://rows refuses connections. Start it.")
        park = Park()
        go = "lost" if self.cut else go

        def arrive() -> None:
            if not rows.refuses:
                rows.commands += 1
                rows.replies.carry(partial(process.do, park.wake, call()), back, "the reply to " + what, *things)

        rows.requests.carry(arrive, go, what, *things)
        process.later(self.time_out, park.wake, None)
        return await park

    async def read(self, key: str, settle: bool = False) -> Any:
        at = self.process.clock()
        go, back = self.fates.pop(0) if self.fates else ("", "")
        seen = await self._call(partial(self._show, key, at), go, back, f"a read of {key} by {self.process.name}")
        if seen is None:
            if self.rows.world.random.random() < 0.5:
                raise self.contract.OutcomeUnknown("no answer to a read")
            raise self.engine.errors.StoreError("sim://rows does not reply. Is it there?")
        self._sampled(seen)
        return seen

    def _show(self, key: str, at: float) -> Any:
        row, version = self.rows.rows.get(key, (None, None))
        return self.contract.RowSnapshot(row, version, self.rows.now(), at)

    def _sampled(self, seen: Any) -> None:
        self._sample = (seen.now, seen.at, self.process.clock())

    async def write(self, row: Any, expected: Any, now: int, woken: Any) -> Any:
        at = self.process.clock()
        go, back = self.write_fates.pop(0) if self.write_fates else ("", "")
        call = partial(self._swap, row, expected, now, at)
        what = f"a write of {row.key} by {self.process.name}"
        result = await self._call(call, go, back, what)
        if result is None:
            raise self.contract.OutcomeUnknown("no answer to a write")
        self._sampled(result)
        if isinstance(result, self.contract.Written) and woken:
            await self.wake(woken)
        return result

    def write_nowait(
        self, key: str, score: int, owner: str, body: str, expected: Any, woken: Any, at: float, now: int
    ) -> Any:
        rows = self.rows
        self._count()
        if rows.refuses or rows.world.random.random() < 0.5:
            return None
        result = self._swap(self.contract.Row(key, score, owner, body), expected, rows.now(), at)
        if not isinstance(result, self.contract.Written):
            return result if rows.world.random.random() < 0.5 else None
        rows.send(woken)
        return result.version

    def read_nowait(self, key: str) -> Any:
        rows = self.rows
        self._count()
        if rows.refuses or rows.world.random.random() < 0.5:
            return None
        return self._show(key, self.process.clock())

    def _swap(self, row: Any, expected: Any, now: int, at: float) -> Any:
        rows = self.rows
        _, version = rows.rows.get(row.key, (None, None))
        if version != expected or now > rows.now() or rows.world.random.random() < rows.spurious:
            rows.world.note("store", f"{self.process.name}: conflict")
            return self._show(row.key, at)
        version = rows.world.random.getrandbits(62)
        before = rows.record(row.key)
        rows.rows[row.key] = (row, version)
        self._look_for_ghosts(before, rows.record(row.key))
        rows.world.note("store", f"{self.process.name} writes {{}}", _Told(self.engine, row.body))
        return self.contract.Written(version, rows.now(), at)

    def _look_for_ghosts(self, before: Any, after: Any) -> None:
        known = {e.ticket for e in (*before.holders, *before.queue)}
        for e in (*after.holders, *after.queue):
            if e.ticket not in known:
                self.rows.witness.no_ghost(e.listener, e.ticket)
            if not e.listener:
                self.rows.witness.kept.add(e.ticket)

    async def wake(self, woken: Any) -> None:
        self.rows.send(woken)

    def hear(self, wake: Any) -> None:
        grant = (wake.place, wake.fence) if self.rows.estimates == "embedded" else ()
        self._hints[wake.ticket] = self.contract.Pushed(wake.ticket, *grant)
        park = self._waiting.get(wake.ticket)
        if park is not None:
            park.wake()

    def wake_here(self, tickets: Any) -> None:
        for ticket in tickets:
            self._hints[ticket] = self.contract.Pushed(ticket)
            park = self._waiting.get(ticket)
            if park is not None:
                park.wake()

    async def wait_for_wakeup(self, key: str, ticket: str, timeout: float, listeners: Any) -> Any:
        if self.rows.refuses:
            raise self.engine.errors.StoreError("sim://rows refuses connections. Start it.")
        hint = await self._hint(key, ticket, timeout)
        if hint is not None or self.rows.hints or self.rows.estimates != "elapsed":
            return hint
        try:
            known = await self.row_cache.read(key, 0.0, self.process.clock, lambda: self.read(key))
        except (self.contract.OutcomeUnknown, self.engine.errors.StoreError):
            return self.contract.Pushed(ticket)
        found = self.engine.polling.standing(known, ticket) if known is not None else None
        return found if isinstance(found, self.contract.Pushed) else self.contract.Pushed(ticket)

    async def _hint(self, key: str, ticket: str, timeout: float) -> Any:
        if not self.rows.hints:
            return await self._poll(key, timeout)
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

    async def _poll(self, key: str, timeout: float) -> None:
        """Without wake-ups: plain reads at growing intervals, until the row is another."""
        _, before = self.rows.rows.get(key, (None, None))
        end, nap = self.process.clock() + timeout, 0.01
        while (rest := end - self.process.clock()) > 0:
            await process_sleep(self.process, min(nap, rest))
            nap = min(nap * 2, 1.0)
            if self.rows.rows.get(key, (None, None))[1] != before:
                return

    def liveness(self, listeners: Any) -> tuple[frozenset[str], frozenset[str]]:
        others = {e: self.rows.stores[e].process.listener for e in listeners if e in self.rows.stores}
        return (
            frozenset(e for e, state in others.items() if state == "unreachable"),
            frozenset(e for e, state in others.items() if state == "dead"),
        )

    async def tidy(self) -> None:
        pass

    async def close(self) -> None:
        pass


class _Told:
    """A record in words, made only when somebody reads the history."""

    def __init__(self, engine: EngineUnderTest, body: str) -> None:
        self.engine = engine
        self.body = body

    def __str__(self) -> str:
        record = self.engine.locks.codec.decode(self.body)
        holders = ", ".join(f"{e.ticket[:4]}{e.ticket[-2:]}{'' if e.confirmed else '?'}" for e in record.holders)
        queue = ", ".join(f"{e.ticket[:4]}{e.ticket[-2:]}" for e in record.queue)
        tombstones = ", ".join(g.ticket[:4] + g.ticket[-2:] for g in record.tombstones)
        return f"holders [{holders}] queue [{queue}] tombstones [{tombstones}] fence {record.fence}"
