"""A client as a party: one place for all of it, and the keeper."""

from __future__ import annotations

from typing import Any

from tests.sim.client import Client
from tests.sim.house import House
from tests.sim.stage import Stage
from tests.sim.witness import Stay

# -- one place for all of a client


def each_local_holder_has_a_fence_of_its_own(house: House) -> None:
    stage = Stage(house, clients=1)
    (a,) = stage.clients
    for _ in range(3):
        stage.go(a, a.errand(a.wish(), None, 0.01))
    stage.until(1.0)
    for task in stage.tasks:
        stage.expect(stage.result(task), "each got it")


def passing_on_ends_after_32_times(house: House) -> None:
    stage = Stage(house)
    a, b = stage.clients
    for _ in range(100):
        stage.go(a, a.errand(a.wish(), None, 0.0005))
    stage.until(0.001)
    other = stage.go(b, b.get(b.wish()))
    stage.until(0.06)
    stage.result(other)


def passing_on_ends_after_a_tenth_of_a_second(house: House) -> None:
    stage = Stage(house)
    a, b = stage.clients
    for _ in range(10):
        stage.go(a, a.errand(a.wish(), None, 0.05))
    stage.until(0.01)
    other = stage.go(b, b.get(b.wish()))
    stage.until(0.2)
    stage.result(other)


def nothing_is_passed_on_after_its_deadline(house: House) -> None:
    """An answer that took almost the whole lease leaves no time to pass anything on."""
    stage = Stage(house, clients=1)
    (a,) = stage.clients
    a.backend.time_out = 5.0
    stage.store.replies.weather = stage.store.replies.weather._replace(least=1.78, jitter=0)

    async def without_looking() -> None:
        stay = await a.get(a.wish(lease=2.0))
        assert stay is not None
        await a.colour.sleep(0.05)
        await a.give_back(stay)

    stage.go(a, without_looking())
    stage.until(1.0)
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.0002)
    a.backend.fates = [("lost", "")]  # the renewal
    second = stage.go(a, a.errand(a.wish(lease=2.0), None, 0.05))
    stage.until(5.0)
    stage.result(second)


def a_leader_that_gives_up_leaves_an_heir(house: House) -> None:
    stage = Stage(house)
    a, b = stage.clients
    stay = stage.holding(b, 0.1)
    leader = stage.go(a, a.get(a.wish()))
    stage.until(0.2)
    heir = stage.go(a, a.get(a.wish()))
    stage.until(0.3)
    leader.cancel()
    stage.until(0.4)
    stage.go(b, b.give_back(stay))
    stage.until(0.6)
    stage.expect(stage.result(heir), "the heir is inside")
    stage.expect(len(stage.store.tickets) == 2, "under the ticket that had waited")


def a_lost_seat_leaves_an_heir(house: House) -> None:
    stage = Stage(house, clients=1)
    (a,) = stage.clients
    stage.holding(a, 0.1, lease=8.0)
    heir = stage.go(a, a.get(a.wish(lease=8.0)))
    stage.until(0.2)
    stage.store.step("x", house.doorman.Evict(None, "ops", "stuck", True))
    stage.until(6.0)
    stage.result(heir)


def a_reader_that_comes_later_needs_no_turn(house: House) -> None:
    stage = Stage(house, clients=1)
    (a,) = stage.clients
    stage.holding(a, 0.1, weight=1)
    second = stage.go(a, a.get(a.wish(weight=1)))
    stage.until(0.2)
    stage.result(second)


def readers_do_not_starve_a_writer(house: House) -> None:
    """Readers of one client come and go, overlapping: a writer that waits gets in all the same."""
    stage = Stage(house)
    a, b = stage.clients
    for i in range(30):
        stage.at(i * 0.1, lambda: stage.go(a, a.errand(a.wish(weight=1), None, 0.25)))
    stage.until(0.5)
    writer = stage.go(b, b.get(b.wish()))
    stage.until(1.2)
    stage.result(writer)


def a_reentrant_hold_ends_when_the_seat_is_passed_on(house: House) -> None:
    """One releases, the seat goes to another of the same client: asking again is no longer 'once more'."""
    stage = Stage(house, clients=1)
    (a,) = stage.clients

    async def nested(seconds: float) -> Any:
        stay = await a.get(a.wish(), None, reentrant=True)
        assert stay is not None
        await a.colour.sleep(seconds)
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


