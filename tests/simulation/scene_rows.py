"""Rows: what the engine makes of a store that can only compare and swap."""

from __future__ import annotations

from typing import Any

from tests.simulation.actors import Stage
from tests.simulation.engine_under_test import EngineUnderTest


def a_refusal_rests_on_a_fresh_read(engine: EngineUnderTest) -> None:
    stage = Stage(engine, "cached")
    a, b = stage.clients
    stay = stage.holding(b, 0.1)
    refused = stage.go(a, a.get(a.request(), 0.0))
    stage.until(0.2)
    stage.expect(stage.result(refused) is None, "b holds it")
    stage.go(b, b.give_back(stay))
    stage.until(0.3)
    free = stage.go(a, a.get(a.request(), 0.0))
    stage.until(0.4)
    stage.expect(stage.result(free), "it is free, whatever the row said a moment ago")


def a_conflict_is_made_again_from_what_is_there(engine: EngineUnderTest) -> None:
    stage = Stage(engine, "rows")
    for client in stage.clients:
        stage.go(client, client.get(client.request()))
    stage.until(0.5)
    stage.expect(len(stage.holders()) == 1 and len(stage.queue()) == 1, f"{stage.holders()} {stage.queue()}")


def a_time_ahead_of_the_stores_is_refused_and_read_again(engine: EngineUnderTest) -> None:
    """The client's clock runs fast, so its estimate of the store's time drops a holder that is alive."""
    stage = Stage(engine, "cached", 0)
    a, fast = stage.add("a"), stage.add("fast", rate=3.0)
    stage.store.estimates = "elapsed"
    stage.holding(a, 0.05, lease=1.0)
    a.process.freeze(0.9)  # so that nothing is renewed and the version stays
    for seconds in (0.6, 0.85):
        stage.until(seconds)
        task = stage.go(fast, fast.get(fast.request(lease=1.0), 0.0))
        stage.until(seconds + 0.01)
        stage.expect(stage.result(task) is None, "refused: a's lease has not ended")


def an_unknown_leave_wakes_those_that_it_admitted(engine: EngineUnderTest) -> None:
    """The write was done, its reply lost, and with it the hints: the client that settles it sends them again."""
    stage = Stage(engine, "rows")
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    waiting = stage.go(b, b.get(b.request()))
    stage.until(1.2)  # b has just polled: its next poll is a second away
    a.backend.store.write_fates = [("", "lost")]
    stage.go(a, a.give_back(stay))
    stage.until(1.8)
    stage.result(waiting)


def an_unknown_write_is_settled_by_the_next_step_if_not_by_this(engine: EngineUnderTest) -> None:
    """As before, but the read that should settle it is lost as well: the release made again does it."""
    stage = Stage(engine, "rows")
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    a.backend.store.time_out = 0.1
    waiting = stage.go(b, b.get(b.request()))
    stage.until(1.2)
    a.backend.store.write_fates = [("", "lost")]
    a.backend.store.fates = [("", ""), ("lost", "")]
    stage.go(a, a.give_back(stay))
    stage.until(1.8)
    stage.result(waiting)


# -- steps that need no waiting


def a_conflict_without_waiting_is_no_grant(engine: EngineUnderTest) -> None:
    """The client's cached row is recent and wrong; half of the writes, at random, need no wire."""
    for seed in range(8):
        stage = Stage(engine, "embedded", 2, seed)
        a, b = stage.clients
        for client in (a, b):
            stage.go(client, client.errand(client.request(), None, 0.0))
            stage.until(stage.world.now + 0.1)
        stage.holding(b, stage.world.now + 0.1)
        refused = stage.go(a, a.get(a.request(), 0.0))
        stage.until(stage.world.now + 0.1)
        stage.expect(stage.result(refused) is None, "b holds it")


def a_release_without_waiting_tells_of_a_loss(engine: EngineUnderTest) -> None:
    for seed in range(8):
        stage = Stage(engine, "embedded", 1, seed)
        (a,) = stage.clients
        stage.witness.evicted = True
        stay = stage.holding(a, 0.1)
        stage.store.step("x", engine.locks.Evict(None, "ops", "stuck", False))
        a.backend._rows["x"] = (*_as_it_is(stage), a.process.clock(), 0)  # a keeper's step would have brought it
        told: list[bool] = []

        async def release(stay: Any = stay, a: Any = a, told: list[bool] = told) -> None:
            try:
                await a.let_go(stay.hold)
            except engine.errors.LeaseLost:
                told.append(True)

        task = stage.go(a, release())
        stage.until(0.2)
        stage.result(task)
        stage.expect(told, "LeaseLost")


def _as_it_is(stage: Stage) -> tuple[Any, Any]:
    return stage.store.record("x"), stage.store.rows["x"][1]
