"""ExpLock when answers are lost: it does not keep itself out, says what is true, and leaves nothing behind."""

import random
import time

import pytest
from redis.exceptions import ConnectionError, TimeoutError

from fairlock.recipes import ExpLock
from fairlock.recipes.repeat_lost_calls import TRIES
from tests.recipes.losing import losing_client
from tests.servers.server import Server

BY_WHOM = pytest.mark.parametrize("retries", [0, 3], ids=["asked again by us", "asked again by the driver"])


@BY_WHOM
@pytest.mark.parametrize("error", [ConnectionError("cut"), TimeoutError("late")])
def test_its_own_token_is_a_success(redis_alone: Server, retries: int, error: Exception) -> None:
    client, losses = losing_client(redis_alone, retries)
    lock = ExpLock("x", redis=client)
    losses.next(1, error)
    assert lock.try_lock()
    assert losses.left == 0
    assert lock.key_owned()
    assert lock.unlock()
    assert not lock.key_locked()


def test_redis_pys_own_lock_keeps_itself_out(redis_alone: Server) -> None:
    """This is the defect that ExpLock avoids. If this test fails one day, the driver avoids it, too."""
    client, losses = losing_client(redis_alone, retries=3)
    losses.next(1, command="SET")
    assert not client.lock("x").acquire(blocking=False)
    assert client.get("x") is not None


def test_a_try_without_any_answer_is_taken_back(redis_alone: Server) -> None:
    client, losses = losing_client(redis_alone)
    lock = ExpLock("x", redis=client)
    losses.next(TRIES)
    with pytest.raises(ConnectionError):
        lock.try_lock()
    assert not lock.locked
    assert not lock.key_locked()


def test_one_that_could_not_be_taken_back_is_found_again_with_its_whole_time(redis_alone: Server) -> None:
    client, losses = losing_client(redis_alone)
    lock = ExpLock("x", redis=client, expiry=60)
    losses.next(TRIES)
    taken = lock._drop_it
    lock._drop_it = None  # type: ignore[assignment]  # the server is out of reach when it is to be taken back
    with pytest.raises(ConnectionError):
        lock.try_lock()
    lock._drop_it = taken
    assert lock.key_locked()
    client.pexpire("x", 5000)  # time goes by
    assert not ExpLock("x", redis=client).try_lock()
    assert lock.try_lock()
    assert 55_000 < client.pttl("x") <= 60_000
    assert lock.unlock()


def test_unlock_of_what_was_perhaps_taken_clears_it_away_and_says_no(redis_alone: Server) -> None:
    client, losses = losing_client(redis_alone)
    lock = ExpLock("x", redis=client)
    losses.next(TRIES)
    lock._drop_it, taken = None, lock._drop_it  # type: ignore[assignment]
    with pytest.raises(ConnectionError):
        lock.try_lock()
    lock._drop_it = taken
    assert not lock.unlock()
    assert not lock.key_locked()


@pytest.mark.parametrize("losses_in_a_row", [1, TRIES - 1])
def test_a_release_whose_answer_was_lost_is_a_release(redis_alone: Server, losses_in_a_row: int) -> None:
    client, losses = losing_client(redis_alone)
    lock = ExpLock("x", redis=client)
    lock.lock()
    losses.next(losses_in_a_row)
    assert lock.unlock()


def test_a_release_without_any_answer_may_be_repeated(redis_alone: Server) -> None:
    client, losses = losing_client(redis_alone)
    lock = ExpLock("x", redis=client)
    lock.lock()
    losses.next(TRIES)
    with pytest.raises(ConnectionError):
        lock.unlock()
    assert lock.locked
    assert lock.unlock()  # it was ours until then
    assert not lock.locked


def test_a_lost_answer_does_not_make_an_expired_one_a_release(redis_alone: Server) -> None:
    client, losses = losing_client(redis_alone)
    lock = ExpLock("x", redis=client, expiry=0.3)
    lock.lock()
    time.sleep(0.35)
    losses.next(1)
    assert not lock.unlock()


def test_a_ctrl_c_in_the_middle_leaves_nothing_behind(redis_alone: Server) -> None:
    client, losses = losing_client(redis_alone)
    lock = ExpLock("x", redis=client)
    losses.next(1, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        lock.lock()
    assert not lock.key_locked()
    losses.next(1, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        with lock.synchronize():
            pass
    assert not lock.key_locked()
    assert lock.lock() == 1


@BY_WHOM
def test_a_hundred_lost_answers_refuse_nobody_and_leave_nothing(redis_alone: Server, retries: int) -> None:
    client, losses = losing_client(redis_alone, retries)
    lock, rng = ExpLock("x", redis=client), random.Random(4)
    for _ in range(100):
        losses.next(rng.randrange(TRIES))
        assert lock.try_lock()
        losses.next(rng.randrange(TRIES))
        released = lock.unlock()
        assert released or retries  # hidden by the driver: see the docstring
        assert not lock.key_locked()
