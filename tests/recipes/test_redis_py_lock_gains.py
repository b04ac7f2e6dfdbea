"""RedisPyLock where redis-py's own Lock is a trap. Each case here goes wrong there."""

import asyncio
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest
import redis
import redis.asyncio
from redis.exceptions import ConnectionError, LockError, LockNotOwnedError

import fairlock
from fairlock.recipes import RedisPyLock
from fairlock.recipes import aio as recipes
from tests.machine_load import within
from tests.recipes.both import Shop, both
from tests.servers.server import Server, until

# Waiting


@both
async def test_who_waits_is_woken_and_does_not_sleep(shop: Shop) -> None:
    with fairlock.connect(shop.server.url) as other:
        lease = other.lock("x").acquire()
        assert lease is not None
        threading.Timer(0.2, lease.release).start()
        clock = asyncio.get_running_loop().time
        begun = clock()
        assert await shop.lock(sleep=60).acquire()
        assert clock() - begun < 2


@both
async def test_a_blocking_timeout_shorter_than_sleep_is_waited_for(shop: Shop) -> None:
    await shop.lock().acquire()
    clock = asyncio.get_running_loop().time
    begun = clock()
    assert not await shop.lock(sleep=60, blocking_timeout=0.1).acquire()
    assert clock() - begun > 0.099


def test_acquire_false_tries_once(redis_alone: Server) -> None:
    with redis.Redis(port=redis_alone.port) as client:
        one, other = (client.lock("x", lock_class=RedisPyLock) for _ in range(2))
        assert one.acquire(False)
        assert not other.acquire(False)
        assert not other.acquire(True, blocking_timeout=0.01)


@both
async def test_who_asks_first_gets_it_first(shop: Shop) -> None:
    with fairlock.connect(shop.server.url) as other:
        lease = other.lock("x").acquire()
        assert lease is not None
        got_in: list[int] = []
        turn = asyncio.get_running_loop().run_in_executor if shop.runtime == "threads" else None

        def thread(number: int) -> None:
            with redis.Redis(port=shop.server.port) as client, client.lock("x", lock_class=RedisPyLock):
                got_in.append(number)

        async def task(number: int) -> None:
            async with shop.lock(client=shop.client(client_name=str(number))):
                got_in.append(number)

        waiting = []
        for number in range(1, 5):
            waiting.append(turn(None, thread, number) if turn else asyncio.ensure_future(task(number)))
            while len(other.snapshot("x").resources[0].queue) < number:
                await asyncio.sleep(0.01)
        lease.release()
        await asyncio.gather(*waiting)
        assert got_in == [1, 2, 3, 4]


# Timeouts and fences


@pytest.mark.parametrize("timeout", [0, -1, "10", True])
@both
async def test_a_timeout_that_makes_no_sense_is_refused(shop: Shop, timeout: object) -> None:
    with pytest.raises(LockError, match="timeout is a number of seconds"):
        shop.lock(timeout=timeout)


@both
async def test_without_a_timeout_a_crash_costs_half_a_minute(shop: Shop) -> None:
    await shop.lock().acquire()
    with fairlock.connect(shop.server.url) as other:
        (holder,) = other.snapshot("x").resources[0].holders
        assert 20 < holder.expires_in <= 30


@both
async def test_a_holder_that_stands_still_keeps_it_for_its_timeout(shop: Shop) -> None:
    """A renewal that does not come costs nothing before then: as in redis-py, the server waits that long."""
    lock = shop.lock(timeout=10)
    await lock.acquire()
    assert lock.lease.remaining() > 9.9
    with fairlock.connect(shop.server.url) as other:
        (holder,) = other.snapshot("x").resources[0].holders
        assert 10 < holder.expires_in < 11.2


@both
async def test_the_holder_knows_of_its_end_before_others_get_in(shop: Shop) -> None:
    lock = shop.lock(timeout=0.2)
    await lock.acquire()
    lease = lock.lease
    assert lease.held
    assert await shop.lock().acquire(blocking_timeout=5)
    assert lease.lost
    assert lease.reason == "max_hold"
    with pytest.raises(LockNotOwnedError):
        await lock.release()


@both
async def test_each_hold_has_a_greater_fence(shop: Shop) -> None:
    lock, fences = shop.lock(), []
    for _ in range(5):
        async with lock:
            fences.append(lock.lease.fence)
    assert fences == sorted(set(fences))
    assert lock.lease is None


KEEPS_IT = """
import sys, time, redis
from fairlock.recipes import RedisPyLock
print(time.monotonic())
assert redis.Redis(port=int(sys.argv[1])).lock("x", timeout=3, lock_class=RedisPyLock).acquire(blocking=False)
"""


