"""Time: deadlines, pushes that are grants, time-outs."""

from __future__ import annotations

from tests.simulation.actors import Stage
from tests.simulation.engine_under_test import EngineUnderTest

# -- deadlines


def a_deadline_counts_from_the_request_not_from_the_reply(engine: EngineUnderTest) -> None:
    stage = Stage(engine)
    a, b = stage.clients
    a.backend.time_out = 5.0
    stage.store.replies.weather = stage.store.replies.weather._replace(least=1.5, jitter=0)
    first = stage.go(a, a.get(a.request(lease=2.0)))
    stage.until(0.2)
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.0002)
    second = stage.go(b, b.get(b.request(lease=2.0)))
    stage.until(1.6)
    stage.expect(stage.result(first), "the first one holds it")
    a.backend.fates = [("lost", "")] * 99  # no renewal arrives
    stage.until(4.0)
    stage.expect(stage.result(second), "the second one comes after the first one's lease")


def a_margin_covers_a_slow_clock(engine: EngineUnderTest) -> None:
    stage = Stage(engine, clients=0)
    slow, b = stage.add("slow", rate=0.92), stage.add("b")
    stage.holding(slow, 0.1, lease=2.0)
    slow.backend.fates = [("lost", "")] * 99
    second = stage.go(b, b.get(b.request(lease=2.0)))
    stage.until(4.0)
    stage.result(second)


def a_row_that_was_read_long_ago_grants_only_what_is_left(engine: EngineUnderTest) -> None:
    """On a compare-and-swap store the time was sampled by the read, and the deadline counts from before it."""
    stage = Stage(engine, "rows")
    a, b = stage.clients
    a.backend.store.time_out = 5.0
    stage.store.replies.weather = stage.store.replies.weather._replace(least=1.0, jitter=0)
    first = stage.go(a, a.get(a.request(lease=2.0)))
    stage.until(0.1)
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.0002)
    stage.until(1.1)
    stage.expect(stage.result(first), "the first one holds it")
    a.backend.store.fates = [("lost", "")] * 99
    second = stage.go(b, b.get(b.request(lease=2.0)))
    stage.until(4.0)
    stage.result(second)


def a_renewal_comes_in_time(engine: EngineUnderTest) -> None:
    stage = Stage(engine, clients=1)
    (a,) = stage.clients
    stage.witness.calm = True
    task = stage.go(a, a.errand(a.request(lease=0.5), None, 10.0))
    stage.until(11.0)
    stage.result(task)


def a_slow_renewal_counts_from_its_request(engine: EngineUnderTest) -> None:
    stage = Stage(engine)
    a, b = stage.clients
    a.backend.time_out = 5.0
    stay = stage.holding(a, 0.1, lease=2.0)
    stage.store.replies.weather = stage.store.replies.weather._replace(least=1.0, jitter=0)
    stage.until(1.0)  # the renewal of 0.67 s has arrived, its answer is under way
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.0002)
    second = stage.go(b, b.get(b.request(lease=2.0)))
    stage.until(1.6)
    stage.expect(stay.believed, "still held")
    a.backend.fates = [("lost", "")] * 99
    stage.until(4.0)
    stage.result(second)


def a_shorter_lease_wakes_the_keeper(engine: EngineUnderTest) -> None:
    stage = Stage(engine, clients=1)
    (a,) = stage.clients
    stage.holding(a, 0.1, name="long", lease=30.0)
    short = stage.holding(a, 0.2, name="short", lease=0.5)
    stage.until(0.9)
    stage.expect(short.hold.held, "renewed in time")


def a_loss_is_final(engine: EngineUnderTest) -> None:
    stage = Stage(engine, clients=1)
    (a,) = stage.clients
    stay = stage.holding(a, 0.1, lease=2.0)
    stage.cut()
    stage.until(1.9)
    stage.expect(stay.hold.lost, "the store is silent, so it is lost")
    stage.cut(False)
    stage.until(3.0)
    stage.expect(stay.hold.lost and not stay.hold.held, "lost once is lost for good")


