"""The recipes with clients of Sentinel and of a Cluster: what redis-py calls a client is a client here."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
import redis.asyncio
from redis.asyncio.sentinel import Sentinel as TaskSentinel
from redis.sentinel import Sentinel

from fairlock import ConfigError, recipes
from fairlock.recipes import aio
from tests.machine_load import within
from tests.servers.groups import Cluster, Sentinels

NAMES = ["x", "a{b}c", "}{", "käse"]  # braces would be a hash tag to a Cluster


def try_all(client: "redis.Redis | redis.RedisCluster") -> None:
    for name in NAMES:
        plain, other = (recipes.ExpLock(name, redis=client) for _ in range(2))
        with plain.synchronize():
            assert plain.key_owned()
            assert not other.try_lock()
            assert not client.lock(name).acquire(blocking=False)
        assert not plain.key_locked()
        mutex = recipes.FairMutex(client, name)
        drop_in = client.lock(name, timeout=10, lock_class=recipes.RedisPyLock)
        with mutex as lease:
            assert not drop_in.acquire(blocking=False)
        with drop_in:
            assert drop_in.lease.fence > lease.fence
            assert drop_in.owned()
            assert drop_in.extend(10)
            assert mutex.locked()
        assert not mutex.locked()
    for name in ("set of x", "set of {b}", "set of {"):
        mutexes = recipes.ZMutexSet(client, name)
        with ThreadPoolExecutor() as threads:
            waiting = threads.submit(mutexes.acquire, 5)
            time.sleep(0.1)
            mutexes.create("a")
            begun = time.monotonic()
            assert mutexes.release(mutexes.update(waiting.result())) == ("a", 0)
            assert time.monotonic() - begun < within(0.7, below=4), "woken, though it is a cluster"


async def try_all_tasks(client: "redis.asyncio.Redis | redis.asyncio.RedisCluster") -> None:
    async with client:
        for name in NAMES:
            mutex = aio.FairMutex(client, name)
            drop_in = client.lock(name, timeout=10, lock_class=aio.RedisPyLock)
            async with mutex as lease:
                assert not await drop_in.acquire(blocking=False)
            async with drop_in:
                assert drop_in.lease.fence > lease.fence
                assert await drop_in.owned()
                assert await drop_in.extend(10)
                assert await mutex.locked()
            assert not await mutex.locked()


def addresses(group: Sentinels) -> list[tuple[str, int]]:
    return [("127.0.0.1", each.port) for each in group.sentinels]


def test_a_client_of_a_cluster(redis_cluster: Cluster) -> None:
    with redis.RedisCluster("127.0.0.1", redis_cluster.masters[0].port) as client:
        try_all(client)
        with pytest.raises(ConfigError, match="hash tag"):
            recipes.ZMutexSet(client, "set of {}")


def test_a_client_of_a_cluster_for_tasks(redis_cluster: Cluster) -> None:
    async def main() -> None:
        await try_all_tasks(redis.asyncio.RedisCluster("127.0.0.1", redis_cluster.masters[0].port))

    asyncio.run(main())


def test_a_client_of_sentinel(redis_sentinel: Sentinels) -> None:
    watch = Sentinel(addresses(redis_sentinel))
    with watch.master_for(redis_sentinel.service) as client:
        try_all(client)
    for each in watch.sentinels:
        each.close()


def test_a_client_of_sentinel_for_tasks(redis_sentinel: Sentinels) -> None:
    async def main() -> None:
        watch = TaskSentinel(addresses(redis_sentinel))
        await try_all_tasks(watch.master_for(redis_sentinel.service))
        for each in watch.sentinels:
            await each.aclose()

    asyncio.run(main())
