"""Requests to release: when a holder learns of them, and that it decides."""

from __future__ import annotations

from typing import Any

from tests.simulation.actors import Stage
from tests.simulation.engine_under_test import EngineUnderTest


def ask(stage: Stage, stay: Any, reason: str = "please") -> None:
    stage.store.step("x", stage.engine.locks.Ask(stay.hold.ticket, "ops", reason))


def request_of(client: Any, hold: Any) -> Any:
    return client.session.release_requests.get(hold.ticket)


def asked(client: Any) -> list[str]:
    return [event.detail for event in client.events if event.kind == "asked"]


def a_holder_learns_within_a_second_that_it_is_asked(engine: EngineUnderTest) -> None:
    for store in ("hints", "rows"):
        stage = Stage(engine, store, 2)
        if store == "rows":
            stage.store.hints = False  # the keeper reads the row
        a, b = stage.clients
        stay = stage.holding(a, 0.1, lease=9.0)
        waiting = stage.go(b, b.get(b.request(), 60.0))
        stage.until(3.3)
        ask(stage, stay)
        stage.until(4.5)
        stage.expect(request_of(a, stay.hold) == ("ops", "please"), f"told: {request_of(a, stay.hold)}")
        stage.until(15.0)  # renewed several times
        stage.expect(stay.hold.held and not waiting.done, "it holds on")
        stage.expect(asked(a) == ["ops asks to release it (please)"], f"told once: {asked(a)}")
        ask(stage, stay, "now")
        stage.until(16.2)
        stage.expect(request_of(a, stay.hold) == ("ops", "now"), f"told again: {request_of(a, stay.hold)}")
        stage.expect(len(asked(a)) == 2, f"told twice: {asked(a)}")


def a_holder_learns_at_its_next_renewal_that_it_is_asked(engine: EngineUnderTest) -> None:
    stage = Stage(engine)
    a, _ = stage.clients
    stay = stage.holding(a, 0.1, lease=6.0)
    a.backend.push_fate = "lost"
    ask(stage, stay)
    stage.until(2.3)
    stage.expect(request_of(a, stay.hold) == ("ops", "please"), f"told: {request_of(a, stay.hold)}")
    stage.expect(stay.hold.held, "it holds on")


def what_is_asked_for_is_not_passed_on(engine: EngineUnderTest) -> None:
    """The local queue asks for a grant of its own, behind the one that waits in another client."""
    stage = Stage(engine)
    a, b = stage.clients
    stay = stage.holding(a, 0.01, lease=30.0)
    here = stage.go(a, a.get(a.request(lease=30.0)))
    there = stage.go(b, b.get(b.request()))
    stage.until(0.02)
    ask(stage, stay)

    async def renew_and_release() -> None:
        await engine.lease_ops.renew(a.session, stay.hold)
        await a.give_back(stay)

    task = stage.go(a, renew_and_release())  # within the time in which a lock is passed on
    stage.until(1.0)
    stage.result(task)
    stage.expect(stage.result(there), "the other client has it")
    stage.expect(not here.done, "and not the next task of the same one")


def a_reader_that_waited_is_asked_with_the_others(engine: EngineUnderTest) -> None:
    """Readers that share a grant are all asked."""
    stage = Stage(engine)
    a, b = stage.clients
    writer = stage.holding(b, 0.01, lease=30.0)
    readers = [stage.go(a, a.get(a.request(weight=1, lease=30.0))) for _ in range(2)]
    stage.until(0.2)
    task = stage.go(b, b.give_back(writer))
    stage.until(1.0)
    stage.result(task)
    holds = [stage.result(reader).hold for reader in readers]
    stage.expect(holds[0].ticket == holds[1].ticket, "they share a grant")
    stage.store.step("x", engine.locks.Ask(holds[0].ticket, "ops", "please"))
    stage.until(2.2)
    stage.expect([request_of(a, hold) for hold in holds] == [("ops", "please")] * 2, "both are asked")
    stage.expect(len(asked(a)) == 2, "and both are told")
