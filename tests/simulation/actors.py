"""A small world for one scenario: a store, a few clients, and a script with exact times."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from tests.simulation.client import Client
from tests.simulation.engine_under_test import EngineUnderTest
from tests.simulation.invariants import Stay, Witness
from tests.simulation.rows import Rows
from tests.simulation.server import Server
from tests.simulation.world import PROGRAM_ERRORS, Task, Violation, World

STAGES: list[Stage] = []  # to be closed after each test


class Stage:
    """`store`: hints or grants (a server), rows (a table), cached (a table whose clock and rows clients know),
    embedded (the same, and half of the writes need no wire), seen (a table that one reads when one is woken)."""

    def __init__(self, engine: EngineUnderTest, store: str = "hints", clients: int = 2, seed: int = 1) -> None:
        self.engine = engine
        self.world = World(seed)
        self.witness = Witness(self.world)
        self.witness.calm = False
        self.store: Any
        if store == "rows":
            self.store = Rows(self.world, engine)
        elif store == "seen":
            self.store = Rows(self.world, engine, "elapsed", 10.0)
        elif store in ("cached", "embedded"):
            self.store = Rows(self.world, engine, "shared" if store == "cached" else store, 10.0)
        else:
            self.store = Server(self.world, engine, pushes_grants=store == "grants")
        self.clients = [Client(self.world, engine, self.witness, self.store, name) for name in "abcdefgh"[:clients]]
        self.tasks: list[Task] = []
        self._jitter = engine.seeded_jitter(Random(seed))
        self._jitter.__enter__()
        STAGES.append(self)

    def add(self, name: str, **clock: float) -> Client:
        client = Client(self.world, self.engine, self.witness, self.store, name, **clock)
        self.clients.append(client)
        return client

    def go(self, client: Client, work: Coroutine[Any, Any, Any], name: str = "visitor") -> Task:
        task = client.start(work, name)
        task.when_done.append(lambda: None)  # its error is looked at by the scenario
        self.tasks.append(task)
        return task

    def at(self, seconds: float, call: Callable[..., object], *args: Any) -> None:
        self.world.after(seconds - self.world.now, call, *args)

    def until(self, seconds: float) -> None:
        self.world.run(seconds)

    def result(self, task: Task) -> Any:
        """Return the task's result; raise a Violation if it has not ended or has failed."""
        if isinstance(task.error, PROGRAM_ERRORS):
            raise task.error
        if task.error is not None:
            raise self.wrong(f"{task.name} of {task.process.name} ended with {task.error!r}")
        if not task.done:
            raise self.wrong(f"{task.name} of {task.process.name} is not through by {self.world.now:.2f} s")
        return task.result

    def holding(self, client: Client, seconds: float, **request: Any) -> Stay:
        """Have this client hold the lock by then."""
        task = self.go(client, client.get(client.request(**request)))
        self.until(seconds)
        stay: Stay = self.result(task)
        return stay

    def wrong(self, sentence: str) -> Violation:
        return Violation(f"{sentence}\n{self.world.tell()}")

    def expect(self, true: object, sentence: str) -> None:
        if not true:
            raise self.wrong(sentence)

    def holders(self, name: str = "x") -> list[str]:
        """Whose leases are running, by owner."""
        now = self.store.now()
        return [e.owner for e in self.store.record(name).holders if e.expires > now]

    def queue(self, name: str = "x") -> list[str]:
        now = self.store.now()
        return [e.owner for e in self.store.record(name).queue if e.expires > now]

    def cut(self, cut: bool = True) -> None:
        for wire in self.store.wires():
            wire.cut = cut

    def close(self) -> None:
        for client in self.clients:
            client.process.crash()
        self._jitter.__exit__(None, None, None)