def reentrant_holds_may_be_released_in_any_order(house: House) -> None:
    """What is left of them still counts, and afterwards nothing is remembered."""
    stage = Stage(house, clients=1)
    (a,) = stage.clients

    async def crosswise() -> None:
        first = await a.get(a.wish(), None, reentrant=True)
        assert first is not None
        second, third = (a.desk.hold(a.desk, a.wish(), a.process.current) for _ in range(2))
        stage.expect(await house.enter._again(a.desk, second), "once more")
        await house.release.release(a.desk, first.hold)
        again = await house.enter._again(a.desk, third)
        stage.expect(again and third.fence == first.fence, "once more, on the same seat")
        stage.witness.gives_back(first)
        await house.release.release(a.desk, second)
        await house.release.release(a.desk, third)

    task = stage.go(a, crosswise())
    stage.until(1.0)
    stage.result(task)
    stage.expect(not stage.inside() and not a.desk.nested, f"nothing is left: {a.desk.nested}")


# -- the keeper


def a_bad_record_costs_only_its_own_lease(house: House) -> None:
    stage = Stage(house, clients=1)
    (a,) = stage.clients
    tasks = [stage.go(a, a.get(a.wish(name, lease=2.0))) for name in ("bad", "good")]
    stage.until(0.1)
    bad, good = map(stage.result, tasks)
    real = a.backend.ask

    async def ask(name: str, command: Any) -> Any:
        if name == "bad":
            raise house.errors.BackendError("The record of 'bad' cannot be read.")
        return await real(name, command)

    a.backend.ask = ask
    stage.until(1.9)
    stage.expect(bad.hold.lost, "what cannot be renewed is lost")
    stage.expect(good.hold.held, "the others are kept")


def an_evicted_holder_is_told_within_a_second(house: House) -> None:
    for store in ("hints", "rows"):
        stage = Stage(house, store, 2)
        a, b = stage.clients
        stay = stage.holding(a, 0.1, lease=30.0)
        waiting = stage.go(b, b.get(b.wish()))
        stage.until(3.3)
        stage.store.step("x", house.doorman.Evict(None, "ops", "stuck", False))
        stage.until(4.4)
        stage.expect(stay.hold.lost and stay.hold.reason == "evicted", f"told why: {stay.hold.reason}")
        stage.until(8.0)
        stage.expect(stage.result(waiting), "the next one comes when it has had the time to stop")


def an_evicted_holder_is_told_at_its_next_renewal(house: House) -> None:
    stage = Stage(house)
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=6.0)
    waiting = stage.go(b, b.get(b.wish()))
    stage.until(0.2)
    a.backend.push_fate = "lost"
    stage.store.step("x", house.doorman.Evict(None, "ops", "stuck", False))
    stage.until(2.3)
    stage.expect(stay.hold.lost and stay.hold.reason == "evicted", f"told why: {stay.hold.reason}")
    stage.until(3.5)
    stage.result(waiting)


def a_place_that_was_lost_is_reported(house: House) -> None:
    stage = Stage(house, clients=4)
    a, b, c, d = stage.clients
    stage.holding(a, 0.1, lease=30.0)
    for client in (b, c, d):
        stage.go(client, client.get(client.wish()))
        stage.until(stage.world.now + 0.1)
    b.process.freeze(8.0)  # its patience is 3 s
    stage.until(9.0)
    kinds = [e.kind for e in b.events]
    stage.expect("place_lost" in kinds, f"b is told: {kinds}")
    stage.expect(stage.line() == ["c", "d", "b"], f"and stands at the tail: {stage.line()}")


def closing_leaves_nothing_held(house: House) -> None:
    """Another task of the same client waits while it is closed: neither the closing nor a release that comes just
    after it, before the waiter has looked up, passes the seat on."""
    for seed in range(8):  # what happens in the same instant happens in an order of chance
        stage = Stage(house, clients=1, seed=seed)
        (a,) = stage.clients
        stay = stage.holding(a, 0.05, lease=20.0)
        waiting = stage.go(a, a.get(a.wish(lease=20.0)))
        stage.until(0.06)
        stage.go(a, house.close.close(a.desk))
        if seed:
            stage.go(a, _release_once_closing(a, stay))
        stage.until(8.0)
        stage.expect(not stage.inside() and not stage.line(), f"inside {stage.inside()}, in line {stage.line()}")
        stage.expect(isinstance(waiting.error, house.errors.ConfigError), f"the waiter is told: {waiting.error!r}")


async def _release_once_closing(client: Client, stay: Stay) -> None:
    while not client.desk.closing:
        await client.colour.sleep(0)
    client.witness.gives_back(stay)
    await client.house.release.release(client.desk, stay.hold)
