"""FairMutex: first come, first served, and a dead client is never in the way."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import redis
import redis.asyncio

import fairlock
from fairlock import ConfigError, LeaseLost, NotHeld, StoreError
from fairlock.recipes import FairMutex
from fairlock.recipes import aio as recipes
from tests.servers.server import Server, until


@pytest.fixture
def client(redis_alone: Server) -> Iterator[redis.Redis]:
    with redis.Redis(port=redis_alone.port) as client:
        yield client


@pytest.fixture
def watch(redis_alone: Server) -> Iterator[fairlock.Locks]:
    """Somebody who only looks."""
    with fairlock.connect(redis_alone.url) as locks:
        yield locks


def in_queue(watch: fairlock.Locks, name: str) -> int:
    return sum(len(resource.queue) for resource in watch.snapshot(name).resources)


class Waiter(threading.Thread):
    """Another machine, as the server sees it: a client of its own. It notes when it got in, and leaves."""

    def __init__(self, server: Server, name: str, got_in: list[str], label: str) -> None:
        super().__init__(daemon=True)
        self._client = redis.Redis(port=server.port)
        self._mutex, self._got_in, self._label = FairMutex(self._client, name), got_in, label

    def run(self) -> None:
        with self._mutex:
            self._got_in.append(self._label)


def test_lock_and_unlock(client: redis.Redis) -> None:
    one, other = FairMutex(client, "x"), FairMutex(client, "x")
    first = one.lock()
    assert other.locked()
    assert other.acquire(blocking=False) is None
    one.unlock()
    second = other.lock()
    assert second.fence > first.fence
    other.unlock()
    assert not one.locked()


def test_with(client: redis.Redis) -> None:
    with FairMutex(client, "x") as lease:
        assert lease.held
        assert FairMutex(client, "x").locked()
    assert not FairMutex(client, "x").locked()


def test_unlock_of_what_is_not_held_is_said(client: redis.Redis) -> None:
    with pytest.raises(NotHeld):
        FairMutex(client, "x").unlock()


def test_unlock_of_what_was_lost_is_said(client: redis.Redis, watch: fairlock.Locks) -> None:
    mutex = FairMutex(client, "x")
    mutex.lock()
    watch.evict("x", reason="maintenance", at_once=True)
    with pytest.raises(LeaseLost):
        mutex.unlock()


def test_waiters_get_it_in_the_order_in_which_they_asked(
    redis_alone: Server, client: redis.Redis, watch: fairlock.Locks
) -> None:
    mutex, got_in, labels = FairMutex(client, "x"), [], list("abcdefgh")  # type: ignore[var-annotated]
    mutex.lock()
    waiters = []
    for place, label in enumerate(labels, 1):
        waiters.append(Waiter(redis_alone, "x", got_in, label))
        waiters[-1].start()
        until(lambda place=place: in_queue(watch, "x") == place, f"{label} stands in the queue")  # type: ignore[misc]
    mutex.unlock()
    for waiter in waiters:
        waiter.join(30)
    assert got_in == labels


def test_a_waiter_is_queued_while_the_lock_is_held(
    redis_alone: Server, client: redis.Redis, watch: fairlock.Locks
) -> None:
    """The first defect of the description: there a waiter joins the queue only if the lock happens to be free."""
    mutex, got_in = FairMutex(client, "x"), []  # type: ignore[var-annotated]
    mutex.lock()
    waiter = Waiter(redis_alone, "x", got_in, "the waiter")
    waiter.start()
    until(lambda: in_queue(watch, "x") == 1, "the waiter stands in the queue")
    assert mutex.acquire(blocking=False) is None
    mutex.unlock()
    with mutex:  # at once, and still after the earlier waiter
        got_in.append("the newcomer")
    waiter.join(30)
    assert got_in == ["the waiter", "the newcomer"]


DIES_IN_LINE = """
import sys, redis
from fairlock.recipes import FairMutex
FairMutex(redis.Redis(port=int(sys.argv[1])), "x", lock_time=60).lock()
"""


@pytest.mark.parametrize("dead", [1, 3])
def test_a_dead_head_of_the_queue_does_not_stall_a_lease(
    redis_alone: Server, client: redis.Redis, watch: fairlock.Locks, dead: int
) -> None:
    """The second defect: there the first in the queue is granted the lock for a lease, dead or alive."""
    mutex, got_in = FairMutex(client, "x", lock_time=60), []  # type: ignore[var-annotated]
    mutex.lock()
    heads = []
    for place in range(1, dead + 1):
        heads.append(subprocess.Popen([sys.executable, "-c", DIES_IN_LINE, str(redis_alone.port)]))
        until(lambda place=place: in_queue(watch, "x") == place, "the one that will die stands in the queue")  # type: ignore[misc]
    waiter = Waiter(redis_alone, "x", got_in, "the living")
    waiter.start()
    until(lambda: in_queue(watch, "x") == dead + 1, "the living one stands behind")
    for head in heads:
        os.kill(head.pid, signal.SIGKILL)
        head.wait()
    begun = time.monotonic()
    mutex.unlock()
    waiter.join(30)
    assert got_in == ["the living"]
    assert time.monotonic() - begun < 5  # of a lease of 60


def test_a_dead_holder_costs_its_lock_time_and_no_more(redis_alone: Server, client: redis.Redis) -> None:
    dies = DIES_IN_LINE.replace("lock_time=60).lock()", "lock_time=1).lock(); import os; os.kill(os.getpid(), 9)")
    subprocess.run([sys.executable, "-c", dies, str(redis_alone.port)])
    begun = time.monotonic()
    with FairMutex(client, "x"):
        assert time.monotonic() - begun < 4


def test_a_living_holder_keeps_it_beyond_its_lock_time(client: redis.Redis) -> None:
    with FairMutex(client, "x", lock_time=1) as lease:
        time.sleep(1.5)
        assert not lease.lost
        assert FairMutex(client, "x").acquire(blocking=False) is None


def test_it_is_a_lock_of_fairlock_by_another_name(client: redis.Redis, watch: fairlock.Locks) -> None:
    with FairMutex(client, "x"):
        assert watch.lock("x").locked()


def test_mutexes_of_one_pool_share_their_connections(redis_alone: Server) -> None:
    with redis.Redis(port=redis_alone.port) as first:
        before = len(redis_alone.client.client_list())
        for number in range(20):
            with FairMutex(redis.Redis(connection_pool=first.connection_pool), f"x{number}"):
                pass
        assert len(redis_alone.client.client_list()) <= before + 2


def test_bad_input_is_refused_before_anything_is_sent() -> None:
    client = redis.Redis(port=1)
    for mutex in (
        lambda: FairMutex(client, ""),
        lambda: FairMutex(client, "x", lock_time=0),
        lambda: FairMutex(redis.asyncio.Redis(), "x"),  # type: ignore[arg-type]
        lambda: recipes.FairMutex(client, "x"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigError):
            mutex()


def test_a_server_that_cannot_be_reached_is_said() -> None:
    with pytest.raises(StoreError):
        FairMutex(redis.Redis(port=1), "x").lock()


async def tasks_in_line(server: Server) -> list[int]:
    got_in: list[int] = []

    async def wait(number: int) -> None:
        async with recipes.FairMutex(client, "x"):
            got_in.append(number)

    async with redis.asyncio.Redis(port=server.port) as client, fairlock.aio.connect(server.url) as watch:
        mutex = recipes.FairMutex(client, "x")
        lease = await mutex.lock()
        assert lease.held
        waiting = []
        for number in range(1, 6):
            waiting.append(asyncio.create_task(wait(number)))
            while len((await watch.snapshot("x")).resources[0].queue) < number:
                await asyncio.sleep(0.01)
        await mutex.unlock()
        await asyncio.gather(*waiting)
        with pytest.raises(NotHeld):
            await mutex.unlock()
    return got_in


def test_tasks_too_get_it_in_the_order_of_asking(redis_alone: Server) -> None:
    for _ in range(2):  # a second loop with the same server
        assert asyncio.run(asyncio.wait_for(tasks_in_line(redis_alone), 30)) == [1, 2, 3, 4, 5]
