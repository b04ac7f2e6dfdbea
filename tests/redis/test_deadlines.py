"""A timeout is a promise: on a server that hangs, whatever has one is back at most a second after it."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import fairlock
from fairlock import StoreError, aio
from tests.hanging_server import LATE, SOME, how_late
from tests.machine_load import within
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
