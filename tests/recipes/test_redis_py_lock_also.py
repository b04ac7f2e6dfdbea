"""RedisPyLock with `also`: old processes with redis-py's own Lock and new ones exclude each other."""

from __future__ import annotations

import asyncio
import functools
import random
import threading
import time
from collections.abc import Coroutine
from typing import Any

import pytest
import redis
from redis.exceptions import LockError, LockNotOwnedError

import fairlock
from fairlock import recipes
from fairlock.recipes import RedisPyLock, aio
from tests.recipes.both import Awaited, Shop, both
from tests.servers.server import Server


def bridge(shop: Shop, name: str = "x", also: Any = True, **options: Any) -> Any:
    client = shop.client()
    if shop.runtime == "threads":
        return Awaited(client.lock(name, lock_class=functools.partial(recipes.RedisPyLock, also=also), **options))
    return client.lock(name, lock_class=functools.partial(aio.RedisPyLock, also=also), **options)


def plain(shop: Shop, name: str = "x", **options: Any) -> Any:
    return redis.Redis(port=shop.server.port).lock(name, **options)


@both
async def test_the_old_one_keeps_out_the_new_one_and_the_other_way_round(shop: Shop) -> None:
    old, new = plain(shop, timeout=20), bridge(shop, timeout=20)
    assert old.acquire(blocking=False)
    assert not await new.acquire(blocking=False)
    assert not await new.acquire(blocking_timeout=0.3)
    assert await new.locked() and not await new.owned()
    with fairlock.connect(shop.server.url) as locks:
        assert not locks.lock("x").locked(), "what it could not use it has released"
    old.release()
    assert await new.acquire(blocking=False)
    assert not old.acquire(blocking=False)
    assert await new.owned()
    with fairlock.connect(shop.server.url) as locks:
        assert locks.lock("x").locked()
    await new.release()
    assert old.acquire(blocking=False)
    old.release()


@both
async def test_a_wait_for_the_key_ends_when_it_is_free_and_does_not_use_up_the_timeout(shop: Shop) -> None:
    old, new = plain(shop, timeout=20, thread_local=False), bridge(shop, timeout=1, sleep=0.02)
    assert old.acquire()
    threading.Timer(1.5, old.release).start()
    assert await new.acquire(blocking_timeout=10)
    assert new.lease.held and new.lease.remaining() > 0.4
    await new.release()


@both
async def test_with_a_timeout_both_end_by_it_and_extend_moves_both(shop: Shop) -> None:
    new, raw = bridge(shop, timeout=1), redis.Redis(port=shop.server.port)
    assert await new.acquire()
    assert raw.get("x") == new.local.token
    assert 500 < raw.pttl("x") <= 1000
    await new.extend(20)
    assert 20_000 < raw.pttl("x") <= 21_000
    await new.reacquire()
    assert 500 < raw.pttl("x") <= 1000
    await asyncio.sleep(1.2)
    assert new.lease.lost and raw.get("x") is None
    with pytest.raises(LockNotOwnedError):
        await new.release()


@both
async def test_without_a_timeout_the_key_is_renewed_and_its_loss_is_the_loss_of_the_lease(shop: Shop) -> None:
    client = shop.client()
    recipe = recipes if shop.runtime == "threads" else aio
    made = recipe.RedisPyLock(client, "x", also="an older name")
    made._lease = made._plain._lease = 0.9  # type: ignore[union-attr]  # seconds: 30 in real life
    new, raw = (Awaited(made) if shop.runtime == "threads" else made), redis.Redis(port=shop.server.port)
    assert await new.acquire()
    assert 900 < raw.pttl("an older name") <= 1350
    await asyncio.sleep(2.0)
    assert new.lease.held and raw.get("an older name") == new.local.token
    raw.set("an older name", "somebody else")
    await asyncio.sleep(0.8)
    assert new.lease.lost and new.lease.reason == "store_reset"
    with pytest.raises(LockNotOwnedError, match="an older name"):
        await new.release()
    assert raw.get("an older name") == b"somebody else", "what belongs to another is left alone"


@both
async def test_a_key_that_was_lost_is_noticed_by_release(shop: Shop) -> None:
    new, raw = bridge(shop, timeout=20), redis.Redis(port=shop.server.port)
    assert await new.acquire()
    raw.delete("x")
    assert not await new.owned()
    with pytest.raises(LockNotOwnedError, match="was deleted, has expired, or belongs to another client"):
        await new.release()
    with fairlock.connect(shop.server.url) as locks:
        assert not locks.lock("x").locked()


def test_a_cancelled_acquire_leaves_neither(redis_alone: Server) -> None:
    async def main() -> None:
        async with redis.asyncio.Redis(port=redis_alone.port) as client:
            old = redis.Redis(port=redis_alone.port).lock("x", timeout=20)
            assert old.acquire()
            new = aio.RedisPyLock(client, "x", also=True)
            task = asyncio.ensure_future(new.acquire())
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            old.release()
            with fairlock.connect(redis_alone.url) as locks:
                assert not locks.lock("x").locked()
            assert await client.get("x") is None

    asyncio.run(main())


def test_a_cancellation_at_any_moment_arrives_and_leaves_neither(redis_alone: Server) -> None:
    """redis.asyncio drops one that arrives while it reads a reply: then an acquire would wait forever."""
    rng = random.Random(5)

    async def cancelled(work: Coroutine[Any, Any, Any], after: float) -> None:
        task = asyncio.ensure_future(work)
        await asyncio.sleep(after)
        under_way = not task.done()
        task.cancel()
        assert (await asyncio.wait([task], timeout=15))[0], "the cancellation was dropped"
        assert not under_way or task.cancelled() or task.exception() is None

    async def main() -> None:
        with redis.Redis(port=redis_alone.port) as raw, fairlock.connect(redis_alone.url) as locks:
            for _ in range(25):
                async with redis.asyncio.Redis(port=redis_alone.port) as client:
                    raw.set("x", "another")
                    waiting = aio.RedisPyLock(client, "x", also=True, sleep=0.005)
                    await cancelled(waiting.acquire(), rng.uniform(0, 0.02))
                    raw.delete("x")
                    held = aio.RedisPyLock(client, "x", also=True)
                    assert await held.acquire(blocking_timeout=20)
                    await cancelled(held.release(), rng.uniform(0, 0.002))
                    async with asyncio.timeout(20):  # a release goes on after its task was cancelled
                        while raw.exists("x") or locks.lock("x").locked():
                            await asyncio.sleep(0.01)

    asyncio.run(main())


def test_a_half_migrated_fleet_loses_no_count(redis_alone: Server) -> None:
    counter, over = [0], time.monotonic() + 20
    client = redis.Redis(port=redis_alone.port)

    def work(new: bool) -> None:
        for _ in range(15):
            kind = functools.partial(RedisPyLock, also=True) if new else None
            with client.lock("x", timeout=10, sleep=0.002, blocking_timeout=20, lock_class=kind):
                seen = counter[0]
                time.sleep(0.001)
                counter[0] = seen + 1

    threads = [threading.Thread(target=work, args=(number % 2 == 0,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(over - time.monotonic(), 0.1))
    client.close()
    assert counter == [90]


def test_what_also_may_be(redis_alone: Server) -> None:
    with redis.Redis(port=redis_alone.port) as client, pytest.raises(LockError, match="also is True, or the name"):
        RedisPyLock(client, "x", also=7)  # type: ignore[arg-type]
