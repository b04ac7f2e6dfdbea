"""Doubt: unknown outcomes, late messages, ghosts and pending_releases, and what becomes of them."""

from __future__ import annotations

from typing import Any

from tests.simulation.actors import Stage
from tests.simulation.engine_under_test import EngineUnderTest

# -- unknown outcomes, ghosts and pending_releases


def a_lost_reply_is_cured_by_asking_again(engine: EngineUnderTest) -> None:
    stage = Stage(engine, clients=1)
    (a,) = stage.clients
    a.backend.fates = [("", "lost"), ("lost", "")]
    task = stage.go(a, a.errand(a.request(), None, 0.1))
    stage.until(3.0)
    stage.expect(stage.result(task), "it got in, under the same ticket")
    stage.expect(len(stage.store.tickets) == 1, f"one request is one ticket: {stage.store.tickets}")
    stage.expect(not stage.holders(), "and out")


def a_poll_keeps_its_ticket(engine: EngineUnderTest) -> None:
    stage = Stage(engine)
    a, b = stage.clients
    stage.holding(a, 0.1, lease=30.0)
    stage.go(b, b.get(b.request()))
    stage.until(5.0)
    stage.expect(stage.queue() == ["b"], f"one place for one request: {stage.queue()}")


def a_lost_wake_up_costs_a_second_at_most(engine: EngineUnderTest) -> None:
    stage = Stage(engine)
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=30.0)
    waiting = stage.go(b, b.get(b.request()))
    stage.until(0.5)
    b.backend.push_fate = "lost"
    stage.go(a, a.give_back(stay))
    stage.until(1.5)
    stage.result(waiting)


def a_late_enter_finds_a_tombstone(engine: EngineUnderTest) -> None:
    stage = Stage(engine, clients=1)
    (a,) = stage.clients
    a.backend.fates = [("late", "")]
    task = stage.go(a, a.errand(a.request(), None, 0.1))
    stage.at(0.1, task.cancel)
    stage.until(5.0)
    stage.expect(not stage.holders(), "there is no holder that does not know of it")


def a_late_enter_finds_a_tombstone_after_a_release_too(engine: EngineUnderTest) -> None:
    """The first Acquire is under way while the second one is answered, used and left."""
    stage = Stage(engine, clients=1)
    (a,) = stage.clients
    a.backend.fates = [("late", "")]
    task = stage.go(a, a.errand(a.request(), None, 0.1))
    stage.until(5.0)
    stage.expect(stage.result(task), "it got in by asking again")
    stage.expect(not stage.holders(), "the late Acquire does not bring it back")


def a_late_try_finds_a_tombstone(engine: EngineUnderTest) -> None:
    stage = Stage(engine)
    a, b = stage.clients
    stay = stage.holding(b, 0.1)
    a.backend.fates = [("late", "")]
    task = stage.go(a, a.get(a.request(), 0.0))
    stage.until(1.0)
    stage.expect(stage.result(task) is None, "refused")
    stage.go(b, b.give_back(stay))
    stage.until(5.0)
    stage.expect(not stage.holders(), "the late Acquire does not make it a holder")


def a_cancelled_wait_leaves_the_queue_when_the_store_replies_again(engine: EngineUnderTest) -> None:
    stage = Stage(engine, clients=3)
    a, b, c = stage.clients
    stay = stage.holding(a, 0.1)
    waiting = stage.go(b, b.get(b.request()))
    stage.until(0.2)
    b.backend.fates = [("lost", "")] * 3
    waiting.cancel()
    stage.until(2.0)
    stage.go(a, a.give_back(stay))
    last = stage.go(c, c.get(c.request()))
    stage.until(2.3)
    stage.expect(stage.result(last), "c is not kept waiting by one who has given up")


