"""RedisPyLock does what redis-py's own Lock does: its constructor, its methods, its exceptions.

Each case of redis-py's own tests is here in other words, but for those that look at the key, which is not there, or
count the polls, of which there are none. test_redis_py_lock_gains.py has what is better than there.
"""

import asyncio
import logging

import pytest
import redis
from redis.exceptions import LockError, LockNotOwnedError

import fairlock
from tests.recipes.both import Shop, both


@both
async def test_one_at_a_time(shop: Shop) -> None:
    one, other = shop.lock(), shop.lock()
    assert await one.acquire(blocking=False) is True
    assert await other.acquire(blocking=False) is False
    await one.release()
    assert await other.acquire(blocking=False)
    assert not await one.acquire(blocking=False)
    await other.release()


@both
async def test_locked_says_whether_anybody_has_it(shop: Shop) -> None:
    one, other = shop.lock(), shop.lock()
    assert await other.locked() is False
    await one.acquire(blocking=False)
    assert await other.locked() is True
    await one.release()
    assert await other.locked() is False


@pytest.mark.parametrize("settings", [{}, {"decode_responses": True}, {"protocol": 3}], ids=str)
@both
async def test_owned_says_whether_this_one_has_it(shop: Shop, settings: dict[str, object]) -> None:
    client = shop.client(**settings)
    one, other = shop.lock(client=client), shop.lock(client=client)
    assert (await one.owned(), await other.owned()) == (False, False)
    await one.acquire(blocking=False)
    assert (await one.owned(), await other.owned()) == (True, False)
    await one.release()
    assert (await one.owned(), await other.owned()) == (False, False)
    await other.acquire(blocking=False)
    assert (await one.owned(), await other.owned()) == (False, True)
    await other.release()


@both
async def test_the_constructor_keeps_what_it_was_given(shop: Shop) -> None:
    lock = shop.lock("x", timeout=10, sleep=0.2, blocking=False, blocking_timeout=3)
    assert (lock.name, lock.timeout, lock.sleep) == ("x", 10, 0.2)
    assert (lock.blocking, lock.blocking_timeout) == (False, 3)
    assert (lock.thread_local, lock.raise_on_release_error) == (True, True)
    assert lock.redis is shop.client()
    assert lock.local.token is None


@both
async def test_blocking_is_the_objects_unless_the_call_says_otherwise(shop: Shop) -> None:
    assert await shop.lock().acquire()
    assert not await shop.lock(blocking=False).acquire()
    assert not await shop.lock(blocking=True, blocking_timeout=60).acquire(blocking=False)
    assert not await shop.lock(blocking=False).acquire(blocking=True, blocking_timeout=0.01)


@pytest.mark.parametrize("limit", [0.1, 0.3])
@both
async def test_blocking_timeout_is_how_long_it_waits(shop: Shop, limit: float) -> None:
    assert await shop.lock().acquire()
    clock = asyncio.get_running_loop().time
    for wait in (
        lambda: shop.lock(blocking_timeout=limit, sleep=0.05).acquire(),
        lambda: shop.lock(blocking_timeout=60).acquire(blocking_timeout=limit),
    ):
        begun = clock()
        assert not await wait()
        assert limit <= clock() - begun + 0.001 < limit + 1


@both
async def test_a_negative_blocking_timeout_tries_once(shop: Shop) -> None:
    assert await shop.lock().acquire(blocking_timeout=-1)
    assert not await shop.lock().acquire(blocking_timeout=-1)
    assert not await shop.lock(blocking_timeout=-5).acquire()


# with


@both
async def test_a_block_holds_it(shop: Shop) -> None:
    async with shop.lock(blocking_timeout=0.2) as lock:
        assert await lock.owned()
        assert await shop.lock().locked()
    assert not await shop.lock().locked()


@both
async def test_a_block_that_does_not_get_it_raises(shop: Shop) -> None:
    await shop.lock().acquire()
    for options in ({"blocking": False}, {"blocking_timeout": 0.05}):
        with pytest.raises(LockError, match="within the time") as raised:
            async with shop.lock(**options):
                pass
        assert raised.value.lock_name == "x"


@both
async def test_the_end_of_a_block_that_lost_it_raises(shop: Shop) -> None:
    with pytest.raises(LockNotOwnedError):
        async with shop.lock(timeout=0.1):
            await asyncio.sleep(0.15)


@both
async def test_the_end_of_a_block_that_released_it_raises(shop: Shop) -> None:
    with pytest.raises(LockError):
        async with shop.lock(timeout=10) as lock:
            await lock.release()


@both
async def test_neither_raises_if_told_not_to(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "fairlock"):
        async with shop.lock(timeout=0.1, raise_on_release_error=False):
            await asyncio.sleep(0.15)
        async with shop.lock(timeout=10, raise_on_release_error=False) as lock:
            await lock.release()
    assert sum("At the end of its block" in record.getMessage() for record in caplog.records) == 2


# release


@both
async def test_release_of_what_was_never_locked_raises(shop: Shop) -> None:
    with pytest.raises(LockError, match="unlocked"):
        await shop.lock().release()
    await shop.lock().acquire()
    with pytest.raises(LockError):
        await shop.lock().release()
    assert await shop.lock().locked()


@both
async def test_release_of_what_was_lost_raises_once(shop: Shop) -> None:
    lock = shop.lock()
    await lock.acquire()
    with fairlock.connect(shop.server.url) as operator:
        operator.evict("x", reason="test", at_once=True)
    with pytest.raises(LockNotOwnedError):
        await lock.release()
    assert lock.local.token is None
    with pytest.raises(LockError, match="unlocked"):
        await lock.release()


