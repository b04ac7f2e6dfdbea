"""How often a waiter looks where a store has no notifications: as the queue moves on, not as time passes."""

from __future__ import annotations

from typing import Any, cast

from fairlock.engine.run_sync import run
from fairlock.stores.base import Event, Pushed
from fairlock.stores.polling import Ahead, PollingStore

FIRST = 0.01
PLACES = 20


class Queue:
    """A queue with this many seconds for each place, a clock, and an inbox that never has a wake-up."""

    first_pause = FIRST
    longest_pauses = 0.1, 0.5

    def __init__(self, pace: float) -> None:
        self.runtime = self
        self.pace = pace
        self.now = 0.0
        self.looks = 0

    def clock(self) -> float:
        return self.now

    def event(self) -> None:
        pass

    async def wait(self, ticket: str, event: Event, timeout: float) -> None:
        self.now += timeout

    async def look_for_grant(self, key: str, ticket: str, age: float) -> Pushed | Ahead:
        self.looks += 1
        ahead = PLACES - int(self.now / self.pace)
        return Ahead(ahead) if ahead >= 0 else Pushed("mine")


def wait_in(pace: float) -> Queue:
    queue: Any = Queue(pace)
    found = run(PollingStore.poll(queue, "key", "mine", 60.0, queue))
    assert found == Pushed("mine")
    return cast("Queue", queue)


def test_a_waiter_in_a_slow_queue_looks_less_often() -> None:
    """Four times as slow as the shortest pause expects. At a fixed pace it would look 10 to 14 times."""
    for _ in range(20):  # the pauses are random
        queue = wait_in(4 * FIRST)
        assert queue.looks <= 9
        assert queue.now - (PLACES + 1) * queue.pace <= 0.06, "it was granted, and did not notice"
