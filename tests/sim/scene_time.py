"""Time: deadlines, pushes that are grants, time-outs."""

from __future__ import annotations

from tests.sim.house import House
from tests.sim.stage import Stage

# -- deadlines


def a_deadline_counts_from_the_request_not_from_the_reply(house: House) -> None:
    stage = Stage(house)
    a, b = stage.clients
    a.backend.time_out = 5.0
    stage.store.replies.weather = stage.store.replies.weather._replace(least=1.5, jitter=0)
    first = stage.go(a, a.get(a.wish(lease=2.0)))
    stage.until(0.2)
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.0002)
    second = stage.go(b, b.get(b.wish(lease=2.0)))
    stage.until(1.6)
    stage.expect(stage.result(first), "the first one is inside")
    a.backend.fates = [("lost", "")] * 99  # no renewal arrives
    stage.until(4.0)
    stage.expect(stage.result(second), "the second one comes after the first one's lease")


def a_margin_covers_a_slow_clock(house: House) -> None:
    stage = Stage(house, clients=0)
    slow, b = stage.add("slow", rate=0.92), stage.add("b")
    stage.holding(slow, 0.1, lease=2.0)
    slow.backend.fates = [("lost", "")] * 99
    second = stage.go(b, b.get(b.wish(lease=2.0)))
    stage.until(4.0)
    stage.result(second)


def a_row_that_was_read_long_ago_grants_only_what_is_left(house: House) -> None:
    """On a compare-and-swap store the time was sampled by the read, and the deadline counts from before it."""
    stage = Stage(house, "rows")
    a, b = stage.clients
    a.backend.store.time_out = 5.0
    stage.store.replies.weather = stage.store.replies.weather._replace(least=1.0, jitter=0)
    first = stage.go(a, a.get(a.wish(lease=2.0)))
    stage.until(0.1)
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.0002)
    stage.until(1.1)
    stage.expect(stage.result(first), "the first one is inside")
    a.backend.store.fates = [("lost", "")] * 99
    second = stage.go(b, b.get(b.wish(lease=2.0)))
    stage.until(4.0)
    stage.result(second)


def a_renewal_comes_in_time(house: House) -> None:
    stage = Stage(house, clients=1)
    (a,) = stage.clients
    stage.witness.calm = True
    task = stage.go(a, a.errand(a.wish(lease=0.5), None, 10.0))
    stage.until(11.0)
    stage.result(task)


def a_slow_renewal_counts_from_its_request(house: House) -> None:
    stage = Stage(house)
    a, b = stage.clients
    a.backend.time_out = 5.0
    stay = stage.holding(a, 0.1, lease=2.0)
    stage.store.replies.weather = stage.store.replies.weather._replace(least=1.0, jitter=0)
    stage.until(1.0)  # the renewal of 0.67 s has arrived, its answer is under way
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.0002)
    second = stage.go(b, b.get(b.wish(lease=2.0)))
    stage.until(1.6)
    stage.expect(stay.believed, "still held")
    a.backend.fates = [("lost", "")] * 99
    stage.until(4.0)
    stage.result(second)


def a_shorter_lease_wakes_the_keeper(house: House) -> None:
    stage = Stage(house, clients=1)
    (a,) = stage.clients
    stage.holding(a, 0.1, name="long", lease=30.0)
    short = stage.holding(a, 0.2, name="short", lease=0.5)
    stage.until(0.9)
    stage.expect(short.hold.held, "renewed in time")


def a_loss_is_final(house: House) -> None:
    stage = Stage(house, clients=1)
    (a,) = stage.clients
    stay = stage.holding(a, 0.1, lease=2.0)
    stage.cut()
    stage.until(1.9)
    stage.expect(stay.hold.lost, "the store is silent, so it is lost")
    stage.cut(False)
    stage.until(3.0)
    stage.expect(stay.hold.lost and not stay.hold.held, "lost once is lost for good")


def a_hung_store_does_not_keep_a_loss_from_being_told(house: House) -> None:
    stage = Stage(house, clients=1)
    (a,) = stage.clients
    told: list[float] = []
    stage.holding(a, 0.1, lease=2.0, on_lost=lambda hold: told.append(a.process.clock()))
    a.backend.time_out = 60.0
    stage.cut()
    stage.until(2.5)
    stage.expect(told and told[0] < 2.0, f"on_lost is called before the lease can be another's: {told}")


# -- pushes that are grants


def an_old_push_is_no_grant_after_a_pause(house: House) -> None:
    """A client that was stopped reads its push when the window is over and the next one inside."""
    stage = Stage(house, "grants", 3)
    a, b, c = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    stage.go(b, b.get(b.wish(lease=8.0)))
    stage.until(0.2)
    stage.go(c, c.get(c.wish(lease=8.0)))
    stage.until(0.3)
    b.process.freeze(4.0)
    stage.go(a, a.give_back(stay))  # b is admitted and does not hear it
    stage.until(6.0)
    stage.expect(stage.inside() == ["c"], "the next one had its turn")


