"""The local queue: one place for a whole client; and the keeper."""

from __future__ import annotations

from typing import Any

from tests.simulation.actors import Stage
from tests.simulation.client import Client
from tests.simulation.engine_under_test import EngineUnderTest
from tests.simulation.invariants import Stay

# -- one place for all of a client


def each_local_holder_has_a_fence_of_its_own(engine: EngineUnderTest) -> None:
    stage = Stage(engine, clients=1)
    (a,) = stage.clients
    for _ in range(3):
        stage.go(a, a.errand(a.request(), None, 0.01))
    stage.until(1.0)
    for task in stage.tasks:
        stage.expect(stage.result(task), "each got it")


def passing_on_ends_after_32_times(engine: EngineUnderTest) -> None:
    stage = Stage(engine)
    a, b = stage.clients
    for _ in range(100):
        stage.go(a, a.errand(a.request(), None, 0.0005))
    stage.until(0.001)
    other = stage.go(b, b.get(b.request()))
    stage.until(0.06)
    stage.result(other)


def passing_on_ends_after_a_tenth_of_a_second(engine: EngineUnderTest) -> None:
    stage = Stage(engine)
    a, b = stage.clients
    for _ in range(10):
        stage.go(a, a.errand(a.request(), None, 0.05))
    stage.until(0.01)
    other = stage.go(b, b.get(b.request()))
    stage.until(0.2)
    stage.result(other)


def nothing_is_passed_on_after_its_deadline(engine: EngineUnderTest) -> None:
    """An answer that took almost the whole lease leaves no time to pass anything on."""
    stage = Stage(engine, clients=1)
    (a,) = stage.clients
    a.backend.time_out = 5.0
    stage.store.replies.weather = stage.store.replies.weather._replace(least=1.78, jitter=0)

    async def without_looking() -> None:
        stay = await a.get(a.request(lease=2.0))
        assert stay is not None
        await a.runtime.sleep(0.05)
        await a.give_back(stay)

    stage.go(a, without_looking())
    stage.until(1.0)
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.0002)
    a.backend.fates = [("lost", "")]  # the renewal
    second = stage.go(a, a.errand(a.request(lease=2.0), None, 0.05))
    stage.until(5.0)
    stage.result(second)


def a_leader_that_gives_up_leaves_an_heir(engine: EngineUnderTest) -> None:
    stage = Stage(engine)
    a, b = stage.clients
    stay = stage.holding(b, 0.1)
    leader = stage.go(a, a.get(a.request()))
    stage.until(0.2)
    heir = stage.go(a, a.get(a.request()))
    stage.until(0.3)
    leader.cancel()
    stage.until(0.4)
    stage.go(b, b.give_back(stay))
    stage.until(0.6)
    stage.expect(stage.result(heir), "the heir holds it")
    stage.expect(len(stage.store.tickets) == 2, "under the ticket that had waited")


def a_lost_grant_leaves_an_heir(engine: EngineUnderTest) -> None:
    stage = Stage(engine, clients=1)
    (a,) = stage.clients
    stage.holding(a, 0.1, lease=8.0)
    heir = stage.go(a, a.get(a.request(lease=8.0)))
    stage.until(0.2)
    stage.store.step("x", engine.locks.Evict(None, "ops", "stuck", True))
    stage.until(6.0)
    stage.result(heir)


def a_reader_that_comes_later_needs_no_turn(engine: EngineUnderTest) -> None:
    stage = Stage(engine, clients=1)
    (a,) = stage.clients
    stage.holding(a, 0.1, weight=1)
    second = stage.go(a, a.get(a.request(weight=1)))
    stage.until(0.2)
    stage.result(second)


def readers_do_not_starve_a_writer(engine: EngineUnderTest) -> None:
    """Readers of one client come and go, overlapping: a writer that waits gets in all the same."""
    stage = Stage(engine)
    a, b = stage.clients
    for i in range(30):
        stage.at(i * 0.1, lambda: stage.go(a, a.errand(a.request(weight=1), None, 0.25)))
    stage.until(0.5)
    writer = stage.go(b, b.get(b.request()))
    stage.until(1.2)
    stage.result(writer)


