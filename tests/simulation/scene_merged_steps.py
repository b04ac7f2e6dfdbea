"""Turns: the steps of one client at one row that share a write, and what becomes of them when one of them fails.

The tasks of one client want slots of a semaphore, because each slot is an entry of its own. In "rows" each step is a
read and a write, of half a millisecond each, so a task that comes 0.1 ms after another one finds it at the row.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tests.simulation.actors import Stage
from tests.simulation.client import Client
from tests.simulation.engine_under_test import EngineUnderTest
from tests.simulation.network import FINE
from tests.simulation.world import Task, Violation

BEHIND = 0.0001  # seconds between two that come one after the other


def slot(client: Client, slots: int = 16) -> Any:
    return client.request(weight=1, capacity=slots, lease=30.0)


def one_after_the_other(stage: Stage, client: Client, number: int, slots: int = 16) -> list[Task]:
    """So many tasks of one client, each of which asks for a slot while the first one is at the row."""
    tasks = []
    for _ in range(number):
        tasks.append(stage.go(client, client.get(slot(client, slots))))
        stage.until(stage.world.now + BEHIND)
    return tasks


def those_of_one_client_share_a_write(engine: EngineUnderTest) -> None:
    stage = Stage(engine, "rows", 1)
    tasks = one_after_the_other(stage, stage.clients[0], 12)
    stage.until(0.1)
    for task in tasks:
        stage.result(task)
    stage.expect(stage.store.commands <= 8, f"{stage.store.commands} reads and writes for 12 who came together")


def those_who_share_a_write_stand_in_line_as_they_came(engine: EngineUnderTest) -> None:
    stage = Stage(engine, "rows")
    a, b = stage.clients
    stage.go(b, b.get(slot(b, 1)))
    stage.until(0.1)
    one_after_the_other(stage, a, 8, slots=1)
    stage.until(0.2)
    queue = [e.ticket for e in stage.store.record("x").queue]
    stage.expect(len(queue) == 8 and queue == sorted(queue), f"in queue: {queue}")


def a_newcomer_to_a_long_queue_is_written_with_the_next_step_of_its_client(engine: EngineUnderTest) -> None:
    """It waits a few milliseconds for a sibling that is about to release or confirm; without one it goes on alone. Both
    start from the same read."""
    stage = Stage(engine, "cached")
    a, b = stage.clients
    a.backend.store.backs_off, a.backend.store.shows_conflicts = True, False
    held = stage.go(a, a.get(slot(a, 1)))
    stage.until(0.1)
    one_after_the_other(stage, b, 7, slots=1)
    stage.until(0.2)
    stage.go(a, a.get(slot(a, 1)))
    stage.until(0.3)
    before = stage.store.asked["a"]
    stage.go(a, a.get(slot(a, 1)))
    stage.until(0.301)
    stage.go(a, a.give_back(stage.result(held)))
    stage.until(0.31)
    spent = stage.store.asked["a"] - before
    stage.expect(spent == 2 and len(stage.queue()) == 8, f"{spent} requests, {len(stage.queue())} in the queue")
    stage.go(a, a.get(slot(a, 1)))
    stage.until(0.34)
    stage.expect(len(stage.queue()) == 9, "and one that nobody takes along is in the queue after a moment")


def a_row_at_which_nobody_is_left_is_free(engine: EngineUnderTest) -> None:
    stage = Stage(engine, "rows", 1)
    (a,) = stage.clients
    for _ in range(3):
        task = stage.go(a, a.errand(slot(a), None, 0.001))
        stage.until(stage.world.now + 0.1)
        stage.result(task)


def a_cancelled_leader_leaves_the_row_to_the_next(engine: EngineUnderTest) -> None:
    stage = Stage(engine, "rows", 1)
    (a,) = stage.clients
    a.backend.store.fates = [("lost", "")]
    leader, other = one_after_the_other(stage, a, 2)
    stage.at(0.05, leader.cancel)
    stage.until(0.3)
    stage.result(other)


def a_cancelled_leader_fails_nobody_that_it_took_along(engine: EngineUnderTest) -> None:
    """The second one leads the third. It is cancelled while its write, which carries both, is under way."""
    stage = Stage(engine, "rows", 1)
    (a,) = stage.clients
    a.backend.store.write_fates = [("", ""), ("lost", "")]
    _, leader, other = one_after_the_other(stage, a, 3)
    stage.at(0.05, leader.cancel)
    stage.until(0.3)
    stage.result(other)
    stage.expect(len(stage.holders()) == 2, f"the first and the third: {stage.holders()}")


def a_leader_whose_time_is_over_fails_nobody_that_it_took_along(engine: EngineUnderTest) -> None:
    """It raises that the store does not reply, and means: not in the time that its caller has left."""
    stage = Stage(engine, "rows", 1)
    (a,) = stage.clients
    before, engine.merge_concurrent_steps.over = engine.merge_concurrent_steps.over, lambda: True
    try:
        _, leader, other = one_after_the_other(stage, a, 3)
        stage.store.refuses = True
        stage.until(0.002)
        stage.store.refuses = False
        stage.until(0.3)
    finally:
        engine.merge_concurrent_steps.over = before
    stage.expect(isinstance(leader.error, engine.errors.StoreError), f"the leader got {leader.error!r}")
    stage.result(other)


def one_that_is_cancelled_as_it_is_called_leaves_the_row_to_the_next(engine: EngineUnderTest) -> None:
    """In asyncio a task can be cancelled after its event was set and before it runs. Nobody is at the row then."""
    from fairlock.aio.runtime import TaskRuntime

    async def play() -> bool:
        turns = engine.merge_concurrent_steps.Turns(TaskRuntime())
        turns.begin("x")
        heir = asyncio.create_task(turns.wait("x", engine.merge_concurrent_steps.Turn(None)))
        await asyncio.sleep(0)
        turns.end("x")
        heir.cancel()
        await asyncio.wait([heir])
        return bool(turns.begin("x"))

    if not asyncio.run(play()):
        raise Violation("nobody is at the row, and it counts as taken")


def a_leader_that_hangs_holds_up_the_others_for_a_second(engine: EngineUnderTest) -> None:
    stage = Stage(engine, "rows", 1)
    (a,) = stage.clients
    a.backend.store.time_out = 20.0
    a.backend.store.fates = [("lost", "")]
    _, *others = one_after_the_other(stage, a, 4)
    stage.until(1.2)
    for task in others:
        stage.result(task)


def a_leader_that_never_comes_back_is_given_up(engine: EngineUnderTest) -> None:
    """A thread can end anywhere. What it took along is asked for again, though not soon: it may still be under way."""
    stage = Stage(engine, "rows", 1)
    (a,) = stage.clients
    a.backend._turns.begin("x")
    task = stage.go(a, a.get(slot(a)))
    stage.until(0.01)
    stage.expect(a.backend._turns.join("x", []), "it was taken along")
    stage.until(45.0)
    stage.result(task)


def a_release_that_was_taken_along_is_not_made_twice(engine: EngineUnderTest) -> None:
    """The write that carries it is done, and its reply comes after three seconds. A second Release would find nothing,
    which looks like a loss."""
    stage = Stage(engine, "rows", 1)
    _releases_behind_another(stage, "late", 10.0)
    stage.until(5.0)
    _all_is_well(stage)


def a_release_that_was_taken_along_is_no_loss_if_its_reply_is_lost(engine: EngineUnderTest) -> None:
    stage = Stage(engine, "rows", 1)
    _releases_behind_another(stage, "lost", 0.5)
    stage.until(5.0)
    _all_is_well(stage)


def _releases_behind_another(stage: Stage, fate: str, time_out: float) -> None:
    """One task is at the row; the next one waits to get in, and a third, behind it, to get out."""
    (a,) = stage.clients
    held = stage.go(a, a.get(slot(a)))
    stage.until(0.1)
    a.backend.store.time_out = time_out
    a.backend.store.write_fates = [("", ""), ("", fate)]
    one_after_the_other(stage, a, 2)
    stage.go(a, a.give_back(stage.result(held)))


def _all_is_well(stage: Stage) -> None:
    for task in stage.tasks:
        stage.result(task)
    stage.expect(len(stage.holders()) == 2, f"two hold it, one does not: {stage.holders()}")


def a_refusal_rests_on_what_was_read_after_it_was_asked_for(engine: EngineUnderTest) -> None:
    """The first try of `a` finds the row changed: `b` holds it. That reply is late, and meanwhile `b` has left."""
    stage = Stage(engine, "cached")
    a, b = stage.clients
    for client in (a, b):
        done = stage.go(client, client.errand(client.request(lease=30.0), None, 0.0))
        stage.until(stage.world.now + 0.1)
        stage.result(done)
    stay = stage.holding(b, 0.3, lease=30.0)
    stage.store.replies.weather = FINE._replace(least=0.4)
    stage.go(a, a.get(a.request(), 0.0))
    stage.until(0.31)
    stage.store.replies.weather = FINE
    out = stage.go(b, b.give_back(stay))
    stage.until(0.4)
    stage.result(out)
    stage.go(a, a.get(a.request(), 0.0))
    stage.until(1.0)
    stage.expect(stage.holders() == ["a"], "one of the two tries of a was made when there was no holder")


def one_that_leaves_does_not_wait_behind_one_that_gives_way(engine: EngineUnderTest) -> None:
    """A newcomer of `a` meets a crowd: its write was refused, and it pauses for up to a second and a half."""
    for seed in range(4):
        stage = Stage(engine, "rows", 3, seed)
        a, b, c = stage.clients
        a.backend.store.backs_off = True
        held = stage.go(a, a.get(slot(a, 2)))
        for each in (b, c):
            stage.until(stage.world.now + 0.05)
            stage.go(each, each.get(slot(each, 2)))
        stage.until(0.2)
        stage.store.replies.weather = FINE._replace(least=0.4)
        stage.go(a, a.get(slot(a, 2)))
        stage.until(0.4)
        stage.store.step("x", engine.locks.Resize(2))  # after its read, before its write
        stage.until(0.7)
        stage.store.replies.weather = FINE
        stage.until(1.02)
        out = stage.go(a, a.give_back(stage.result(held)))
        stage.until(1.1)
        stage.result(out)
