"""A lock under threading.Condition, where CPython's own tests do not look: waiting inside `with`."""

import threading
import time

import pytest

import fairlock


@pytest.fixture
def locks():  # type: ignore[no-untyped-def]
    with fairlock.connect("memory://") as client:
        yield client


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_a_wait_took_back_is_released_by_the_with_around_it(locks: fairlock.Locks, reentrant: bool) -> None:
    lock = locks.lock("x", reentrant=reentrant)
    condition = threading.Condition(lock)
    with condition:
        assert condition.wait(0.01) is False
        assert lock.held
    assert not lock.held
    assert locks.snapshot().resources == ()


def test_a_wait_deep_inside_gives_back_every_level_and_takes_every_level_again(locks: fairlock.Locks) -> None:
    lock = locks.lock("x", reentrant=True)
    condition = threading.Condition(lock)
    went_in = threading.Event()

    def other() -> None:
        with condition:
            went_in.set()
            condition.notify()

    with condition, condition, lock as lease:
        thread = threading.Thread(target=other)
        thread.start()
        assert condition.wait(10)
        assert went_in.is_set()
        assert lock.held
        assert not lease.held, "that one was given back; the lock is held by another lease now"
    thread.join()
    assert not lock.held
    assert locks.snapshot().resources == ()


def test_many_who_wait_and_notify_all_come_through(locks: fairlock.Locks) -> None:
    condition = threading.Condition(locks.lock("x"))
    items: list[int] = []
    taken: list[int] = []

    def take() -> None:
        for _ in range(20):
            with condition:
                while not items:
                    condition.wait(5)
                taken.append(items.pop())

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(80):
        with condition:
            items.append(number)
            condition.notify()
    for thread in threads:
        thread.join(30)
    assert sorted(taken) == list(range(80))


def test_a_wait_on_a_lost_lease_raises_and_leaves_no_dead_waiter(locks: fairlock.Locks) -> None:
    lock = locks.lock("x")
    condition = threading.Condition(lock)
    assert lock.acquire()
    locks.evict("x", reason="a test", at_once=True)
    limit = time.monotonic() + 10
    while lock.held and time.monotonic() < limit:
        time.sleep(0.01)
    with pytest.raises(fairlock.LeaseLost):
        condition.wait(0.01)
    with pytest.raises(fairlock.LeaseLost):
        lock.release()
    assert not condition._waiters  # type: ignore[attr-defined]


def test_a_loss_in_the_moment_of_the_wait_is_told_by_the_with_around_it(locks: fairlock.Locks) -> None:
    lock = locks.lock("x")
    condition = threading.Condition(lock)
    with pytest.raises(fairlock.LeaseLost), condition:
        lease = lock._holds[0]
        owned = condition._is_owned  # type: ignore[attr-defined]

        def owned_for_the_last_time() -> bool:
            found: bool = owned()
            locks._session.lose(lease._grant, "expired", "a test wants it so")
            return found

        condition._is_owned = owned_for_the_last_time  # type: ignore[attr-defined]
        assert condition.wait(0.01) is False
    assert not condition._waiters  # type: ignore[attr-defined]
