"""ExpLock: the plain protocol of one key with an expiry, spoken with care."""

import os
import threading
import time
from collections.abc import Iterator

import pytest
import redis
import redis.asyncio
from redis.exceptions import ConnectionError

from fairlock import AlreadyHeld, ConfigError, LockTimeout
from fairlock.recipes import AlreadyAcquiredLockError, ExpLock, TooManyLockAttemptsError
from tests.servers.server import Server


@pytest.fixture
def client(redis_alone: Server) -> Iterator[redis.Redis]:
    with redis.Redis(port=redis_alone.port) as client:
        yield client


def test_one_at_a_time(client: redis.Redis) -> None:
    one, other = ExpLock("x", redis=client), ExpLock("x", redis=client)
    assert one.try_lock()
    assert not other.try_lock()
    assert one.unlock()
    assert other.try_lock()
    assert not one.try_lock()


def test_what_it_says_about_itself(client: redis.Redis) -> None:
    one, other = ExpLock("x", redis=client), ExpLock("x", redis=client)
    assert (one.locked, one.key_locked(), one.key_owned()) == (False, False, False)
    one.lock()
    assert (one.locked, one.key_locked(), one.key_owned()) == (True, True, True)
    assert (other.locked, other.key_locked(), other.key_owned()) == (False, True, False)
    one.unlock()
    assert (one.locked, one.key_locked(), one.key_owned()) == (False, False, False)


def test_a_client_that_decodes_does_as_well(redis_alone: Server) -> None:
    with redis.Redis(port=redis_alone.port, decode_responses=True) as client:
        lock = ExpLock("x", redis=client)
        assert lock.try_lock()
        assert lock.key_owned()
        assert lock.unlock()