def test_one_that_is_never_released_stays_for_its_timeout_even_after_its_process(redis_alone: Server) -> None:
    """So programs see to it that something is done once an hour. That works as it did."""
    command = [sys.executable, "-W", "error", "-c", KEEPS_IT, str(redis_alone.port)]
    begun = float(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    with redis.Redis(port=redis_alone.port) as client:
        lock = client.lock("x", lock_class=RedisPyLock)
        assert lock.acquire(blocking_timeout=20)
        assert 3 <= time.monotonic() - begun < within(6, below=20)
        lock.release()


# Release


@both
async def test_the_error_at_the_end_does_not_hide_what_the_body_raised(shop: Shop) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        async with shop.lock(timeout=0.1):
            await asyncio.sleep(0.15)
            1 / 0  # noqa: B018
    assert "was lost" in raised.value.__notes__[0]


@pytest.mark.parametrize("runtime", ["threads", "tasks"])
def test_a_release_that_did_not_reach_the_server_may_be_repeated(redis_durable: Server, runtime: str) -> None:
    async def case() -> None:
        shop = Shop(redis_durable, runtime)
        lock = shop.lock()
        await lock.acquire()
        redis_durable.kill()
        with pytest.raises(ConnectionError):
            await lock.release()
        assert lock.local.token is not None
        redis_durable.restart()
        await lock.release()
        assert not await shop.lock().locked()
        await shop.close()

    asyncio.run(case())


def time_to_acquire(lock: RedisPyLock) -> float:
    began = time.perf_counter()
    lock.acquire()
    took = time.perf_counter() - began
    lock.release()
    return took


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # sockets that it met half open
@pytest.mark.parametrize("way", ["acquire", "with"])
def test_ctrl_c_while_acquiring_leaves_nothing_behind(redis_alone: Server, way: str) -> None:
    """At moments all over the way in. One that comes when it is already inside is the program's own to clear up."""

    def press(*_: object) -> None:
        raise KeyboardInterrupt

    pressed, dice, before = 0, random.Random(way), signal.signal(signal.SIGALRM, press)
    try:
        with redis.Redis(port=redis_alone.port) as client, redis.Redis(port=redis_alone.port) as others:
            other = others.lock("x", lock_class=RedisPyLock)
            way_in = min(time_to_acquire(client.lock("x", lock_class=RedisPyLock)) for _ in range(20))
            for turn in range(150):
                lock = client.lock("x", lock_class=RedisPyLock)
                holders = False
                try:
                    signal.setitimer(signal.ITIMER_REAL, dice.uniform(0.00001, 3 * way_in))
                    if way == "acquire":
                        lock.acquire()
                    else:
                        with lock:
                            holders = True
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt:
                    pressed += 1
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                if lock.local.token is not None and (way == "acquire" or holders):
                    lock.release()
                assert other.acquire(blocking_timeout=3), turn
                other.release()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert pressed > 10


@both
async def test_a_child_does_not_release_what_its_parent_has(shop: Shop) -> None:
    if shop.runtime == "tasks":
        return  # a loop does not survive a fork
    lock = shop.lock()
    await lock.acquire()
    child = os.fork()
    if child == 0:
        try:
            lock._lock.release()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert await lock.owned()
    assert await shop.lock().locked()


def test_a_server_that_cannot_be_reached_is_the_drivers_error() -> None:
    lock = redis.Redis(port=1).lock("x", lock_class=RedisPyLock)
    for ask in (lock.acquire, lock.locked, lock.__enter__):
        with pytest.raises(ConnectionError) as raised:
            ask()
        assert isinstance(raised.value.__cause__, fairlock.StoreError)


# What it is


@both
async def test_it_is_a_lock_of_fairlock_and_not_the_key_of_redis_py(shop: Shop) -> None:
    async with shop.lock():
        with fairlock.connect(shop.server.url) as other:
            assert other.lock("x").locked()
        assert shop.server.call("GET", "x") is None


@both
async def test_names_are_text_even_as_bytes(shop: Shop) -> None:
    async with shop.lock(b"caf\xc3\xa9"):
        assert await shop.lock("café").locked()
    for name in (b"\xff", "", "x" * 201, "a\nb"):
        with pytest.raises(LockError):
            shop.lock(name)


def test_a_client_of_the_other_runtime_is_refused() -> None:
    with pytest.raises(LockError, match="asyncio"):
        redis.asyncio.Redis().lock("x", lock_class=RedisPyLock)
    with pytest.raises(LockError, match="blocks"):
        redis.Redis().lock("x", lock_class=recipes.RedisPyLock)


def test_a_client_that_is_gone_takes_its_connections_along(redis_alone: Server) -> None:
    before = len(redis_alone.client.client_list())
    for _ in range(5):
        client = redis.Redis(port=redis_alone.port)
        with client.lock("x", lock_class=RedisPyLock):
            pass
        client.close()
        del client
    until(lambda: gc.collect() is not None and len(redis_alone.client.client_list()) <= before, "they are closed")