def a_release_that_finds_the_store_down_is_made_good(engine: EngineUnderTest) -> None:
    stage = Stage(engine, clients=1)
    (a,) = stage.clients
    stay = stage.holding(a, 0.1, lease=20.0)
    stage.store.refuses = True
    task = stage.go(a, engine.release.release(a.session, stay.hold))
    stage.until(0.5)
    stage.expect(isinstance(task.error, engine.errors.StoreError), f"release says so: {task.error!r}")
    stage.expect(not stay.hold.held, "what may have left is not held")
    stage.store.refuses = False
    stage.until(3.0)
    stage.expect(not stage.holders(), "the keeper sees to it")
    again = stage.go(a, engine.release.release(a.session, stay.hold))
    stage.until(4.0)
    stage.result(again)


def a_release_whose_reply_is_lost_is_no_loss(engine: EngineUnderTest) -> None:
    for store in ("hints", "rows"):
        stage = Stage(engine, store, 1)
        (a,) = stage.clients
        stay = stage.holding(a, 0.1)
        backend: Any = a.backend
        if store == "rows":
            backend.store.write_fates = [("", "lost")]
        else:
            backend.fates = [("", "lost")]
        task = stage.go(a, engine.release.release(a.session, stay.hold))
        stage.until(3.0)
        stage.result(task)
        stage.expect(not stage.holders(), "and it is out")


def a_release_that_takes_longer_than_the_lease_is_no_loss(engine: EngineUnderTest) -> None:
    """The work under the lock was over in time; only the release was slow, and another got the lock meanwhile."""
    _release_slowly(engine)


def a_slow_release_of_a_watched_hold_is_no_loss(engine: EngineUnderTest) -> None:
    """The same with an on_lost, which every hold of an `async with` has in effect: the watch looks at its end."""
    told: list[object] = []
    _release_slowly(engine, on_lost=told.append).expect(not told, "on_lost is for a body that still runs")


def _release_slowly(under_test: EngineUnderTest, **options: Any) -> Stage:
    stage = Stage(under_test, "rows")
    a, b = stage.clients
    a.backend.store.time_out = 9.0
    stay = stage.holding(a, 0.1, lease=2.0, **options)
    second = stage.go(b, b.get(b.request()))
    stage.until(0.3)
    stage.store.replies.weather = stage.store.replies.weather._replace(least=4.0, jitter=0)
    task = stage.go(a, under_test.release.release(a.session, stay.hold))
    stage.until(0.32)
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.0002)
    stage.until(4.0)
    stage.expect(stage.holders() == ["b"], "the lease has ended")
    stage.until(6.0)
    stage.result(second)
    stage.result(task)
    return stage


def the_first_leave_tells_of_a_loss(engine: EngineUnderTest) -> None:
    """A holder that was stopped past its lease and releases at once, without looking, must get an error."""
    stage = Stage(engine)
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=2.0)
    second = stage.go(b, b.get(b.request()))
    stage.at(0.2, a.process.freeze, 4.0)
    stage.at(1.0, lambda: a.process.do(lambda: tasks.append(stage.go(a, engine.release.release(a.session, stay.hold)))))
    tasks: list[Any] = []
    stage.until(5.0)
    stage.result(second)
    stage.expect(isinstance(tasks[0].error, engine.errors.LeaseLost), f"LeaseLost, not {tasks[0].error!r}")


def a_loss_that_is_noticed_during_the_release_is_told(engine: EngineUnderTest) -> None:
    """Nobody had looked before; the watch or the keeper notices while the Release is under way."""
    stage = Stage(engine)
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=2.0)
    a.backend.cut = True
    second = stage.go(b, b.get(b.request()))
    stage.until(3.0)
    stage.result(second)
    a.backend.cut = False
    task = stage.go(a, engine.release.release(a.session, stay.hold))
    stage.at(3.0001, a.session.lose, stay.grant)
    stage.until(3.1)
    stage.expect(isinstance(task.error, engine.errors.LeaseLost), f"LeaseLost, not {task.error!r}")


def a_waiter_that_was_let_in_and_evicted_moves_out(engine: EngineUnderTest) -> None:
    """It learns of it by its next poll; the waiter behind it need not wait for its window to end."""
    stage = Stage(engine, clients=3)
    a, b, c = stage.clients
    stay = stage.holding(a, 0.1)
    second = stage.go(b, b.get(b.request()))
    stage.until(0.5)
    b.backend.push_fate = "lost"
    stage.go(a, a.give_back(stay))
    stage.until(0.6)
    stage.store.step("x", engine.locks.Evict(None, "ops", "stuck", False))
    b.backend.cut = True  # the wake-up of the eviction is lost, too
    third = stage.go(c, c.get(c.request()))
    stage.until(0.7)
    b.backend.cut = False
    stage.until(1.3)
    stage.expect(isinstance(second.error, engine.errors.LeaseLost), f"b is told: {second.error!r}")
    stage.result(third)