def test_many_threads_never_meet(client: redis.Redis) -> None:
    holders, met = [0], []

    def work() -> None:
        lock = ExpLock("x", redis=client, retries=10_000, interval=0.001)
        for _ in range(10):
            with lock.synchronize():
                holders[0] += 1
                met.append(holders[0])
                time.sleep(0.0005)
                holders[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert met == [1] * 60


# Against others who speak the protocol


def test_redis_pys_own_lock_is_kept_out(client: redis.Redis) -> None:
    lock = ExpLock("x", redis=client)
    lock.lock()
    theirs = client.lock("x")
    assert not theirs.acquire(blocking=False)
    lock.unlock()
    assert theirs.acquire(blocking=False)


def test_redis_pys_own_lock_keeps_it_out(client: redis.Redis) -> None:
    theirs = client.lock("x", timeout=10)
    assert theirs.acquire(blocking=False)
    lock = ExpLock("x", redis=client)
    assert not lock.try_lock()
    assert lock.key_locked()
    assert 8000 < client.pttl("x") <= 10_000  # and did nothing to its time
    theirs.release()
    assert lock.try_lock()


def test_the_bare_commands_are_enough_to_speak_to_it(client: redis.Redis) -> None:
    assert client.set("x", "a token of theirs", nx=True, px=10_000)
    lock = ExpLock("x", redis=client)
    assert not lock.try_lock()
    assert not lock.unlock()
    assert client.get("x") == b"a token of theirs"
    client.delete("x")
    assert lock.try_lock()
    assert client.set("x", "again", nx=True, px=10_000) is None


def test_it_is_one_key_and_nothing_else(client: redis.Redis) -> None:
    with ExpLock("x", redis=client).synchronize():
        assert client.keys("*") == [b"x"]
        assert client.type("x") == b"string"
    assert client.keys("*") == []


# Expiry


@pytest.mark.parametrize("expiry, low, high", [(60, 55_000, 60_000), (1.5, 500, 1500)])
def test_the_server_ends_it(client: redis.Redis, expiry: float, low: int, high: int) -> None:
    assert ExpLock("x", redis=client, expiry=expiry).try_lock()
    assert low <= max(client.pttl("x"), 0) <= high


def test_a_yes_that_took_longer_than_the_expiry_is_none(client: redis.Redis) -> None:
    lock = ExpLock("x", redis=client, expiry=0.000001)
    assert not lock.try_lock()
    assert not lock.locked
    assert not lock.key_locked()
    with pytest.raises(TooManyLockAttemptsError):
        lock.lock()


def test_without_an_expiry_it_stays(client: redis.Redis) -> None:
    lock = ExpLock("x", redis=client, expiry=None)
    assert lock.try_lock()
    assert client.pttl("x") == -1
    assert lock.unlock()


def test_one_that_expired_is_not_given_back(client: redis.Redis) -> None:
    one, other = ExpLock("x", redis=client, expiry=0.3), ExpLock("x", redis=client)
    one.lock()
    time.sleep(0.35)
    assert one.locked  # as far as the client knows
    assert not one.key_owned()
    other.lock()
    assert not one.unlock()
    assert not one.locked
    assert other.key_owned()


def test_one_that_somebody_deleted_is_not_given_back(client: redis.Redis) -> None:
    lock = ExpLock("x", redis=client)
    lock.lock()
    client.delete("x")
    assert not lock.unlock()


# Attempts


def test_lock_counts_its_attempts(client: redis.Redis) -> None:
    assert ExpLock("x", redis=client).lock() == 1
    threading.Timer(0.05, client.delete, ["x"]).start()
    assert ExpLock("x", redis=client, retries=500, interval=0.01).lock() > 1


@pytest.mark.parametrize("retries, says", [(0, "in 1 attempt."), (2, "in 3 attempts.")])
def test_after_too_many_attempts_it_gives_up(client: redis.Redis, retries: int, says: str) -> None:
    ExpLock("x", redis=client).lock()
    lock = ExpLock("x", redis=client, retries=retries, interval=0.01)
    begun = time.monotonic()
    with pytest.raises(TooManyLockAttemptsError, match=says) as raised:
        lock.lock()
    assert time.monotonic() - begun >= 0.01 * retries
    assert isinstance(raised.value, LockTimeout)
    assert not lock.locked


def test_a_second_lock_by_the_same_object_is_refused_at_once(client: redis.Redis) -> None:
    lock = ExpLock("x", redis=client)
    with lock.synchronize():
        for again in (lock.lock, lock.try_lock, lambda: lock.synchronize().__enter__()):
            with pytest.raises(AlreadyAcquiredLockError, match="unlock") as raised:
                again()
            assert isinstance(raised.value, AlreadyHeld)
        assert lock.key_owned()


# synchronize


def test_synchronize_gives_the_attempts_and_releases(client: redis.Redis) -> None:
    lock = ExpLock("x", redis=client)
    with lock.synchronize() as attempts:
        assert attempts == 1
        assert lock.key_owned()
    assert not lock.key_locked()


def test_synchronize_releases_when_the_body_raises(client: redis.Redis) -> None:
    lock = ExpLock("x", redis=client)
    with pytest.raises(ZeroDivisionError):
        with lock.synchronize():
            1 / 0  # noqa: B018
    assert not lock.key_locked()


def test_a_server_that_is_gone_at_the_end_does_not_hide_what_the_body_raised(redis_durable: Server) -> None:
    lock = ExpLock("x", redis=redis.Redis(port=redis_durable.port, retry=None))
    with pytest.raises(ZeroDivisionError) as raised:
        with lock.synchronize():
            redis_durable.kill()
            1 / 0  # noqa: B018
    assert "could not be unlocked" in raised.value.__notes__[0]
    redis_durable.restart()
    assert lock.unlock()  # it may be tried again


# A process of its own


def test_a_child_does_not_release_what_its_parent_has(client: redis.Redis) -> None:
    lock = ExpLock("x", redis=client)
    lock.lock()
    child = os.fork()
    if child == 0:
        os._exit(10 * lock.locked + lock.unlock())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert lock.key_owned()


# What it does not take


@pytest.mark.parametrize("options, says", [
    ({"expiry": 0}, "expiry"), ({"expiry": -1}, "expiry"), ({"expiry": "60"}, "expiry"),
    ({"retries": -1}, "retries"), ({"retries": 1.5}, "retries"), ({"retries": True}, "retries"),
    ({"interval": -0.1}, "interval"), ({"interval": -1}, "interval"),
    ({"redis": redis.asyncio.Redis()}, "asyncio"), ({"redis": "redis://localhost"}, "not a client"),
])
def test_bad_input_is_refused_before_anything_is_sent(options: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ExpLock("x", **{"redis": redis.Redis(port=1), **options})  # type: ignore[arg-type]


def test_a_server_that_cannot_be_reached_is_the_clients_error() -> None:
    lock = ExpLock("x", redis=redis.Redis(port=1, retry=None))
    for ask in (lock.try_lock, lock.lock, lock.key_locked, lock.key_owned):
        with pytest.raises(ConnectionError):
            ask()
    assert not lock.locked
