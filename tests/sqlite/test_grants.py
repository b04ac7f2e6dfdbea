"""A waiter is granted the lock by a wake-up with its fence, uses it at once, and confirms it a little later."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fairlock
from fairlock.engine.run_sync import run
from fairlock.rules.locks import LockState
from fairlock.stores.base import Pushed
from fairlock.stores.sqlite.wait_for_wakeup import _read
from tests.sqlite.processes import until


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/locks.db"


@pytest.fixture
def waiter(url: str) -> Iterator[fairlock.Locks]:
    with fairlock.connect(url) as client:
        yield client


def record(locks: fairlock.Locks) -> LockState:
    return run(locks._session.backend.look("x"))[0]


def handed_over(url: str, waiter: fairlock.Locks, body: Callable[[fairlock.Lease], None]) -> list[str]:
    """One client leaves, the other is granted the lock from the queue and runs `body`. Return its messages."""
    sent: list[str] = []
    backend = waiter._session.backend
    call_nowait, call = backend.call_nowait, backend.call

    def note_call_nowait(name: str, command: object) -> object:
        answer = call_nowait(name, command)  # type: ignore[arg-type]
        if answer is not None:
            sent.append(type(command).__name__)
        return answer

    async def note_call(name: str, command: object) -> object:
        sent.append(type(command).__name__)
        return await call(name, command)  # type: ignore[arg-type]

    backend.call_nowait, backend.call = note_call_nowait, note_call  # type: ignore[method-assign, assignment]
    problems: list[BaseException] = []

    def wait() -> None:
        try:
            with waiter.lock("x") as lease:
                body(lease)
        except BaseException as problem:
            problems.append(problem)

    with fairlock.connect(url) as first, first.lock("x"):
        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: record(first).queue)
    thread.join(20)
    assert not thread.is_alive()
    if problems:
        raise problems[0]
    return sent


def test_a_short_turn_needs_no_confirming(url: str, waiter: fairlock.Locks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlock.engine.acquire.SOON", 0.4)  # however slow this machine is today
    fences: list[int] = []
    sent = handed_over(url, waiter, lambda lease: fences.append(lease.fence))
    assert sent.count("Acquire") == 1, "the one that brought it into the queue"
    assert "Renew" not in sent
    assert record(waiter).holders == ()
    assert record(waiter).fence >= fences[0] > 0


def test_a_longer_one_is_confirmed_and_then_lasts_for_its_lease(url: str, waiter: fairlock.Locks) -> None:
    def body(lease: fairlock.Lease) -> None:
        assert lease.remaining() < 2
        until(lambda: lease.remaining() > 20)
        (grant,) = record(waiter).holders
        assert grant.confirmed and grant.fence == lease.fence

    assert "Renew" in handed_over(url, waiter, body)


def test_a_wakeup_long_after_the_last_poll_is_checked(
    url: str, waiter: fairlock.Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = waiter._session.clock
    waiter._session.clock = lambda: clock() + 0.6  # since whatever it sent last
    assert handed_over(url, waiter, lambda lease: None).count("Acquire") == 2


def test_one_whose_grant_was_taken_away_meanwhile_learns_of_it(
    url: str, waiter: fairlock.Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def body(lease: fairlock.Lease) -> None:
        with fairlock.connect(url) as operator:
            operator.evict("x", ticket=lease.ticket, at_once=True, reason="a test")
        until(lambda: lease.lost)

    with pytest.raises(fairlock.LeaseLost):
        handed_over(url, waiter, body)


def test_a_holder_paused_before_it_has_confirmed_knows_of_its_loss(
    url: str, waiter: fairlock.Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = waiter._session.clock

    def body(lease: fairlock.Lease) -> None:
        assert lease.held
        waiter._session.clock = lambda: clock() + 1.6  # as if it had been stopped right here
        assert lease.lost

    with pytest.raises(fairlock.LeaseLost, match="'x'"):
        handed_over(url, waiter, body)


def test_nobody_else_is_inside_while_it_is_unconfirmed(
    url: str, waiter: fairlock.Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlock.engine.acquire.SOON", 0.4)

    def body(lease: fairlock.Lease) -> None:
        with fairlock.connect(url) as other:
            until_then = time.monotonic() + 0.2
            while time.monotonic() < until_then:
                assert other.lock("x").acquire(blocking=False) is None

    handed_over(url, waiter, body)


def test_a_wakeup_is_a_ticket_whatever_follows_it() -> None:
    assert _read("B 7 12") == Pushed("B", 7, 12)
    for rest in ("", " ", " 1", " x y", " 1 2 3"):
        assert _read("B" + rest) == Pushed("B")
