"""A scenario from a seed: a store, a few clients, their errands, and the faults that befall them.

`Run(seed).play()` plays it and raises Violation with the history of what happened. The same seed always plays the same.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

from tests.simulation import actions
from tests.simulation.client import EXCLUSIVE, Client
from tests.simulation.engine_under_test import REAL, EngineUnderTest
from tests.simulation.invariants import Witness
from tests.simulation.network import FINE, Weather
from tests.simulation.rows import Rows
from tests.simulation.server import Server
from tests.simulation.world import Violation, World

STORES = ("hints", "grants", "rows", "embedded")
FAULTS = (
    "loss", "late", "twice", "freeze", "crash", "cancel", "unreachable", "island", "cut", "refuse", "evict",
    "back", "forward", "reset",
)  # fmt: skip
IMPOSSIBLE = {"forward", "reset", "evict"}  # exclusion without a checked fence is not promised under these
FAULTY = 12.0  # faults end after so many seconds


class Run:
    def __init__(
        self, seed: int, engine: EngineUnderTest = REAL, store: str = "", faults: set[str] | None = None
    ) -> None:
        self.seed = seed
        self.engine = engine
        self.world = world = World(seed)
        self.rng = rng = world.random
        self.witness = Witness(world)
        self.store_kind = store or rng.choice(STORES)
        self.faults = self._faults() if faults is None else faults
        self.witness.calm = not self.faults
        self.store = self._store()
        self.backup: dict[str, Any] = {}
        self.lease = rng.choice((0.5, 1.0, 2.0, 4.0, 8.0))
        self.kind = rng.choice(("lock", "lock", "lock", "rw", "semaphore"))
        self.slots = rng.randint(2, 4)
        self.names = rng.choice((["x"], ["x"], ["x", "y"], ["x", "y", "z"]))
        self.clients = [
            Client(world, engine, self.witness, self.store, f"c{i}", rate=rng.uniform(0.91, 1.09), offset=1000.0 * i)
            for i in range(rng.choice((1, 2, 2, 3, 3, 4)))
        ]
        self.longest = rng.choice((0.01, 0.1, 0.3 * self.lease, min(1.5 * self.lease, 5.0)))  # an errand's work
        self.tasks = [
            (c, c.start(self._visitor(c), f"visitor {j}")) for c in self.clients for j in range(rng.randint(1, 3))
        ]

    def _faults(self) -> set[str]:
        if self.rng.random() < 0.1:
            return set()
        common = {f for f in FAULTS if f not in IMPOSSIBLE and self.rng.random() < 0.35}
        faults = common | {f for f in sorted(IMPOSSIBLE) if self.rng.random() < 0.06}
        return faults - {"back"} if "reset" in faults else faults  # both together: fences may fall

    def _store(self) -> Any:
        rng, world = self.rng, self.world
        store: Any
        if self.store_kind in ("rows", "embedded"):
            estimates = rng.choice(("none", "shared", "elapsed")) if self.store_kind == "rows" else "embedded"
            store = Rows(world, self.engine, estimates, rng.choice((0.0, 0.5, 10.0)), rng.random() < 0.8)
            store.spurious = rng.choice((0.0, 0.0, 0.2)) if self.faults else 0.0
        else:
            store = Server(world, self.engine, self.store_kind == "grants", "twice" in self.faults)
        weather = Weather(
            jitter=rng.choice((0.0003, 0.005, 0.05) if self.faults else (0.0003, 0.005)),
            lost=rng.choice((0.02, 0.1, 0.3)) if "loss" in self.faults else 0.0,
            late=rng.choice((0.02, 0.1, 0.3)) if "late" in self.faults else 0.0,
            late_by=rng.choice((0.4, 2.0, 8.0)),
            twice=0.2 if "twice" in self.faults and self.store_kind in ("hints", "grants") else 0.0,
        )
        for wire in store.wires():
            wire.weather = weather
        store.time_out = rng.choice((0.5, 0.5, 2.0, 6.0)) if self.faults else 0.5
        return store

    # -- who does what

    def _request(self, client: Client) -> tuple[Any, float | None]:
        rng = self.rng
        weight, capacity = EXCLUSIVE, EXCLUSIVE
        if self.kind == "rw" and rng.random() < 0.6:
            weight = 1
        elif self.kind == "semaphore":
            weight, capacity = rng.randint(1, self.slots), self.slots
        lease = self.lease * rng.choice((1, 1, 1, 2))
        request = client.request(
            rng.choice(self.names), weight, capacity, lease,
            fair=rng.random() > 0.1, handoff=rng.random() > 0.1,
            max_hold=rng.choice((None, None, None, 1.5)), at_least=1.0 if rng.random() < 0.05 else None,
        )  # fmt: skip
        return request, rng.choice((None, None, 0.0, 0.2, 2.0, 10.0))

    async def _visitor(self, client: Client) -> None:
        rng = self.rng
        for _ in range(rng.randint(1, 4)):
            request, limit = self._request(client)
            if rng.random() < 0.5:
                await client.runtime.sleep(rng.random() * rng.choice((0.01, 0.5, 4.0)))
            await client.errand(request, limit, rng.random() * self.longest, self._doing(client, request))

    def _doing(self, client: Client, request: Any) -> Any:
        rng = self.rng
        what = rng.choice(("work",) * 6 + ("blind", "renew", "lower", "hand over", "once more"))
        if what == "blind":
            return partial(actions.blindly, client)
        if what == "renew":
            return partial(actions.renewing, client)
        if what == "lower":
            return partial(actions.lowering, client)
        if what == "hand over":
            return partial(actions.handing_over, client, others=self.clients, rng=rng)
        if what == "once more":
            return partial(actions.once_more, client, request=request)
        return None

    # -- what befalls them

    def _befall(self) -> None:
        rng, world, store = self.rng, self.world, self.store
        for fault in sorted(self.faults):
            if fault in ("loss", "late", "twice"):
                continue
            for _ in range(rng.randint(1, 12 if fault == "cancel" else 3)):
                world.after(rng.random() * FAULTY * rng.choice((0.05, 0.3, 1.0)), self._strike, fault)
        if rng.random() < 0.5:
            world.after(rng.random() * 3.0, self._back_up)
        world.after(FAULTY, self._fine_again)
        for wire in store.wires():
            assert wire.weather.late_by <= FAULTY

    def _strike(self, fault: str) -> None:
        rng, world, store = self.rng, self.world, self.store
        client = rng.choice(self.clients)
        process = client.process
        if fault == "freeze":
            process.freeze(rng.choice((0.1, 1.0, 2.5, 6.0)) * rng.uniform(0.5, 1.5))
        elif fault == "crash":
            process.crash(rng.choice(("alive", "unreachable", "dead")))
        elif fault == "cancel":
            waiting = [t for c, t in self.tasks if not t.done and c.process.runs]
            if waiting:
                rng.choice(waiting).cancel()
        elif fault == "unreachable":
            process.listener = "unreachable"
            world.after(rng.choice((0.1, 3.0)), self._hears_again, client)
        elif fault == "island":
            self._island(client, True)
            world.after(rng.choice((0.5, 1.0, 2.0)) * self.lease, self._island, client, False)
        elif fault in ("cut", "refuse"):
            self._shut(fault, True)
            world.after(rng.choice((0.1, 1.0, 5.0)), self._shut, fault, False)
        elif fault == "evict":
            at_once = rng.random() < 0.5
            self.witness.evicted = True
            if at_once:
                self.witness.excuse("evicted at once")
            store.step(rng.choice(self.names), self.engine.locks.Evict(None, "ops", "stuck", at_once))
        elif fault == "back":
            store.step_clock(-rng.choice((0.001, 0.5, 5.0, 100.0)))
        elif fault == "forward":
            self.witness.excuse("the store's clock stepped forward")
            store.step_clock(rng.choice((0.5, 5.0, 100.0)))
        elif fault == "reset":
            self.witness.excuse("the store lost its data")
            store.lose_data(self.backup)

    def _island(self, client: Client, cut: bool) -> None:
        self.world.note(client.process.name, "is cut off" if cut else "is no longer cut off")
        getattr(client.backend, "store", client.backend).cut = cut

    def _hears_again(self, client: Client) -> None:
        if not client.process.crashed:
            client.process.listener = "alive"

    def _shut(self, fault: str, shut: bool) -> None:
        self.world.note("store", f"{'is' if shut else 'is no longer'} {fault}")
        if fault == "refuse":
            self.store.refuses = shut
        else:
            for wire in self.store.wires():
                wire.cut = shut

    def _back_up(self) -> None:
        self.backup = self.store.backup()

    def _fine_again(self) -> None:
        self.world.note("store", "fine weather from here on")
        for wire in self.store.wires():
            wire.weather = FINE
        self.store.spurious = 0.0

    # -- playing it

    def play(self) -> None:
        try:
            with self.engine.seeded_jitter(Random(self.seed)):
                self._befall()
                self._everyone_comes_through()
                self._first_come_first_served()
                self._nothing_stays_behind()
        except Violation as violation:
            raise Violation(f"{violation}\n\n{self.world.tell()}\n\n{self}\n{violation}") from None
        finally:
            for client in self.clients:
                client.process.crash()

    def _done(self) -> bool:
        return all(task.done or client.process.crashed for client, task in self.tasks)

    def _everyone_comes_through(self) -> None:
        """No living waiter starves: with fine weather the crowd gets through in the time it needs."""
        faults = FAULTY + 10.0 + 10 * self.store.time_out + 2 * self.lease * len(self.clients)
        horizon = faults + 5 * len(self.tasks) * (self.longest + 1.5)
        if not self.world.run(horizon, self._done):
            still = [f"{c.process.name} {t.name}" for c, t in self.tasks if not t.done and not c.process.crashed]
            raise Violation(f"still not through after {horizon:.0f} s: {', '.join(still)}")

    def _first_come_first_served(self) -> None:
        """In fine weather, over a server: who asked first for a lock got it first, unless somebody barged."""
        if not self.witness.calm or self.kind != "lock" or self.store_kind not in ("hints", "grants"):
            return
        came = {ticket: number for number, (_, ticket) in enumerate(self.store.tickets)}
        for name in self.names:
            fair = [
                s for s in self.witness.past(name) if s.hold._request.fair and s.hold.ticket not in self.witness.kept
            ]
            order = [came[s.hold.ticket] for s in sorted(fair, key=lambda s: s.fence)]
            if order != sorted(order):
                raise Violation(f"not first come, first served: {order}")

    def _nothing_stays_behind(self) -> None:
        """When all have gone and every message has arrived, only the crashed may still have something holders."""
        world = self.world
        world.run(max(world.now, FAULTY) + 20.0)  # the keepers pay what is owed; what is late arrives
        world.run(world.now + 120.0, lambda: not any(w.under_way for w in self.store.wires()) and not self._owing())
        if owing := self._owing():
            raise Violation(f"never paid: {owing}")
        for name in self.names:
            self._nobody_in(name)

    def _nobody_in(self, name: str) -> None:
        crashed = {c.process.name for c in self.clients if c.process.crashed}
        self.store.step(name, self.engine.locks.Release("a passer-by"))  # time that has run back is put right by a step
        now = self.store.now()
        record = self.store.record(name)
        for where, entries in (("holders", record.holders), ("in queue", record.queue)):
            for e in entries:
                if e.expires > now and e.owner not in crashed and e.listener:
                    left = (e.expires - now) / 1e6
                    raise Violation(f"a ghost {where}: {e.ticket} of {e.owner}, for another {left:.1f} s")
                if e.expires > now + max(e.lease, 30_000_000):
                    raise Violation(f"{e.ticket} of {e.owner} stays {where} longer than its lease: {e}")

    def _owing(self) -> list[Any]:
        return [d for c in self.clients if not c.process.crashed for d in c.session.pending_releases.values()]

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {self.kind} on {self.store_kind}, {len(self.clients)} clients, lease {self.lease}, "
            f"faults: {' '.join(sorted(self.faults)) or 'none'}"
        )
