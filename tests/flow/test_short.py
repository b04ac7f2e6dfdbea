"""The short way in and out is taken where it should be, and leaves everything else to the long one."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.testing.faults import Faults, install


class Counted:
    """Which of the two ways a client's steps took."""

    def __init__(self, locks: holdfast.Locks) -> None:
        self.at_once: list[str] = []
        self.asked: list[str] = []
        backend: Any = locks._desk.backend
        at_once, ask = backend.at_once, backend.ask

        def try_at_once(name: str, command: Any) -> Any:
            answer = at_once(name, command)
            if answer is not None:
                self.at_once.append(type(command).__name__)
            return answer

        async def really_ask(name: str, command: Any) -> Any:
            self.asked.append(type(command).__name__)
            return await ask(name, command)

        backend.at_once, backend.ask = try_at_once, really_ask


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"memory://{tmp_path.name}" if request.param == "memory" else f"sqlite:///{tmp_path}/locks.db"


@pytest.fixture
def locks(url: str) -> Iterator[holdfast.Locks]:
    with holdfast.connect(url) as client:
        backend: Any = client._desk.backend
        if hasattr(backend, "store"):
            backend.store.trust = 60.0  # a slow machine must not make it read first
            with client.lock("x"):
                pass  # the row is there, and known
            backend.store._check_at = float("inf")
        yield client


def test_a_lock_that_nobody_else_wants_is_taken_and_left_at_once(locks: holdfast.Locks) -> None:
    counted = Counted(locks)
    with locks.lock("x") as first:
        assert first.held
    with locks.lock("x") as second:
        assert second.fence > first.fence
    assert counted.at_once == ["Enter", "Leave"] * 2
    assert counted.asked == []
    assert not locks._desk.seats and not locks._desk.entered


def test_what_is_held_by_this_client_is_waited_for_the_long_way(locks: holdfast.Locks) -> None:
    with locks.lock("x"):
        counted = Counted(locks)
        assert locks.lock("x").acquire(False) is None
        with pytest.raises(holdfast.AlreadyHeld):
            locks.lock("x").acquire()
        assert counted.at_once == []


def test_what_another_client_holds_is_waited_for(locks: holdfast.Locks, url: str) -> None:
    with holdfast.connect(url) as other, other.lock("x"):
        assert locks.lock("x").acquire(False) is None
        assert locks.lock("x").acquire(timeout=0.02) is None
    with locks.lock("x"):
        pass
    assert not locks._desk.seats


def test_one_that_changed_meanwhile_is_read_first(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    with holdfast.connect(url) as locks, holdfast.connect(url) as other:
        locks._desk.backend.store.trust = 60.0  # type: ignore[attr-defined]
        with locks.lock("x") as first:
            pass
        with other.lock("x") as second:
            pass
        with locks.lock("x") as third:  # from what it knows, which is no longer so
            assert first.fence < second.fence < third.fence


def test_a_hold_that_ended_inside_is_told_as_lost(locks: holdfast.Locks) -> None:
    with pytest.raises(holdfast.LeaseLost):
        with locks.lock("x", max_hold=0.01) as lease:
            lease._seat.cap = 0.0


def test_faults_are_not_passed_by(locks: holdfast.Locks) -> None:
    faults = install(Faults("after", "after"), locks)
    with locks.lock("x"):
        pass
    assert [fault for _, fault in faults.made] == ["after", "after"]
    assert locks.snapshot().resources[0].inside == ()


def test_ctrl_c_in_the_middle_of_the_short_way_leaves_nothing_behind(locks: holdfast.Locks) -> None:
    backend: Any = locks._desk.backend
    at_once = backend.at_once

    def interrupted(name: str, command: Any) -> Any:
        answer = at_once(name, command)
        if threading.current_thread() is not threading.main_thread():  # the keeper pays a debt: Ctrl-C is not for it
            return answer
        raise KeyboardInterrupt

    backend.at_once = interrupted
    with pytest.raises(KeyboardInterrupt):
        with locks.lock("x"):
            raise AssertionError("it was interrupted before this")
    del backend.at_once
    assert not locks._desk.seats
    with locks.lock("x"):
        backend.at_once = interrupted
        with pytest.raises(KeyboardInterrupt):
            locks.lock("y").acquire()
        del backend.at_once
    lease = locks.lock("x").acquire(timeout=0)
    assert lease is not None
    backend.at_once = interrupted
    with pytest.raises(KeyboardInterrupt):
        with lease:
            pass
    del backend.at_once
    assert not lease.lost
    assert all(not resource.inside for resource in locks.snapshot().resources)
