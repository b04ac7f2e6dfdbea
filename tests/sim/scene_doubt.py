"""Doubt: unknown outcomes, late messages, ghosts and debts, and what becomes of them."""

from __future__ import annotations

from typing import Any

from tests.sim.house import House
from tests.sim.stage import Stage

# -- unknown outcomes, ghosts and debts


def a_lost_reply_is_cured_by_asking_again(house: House) -> None:
    stage = Stage(house, clients=1)
    (a,) = stage.clients
    a.backend.fates = [("", "lost"), ("lost", "")]
    task = stage.go(a, a.errand(a.wish(), None, 0.1))
    stage.until(3.0)
    stage.expect(stage.result(task), "it got in, under the same ticket")
    stage.expect(len(stage.store.tickets) == 1, f"one wish is one ticket: {stage.store.tickets}")
    stage.expect(not stage.inside(), "and out")


def a_poll_keeps_its_ticket(house: House) -> None:
    stage = Stage(house)
    a, b = stage.clients
    stage.holding(a, 0.1, lease=30.0)
    stage.go(b, b.get(b.wish()))
    stage.until(5.0)
    stage.expect(stage.line() == ["b"], f"one place for one wish: {stage.line()}")


def a_lost_wake_up_costs_a_second_at_most(house: House) -> None:
    stage = Stage(house)
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=30.0)
    waiting = stage.go(b, b.get(b.wish()))
    stage.until(0.5)
    b.backend.push_fate = "lost"
    stage.go(a, a.give_back(stay))
    stage.until(1.5)
    stage.result(waiting)


def a_late_enter_finds_a_grave(house: House) -> None:
    stage = Stage(house, clients=1)
    (a,) = stage.clients
    a.backend.fates = [("late", "")]
    task = stage.go(a, a.errand(a.wish(), None, 0.1))
    stage.at(0.1, task.cancel)
    stage.until(5.0)
    stage.expect(not stage.inside(), "nobody is inside who does not know of it")


def a_late_enter_finds_a_grave_after_a_release_too(house: House) -> None:
    """The first Enter is under way while the second one is answered, used and left."""
    stage = Stage(house, clients=1)
    (a,) = stage.clients
    a.backend.fates = [("late", "")]
    task = stage.go(a, a.errand(a.wish(), None, 0.1))
    stage.until(5.0)
    stage.expect(stage.result(task), "it got in by asking again")
    stage.expect(not stage.inside(), "the late Enter does not bring it back")


def a_late_try_finds_a_grave(house: House) -> None:
    stage = Stage(house)
    a, b = stage.clients
    stay = stage.holding(b, 0.1)
    a.backend.fates = [("late", "")]
    task = stage.go(a, a.get(a.wish(), 0.0))
    stage.until(1.0)
    stage.expect(stage.result(task) is None, "refused")
    stage.go(b, b.give_back(stay))
    stage.until(5.0)
    stage.expect(not stage.inside(), "the late Enter does not put it inside")


def a_cancelled_wait_leaves_the_line_when_the_store_answers_again(house: House) -> None:
    stage = Stage(house, clients=3)
    a, b, c = stage.clients
    stay = stage.holding(a, 0.1)
    waiting = stage.go(b, b.get(b.wish()))
    stage.until(0.2)
    b.backend.fates = [("lost", "")] * 3
    waiting.cancel()
    stage.until(2.0)
    stage.go(a, a.give_back(stay))
    last = stage.go(c, c.get(c.wish()))
    stage.until(2.3)
    stage.expect(stage.result(last), "c is not kept waiting by one who has given up")


def a_release_that_finds_the_store_down_is_made_good(house: House) -> None:
    stage = Stage(house, clients=1)
    (a,) = stage.clients
    stay = stage.holding(a, 0.1, lease=20.0)
    stage.store.refuses = True
    task = stage.go(a, house.release.release(a.desk, stay.hold))
    stage.until(0.5)
    stage.expect(isinstance(task.error, house.errors.BackendError), f"release says so: {task.error!r}")
    stage.expect(not stay.hold.held, "what may have left is not held")
    stage.store.refuses = False
    stage.until(3.0)
    stage.expect(not stage.inside(), "the keeper sees to it")
    again = stage.go(a, house.release.release(a.desk, stay.hold))
    stage.until(4.0)
    stage.result(again)


def a_release_whose_reply_is_lost_is_no_loss(house: House) -> None:
    for store in ("hints", "rows"):
        stage = Stage(house, store, 1)
        (a,) = stage.clients
        stay = stage.holding(a, 0.1)
        backend: Any = a.backend
        if store == "rows":
            backend.store.write_fates = [("", "lost")]
        else:
            backend.fates = [("", "lost")]
        task = stage.go(a, house.release.release(a.desk, stay.hold))
        stage.until(3.0)
        stage.result(task)
        stage.expect(not stage.inside(), "and it is out")


def a_release_that_takes_longer_than_the_lease_is_no_loss(house: House) -> None:
    """What was done inside was over in time; only the way out was slow, and somebody else came in meanwhile."""
    stage = Stage(house, "rows")
    a, b = stage.clients
    a.backend.store.time_out = 9.0
    stay = stage.holding(a, 0.1, lease=2.0)
    second = stage.go(b, b.get(b.wish()))
    stage.until(0.3)
    stage.store.replies.weather = stage.store.replies.weather._replace(least=4.0, jitter=0)
    task = stage.go(a, house.release.release(a.desk, stay.hold))
    stage.until(0.32)
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.0002)
    stage.until(4.0)
    stage.expect(stage.inside() == ["b"], "the lease has ended")
    stage.until(6.0)
    stage.result(second)
    stage.result(task)


