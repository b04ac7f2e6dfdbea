"""A Cluster that cannot be reached, in part or at all, or that is none: sentences for everybody, and waiters go on."""

import asyncio
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import fairlock
from fairlock import ConfigError, StoreError, aio
from tests.machine_load import within
from tests.redis.test_errors import SECRET, says, tool
from tests.servers.groups import Cluster
from tests.servers.server import Server, free_port, until

Start = Callable[..., Server]


def nobody() -> str:
    return f"redis+cluster://:{SECRET}@127.0.0.1:{free_port()},127.0.0.1:{free_port()}"


ASKED: list[Callable[[Any], Any]] = [
    lambda locks: locks.lock("x").acquire(timeout=0.3),
    lambda locks: locks.lock("x").locked(),
    lambda locks: locks.ping(),
    lambda locks: locks.snapshot(),
]


@pytest.mark.parametrize("asked", ASKED)
def test_no_server_listens(asked: Callable[[Any], Any]) -> None:
    url, found = nobody(), []
    locks = fairlock.connect(url)
    with pytest.raises(StoreError, match="nothing listens there") as caught:
        asked(locks)
    found.append(caught.value)

    async def by_task() -> None:
        tasks = aio.connect(url)
        with pytest.raises(StoreError, match="nothing listens there") as caught:
            await asked(tasks)
        found.append(caught.value)

    asyncio.run(by_task())
    for error in found:
        assert str(error).count("redis+cluster://127.0.0.1:") == 1, "one sentence, not one inside another"
        assert str(error).count("?") == 1
        assert SECRET not in "".join(traceback.format_exception(error))


def test_the_tool_has_a_sentence_and_no_bug() -> None:
    done = tool(nobody(), "ls")
    assert done.returncode == 69, done
    assert "nothing listens there" in done.stderr
    assert "bug" not in done.stderr


def test_a_server_that_is_no_cluster(redis_alone: Server) -> None:
    url = f"redis+cluster://:{SECRET}@{redis_alone.address}"
    says(url.replace(f":{SECRET}@", ""), "no Cluster", "redis://", kind=ConfigError, code=78)


def test_a_wrong_password(start_redis: Start) -> None:
    server = start_redis("--cluster-enabled", "yes", "--cluster-port", str(free_port()), password=SECRET)
    says(f"redis+cluster://:{SECRET}x@{server.address}", "does not accept this user and password", code=77)


def test_a_cluster_without_all_slots(start_redis: Start) -> None:
    server = start_redis("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    locks = fairlock.connect(f"redis+cluster://{server.address}")
    with pytest.raises(StoreError, match="no server of this Cluster has the slot"):
        locks.lock("x").acquire(timeout=0.3)


@pytest.fixture
def lonely(start_redis: Start) -> Server:
    """A Cluster of one server, which knows no address of its own."""
    server = start_redis("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    server.call("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    until(lambda: "cluster_state:ok" in server.call("CLUSTER", "INFO"), "it is a Cluster")
    return server


def test_a_cluster_of_one_works(lonely: Server) -> None:
    url = f"redis+cluster://localhost:{lonely.port}"
    assert tool(url).stdout == "locked\n"

    async def by_task() -> None:
        async with aio.connect(url) as locks, locks.lock("x"):
            assert [one.name for one in (await locks.snapshot()).resources] == ["x"]

    asyncio.run(by_task())


@pytest.mark.parametrize("face", ["threads", "tasks"])
def test_a_waiter_outlasts_a_cluster_that_is_gone_for_seconds(lonely: Server, face: str) -> None:
    url = f"redis+cluster://{lonely.address}"
    waited: list[float] = []

    def by_thread() -> None:
        locks = fairlock.connect(url)
        began = time.monotonic()
        with pytest.raises(StoreError, match="nothing listens"):
            locks.lock("x").acquire(timeout=2.5)
        waited.append(time.monotonic() - began)

    async def by_task() -> None:
        locks = aio.connect(url)
        began = time.monotonic()
        with pytest.raises(StoreError, match="nothing listens"):
            await locks.lock("x").acquire(timeout=2.5)
        waited.append(time.monotonic() - began)

    with fairlock.connect(url) as holder:
        lease = holder.lock("x").acquire()
        assert lease
        waiter = threading.Thread(target=by_thread if face == "threads" else lambda: asyncio.run(by_task()))
        waiter.start()
        until(lambda: any(one.queue for one in holder.snapshot("x").resources), "somebody waits")
        lonely.kill()
        waiter.join(20)
        lonely.restart()
    assert waited and 2.4 < waited[0] < within(3.5, below=10), waited


def test_a_closed_client_reports_nothing_of_a_cluster_that_is_gone(lonely: Server) -> None:
    locks = fairlock.connect(f"redis+cluster://{lonely.address}", lease=1)
    assert locks.lock("x").acquire()
    lonely.kill()
    locks.close()
    lonely.restart()


def test_one_server_of_the_map_is_enough_to_learn_it(redis_cluster: Cluster) -> None:
    url = f"redis+cluster://127.0.0.1:{free_port()},{redis_cluster.servers[4].address}"
    with fairlock.connect(url) as locks:
        for name in ("x", "y", "z", "foo"):
            with locks.lock(name):
                pass
