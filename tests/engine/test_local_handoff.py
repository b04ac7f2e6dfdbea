"""Threads of one client pass a lock on to each other: once each, whatever breaks in between."""

import threading
import time

import pytest

import fairlock
from fairlock.sync.runtime import ThreadEvent


class Crowd:
    """Threads that want the same lock, one after the other, and how many were inside at once."""

    def __init__(self, locks: fairlock.Locks, **options: float) -> None:
        self.locks = locks
        self.options = options
        self.holders = self.most = 0
        self.fences: list[int] = []
        self.threads: list[threading.Thread] = []

    def come(self, many: int) -> None:
        for _ in range(many):
            before = self.standing_by()
            self.threads.append(threading.Thread(target=self.work))
            self.threads[-1].start()
            until = time.monotonic() + 10
            while self.standing_by() == before:
                assert time.monotonic() < until
                time.sleep(0.001)

    def standing_by(self) -> int:
        return sum(len(grant.queue or ()) for grant in list(self.locks._session.grants.values()))

    def work(self) -> None:
        with self.locks.lock("x", **self.options) as lease:
            self.holders += 1
            self.most = max(self.most, self.holders)
            self.fences.append(lease.fence)
            time.sleep(0.005)
            self.holders -= 1

    def done(self) -> None:
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive()


@pytest.fixture
def crowd() -> Crowd:
    return Crowd(fairlock.connect("memory://"))


def test_each_gets_it_in_the_order_in_which_they_came_with_a_fence_of_its_own(crowd: Crowd) -> None:
    with crowd.locks.lock("x") as lease:
        crowd.come(5)
    crowd.done()
    assert crowd.most == 1
    assert crowd.fences == [lease.fence + i for i in range(1, 6)]
    assert not crowd.locks._session.grants


@pytest.mark.parametrize("again", [1, 2])
def test_a_ctrl_c_while_it_is_passed_on_neither_loses_it_nor_gives_it_to_two(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch, again: int
) -> None:
    told = ThreadEvent.set
    broken = 0

    def breaks(event: ThreadEvent) -> None:
        nonlocal broken
        if threading.current_thread() is threading.main_thread() and broken < again:
            broken += 1
            raise KeyboardInterrupt
        told(event)

    with pytest.raises(KeyboardInterrupt):
        with crowd.locks.lock("x") as lease:
            crowd.come(3)
            monkeypatch.setattr(ThreadEvent, "set", breaks)
    crowd.done()
    assert broken == again
    assert crowd.most == 1
    assert crowd.fences == sorted(set(crowd.fences)) and crowd.fences[0] > lease.fence
    assert not lease.lost and not crowd.locks._session.grants


def test_one_whose_time_is_over_leaves_the_others_in_line(crowd: Crowd) -> None:
    late: list[object] = []
    with crowd.locks.lock("x"):
        crowd.come(1)
        impatient = threading.Thread(target=lambda: late.append(crowd.locks.lock("x").acquire(timeout=0.02)))
        impatient.start()
        impatient.join(10)
        crowd.come(1)
    crowd.done()
    assert late == [None]
    assert crowd.most == 1 and len(crowd.fences) == 2
    assert not crowd.locks._session.grants


def test_those_who_wait_when_the_client_is_closed_are_told(crowd: Crowd) -> None:
    told: list[str] = []

    def wait() -> None:
        try:
            crowd.locks.lock("x").acquire()
        except fairlock.ConfigError as error:
            told.append(str(error))

    with crowd.locks.lock("x"):
        waiting = threading.Thread(target=wait)
        waiting.start()
        until = time.monotonic() + 10
        while not crowd.standing_by():
            assert time.monotonic() < until
            time.sleep(0.001)
        crowd.locks.close()
    waiting.join(10)
    assert told == ["This client is closed. Make a new one with connect()."]