def a_reader_that_comes_after_the_grant_has_a_greater_fence(engine: EngineUnderTest) -> None:
    """Its client does not know of the grant yet, because the push is late. Another client has got one since."""
    for store in ("hints", "grants"):
        stage = Stage(engine, store, 3)
        a, b, c = stage.clients
        stay = stage.holding(c, 0.1)
        waiting = [stage.go(a, a.get(a.request(weight=1))) for _ in range(2)]
        stage.until(1.3)  # it has polled since both came
        stage.store.pushes.weather = stage.store.pushes.weather._replace(least=0.2)
        stage.go(c, c.give_back(stay))
        stage.until(1.35)
        elsewhere = stage.holding(b, 1.4, weight=1)
        late = stage.holding(a, 1.6, weight=1)
        stage.expect(late.fence > elsewhere.fence, f"{late} came after {elsewhere}")
        first, second = map(stage.result, waiting)
        stage.expect(first.fence == second.fence < elsewhere.fence, "those that waited together share a grant")


def a_reader_that_comes_while_the_first_asks_has_a_greater_fence(engine: EngineUnderTest) -> None:
    stage = Stage(engine)
    a, b = stage.clients
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.3)
    first = stage.go(a, a.get(a.request(weight=1)))
    stage.until(0.1)
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.0002)
    elsewhere = stage.holding(b, 0.15, weight=1)
    late = stage.holding(a, 0.4, weight=1)
    stage.expect(stage.result(first).fence < elsewhere.fence < late.fence, "each is greater than those before it")


def a_reader_that_inherits_a_grant_has_a_greater_fence(engine: EngineUnderTest) -> None:
    """The first of two readers gives up when the store has granted it the lock, and the second came after that."""
    stage = Stage(engine, "hints", 3)
    a, b, c = stage.clients
    stay = stage.holding(c, 0.1)
    leader = stage.go(a, a.get(a.request(weight=1)))
    stage.until(0.2)
    a.backend.push_fate = "lost"
    stage.go(c, c.give_back(stay))
    stage.until(0.3)
    elsewhere = stage.holding(b, 0.4, weight=1)
    heirs = [stage.go(a, a.get(a.request(weight=1))) for _ in range(2)]
    stage.until(0.5)
    leader.cancel()
    stage.until(0.8)
    for heir in map(stage.result, heirs):
        stage.expect(heir.fence > elsewhere.fence, f"{heir} came after {elsewhere}")
    stage.expect(stage.holders() == ["b", "a"], f"nothing is left of the first: {stage.holders()}")


def a_reader_does_not_lose_its_turn_because_its_leader_rarely_polls(engine: EngineUnderTest) -> None:
    """It came when the leader had a place far back and was silent for seconds. It gets in with the leader all the same,
    and not behind a writer of another client that came seconds later."""
    stage = Stage(engine, clients=8)
    a, writer, *others = stage.clients
    stays = []
    for other in others:
        stays.append(stage.go(other, other.get(other.request(lease=30.0))))
        stage.until(stage.world.now + 0.05)
    readers = [stage.go(a, a.get(a.request(weight=1)))]
    stage.until(1.0)
    readers.append(stage.go(a, a.get(a.request(weight=1))))
    stage.until(2.5)
    stage.go(writer, writer.get(writer.request(lease=30.0)))
    stage.until(2.7)
    for other, stay in zip(others, stays, strict=True):
        stage.go(other, other.give_back(stage.result(stay)))
        stage.until(stage.world.now + 0.05)
    stage.until(stage.world.now + 0.3)
    for reader in readers:
        stage.result(reader)


def a_reentrant_hold_ends_when_the_grant_is_passed_on(engine: EngineUnderTest) -> None:
    """One releases, the grant goes to another of the same client: asking again is no longer 'once more'."""
    stage = Stage(engine, clients=1)
    (a,) = stage.clients

    async def nested(seconds: float) -> Any:
        stay = await a.get(a.request(), None, reentrant=True)
        assert stay is not None
        await a.runtime.sleep(seconds)
        await a.give_back(stay)

    async def twice() -> None:
        await nested(0.01)
        await nested(0.01)

    stage.go(a, twice())
    stage.until(0.005)
    stage.go(a, nested(0.05))
    stage.until(1.0)
    for task in stage.tasks:
        stage.result(task)