def a_push_for_another_place_is_no_grant(house: House) -> None:
    """The push is late; meanwhile its window ran out and the client, back in line, has another place."""
    stage = Stage(house, "grants", 3)
    a, b, c = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    stage.go(b, b.get(b.wish(lease=8.0)))
    stage.until(0.2)
    stage.go(c, c.get(c.wish(lease=8.0)))
    stage.until(0.3)
    b.backend.push_fate = "late"
    b.process.freeze(2.6)
    stage.go(a, a.give_back(stay))
    stage.until(6.0)
    stage.expect(stage.inside() == ["c"], "the next one had its turn")


def a_push_grants_only_the_window(house: House) -> None:
    """Nobody hears from the client after its push: it must not believe longer than the store does."""
    stage = Stage(house, "grants", 3)
    a, b, c = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    stage.go(b, b.get(b.wish(lease=8.0)))
    stage.until(0.2)
    stage.go(c, c.get(c.wish(lease=8.0)))
    stage.until(0.3)
    stage.go(a, a.give_back(stay))
    b.backend.fates = [("lost", "")] * 99
    stage.until(5.0)
    stage.expect(stage.inside() == ["c"], "the next one had its turn")


def a_row_that_shows_us_inside_grants_only_what_is_left(house: House) -> None:
    """Its answer was long on the way, and nobody hears from the client after that."""
    stage = Stage(house, "seen", 3)
    a, b, c = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    stage.go(b, b.get(b.wish(lease=8.0)))
    stage.until(0.2)
    stage.go(c, c.get(c.wish(lease=8.0)))
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
    stage.expect(stage.inside() == ["c"], "the next one had its turn")


def a_hint_is_no_grant(house: House) -> None:
    """A forged or stale hint only makes the client look again."""
    stage = Stage(house)
    a, b = stage.clients
    stage.holding(a, 0.1)
    stage.go(b, b.get(b.wish()))
    stage.until(0.2)
    ticket = stage.store.record("x").line[0].ticket
    b.backend.hear(house.doorman.Wake("ear-b", ticket, 1, 99))
    stage.until(0.5)
    stage.expect(stage.inside() == ["a"] and stage.line() == ["b"], "b goes on waiting")


# -- time-outs


def whoever_cannot_listen_polls(house: House) -> None:
    """Commands are answered, but the connection for wake-ups cannot be had."""
    stage = Stage(house)
    a, b = stage.clients
    b.backend.listens = False
    stay = stage.holding(a, 0.1, lease=30.0)
    task = stage.go(b, b.get(b.wish()))
    stage.until(10.0)
    stage.expect(stage.store.asked["b"] < 15, f"not more often than others: {stage.store.asked}")
    stage.go(a, a.give_back(stay))
    stage.until(11.1)
    stage.result(task)


def a_store_that_is_down_for_a_while_costs_nobody_its_wait(house: House) -> None:
    """While it is down nobody can be asked and nobody can be listened to; whoever stands in line waits on."""
    for store in ("hints", "rows"):
        stage = Stage(house, store, 3)
        a, b, c = stage.clients
        stay = stage.holding(a, 0.1, lease=30.0)
        tasks = []
        for client in (b, c):
            tasks.append(stage.go(client, client.get(client.wish(), 20.0)))
            stage.until(stage.world.now + 0.2)
        stage.store.refuses = True
        stage.until(1.8)  # not longer than a place lasts
        stage.store.refuses = False
        stage.until(5.0)
        stage.go(a, a.give_back(stay))
        stage.until(5.1)
        stage.expect(stage.result(tasks[0]), "b is inside")
        stage.expect(not tasks[1].done, f"c waits: {tasks[1].error!r}")


def a_time_out_holds_over_a_silent_store(house: House) -> None:
    """Two time-outs of the wire on top, for the last question and the Leave, not ten."""
    stage = Stage(house)
    a, b = stage.clients
    stage.holding(b, 0.1, lease=30.0)
    task = stage.go(a, a.get(a.wish(), 2.0))
    stage.until(0.5)
    stage.cut()
    stage.until(3.4)
    stage.expect(task.done, "it has given up")


def a_time_out_holds_when_answers_are_slower_than_the_lease(house: House) -> None:
    stage = Stage(house, clients=1)
    (a,) = stage.clients
    a.backend.time_out = 5.0
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.6)
    task = stage.go(a, a.get(a.wish(lease=0.5), 2.0))
    stage.until(4.0)
    stage.expect(stage.result(task) is None, "not in time")
