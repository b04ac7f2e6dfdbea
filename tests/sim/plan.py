"""A scenario from a seed: a store, a few clients, their errands, and the faults that befall them.

`Run(seed).play()` plays it and raises Violation with the history of what happened. The same seed always plays the same.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

from tests.sim import doings
from tests.sim.client import ALL, Client
from tests.sim.house import REAL, House
from tests.sim.rows import Rows
from tests.sim.server import Server
from tests.sim.wire import FINE, Weather
from tests.sim.witness import Witness
from tests.sim.world import Violation, World

STORES = ("hints", "grants", "rows", "embedded")
FAULTS = (
    "loss", "late", "twice", "freeze", "crash", "cancel", "deaf", "island", "cut", "refuse", "evict", "back", "forward",
    "reset",
)  # fmt: skip
IMPOSSIBLE = {"forward", "reset", "evict"}  # exclusion without a checked fence is not promised under these
FAULTY = 12.0  # faults end after so many seconds


class Run:
    def __init__(self, seed: int, house: House = REAL, store: str = "", faults: set[str] | None = None) -> None:
        self.seed = seed
        self.house = house
        self.world = world = World(seed)
        self.chance = chance = world.random
        self.witness = Witness(world)
        self.store_kind = store or chance.choice(STORES)
        self.faults = self._faults() if faults is None else faults
        self.witness.calm = not self.faults
        self.store = self._store()
        self.backup: dict[str, Any] = {}
        self.lease = chance.choice((0.5, 1.0, 2.0, 4.0, 8.0))
        self.kind = chance.choice(("lock", "lock", "lock", "rw", "semaphore"))
        self.slots = chance.randint(2, 4)
        self.names = chance.choice((["x"], ["x"], ["x", "y"], ["x", "y", "z"]))
        self.clients = [
            Client(world, house, self.witness, self.store, f"c{i}", rate=chance.uniform(0.91, 1.09), offset=1000.0 * i)
            for i in range(chance.choice((1, 2, 2, 3, 3, 4)))
        ]
        self.longest = chance.choice((0.01, 0.1, 0.3 * self.lease, min(1.5 * self.lease, 5.0)))  # an errand's work
        self.tasks = [
            (c, c.start(self._visitor(c), f"visitor {j}")) for c in self.clients for j in range(chance.randint(1, 3))
        ]

    def _faults(self) -> set[str]:
        if self.chance.random() < 0.1:
            return set()
        common = {f for f in FAULTS if f not in IMPOSSIBLE and self.chance.random() < 0.35}
        faults = common | {f for f in sorted(IMPOSSIBLE) if self.chance.random() < 0.06}
        return faults - {"back"} if "reset" in faults else faults  # both together: fences may fall

    def _store(self) -> Any:
        chance, world = self.chance, self.world
        store: Any
        if self.store_kind in ("rows", "embedded"):
            estimates = chance.choice(("none", "shared", "elapsed")) if self.store_kind == "rows" else "embedded"
            store = Rows(world, self.house, estimates, chance.choice((0.0, 0.5, 10.0)), chance.random() < 0.8)
            store.spurious = chance.choice((0.0, 0.0, 0.2)) if self.faults else 0.0
        else:
            store = Server(world, self.house, self.store_kind == "grants", "twice" in self.faults)
        weather = Weather(
            jitter=chance.choice((0.0003, 0.005, 0.05) if self.faults else (0.0003, 0.005)),
            lost=chance.choice((0.02, 0.1, 0.3)) if "loss" in self.faults else 0.0,
            late=chance.choice((0.02, 0.1, 0.3)) if "late" in self.faults else 0.0,
            late_by=chance.choice((0.4, 2.0, 8.0)),
            twice=0.2 if "twice" in self.faults and self.store_kind in ("hints", "grants") else 0.0,
        )
        for wire in store.wires():
            wire.weather = weather
        store.time_out = chance.choice((0.5, 0.5, 2.0, 6.0)) if self.faults else 0.5
        return store

    # -- who does what

    def _wish(self, client: Client) -> tuple[Any, float | None]:
        chance = self.chance
        weight, capacity = ALL, ALL
        if self.kind == "rw" and chance.random() < 0.6:
            weight = 1
        elif self.kind == "semaphore":
            weight, capacity = chance.randint(1, self.slots), self.slots
        lease = self.lease * chance.choice((1, 1, 1, 2))
        wish = client.wish(
            chance.choice(self.names), weight, capacity, lease,
            fair=chance.random() > 0.1, handoff=chance.random() > 0.1,
            max_hold=chance.choice((None, None, None, 1.5)), at_least=1.0 if chance.random() < 0.05 else None,
        )  # fmt: skip
        return wish, chance.choice((None, None, 0.0, 0.2, 2.0, 10.0))

    async def _visitor(self, client: Client) -> None:
        chance = self.chance
        for _ in range(chance.randint(1, 4)):
            wish, limit = self._wish(client)
            if chance.random() < 0.5:
                await client.colour.sleep(chance.random() * chance.choice((0.01, 0.5, 4.0)))
            await client.errand(wish, limit, chance.random() * self.longest, self._doing(client, wish))

    def _doing(self, client: Client, wish: Any) -> Any:
        chance = self.chance
        what = chance.choice(("work",) * 6 + ("blind", "renew", "lower", "hand over", "once more"))
        if what == "blind":
            return partial(doings.blindly, client)
        if what == "renew":
            return partial(doings.renewing, client)
        if what == "lower":
            return partial(doings.lowering, client)
        if what == "hand over":
            return partial(doings.handing_over, client, others=self.clients, chance=chance)
        if what == "once more":
            return partial(doings.once_more, client, wish=wish)
        return None

    # -- what befalls them

    def _befall(self) -> None:
        chance, world, store = self.chance, self.world, self.store
        for fault in sorted(self.faults):
            if fault in ("loss", "late", "twice"):
                continue
            for _ in range(chance.randint(1, 12 if fault == "cancel" else 3)):
                world.after(chance.random() * FAULTY * chance.choice((0.05, 0.3, 1.0)), self._strike, fault)
        if chance.random() < 0.5:
            world.after(chance.random() * 3.0, self._back_up)
        world.after(FAULTY, self._fine_again)
        for wire in store.wires():
            assert wire.weather.late_by <= FAULTY

    def _strike(self, fault: str) -> None:
        chance, world, store = self.chance, self.world, self.store
        client = chance.choice(self.clients)
        process = client.process
        if fault == "freeze":
            process.freeze(chance.choice((0.1, 1.0, 2.5, 6.0)) * chance.uniform(0.5, 1.5))
        elif fault == "crash":
            process.crash(chance.choice(("alive", "deaf", "dead")))
        elif fault == "cancel":
            waiting = [t for c, t in self.tasks if not t.done and c.process.runs]
            if waiting:
                chance.choice(waiting).cancel()
        elif fault == "deaf":
            process.ear = "deaf"
            world.after(chance.choice((0.1, 3.0)), self._hears_again, client)
        elif fault == "island":
            self._island(client, True)
            world.after(chance.choice((0.5, 1.0, 2.0)) * self.lease, self._island, client, False)
        elif fault in ("cut", "refuse"):
            self._shut(fault, True)
            world.after(chance.choice((0.1, 1.0, 5.0)), self._shut, fault, False)
        elif fault == "evict":
            at_once = chance.random() < 0.5
            self.witness.evicted = True
            if at_once:
                self.witness.excuse("evicted at once")
            store.step(chance.choice(self.names), self.house.doorman.Evict(None, "ops", "stuck", at_once))
        elif fault == "back":
            store.step_clock(-chance.choice((0.001, 0.5, 5.0, 100.0)))
        elif fault == "forward":
            self.witness.excuse("the store's clock stepped forward")
            store.step_clock(chance.choice((0.5, 5.0, 100.0)))
        elif fault == "reset":
            self.witness.excuse("the store lost its data")
            store.lose_data(self.backup)

    def _island(self, client: Client, cut: bool) -> None:
        self.world.note(client.process.name, "is cut off" if cut else "is no longer cut off")
        getattr(client.backend, "store", client.backend).cut = cut

    def _hears_again(self, client: Client) -> None:
        if not client.process.crashed:
            client.process.ear = "alive"

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
            with self.house.loaded_dice(Random(self.seed)):
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
            fair = [s for s in self.witness.past(name) if s.hold._wish.fair and s.hold.ticket not in self.witness.kept]
            order = [came[s.hold.ticket] for s in sorted(fair, key=lambda s: s.fence)]
            if order != sorted(order):
                raise Violation(f"not first come, first served: {order}")

    def _nothing_stays_behind(self) -> None:
        """When all have gone and every message has arrived, only the crashed may still have something inside."""
        world = self.world
        world.run(max(world.now, FAULTY) + 20.0)  # the keepers pay what is owed; what is late arrives
        world.run(world.now + 120.0, lambda: not any(w.under_way for w in self.store.wires()) and not self._owing())
        if owing := self._owing():
            raise Violation(f"never paid: {owing}")
        for name in self.names:
            self._nobody_in(name)

    def _nobody_in(self, name: str) -> None:
        crashed = {c.process.name for c in self.clients if c.process.crashed}
        self.store.step(name, self.house.doorman.Leave("a passer-by"))  # time that has run back is put right by a step
        now = self.store.now()
        record = self.store.record(name)
        for where, entrants in (("inside", record.inside), ("in line", record.line)):
            for e in entrants:
                if e.expires > now and e.owner not in crashed and e.ear:
                    left = (e.expires - now) / 1e6
                    raise Violation(f"a ghost {where}: {e.ticket} of {e.owner}, for another {left:.1f} s")
                if e.expires > now + max(e.lease, 30_000_000):
                    raise Violation(f"{e.ticket} of {e.owner} stays {where} longer than its lease: {e}")

    def _owing(self) -> list[Any]:
        return [d for c in self.clients if not c.process.crashed for d in c.desk.debts.values()]

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {self.kind} on {self.store_kind}, {len(self.clients)} clients, lease {self.lease}, "
            f"faults: {' '.join(sorted(self.faults)) or 'none'}"
        )
