"""RedisPyLock when several threads or tasks share an object, and when tasks are cancelled or forget to await."""

import asyncio
import threading

import pytest
import redis
import redis.asyncio
from redis.exceptions import LockError, LockNotOwnedError

from fairlock.recipes import RedisPyLock
from fairlock.recipes import aio as recipes
from tests.servers.server import Server


def test_a_thread_does_not_release_what_another_has(redis_alone: Server) -> None:
    with redis.Redis(port=redis_alone.port) as client:
        lock = client.lock("x", lock_class=RedisPyLock)
        lock.acquire()
        said: list[object] = []

        def other() -> None:
            said.append(lock.local.token)  # an AttributeError in redis-py
            said.append(lock.acquire(blocking=False))
            try:
                lock.release()
            except LockError as error:
                said.append(str(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join(20)
        assert said == [None, False, "Cannot release an unlocked lock"]
        assert lock.owned()


def test_without_thread_local_another_thread_may_release_it(redis_alone: Server) -> None:
    with redis.Redis(port=redis_alone.port) as client:
        lock = client.lock("x", thread_local=False, lock_class=RedisPyLock)
        lock.acquire()
        thread = threading.Thread(target=lock.release)
        thread.start()
        thread.join(20)
        assert not lock.locked()


def test_threads_that_share_an_object_take_turns(redis_alone: Server) -> None:
    with redis.Redis(port=redis_alone.port) as client:
        lock = client.lock("x", timeout=30, lock_class=RedisPyLock)
        holders, met, fences = [0], [], []

        def work() -> None:
            for _ in range(20):
                with lock:
                    holders[0] += 1
                    met.append(holders[0])
                    assert lock.lease is not None
                    fences.append(lock.lease.fence)
                    holders[0] -= 1

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert met == [1] * 160
        assert fences == sorted(set(fences))
        assert lock._leases == {}


async def late_task(url: str) -> None:
    async with redis.asyncio.Redis.from_url(url) as client:
        lock = client.lock("x", timeout=0.2, lock_class=recipes.RedisPyLock)
        await lock.acquire()
        other = asyncio.create_task(lock.acquire(blocking_timeout=5))
        assert await other
        with pytest.raises(LockNotOwnedError):
            await lock.release()  # ours, which is gone, and not the other's
        assert await client.lock("x", lock_class=recipes.RedisPyLock).locked()
        await lock.release()  # ours is known to be gone; what the object still has is the other's
        assert not await client.lock("x", lock_class=recipes.RedisPyLock).locked()


def test_a_late_task_does_not_release_what_another_has(redis_alone: Server) -> None:
    asyncio.run(late_task(redis_alone.url))


# asyncio


async def cancelled(url: str) -> None:
    async with redis.asyncio.Redis.from_url(url) as client:
        lock = client.lock("x", lock_class=recipes.RedisPyLock)
        for turn in range(60):
            task = asyncio.create_task(lock.acquire())
            for _ in range(turn % 12):
                await asyncio.sleep(0)
            if turn % 3 == 0:
                await asyncio.sleep(0.0005)
            task.cancel()
            try:
                got_it = await task
            except asyncio.CancelledError:
                got_it = False
            if got_it:
                await lock.release()
            assert await lock.acquire(blocking_timeout=2), turn
            leaving = asyncio.create_task(lock.release())
            await asyncio.sleep(0)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            after = client.lock("x", lock_class=recipes.RedisPyLock)
            assert await after.acquire(blocking_timeout=2), turn
            await after.release()


def test_cancelled_acquires_and_releases_leave_nothing_behind(redis_alone: Server) -> None:
    asyncio.run(cancelled(redis_alone.url))


def test_a_forgotten_await_fails_loudly(redis_alone: Server) -> None:
    lock = redis.asyncio.Redis(port=redis_alone.port).lock("x", lock_class=recipes.RedisPyLock)
    for question in (lock.locked, lock.owned):
        with pytest.raises(TypeError, match="await"):
            if question():
                pass


def test_a_client_may_go_from_loop_to_loop(redis_alone: Server) -> None:
    client = redis.asyncio.Redis(port=redis_alone.port)

    async def once() -> None:
        async with client.lock("x", lock_class=recipes.RedisPyLock):
            pass
        await client.aclose()

    for _ in range(3):
        asyncio.run(once())