def the_first_leave_tells_of_a_loss(house: House) -> None:
    """A holder that was stopped past its lease and releases at once, without looking, must be told."""
    stage = Stage(house)
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=2.0)
    second = stage.go(b, b.get(b.wish()))
    stage.at(0.2, a.process.freeze, 4.0)
    stage.at(1.0, lambda: a.process.do(lambda: tasks.append(stage.go(a, house.release.release(a.desk, stay.hold)))))
    tasks: list[Any] = []
    stage.until(5.0)
    stage.result(second)
    stage.expect(isinstance(tasks[0].error, house.errors.LeaseLost), f"LeaseLost, not {tasks[0].error!r}")


def a_loss_that_is_noticed_during_the_release_is_told(house: House) -> None:
    """Nobody had looked before; the watch or the keeper notices while the Leave is under way."""
    stage = Stage(house)
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=2.0)
    a.backend.cut = True
    second = stage.go(b, b.get(b.wish()))
    stage.until(3.0)
    stage.result(second)
    a.backend.cut = False
    task = stage.go(a, house.release.release(a.desk, stay.hold))
    stage.at(3.0001, a.desk.lose, stay.seat)
    stage.until(3.1)
    stage.expect(isinstance(task.error, house.errors.LeaseLost), f"LeaseLost, not {task.error!r}")


def a_waiter_that_was_let_in_and_evicted_moves_out(house: House) -> None:
    """It learns of it by its next poll; whoever stands behind it need not wait for its window to end."""
    stage = Stage(house, clients=3)
    a, b, c = stage.clients
    stay = stage.holding(a, 0.1)
    second = stage.go(b, b.get(b.wish()))
    stage.until(0.5)
    b.backend.push_fate = "lost"
    stage.go(a, a.give_back(stay))
    stage.until(0.6)
    stage.store.step("x", house.doorman.Evict(None, "ops", "stuck", False))
    b.backend.cut = True  # the hint of the eviction is lost, too
    third = stage.go(c, c.get(c.wish()))
    stage.until(0.7)
    b.backend.cut = False
    stage.until(1.3)
    stage.expect(isinstance(second.error, house.errors.LeaseLost), f"b is told: {second.error!r}")
    stage.result(third)


# -- writers who become readers


def a_downgrade_counts_from_its_first_sending(house: House) -> None:
    stage = Stage(house)
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    a.backend.fates = [("", "lost")] * 9
    stage.go(a, house.change.downgrade(a.desk, stay.hold))
    reader = stage.go(b, b.get(b.wish(weight=1)))
    stage.until(2.0)
    stage.result(reader)


def a_downgrade_is_repeated_until_it_arrives(house: House) -> None:
    stage = Stage(house)
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=20.0)
    stage.cut()
    stage.go(a, house.change.downgrade(a.desk, stay.hold))
    stage.until(3.5)  # it has given up
    stage.cut(False)
    reader = stage.go(b, b.get(b.wish(weight=1)))
    stage.until(8.0)
    stage.result(reader)


# -- holds that live on without their client


def a_shorter_lease_counts_from_its_first_sending(house: House) -> None:
    """The holder detaches for half a second and never hears whether it was done: it was."""
    stage = Stage(house)
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    a.backend.fates = [("", "lost")] + [("lost", "")] * 99
    stage.go(a, house.change.detach(a.desk, stay.hold, 0.5))
    second = stage.go(b, b.get(b.wish()))
    stage.until(2.0)
    stage.result(second)


def an_older_renewal_does_not_lengthen_a_lease_again(house: House) -> None:
    """It was under way when the lease was shortened, and arrives after that."""
    stage = Stage(house)
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    a.backend.time_out = 5.0
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.3, jitter=0)
    stage.go(a, house.change.renew(a.desk, stay.hold))
    stage.until(0.2)
    a.backend.fates = [("", "lost")] + [("lost", "")] * 99
    stage.go(a, house.change.detach(a.desk, stay.hold, 0.5))
    second = stage.go(b, b.get(b.wish()))
    stage.until(2.0)
    stage.result(second)


def a_late_enter_finds_a_grave_whoever_has_left(house: House) -> None:
    """The first Enter is under way; meanwhile the hold is handed over by its ticket, and released elsewhere."""
    stage = Stage(house)
    a, b = stage.clients
    a.backend.fates = [("late", "")]
    task = stage.go(a, a.get(a.wish()))
    stage.until(0.8)
    stay = stage.result(task)
    detached = stage.go(a, house.change.detach(a.desk, stay.hold, 5.0))
    stage.until(0.9)
    stage.witness.gives_back(stay)
    attached = stage.go(b, house.change.attach(b.desk, "x", stage.result(detached)))
    stage.until(1.0)
    stage.go(b, house.release.release(b.desk, stage.result(attached)))
    stage.until(5.0)
    stage.expect(not stage.inside(), "nobody is inside who does not know of it")


def what_was_lost_while_it_was_detached_is_not_handed_over(house: House) -> None:
    """The answer is slow, the hold is told lost meanwhile, and its Leave would take it from whoever attaches it."""
    stage = Stage(house, clients=1)
    (a,) = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    a.backend.time_out = 5.0
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.6, jitter=0)
    task = stage.go(a, house.change.detach(a.desk, stay.hold, 0.5))
    stage.until(0.65)
    stage.expect(stay.hold.lost, "its time is over")
    stage.until(1.0)
    stage.expect(isinstance(task.error, house.errors.LeaseLost), f"not handed over: {task.result or task.error}")
