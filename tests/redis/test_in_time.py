"""A timeout is a promise: on a server that hangs, whatever has one is back at most a second after it.

The server is stopped, so it accepts connections and never replies. Everybody asks at the same time, with a client of
its own and with the timeouts that a client has by default.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import holdfast
from holdfast import BackendError, LockError, aio
from tests.busy import within
from tests.servers.groups import Cluster, Sentinels
from tests.servers.server import Server, until

Verb = Callable[[Any, float], Any]

LATE = 1.0
ALL, SOME = slice(None), slice(2, 4)


def by_with(locks: holdfast.Locks, timeout: float) -> None:
    with locks.lock("x", timeout=timeout):
        pass


def all_of_them(locks: holdfast.Locks, timeout: float) -> None:
    with locks.lock_all("x", "y", timeout=timeout):
        pass


async def task_by_with(locks: aio.Locks, timeout: float) -> None:
    async with locks.lock("x", timeout=timeout):
        pass


async def task_all_of_them(locks: aio.Locks, timeout: float) -> None:
    async with locks.lock_all("x", "y", timeout=timeout):
        pass


THREADS: list[Verb] = [
    lambda locks, timeout: locks.lock("x").acquire(timeout=timeout),
    lambda locks, timeout: locks.lock("x", reentrant=True).acquire(timeout=timeout),
    lambda locks, timeout: locks.semaphore("s", 3).acquire(timeout=timeout),
    lambda locks, timeout: locks.pool("jobs").acquire(timeout=timeout),
    by_with,
    all_of_them,
]
TASKS: list[Callable[[Any, float], Awaitable[Any]]] = [*THREADS[:4], task_by_with, task_all_of_them]


def thread(url: str, verb: Verb, timeout: float, warm: bool, stopped: Callable[[], None]) -> float:
    """How much later than its timeout it comes back; the whole way out of the client is another matter."""
    locks = holdfast.connect(url)
    if warm:
        with locks.lock("x", timeout=60), locks.lock("y", timeout=60), locks.semaphore("s", 3):
            pass
    stopped()
    began = time.monotonic()
    with pytest.raises(LockError):
        verb(locks, timeout)
    return time.monotonic() - began - timeout


async def task(locks: aio.Locks, verb: Verb, timeout: float, warm: bool, stopped: Callable[[], None]) -> float:
    if warm:
        for _ in range(2):  # from the second time on by the short way
            async with locks.lock("x", timeout=60), locks.lock("y", timeout=60), locks.semaphore("s", 3):
                pass
    await asyncio.to_thread(stopped)
    began = time.monotonic()
    with pytest.raises(LockError):
        await verb(locks, timeout)
    return time.monotonic() - began - timeout


def how_late(url: str, servers: Sequence[Server], timeouts: tuple[float, ...], verbs: slice = ALL) -> list[float]:
    """Of everybody, each beside all others, while these servers are stopped."""
    thread_cases = [(verb, limit, warm) for verb in THREADS[verbs] for limit in timeouts for warm in (True, False)]
    task_cases = [(verb, limit, warm) for verb in TASKS[verbs] for limit in timeouts for warm in (True, False)]
    barrier = threading.Barrier(len(thread_cases) + len(task_cases), lambda: [one.stop() for one in servers])
    measured = threading.Barrier(2, lambda: [one.cont() for one in servers])

    def wait() -> None:
        barrier.wait(60)

    async def tasks() -> list[float]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(len(task_cases)))
        clients = [aio.connect(url) for _ in task_cases]
        found = await asyncio.gather(
            *[task(locks, verb, t, warm, wait) for locks, (verb, t, warm) in zip(clients, task_cases, strict=True)]
        )
        await asyncio.to_thread(measured.wait, 60)
        await asyncio.gather(*[locks.close() for locks in clients])
        return found

    try:
        with ThreadPoolExecutor(len(thread_cases) + 1) as threads:
            beside = threads.submit(asyncio.run, tasks())
            found = [threads.submit(thread, url, verb, t, warm, wait) for verb, t, warm in thread_cases]
            late = [each.result() for each in found]
            measured.wait(60)
            late += beside.result()
    finally:
        for one in servers:
            one.cont()
    names = [*thread_cases, *task_cases]
    print(*[f"{seconds:6.3f} {case}" for seconds, case in zip(late, names, strict=True)], sep="\n")
    return late


def test_a_server_that_hangs(redis_alone: Server) -> None:
    assert max(how_late(redis_alone.url, [redis_alone], (0, 0.4))) < within(LATE, below=3)


def test_a_timeout_is_kept_however_long_a_reply_may_take(redis_alone: Server) -> None:
    url = f"{redis_alone.url}?socket_timeout=30&socket_connect_timeout=30"
    assert max(how_late(url, [redis_alone], (0.2,))) < within(LATE, below=3)


def test_a_master_that_hangs_under_sentinels(redis_sentinel: Sentinels) -> None:
    assert max(how_late(redis_sentinel.url, redis_sentinel.servers, (0.4,), SOME)) < within(LATE, below=3)


def test_a_cluster_that_hangs(redis_cluster: Cluster) -> None:
    assert max(how_late(redis_cluster.url, redis_cluster.servers, (0.4,), SOME)) < within(LATE, below=3)


@pytest.mark.parametrize("face", ["threads", "tasks"])
def test_one_that_waits_in_line_when_the_server_hangs(redis_alone: Server, face: str) -> None:
    url, late = redis_alone.url, []

    def by_thread() -> None:
        locks = holdfast.connect(url)
        began = time.monotonic()
        with pytest.raises(BackendError, match="does not answer"):
            locks.lock("x").acquire(timeout=1.2)
        late.append(time.monotonic() - began - 1.2)

    async def by_task() -> None:
        locks = aio.connect(url)
        began = time.monotonic()
        with pytest.raises(BackendError, match="does not answer"):
            await locks.lock("x").acquire(timeout=1.2)
        late.append(time.monotonic() - began - 1.2)
        redis_alone.cont()
        await locks.close()

    with holdfast.connect(url) as holder, ThreadPoolExecutor() as threads:
        lease = holder.lock("x").acquire()
        assert lease
        waits = threads.submit(by_thread) if face == "threads" else threads.submit(asyncio.run, by_task())
        until(lambda: any(one.line for one in holder.snapshot("x").resources), "somebody waits")
        redis_alone.stop()
        try:
            waits.result()
        finally:
            redis_alone.cont()
    assert late[0] < LATE, late


def test_a_slow_reply_is_still_used(redis_alone: Server) -> None:
    """Nobody is sent away for a server that is slow and not dead: without a timeout it has two seconds."""
    with holdfast.connect(redis_alone.url) as locks:
        with locks.lock("x"):
            pass
        redis_alone.ask("CLIENT", "PAUSE", "700", "ALL")
        began = time.monotonic()
        with locks.lock("x"):
            assert 0.4 < time.monotonic() - began < 1.9
        assert locks._desk.backend.atlas.breaks == 0  # type: ignore[attr-defined]
