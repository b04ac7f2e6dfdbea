"""Rows: what the engine makes of a store that can only compare and swap."""

from __future__ import annotations

from tests.sim.house import House
from tests.sim.stage import Stage


def a_refusal_rests_on_a_fresh_read(house: House) -> None:
    stage = Stage(house, "cached")
    a, b = stage.clients
    stay = stage.holding(b, 0.1)
    refused = stage.go(a, a.get(a.wish(), 0.0))
    stage.until(0.2)
    stage.expect(stage.result(refused) is None, "b is inside")
    stage.go(b, b.give_back(stay))
    stage.until(0.3)
    free = stage.go(a, a.get(a.wish(), 0.0))
    stage.until(0.4)
    stage.expect(stage.result(free), "it is free, whatever the row said a moment ago")


def a_conflict_is_made_again_from_what_is_there(house: House) -> None:
    stage = Stage(house, "rows")
    for client in stage.clients:
        stage.go(client, client.get(client.wish()))
    stage.until(0.5)
    stage.expect(len(stage.inside()) == 1 and len(stage.line()) == 1, f"{stage.inside()} {stage.line()}")


def a_time_ahead_of_the_stores_is_refused_and_read_again(house: House) -> None:
    """The client's clock runs fast, so its estimate of the store's time drops a holder that is alive."""
    stage = Stage(house, "cached", 0)
    a, fast = stage.add("a"), stage.add("fast", rate=3.0)
    stage.store.estimates = "elapsed"
    stage.holding(a, 0.05, lease=1.0)
    a.process.freeze(0.9)  # so that nothing is renewed and the version stays
    for seconds in (0.6, 0.85):
        stage.until(seconds)
        task = stage.go(fast, fast.get(fast.wish(lease=1.0), 0.0))
        stage.until(seconds + 0.01)
        stage.expect(stage.result(task) is None, "refused: a's lease has not ended")


def an_unknown_leave_wakes_whom_it_admitted(house: House) -> None:
    """The write was done, its reply lost, and with it the hints: whoever settles it sends them again."""
    stage = Stage(house, "rows")
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    waiting = stage.go(b, b.get(b.wish()))
    stage.until(1.2)  # b has just polled: its next poll is a second away
    a.backend.store.write_fates = [("", "lost")]
    stage.go(a, a.give_back(stay))
    stage.until(1.8)
    stage.result(waiting)


def an_unknown_write_is_settled_by_the_next_step_if_not_by_this(house: House) -> None:
    """As before, but the read that should settle it is lost as well: the release made again does it."""
    stage = Stage(house, "rows")
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    a.backend.store.time_out = 0.1
    waiting = stage.go(b, b.get(b.wish()))
    stage.until(1.2)
    a.backend.store.write_fates = [("", "lost")]
    a.backend.store.fates = [("", ""), ("lost", "")]
    stage.go(a, a.give_back(stay))
    stage.until(1.8)
    stage.result(waiting)