# -- writers who become readers


def a_downgrade_counts_from_its_first_sending(engine: EngineUnderTest) -> None:
    stage = Stage(engine)
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    a.backend.fates = [("", "lost")] * 9
    stage.go(a, engine.lease_ops.downgrade(a.session, stay.hold))
    reader = stage.go(b, b.get(b.request(weight=1)))
    stage.until(2.0)
    stage.result(reader)


def a_downgrade_is_repeated_until_it_arrives(engine: EngineUnderTest) -> None:
    stage = Stage(engine)
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=20.0)
    stage.cut()
    stage.go(a, engine.lease_ops.downgrade(a.session, stay.hold))
    stage.until(3.5)  # it has given up
    stage.cut(False)
    reader = stage.go(b, b.get(b.request(weight=1)))
    stage.until(8.0)
    stage.result(reader)


# -- holds that live on without their client


def a_shorter_lease_counts_from_its_first_sending(engine: EngineUnderTest) -> None:
    """The holder detaches for half a second and never learns whether it was done: it was."""
    stage = Stage(engine)
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    a.backend.fates = [("", "lost")] + [("lost", "")] * 99
    stage.go(a, engine.lease_ops.detach(a.session, stay.hold, 0.5))
    second = stage.go(b, b.get(b.request()))
    stage.until(2.0)
    stage.result(second)


def an_older_renewal_does_not_lengthen_a_lease_again(engine: EngineUnderTest) -> None:
    """It was under way when the lease was shortened, and arrives after that."""
    stage = Stage(engine)
    a, b = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    a.backend.time_out = 5.0
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.3, jitter=0)
    stage.go(a, engine.lease_ops.renew(a.session, stay.hold))
    stage.until(0.2)
    a.backend.fates = [("", "lost")] + [("lost", "")] * 99
    stage.go(a, engine.lease_ops.detach(a.session, stay.hold, 0.5))
    second = stage.go(b, b.get(b.request()))
    stage.until(2.0)
    stage.result(second)


def a_late_enter_finds_a_tombstone_after_any_release(engine: EngineUnderTest) -> None:
    """The first Acquire is under way; meanwhile the hold is handed over by its ticket, and released elsewhere."""
    stage = Stage(engine)
    a, b = stage.clients
    a.backend.fates = [("late", "")]
    task = stage.go(a, a.get(a.request()))
    stage.until(0.8)
    stay = stage.result(task)
    detached = stage.go(a, engine.lease_ops.detach(a.session, stay.hold, 5.0))
    stage.until(0.9)
    stage.witness.gives_back(stay)
    attached = stage.go(b, engine.lease_ops.attach(b.session, "x", stage.result(detached)))
    stage.until(1.0)
    stage.go(b, engine.release.release(b.session, stage.result(attached)))
    stage.until(5.0)
    stage.expect(not stage.holders(), "there is no holder that does not know of it")


def what_was_lost_while_it_was_detached_is_not_handed_over(engine: EngineUnderTest) -> None:
    """The reply is slow, the hold is reported lost meanwhile, and its Release would end an attached lease."""
    stage = Stage(engine, clients=1)
    (a,) = stage.clients
    stay = stage.holding(a, 0.1, lease=8.0)
    a.backend.time_out = 5.0
    stage.store.replies.weather = stage.store.replies.weather._replace(least=0.6, jitter=0)
    task = stage.go(a, engine.lease_ops.detach(a.session, stay.hold, 0.5))
    stage.until(0.65)
    stage.expect(stay.hold.lost, "its time is over")
    stage.until(1.0)
    stage.expect(isinstance(task.error, engine.errors.LeaseLost), f"not handed over: {task.result or task.error}")
