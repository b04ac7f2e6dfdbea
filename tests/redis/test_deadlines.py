"""A timeout is a promise: on a server that hangs, whatever has one is back at most a second after it."""

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import fairlock
from fairlock import StoreError, aio
from tests.hanging_server import LATE, SOME, how_late
from tests.machine_load import within
from tests.redis.proxy import Proxy
from tests.servers.groups import Cluster, Sentinels
from tests.servers.server import Server, until


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
def test_a_waiter_when_the_server_hangs(redis_alone: Server, face: str) -> None:
    url, late = redis_alone.url, []

    def by_thread() -> None:
        locks = fairlock.connect(url)
        began = time.monotonic()
        with pytest.raises(StoreError, match="does not reply"):
            locks.lock("x").acquire(timeout=1.2)
        late.append(time.monotonic() - began - 1.2)

    async def by_task() -> None:
        locks = aio.connect(url)
        began = time.monotonic()
        with pytest.raises(StoreError, match="does not reply"):
            await locks.lock("x").acquire(timeout=1.2)
        late.append(time.monotonic() - began - 1.2)
        redis_alone.cont()
        await locks.close()

    with fairlock.connect(url) as holder, ThreadPoolExecutor() as threads:
        lease = holder.lock("x").acquire()
        assert lease
        waits = threads.submit(by_thread) if face == "threads" else threads.submit(asyncio.run, by_task())
        until(lambda: any(one.queue for one in holder.snapshot("x").resources), "somebody waits")
        redis_alone.stop()
        try:
            waits.result()
        finally:
            redis_alone.cont()
    assert late[0] < LATE, late


def test_a_slow_reply_is_still_used(redis_alone: Server) -> None:
    """Nobody is sent away for a server that is slow and not dead: without a timeout it has two seconds."""
    with fairlock.connect(redis_alone.url) as locks:
        with locks.lock("x"):
            pass
        topology = locks._session.backend.topology  # type: ignore[attr-defined]
        before = topology.breaks
        redis_alone.call("CLIENT", "PAUSE", "700", "ALL")
        began = time.monotonic()
        with locks.lock("x"):
            assert 0.4 < time.monotonic() - began < 1.9
        assert topology.breaks == before


WAYS = ["release", "block", "all", "item"]


@pytest.fixture
def proxy(redis_alone: Server) -> Iterator[Proxy]:
    with Proxy(redis_alone.port) as proxy:
        yield proxy


def nothing_is_held(server: Server) -> bool:
    with fairlock.connect(server.url) as locks:
        return not locks.snapshot().resources and locks.pool("jobs").counts().taken == 0


async def time_to_cancel(task: asyncio.Task[Any], proxy: Proxy) -> float:
    """Cancel a task while the server hangs. Then the server replies again."""
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    took = time.monotonic() - began
    proxy.fate = lambda request: ""
    proxy.sever()
    return took


async def until_nothing_is_held(server: Server) -> None:
    limit = time.monotonic() + 20
    while not await asyncio.to_thread(nothing_is_held, server) and time.monotonic() < limit:
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("way", WAYS)
def test_a_task_that_is_cancelled_while_it_releases_is_cancelled(redis_alone: Server, proxy: Proxy, way: str) -> None:
    """Else a server that hangs keeps it for its whole lease. The client goes on with the release."""

    async def leave(locks: aio.Locks) -> None:
        if way == "release":
            lease = await locks.lock("x").acquire()
            proxy.fate = lambda request: "swallow"
            await lease.release()
        elif way == "item":
            async with locks.pool("jobs").hold():
                proxy.fate = lambda request: "swallow"
        else:
            async with locks.lock("x") if way == "block" else locks.lock_all("x", "y", "z"):
                proxy.fate = lambda request: "swallow"

    async def main() -> float:
        async with aio.connect(f"redis://127.0.0.1:{proxy.port}?socket_timeout=10", lease=60) as locks:
            await locks.pool("jobs").add("a")
            leaving = asyncio.create_task(leave(locks))
            await asyncio.sleep(0.3)
            took = await time_to_cancel(leaving, proxy)
            await until_nothing_is_held(redis_alone)
            return took

    assert asyncio.run(main()) < within(1.5, below=4)
    assert nothing_is_held(redis_alone)


def test_a_task_that_is_cancelled_while_it_waits_for_a_tree_is_cancelled(redis_alone: Server, proxy: Proxy) -> None:
    """It holds the nodes above, and has to release each of them."""

    async def main() -> float:
        url = f"redis://127.0.0.1:{proxy.port}?socket_timeout=10"
        async with aio.connect(redis_alone.url) as holder, aio.connect(url, lease=60) as locks:
            taken = await holder.tree("a/b/c/d").write().acquire()
            waiting = asyncio.create_task(locks.tree("a/b/c/d").write().acquire())
            await asyncio.sleep(0.5)
            proxy.fate = lambda request: "swallow"
            took = await time_to_cancel(waiting, proxy)
            await taken.release()
            await until_nothing_is_held(redis_alone)
            return took

    assert asyncio.run(main()) < within(1.5, below=4)
    assert nothing_is_held(redis_alone)


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_ends_a_release(redis_alone: Server, proxy: Proxy, way: str) -> None:
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.monotonic())
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with fairlock.connect(f"redis://127.0.0.1:{proxy.port}?socket_timeout=10", lease=60) as locks:
        locks.pool("jobs").add("a")
        held = {
            "release": lambda: locks.lock("x"), "block": lambda: locks.lock("x").hold(),
            "all": lambda: locks.lock_all("x", "y", "z"), "item": lambda: locks.pool("jobs").hold(),
        }[way]()  # fmt: skip
        soon = threading.Timer(0.3, press)
        with pytest.raises(KeyboardInterrupt):
            if way == "release":
                lease = locks.lock("x").acquire()
                proxy.fate = lambda request: "swallow"
                soon.start()
                lease.release()
            else:
                with held:
                    proxy.fate = lambda request: "swallow"
                    soon.start()
        took = time.monotonic() - pressed[0]
        soon.join()
        proxy.fate = lambda request: ""
        proxy.sever()
        until(lambda: nothing_is_held(redis_alone), "it was released")
    assert took < within(1.5, below=4)