# extend and reacquire


@both
async def test_extend_adds_to_what_is_left(shop: Shop) -> None:
    lock = shop.lock(timeout=10)
    assert await lock.acquire()
    assert 8 < lock.lease.remaining() <= 10
    assert await lock.extend(10) is True
    assert 16 < end_of(lock) <= 20
    assert await lock.extend(0.5)
    assert 16.5 < end_of(lock) <= 20.5


@both
async def test_extend_may_replace_what_is_left(shop: Shop) -> None:
    lock = shop.lock(timeout=10)
    assert await lock.acquire()
    assert await lock.extend(5, replace_ttl=True) is True
    assert 4 < end_of(lock) <= 5


@both
async def test_reacquire_starts_its_timeout_anew(shop: Shop) -> None:
    lock = shop.lock(timeout=10)
    assert await lock.acquire()
    await lock.extend(5, replace_ttl=True)
    assert await lock.reacquire() is True
    assert 8 < end_of(lock) <= 10


def end_of(lock) -> float:  # type: ignore[no-untyped-def]
    """In how many seconds it is over, if it is renewed until then."""
    return lock.lease._grant.cap - lock.lease._session.clock()  # type: ignore[no-any-return]


@both
async def test_extended_it_outlives_its_timeout_and_no_more(shop: Shop) -> None:
    lock = shop.lock(timeout=0.5)
    await lock.acquire()
    await lock.extend(1)
    await asyncio.sleep(0.8)
    assert await lock.owned()
    assert not await shop.lock().acquire(blocking=False)
    await asyncio.sleep(0.75)
    assert not await lock.owned()
    assert await shop.lock().acquire(blocking_timeout=2)


@both
async def test_neither_works_on_what_is_not_locked_or_has_no_timeout(shop: Shop) -> None:
    unlocked, endless = shop.lock(timeout=10), shop.lock("y")
    await endless.acquire()
    for ask, says in (
        (lambda: unlocked.extend(10), "extend an unlocked"),
        (lambda: unlocked.reacquire(), "reacquire an unlocked"),
        (lambda: endless.extend(10), "no timeout"),
        (lambda: endless.reacquire(), "no timeout"),
    ):
        with pytest.raises(LockError, match=says):
            await ask()


@both
async def test_neither_brings_back_what_was_lost(shop: Shop) -> None:
    lock = shop.lock(timeout=10)
    await lock.acquire()
    with fairlock.connect(shop.server.url) as operator:
        operator.evict("x", reason="test", at_once=True)
    for ask in (lambda: lock.extend(10), lambda: lock.reacquire()):
        with pytest.raises(LockNotOwnedError):
            await ask()
    assert not await shop.lock().locked()


# The token


@both
async def test_a_token_may_be_chosen(shop: Shop) -> None:
    for options in ({}, {"thread_local": False}):
        lock = shop.lock(**options)
        assert await lock.acquire(blocking=False, token="test")
        assert lock.local.token == b"test"
        assert await lock.owned()
        await lock.release()
        assert lock.local.token is None
        assert await lock.acquire(blocking=False, token=b"bytes do as well")
        await lock.release()


@pytest.mark.parametrize("token", [None, "chosen"])
@both
async def test_who_has_the_token_may_release_it_elsewhere(shop: Shop, token: str | None) -> None:
    lock = shop.lock(thread_local=False)
    await lock.acquire(token=token)
    elsewhere = shop.lock(client=shop.client(client_name="elsewhere"), thread_local=False)
    assert not await elsewhere.owned()
    elsewhere.local.token = lock.local.token
    assert await elsewhere.owned()
    await elsewhere.release()
    assert not await shop.lock().locked()
    elsewhere.local.token = b"nonsense"
    with pytest.raises(LockNotOwnedError):
        await elsewhere.release()


@both
async def test_what_another_client_extends_by_the_token_lasts_as_long_and_ends(shop: Shop) -> None:
    lock = shop.lock(timeout=0.6, thread_local=False)
    await lock.acquire()
    elsewhere = shop.lock(client=shop.client(client_name="elsewhere"), timeout=2, thread_local=False)
    elsewhere.local.token = lock.local.token
    assert await elsewhere.reacquire() is True
    await asyncio.sleep(1)
    assert await elsewhere.owned()  # the holder has not left it at the end of its own timeout
    assert await lock.owned()
    assert not await shop.lock().acquire(blocking=False)
    assert await shop.lock().acquire(blocking_timeout=5)


@both
async def test_what_is_extended_by_the_token_ends_although_its_holder_is_gone(shop: Shop) -> None:
    with fairlock.connect(shop.server.url) as gone:
        gone.lock("x", note="chosen").acquire().detach(1.0)
    elsewhere = shop.lock(timeout=1, thread_local=False)
    elsewhere.local.token = b"chosen"
    assert await elsewhere.extend(0.5) is True
    await asyncio.sleep(1.2)
    assert await elsewhere.owned()
    assert await shop.lock().acquire(blocking_timeout=2)
    with pytest.raises(LockNotOwnedError):
        await elsewhere.extend(5)


def test_a_lock_class_is_found_by_its_constructor_alone() -> None:
    """redis-py gives these and no others; a change there is noticed here."""
    given: dict[str, object] = {}

    class Mine:
        def __init__(self, client: object, name: str, **options: object) -> None:
            given.update(options)

    redis.Redis(port=1).lock("x", lock_class=Mine)
    options = "timeout sleep blocking blocking_timeout thread_local raise_on_release_error"
    assert set(given) == set(options.split())