def a_hung_store_does_not_keep_a_loss_from_being_told(engine: EngineUnderTest) -> None:
    stage = Stage(engine, clients=1)
    (a,) = stage.clients
    told: list[float] = []
    stage.holding(a, 0.1, lease=2.0, on_lost=lambda hold: told.append(a.process.clock()))
    a.backend.time_out = 60.0
    stage.cut()
    stage.until(2.5)
    stage.expect(told and told[0] < 2.0, f"on_lost is called before the lease can be another's: {told}")


# -- pushes that are grants


def an_old_push_is_no_grant_after_a_pause(engine: EngineUnderTest) -> None:
    """A client that was stopped reads its push when the window is over and the next one holds the lock."""
    stage = Stage(engine, "grants", 3)
    a, b, c = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    stage.go(b, b.get(b.request(lease=8.0)))
    stage.until(0.2)
    stage.go(c, c.get(c.request(lease=8.0)))
    stage.until(0.3)
    b.process.freeze(4.0)
    stage.go(a, a.give_back(stay))  # b is admitted and does not hear it
    stage.until(6.0)
    stage.expect(stage.holders() == ["c"], "the next one had its turn")


def a_push_for_another_place_is_no_grant(engine: EngineUnderTest) -> None:
    """The push is late; meanwhile its window ran out and the client, back in queue, has another place."""
    stage = Stage(engine, "grants", 3)
    a, b, c = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    stage.go(b, b.get(b.request(lease=8.0)))
    stage.until(0.2)
    stage.go(c, c.get(c.request(lease=8.0)))
    stage.until(0.3)
    b.backend.push_fate = "late"
    b.process.freeze(2.6)
    stage.go(a, a.give_back(stay))
    stage.until(6.0)
    stage.expect(stage.holders() == ["c"], "the next one had its turn")


def a_push_grants_only_the_window(engine: EngineUnderTest) -> None:
    """No message of the client arrives after its push: it must not believe longer than the store does."""
    stage = Stage(engine, "grants", 3)
    a, b, c = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    stage.go(b, b.get(b.request(lease=8.0)))
    stage.until(0.2)
    stage.go(c, c.get(c.request(lease=8.0)))
    stage.until(0.3)
    stage.go(a, a.give_back(stay))
    b.backend.fates = [("lost", "")] * 99
    stage.until(5.0)
    stage.expect(stage.holders() == ["c"], "the next one had its turn")


def a_row_that_shows_us_inside_grants_only_what_is_left(engine: EngineUnderTest) -> None:
    """The reply was long on the way, and no message of the client arrives after that."""
    stage = Stage(engine, "seen", 3)
    a, b, c = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    stage.go(b, b.get(b.request(lease=8.0)))
    stage.until(0.2)
    stage.go(c, c.get(c.request(lease=8.0)))
    stage.until(0.3)
    b.backend.store.time_out = 5.0
    stage.store.pushes.weather = stage.store.pushes.weather._replace(least=0.05, jitter=0)
    stage.go(a, a.give_back(stay))
    stage.until(0.34)
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.9, jitter=0)
    stage.until(0.4)
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.0002)
    b.backend.store.fates = b.backend.store.write_fates = [("lost", "")] * 99
    stage.until(6.0)
    stage.expect(stage.holders() == ["c"], "the next one had its turn")


def a_grant_is_watched_before_it_is_held_and_confirmed_first_if_it_cannot_be(engine: EngineUnderTest) -> None:
    """The keeper of tasks may be late. A thread confirms for it, if there can be one."""
    for can_be in (True, False):
        stage = Stage(engine, "seen")
        a, b = stage.clients
        watched: list[object] = []
        b.session.watch_young = lambda grant, seen=watched, can_be=can_be: seen.append(grant) or can_be
        stay = stage.holding(a, 0.1, lease=8.0)
        stage.go(b, b.get(b.request(lease=8.0)))
        stage.until(0.2)
        stage.go(a, a.give_back(stay))
        stage.until(0.25)
        (holder,) = stage.store.record("x").holders
        stage.expect(len(watched) == 1, f"watched {len(watched)} times")
        stage.expect(holder.confirmed is not can_be, f"confirmed: {holder.confirmed}, a thread for it: {can_be}")


