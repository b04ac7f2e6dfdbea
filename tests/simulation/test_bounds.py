"""How long it takes and what it costs: the figures that are promised, measured in virtual time."""

import pytest

from tests.simulation.actors import Stage
from tests.simulation.client import Client
from tests.simulation.engine_under_test import REAL
from tests.simulation.world import Task

STORES = ["hints", "grants", "rows", "cached", "embedded"]


def line_of(stage: Stage, count: int, gap: float = 0.003) -> list[tuple[Client, Task]]:
    """So many clients, one behind the other."""
    found = []
    for i in range(count):
        client = stage.add(f"w{i:03}")
        found.append((client, stage.go(client, client.get(client.request(lease=30.0)))))
        stage.until(stage.world.now + gap)
    return found


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("dead, within", [(1, 2.01), (5, 10.2), (64, 32.0)])
@pytest.mark.parametrize("before", [0.0, 0.7, 1.3, 2.9])
def test_dead_waiters_in_front_cost_their_turns(store: str, dead: int, within: float, before: float) -> None:
    """They died just now, or some time `before` the lock was given back; nobody knows."""
    stage = Stage(REAL, store, 1)
    (a,) = stage.clients
    stay = stage.holding(a, 0.1, lease=60.0)
    queue = line_of(stage, dead + 1)
    stage.until(stage.world.now + 5.3)
    for client, _ in queue[:-1]:
        client.process.crash()
    stage.until(stage.world.now + before)
    freed = stage.world.now
    stage.go(a, a.give_back(stay))
    stage.until(freed + within)
    assert stage.result(queue[-1][1])


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("listener", ["unreachable", "dead"])
def test_known_dead_waiters_in_front_cost_nothing(store: str, listener: str) -> None:
    stage = Stage(REAL, store, 1)
    (a,) = stage.clients
    stay = stage.holding(a, 0.1, lease=60.0)
    queue = line_of(stage, 6)
    for client, _ in queue[:-1]:
        client.process.crash(listener)
    freed = stage.world.now
    stage.go(a, a.give_back(stay))
    stage.until(freed + 0.005)
    assert stage.result(queue[-1][1])


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("listener, within", [("alive", 4.01), ("dead", 1.01)])
def test_a_dead_holder_costs_its_lease_or_a_second_if_its_death_is_known(
    store: str, listener: str, within: float
) -> None:
    stage = Stage(REAL, store, 2)
    a, b = stage.clients
    stage.holding(a, 0.1, lease=4.0)
    task = stage.go(b, b.get(b.request()))
    stage.until(0.5)
    a.process.crash(listener)
    stage.until(0.5 + within)
    assert stage.result(task)


@pytest.mark.parametrize("store", STORES)
def test_a_lost_wake_up_costs_a_second_at_most(store: str) -> None:
    worst = 0.0
    for i in range(20):
        stage = Stage(REAL, store, 2, seed=i)
        a, b = stage.clients
        stay = stage.holding(a, 0.1, lease=60.0)
        task = stage.go(b, b.get(b.request(lease=60.0)))
        stage.until(2.0 + i * 0.05)
        stage.store.pushes.cut = True
        freed = stage.world.now
        stage.go(a, a.give_back(stay))
        stage.world.run(freed + 3.0, lambda task=task: task.done)
        assert stage.result(task)
        worst = max(worst, stage.world.now - freed)
    assert 0.5 < worst <= 1.01  # over all moments of losing it


@pytest.mark.parametrize("store", STORES)
def test_a_hand_off_to_another_process_takes_a_few_messages(store: str) -> None:
    stage = Stage(REAL, store, 2)
    a, b = stage.clients
    stay = stage.holding(a, 0.1)
    task = stage.go(b, b.get(b.request()))
    stage.until(0.5)
    stage.go(a, a.give_back(stay))
    stage.until(0.503 if store in ("hints", "grants") else 0.504)  # reads before writes
    assert stage.result(task)


@pytest.mark.parametrize("store", STORES)
def test_five_hundred_waiters_of_one_client_say_one_thing_a_second(store: str) -> None:
    stage = Stage(REAL, store, 2)
    a, b = stage.clients
    stage.holding(a, 0.1, lease=60.0)
    tasks = [stage.go(b, b.errand(b.request(lease=60.0), None, 0.0)) for _ in range(500)]
    stage.until(1.0)
    before = stage.store.asked["b"]
    stage.until(21.0)
    per_step = 2 if store not in ("hints", "grants") else 1  # a read and a write
    assert stage.store.asked["b"] - before <= 21 * per_step
    a.process.crash("dead")
    stage.until(24.0)
    assert all(stage.result(t) for t in tasks)


@pytest.mark.parametrize("store", STORES)
def test_a_long_line_is_quiet(store: str) -> None:
    """30 clients in one queue: each says at most one thing a second, the deeper the less."""
    stage = Stage(REAL, store, 1)
    (a,) = stage.clients
    stage.holding(a, 0.1, lease=120.0)
    queue = line_of(stage, 30)
    before = dict(stage.store.asked)
    stage.until(stage.world.now + 60.0)
    per_step = 2 if store not in ("hints", "grants") else 1
    rates = [(stage.store.asked[c.process.name] - before[c.process.name]) / 60 / per_step for c, _ in queue]
    assert rates[0] <= 1.2  # conflicts of rows
    assert sum(rates[10:]) / 20 <= 0.5
    assert len(stage.queue()) == 30


@pytest.mark.parametrize("store", STORES)
def test_first_come_first_served(store: str) -> None:
    """In fine weather the order of the queue is the order of the grants, whichever client is slow or quick."""
    stage = Stage(REAL, store, 1)
    (a,) = stage.clients
    stay = stage.holding(a, 0.1)
    order: list[str] = []

    async def errand(client: Client) -> None:
        got = await client.get(client.request())
        assert got is not None
        order.append(client.process.name)
        await client.work(got, 0.01)
        await client.give_back(got)

    for i in range(12):
        client = stage.add(f"w{i:02}", rate=1 + (i % 3 - 1) * 0.03)
        stage.go(client, errand(client))
        stage.until(stage.world.now + 0.01)
    stage.go(a, a.give_back(stay))
    stage.until(5.0)
    assert order == sorted(order)
    assert len(order) == 12


def test_a_silent_waiter_at_its_turn_is_notified_and_not_spared() -> None:
    """Stopped longer than the window when its turn comes, shorter than its poll_ttl: the place stays, the turn goes."""
    stage = Stage(REAL, "hints", 3)
    a, b, c = stage.clients
    stay = stage.holding(a, 0.1, lease=60.0)
    second = stage.go(b, b.get(b.request()))
    stage.until(0.2)
    third = stage.go(c, c.errand(c.request(), None, 0.5))
    stage.until(0.3)
    b.process.freeze(2.5)
    stage.go(a, a.give_back(stay))
    stage.until(2.6)
    assert "c" in stage.holders()
    stage.until(3.5)
    assert stage.result(third) and stage.result(second)
