"""A lock that no other client wants costs one exchange to acquire and one to release, without a coroutine."""

import asyncio
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import fairlock
from fairlock import aio
from fairlock.engine.acquire import accept_grant
from fairlock.engine.grant import Grant
from fairlock.testing.faults import Faults, install


class Counted:
    """Which steps of a client needed no waiting (`call_nowait`), and which were left to a coroutine."""

    def __init__(self, locks: fairlock.Locks) -> None:
        self.call_nowait: list[str] = []
        self.called: list[str] = []
        backend: Any = locks._session.backend
        call_nowait, call = backend.call_nowait, backend.call

        def counted_call_nowait(name: str, command: Any) -> Any:
            answer = call_nowait(name, command)
            if answer is not None:
                self.call_nowait.append(type(command).__name__)
            return answer

        async def counted_call(name: str, command: Any) -> Any:
            self.called.append(type(command).__name__)
            return await call(name, command)

        backend.call_nowait, backend.call = counted_call_nowait, counted_call


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"memory://{tmp_path.name}" if request.param == "memory" else f"sqlite:///{tmp_path}/locks.db"


@pytest.fixture
def locks(url: str) -> Iterator[fairlock.Locks]:
    with fairlock.connect(url) as client:
        backend: Any = client._session.backend
        if hasattr(backend, "store"):
            backend.store.cache_ttl = 60.0  # a slow machine must not make it read first
            with client.lock("x"):
                pass  # the row is there, and known
            backend.store._check_at = float("inf")
        yield client


def test_a_lock_that_nobody_else_wants_is_taken_and_left_at_once(locks: fairlock.Locks) -> None:
    counted = Counted(locks)
    with locks.lock("x") as first:
        assert first.held
    with locks.lock("x") as second:
        assert second.fence > first.fence
    assert counted.call_nowait == ["Acquire", "Release"] * 2
    assert counted.called == []
    assert not locks._session.grants and not locks._session.entered


def test_what_is_held_by_this_client_is_not_asked_for(locks: fairlock.Locks) -> None:
    with locks.lock("x"):
        counted = Counted(locks)
        assert locks.lock("x").acquire(False) is None
        with pytest.raises(fairlock.AlreadyHeld):
            locks.lock("x").acquire()
        assert counted.call_nowait == []


def test_what_another_client_holds_is_waited_for(locks: fairlock.Locks, url: str) -> None:
    with fairlock.connect(url) as other, other.lock("x"):
        assert locks.lock("x").acquire(False) is None
        assert locks.lock("x").acquire(timeout=0.02) is None
    with locks.lock("x"):
        pass
    assert not locks._session.grants


def test_one_that_changed_meanwhile_is_read_first(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    with fairlock.connect(url) as locks, fairlock.connect(url) as other:
        locks._session.backend.store.cache_ttl = 60.0  # type: ignore[attr-defined]
        with locks.lock("x") as first:
            pass
        with other.lock("x") as second:
            pass
        with locks.lock("x") as third:  # from what it knows, which is no longer so
            assert first.fence < second.fence < third.fence


def test_a_hold_that_ended_inside_is_told_as_lost(locks: fairlock.Locks) -> None:
    with pytest.raises(fairlock.LeaseLost):
        with locks.lock("x", max_hold=0.01) as lease:
            lease._grant.cap = 0.0


def test_faults_are_not_passed_by(locks: fairlock.Locks) -> None:
    faults = install(Faults("after", "after"), locks)
    with locks.lock("x"):
        pass
    assert [fault for _, fault in faults.made] == ["after", "after"]
    assert locks.snapshot().resources == ()


def test_ctrl_c_in_the_middle_of_an_exchange_leaves_nothing_behind(locks: fairlock.Locks) -> None:
    backend: Any = locks._session.backend
    call_nowait = backend.call_nowait

    def interrupted(name: str, command: Any) -> Any:
        answer = call_nowait(name, command)
        if (
            threading.current_thread() is not threading.main_thread()
        ):  # the keeper pays a pending release: Ctrl-C is not for it
            return answer
        raise KeyboardInterrupt

    backend.call_nowait = interrupted
    with pytest.raises(KeyboardInterrupt):
        with locks.lock("x"):
            raise AssertionError("it was interrupted before this")
    del backend.call_nowait
    assert not locks._session.grants
    with locks.lock("x"):
        backend.call_nowait = interrupted
        with pytest.raises(KeyboardInterrupt):
            locks.lock("y").acquire()
        del backend.call_nowait
    lease = locks.lock("x").acquire(timeout=0)
    assert lease is not None
    backend.call_nowait = interrupted
    with pytest.raises(KeyboardInterrupt):
        with lease:
            pass
    del backend.call_nowait
    assert not lease.lost
    assert all(not resource.holders for resource in locks.snapshot().resources)


@pytest.mark.parametrize("lease", [0.5, 1, 30, 3600, 86400])
def test_the_usual_reply_sets_the_same_times_as_any_other(lease: float) -> None:
    """`accept_grant` computes them in fewer steps than `Grant.confirm`."""
    with fairlock.connect("memory://usual-reply") as locks, locks.lock("x", lease=lease).hold() as held:
        grant, request, at = held._grant, held._request, locks._session.clock()
        assert accept_grant(held, held.fence, request.lease_us, at, at)
        other = Grant(request, grant.ticket)
        other.confirm(at, request.lease_us, 0.0)
        assert grant.deadline == pytest.approx(other.deadline, abs=1e-6)
        assert grant.renew_at == pytest.approx(other.renew_at, abs=1e-6)
        assert grant.asked == other.asked == at


@pytest.mark.parametrize("passed_on", [False, True])
@pytest.mark.parametrize("number", [1, 0xABCDEF, 2**32 - 1, 2**32, 2**40])
def test_a_ticket_shows_its_thread_and_its_number(locks: fairlock.Locks, number: int, passed_on: bool) -> None:
    session, who = locks._session, object()
    session._numbers, session.passed_on = count(number), passed_on
    thread = "000000" if passed_on else session.thread(who)
    assert session.ticket(who) == f"{session._prefix}{thread}{number:08x}"
    assert session.ticket() == f"{session._prefix}000000{number + 1:08x}"


def test_a_lease_that_was_entered_may_be_entered_again(locks: fairlock.Locks) -> None:
    """A framework calls `hold().__enter__()`, and the task says `with lease:`."""
    for _ in range(3):
        with locks.lock("outer"):
            lease = locks.lock("x").hold(timeout=0).__enter__()
            with lease, lease:
                assert lease.held
            assert not lease.held
            with locks.lock("x", timeout=0):
                pass
    assert locks._session.entered == {}


def test_a_lease_of_asyncio_that_was_entered_may_be_entered_again() -> None:
    async def main() -> None:
        async with aio.connect("memory://") as locks:
            for _ in range(3):
                async with locks.lock("outer"):
                    lease = await locks.lock("x").hold(timeout=0).__aenter__()
                    async with lease, lease:
                        assert lease.held
                    assert not lease.held
                    async with locks.lock("x", timeout=0):
                        pass
            assert locks._session.entered == {}

    asyncio.run(main())