def a_grant_that_was_found_late_is_confirmed_first_if_the_keeper_may_be_late(engine: EngineUnderTest) -> None:
    for late in (0.1, 0.3):
        stage = Stage(engine, "seen")
        a, b = stage.clients
        b.session.watch_young = lambda grant: True
        stay = stage.holding(a, 0.1, lease=8.0)
        stage.go(b, b.get(b.request(lease=8.0)))
        stage.until(0.2)
        stage.store.pushes.weather = stage.store.pushes.weather._replace(least=late, jitter=0)
        stage.go(a, a.give_back(stay))
        stage.until(0.25 + late)
        (holder,) = stage.store.record("x").holders
        stage.expect(holder.confirmed is (late > 0.2), f"{late} s late, confirmed: {holder.confirmed}")


def a_hint_is_no_grant(engine: EngineUnderTest) -> None:
    """A forged or stale wake-up only makes the client poll."""
    stage = Stage(engine)
    a, b = stage.clients
    stage.holding(a, 0.1)
    stage.go(b, b.get(b.request()))
    stage.until(0.2)
    ticket = stage.store.record("x").queue[0].ticket
    b.backend.hear(engine.locks.Wakeup("listener-b", ticket, 1, 99))
    stage.until(0.5)
    stage.expect(stage.holders() == ["a"] and stage.queue() == ["b"], "b goes on waiting")


# -- time-outs


def a_client_that_cannot_listen_polls(engine: EngineUnderTest) -> None:
    """Commands are answered, but the connection for wake-ups cannot be opened."""
    stage = Stage(engine)
    a, b = stage.clients
    b.backend.listens = False
    stay = stage.holding(a, 0.1, lease=30.0)
    task = stage.go(b, b.get(b.request()))
    stage.until(10.0)
    stage.expect(stage.store.asked["b"] < 15, f"not more often than others: {stage.store.asked}")
    stage.go(a, a.give_back(stay))
    stage.until(11.1)
    stage.result(task)


def a_store_that_is_down_for_a_while_costs_nobody_its_wait(engine: EngineUnderTest) -> None:
    """While it is down it neither replies nor sends wake-ups; the clients in the queue wait on."""
    for store in ("hints", "rows"):
        stage = Stage(engine, store, 3)
        a, b, c = stage.clients
        stay = stage.holding(a, 0.1, lease=30.0)
        tasks = []
        for client in (b, c):
            tasks.append(stage.go(client, client.get(client.request(), 20.0)))
            stage.until(stage.world.now + 0.2)
        stage.store.refuses = True
        stage.until(1.8)  # not longer than a place lasts
        stage.store.refuses = False
        stage.until(5.0)
        stage.go(a, a.give_back(stay))
        stage.until(5.1)
        stage.expect(stage.result(tasks[0]), "b holds it")
        stage.expect(not tasks[1].done, f"c waits: {tasks[1].error!r}")


def a_time_out_holds_over_a_silent_store(engine: EngineUnderTest) -> None:
    """Two time-outs of the wire on top, for the last question and the Release, not ten."""
    stage = Stage(engine)
    a, b = stage.clients
    stage.holding(b, 0.1, lease=30.0)
    task = stage.go(a, a.get(a.request(), 2.0))
    stage.until(0.5)
    stage.cut()
    stage.until(3.4)
    stage.expect(task.done, "it has given up")


def a_time_out_holds_when_answers_are_slower_than_the_lease(engine: EngineUnderTest) -> None:
    stage = Stage(engine, clients=1)
    (a,) = stage.clients
    a.backend.time_out = 5.0
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.6)
    task = stage.go(a, a.get(a.request(lease=0.5), 2.0))
    stage.until(4.0)
    stage.expect(stage.result(task) is None, "not in time")
