"""With min_replicas=n an acquire or a renewal counts only when n replicas have it; and a server that has lost its data,
or has been replaced, is noticed by the holders."""

import asyncio
import threading
import time

import pytest

import fairlock
from fairlock import StoreError, aio
from tests.servers.groups import Cluster, Sentinels, WithReplica
from tests.servers.server import Server, until


def test_an_acquire_that_a_replica_confirms_counts(redis_with_replica: WithReplica) -> None:
    with fairlock.connect(redis_with_replica.url, min_replicas=1) as locks, locks.lock("x") as lease:
        lease.renew()
        assert redis_with_replica.replica.call("EXISTS", "fairlock:{x}") == 1


def test_as_a_parameter_of_the_url_too(redis_with_replica: WithReplica) -> None:
    with fairlock.connect(redis_with_replica.url + "?min_replicas=2") as locks:
        with pytest.raises(StoreError, match="1 of 2 replicas"):
            locks.lock("x").acquire()


@pytest.mark.parametrize("contended", [False, True])
def test_too_few_replicas_are_an_error_and_nothing_is_left(redis_alone: Server, contended: bool) -> None:
    with fairlock.connect(redis_alone.url, min_replicas=1) as locks, fairlock.connect(redis_alone.url) as other:
        if contended:
            other.semaphore("x", 2).acquire()
        request = locks.semaphore("x", 2)
        with pytest.raises(StoreError, match="no replica has confirmed it"):
            request.acquire()
        assert [len(one.holders) for one in other.snapshot("x").resources] == [int(contended)]


def test_a_woken_waiter_asks_the_replicas_itself(redis_with_replica: WithReplica) -> None:
    master, replica = redis_with_replica.master, redis_with_replica.replica
    with fairlock.connect(master.url) as first, fairlock.connect(master.url, min_replicas=1) as second:
        held = first.lock("x").acquire()
        assert held is not None
        replica.stop()
        try:
            found: list[object] = []

            def wait() -> None:
                try:
                    found.append(second.lock("x").acquire(timeout=3))
                except StoreError as error:
                    found.append(error)

            thread = threading.Thread(target=wait)
            thread.start()
            until(lambda: any(r.queue for r in first.snapshot().resources), "it is in the queue")
            held.release()
            thread.join(15)
        finally:
            replica.cont()
        assert found and not isinstance(found[0], fairlock.Lease)


def test_a_server_that_lost_its_data_is_reported_within_seconds(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url, lease=30) as locks:
        lease = locks.lock("x").acquire()
        assert lease is not None
        time.sleep(1.5)  # by now the keeper listens
        redis_alone.kill()
        redis_alone.restart()
        until(lambda: lease.lost, "the loss is noticed", 5)
        assert lease.reason == "store_reset"


def test_tasks_know_of_lost_data_as_soon_as_the_connection_breaks(redis_alone: Server) -> None:
    async def work() -> float:
        async with aio.connect(redis_alone.url, lease=120) as locks:
            first, second = await locks.lock("x").acquire(), await locks.lock("y").acquire()
            assert first is not None
            assert second is not None
            await asyncio.sleep(1.5)  # by now the keeper listens
            redis_alone.kill()
            redis_alone.restart()
            begun = time.monotonic()
            while not (first.lost and second.lost):
                assert time.monotonic() - begun < 5
                await asyncio.sleep(0.01)
            assert first.reason == second.reason == "store_reset"
            return time.monotonic() - begun

    assert asyncio.run(work()) < 2.0, "a third of the lease would be 40 s"


def test_one_that_kept_its_data_is_asked_and_the_lease_goes_on(redis_durable: Server) -> None:
    told: list[str] = []
    url = redis_durable.url
    with fairlock.connect(url, lease=30, on_event=lambda event: told.append(event.kind)) as locks:
        with locks.lock("x") as lease:
            time.sleep(1.5)  # by now the keeper listens, and has asked once
            before = told.count("renewed")
            redis_durable.kill()
            redis_durable.restart()
            until(lambda: told.count("renewed") > before, "it is confirmed again", 5)
            assert lease.held


def test_under_sentinel_and_in_a_cluster_the_masters_own_replica_confirms(
    redis_sentinel: Sentinels, redis_cluster: Cluster
) -> None:
    for servers in (redis_sentinel, redis_cluster):
        with fairlock.connect(servers.url, min_replicas=1) as locks:
            for name in ("a", "b", "c"):  # one at each of the three masters
                with locks.lock(name) as lease, locks.semaphore(name + "s", 2) as slot:
                    lease.renew()
                    slot.renew()
            jobs = locks.pool("jobs")
            jobs.add("a")
            with jobs.hold() as item:
                assert item is not None
                item.renew()
        with fairlock.connect(servers.url, min_replicas=2) as locks:
            for name in ("a", "b", "c"):
                with pytest.raises(StoreError, match="1 of 2 replicas"):
                    locks.lock(name).acquire()
                assert not locks.lock(name).locked()

    async def by_tasks() -> None:
        async with aio.connect(redis_cluster.url, min_replicas=1) as locks:
            for name in ("a", "b", "c"):
                async with locks.lock(name) as lease:
                    await lease.renew()
        async with aio.connect(redis_cluster.url, min_replicas=2) as locks:
            with pytest.raises(StoreError, match="1 of 2 replicas"):
                await locks.lock("x").acquire()
            assert not await locks.lock("x").locked()

    asyncio.run(by_tasks())