def reentrant_holds_may_be_released_in_any_order(engine: EngineUnderTest) -> None:
    """Those that are left still count, and afterwards nothing is remembered."""
    stage = Stage(engine, clients=1)
    (a,) = stage.clients

    async def crosswise() -> None:
        first = await a.get(a.request(), None, reentrant=True)
        assert first is not None
        second, third = (a.session.hold(a.session, a.request(), a.process.current) for _ in range(2))
        stage.expect(await engine.with_block._again(a.session, second), "once more")
        await engine.release.release(a.session, first.hold)
        again = await engine.with_block._again(a.session, third)
        stage.expect(again and third.fence == first.fence, "once more, on the same grant")
        stage.witness.gives_back(first)
        await engine.release.release(a.session, second)
        await engine.release.release(a.session, third)

    task = stage.go(a, crosswise())
    stage.until(1.0)
    stage.result(task)
    stage.expect(not stage.holders() and not a.session.nested, f"nothing is left: {a.session.nested}")


# -- the keeper


def a_bad_record_costs_only_its_own_lease(engine: EngineUnderTest) -> None:
    stage = Stage(engine, clients=1)
    (a,) = stage.clients
    tasks = [stage.go(a, a.get(a.request(name, lease=2.0))) for name in ("bad", "good")]
    stage.until(0.1)
    bad, good = map(stage.result, tasks)
    real = a.backend.call

    async def call(name: str, command: Any) -> Any:
        if name == "bad":
            raise engine.errors.StoreError("The record of 'bad' cannot be read.")
        return await real(name, command)

    a.backend.call = call
    stage.until(1.9)
    stage.expect(bad.hold.lost, "what cannot be renewed is lost")
    stage.expect(good.hold.held, "the others are kept")


def an_evicted_holder_learns_of_it_within_a_second(engine: EngineUnderTest) -> None:
    for store in ("hints", "rows"):
        stage = Stage(engine, store, 2)
        a, b = stage.clients
        stay = stage.holding(a, 0.1, lease=30.0)
        waiting = stage.go(b, b.get(b.request()))
        stage.until(3.3)
        stage.store.step("x", engine.locks.Evict(None, "ops", "stuck", False))
        stage.until(4.4)
        stage.expect(stay.hold.lost and stay.hold.reason == "evicted", f"told why: {stay.hold.reason}")
        stage.until(8.0)
        stage.expect(stage.result(waiting), "the next one comes when it has had the time to stop")


def an_evicted_holder_learns_of_it_at_its_next_renewal(engine: EngineUnderTest) -> None:
    stage = Stage(engine)
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=6.0)
    waiting = stage.go(b, b.get(b.request()))
    stage.until(0.2)
    a.backend.push_fate = "lost"
    stage.store.step("x", engine.locks.Evict(None, "ops", "stuck", False))
    stage.until(2.3)
    stage.expect(stay.hold.lost and stay.hold.reason == "evicted", f"told why: {stay.hold.reason}")
    stage.until(3.5)
    stage.result(waiting)


def a_place_that_was_lost_is_reported(engine: EngineUnderTest) -> None:
    stage = Stage(engine, clients=4)
    a, b, c, d = stage.clients
    stage.holding(a, 0.1, lease=30.0)
    for client in (b, c, d):
        stage.go(client, client.get(client.request()))
        stage.until(stage.world.now + 0.1)
    b.process.freeze(8.0)  # its poll_ttl is 3 s
    stage.until(9.0)
    kinds = [e.kind for e in b.events]
    stage.expect("place_lost" in kinds, f"b is told: {kinds}")
    stage.expect(stage.queue() == ["c", "d", "b"], f"and stands at the tail: {stage.queue()}")


def closing_leaves_nothing_held(engine: EngineUnderTest) -> None:
    """Another task of the same client waits while it is closed: neither the closing nor a release that comes just
    after it, before the waiter has looked up, passes the grant on."""
    for seed in range(8):  # what happens in the same instant happens in an order of chance
        stage = Stage(engine, clients=1, seed=seed)
        (a,) = stage.clients
        stay = stage.holding(a, 0.05, lease=20.0)
        waiting = stage.go(a, a.get(a.request(lease=20.0)))
        stage.until(0.06)
        stage.go(a, engine.close_client.close(a.session))
        if seed:
            stage.go(a, _release_once_closing(a, stay))
        stage.until(8.0)
        stage.expect(not stage.holders() and not stage.queue(), f"holders {stage.holders()}, in queue {stage.queue()}")
        stage.expect(isinstance(waiting.error, engine.errors.ConfigError), f"the waiter is told: {waiting.error!r}")


async def _release_once_closing(client: Client, stay: Stay) -> None:
    while not client.session.closing:
        await client.runtime.sleep(0)
    client.witness.gives_back(stay)
    await client.engine.release.release(client.session, stay.hold)
