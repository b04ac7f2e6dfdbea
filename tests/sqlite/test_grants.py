"""Whoever is let in from the line is told so with its fence, goes in on that word, and confirms it a little later."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.backends.contract import Pushed
from holdfast.backends.sqlite.waiting import _read
from holdfast.doorman import Record
from holdfast.flow.run import run
from tests.sqlite.plumbing import until


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/locks.db"


@pytest.fixture
def waiter(url: str) -> Iterator[holdfast.Locks]:
    with holdfast.connect(url) as client:
        yield client


def record(locks: holdfast.Locks) -> Record:
    return run(locks._desk.backend.look("x"))[0]


def handed_over(url: str, waiter: holdfast.Locks, inside: Callable[[holdfast.Lease], None]) -> list[str]:
    """One client leaves, the other comes in from the line and does that inside; what it said to the store for it."""
    said: list[str] = []
    backend = waiter._desk.backend
    at_once, ask = backend.at_once, backend.ask

    def note_at_once(name: str, command: object) -> object:
        answer = at_once(name, command)  # type: ignore[arg-type]
        if answer is not None:
            said.append(type(command).__name__)
        return answer

    async def note_ask(name: str, command: object) -> object:
        said.append(type(command).__name__)
        return await ask(name, command)  # type: ignore[arg-type]

    backend.at_once, backend.ask = note_at_once, note_ask  # type: ignore[method-assign, assignment]
    problems: list[BaseException] = []

    def wait() -> None:
        try:
            with waiter.lock("x") as lease:
                inside(lease)
        except BaseException as problem:
            problems.append(problem)

    with holdfast.connect(url) as first, first.lock("x"):
        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: record(first).line)
    thread.join(20)
    assert not thread.is_alive()
    if problems:
        raise problems[0]
    return said


def test_a_short_turn_needs_no_confirming(url: str, waiter: holdfast.Locks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.flow.acquire.SOON", 0.4)  # however slow this machine is today
    fences: list[int] = []
    said = handed_over(url, waiter, lambda lease: fences.append(lease.fence))
    assert said.count("Enter") == 1, "the one that brought it into the line"
    assert "Renew" not in said
    assert record(waiter).inside == ()
    assert record(waiter).fence >= fences[0] > 0


def test_a_longer_one_is_confirmed_and_then_lasts_for_its_lease(url: str, waiter: holdfast.Locks) -> None:
    def inside(lease: holdfast.Lease) -> None:
        assert lease.remaining() < 2
        until(lambda: lease.remaining() > 20)
        (seat,) = record(waiter).inside
        assert seat.sure and seat.fence == lease.fence

    assert "Renew" in handed_over(url, waiter, inside)


def test_what_is_heard_long_after_the_last_poll_is_asked_about(
    url: str, waiter: holdfast.Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = waiter._desk.clock
    waiter._desk.clock = lambda: clock() + 0.6  # since whatever it sent last
    assert handed_over(url, waiter, lambda lease: None).count("Enter") == 2


def test_one_whose_grant_was_taken_away_meanwhile_learns_of_it(
    url: str, waiter: holdfast.Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def inside(lease: holdfast.Lease) -> None:
        with holdfast.connect(url) as operator:
            operator.evict("x", ticket=lease.ticket, at_once=True, reason="a test")
        until(lambda: lease.lost)

    with pytest.raises(holdfast.LeaseLost):
        handed_over(url, waiter, inside)


def test_one_who_is_stopped_before_it_has_confirmed_knows_of_its_loss(
    url: str, waiter: holdfast.Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = waiter._desk.clock

    def inside(lease: holdfast.Lease) -> None:
        assert lease.held
        waiter._desk.clock = lambda: clock() + 1.6  # as if it had been stopped right here
        assert lease.lost

    with pytest.raises(holdfast.LeaseLost, match="'x'"):
        handed_over(url, waiter, inside)


def test_nobody_else_is_inside_while_it_is_unconfirmed(
    url: str, waiter: holdfast.Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.flow.acquire.SOON", 0.4)

    def inside(lease: holdfast.Lease) -> None:
        with holdfast.connect(url) as other:
            until_then = time.monotonic() + 0.2
            while time.monotonic() < until_then:
                assert other.lock("x").acquire(blocking=False) is None

    handed_over(url, waiter, inside)


def test_a_hint_is_a_ticket_whatever_follows_it() -> None:
    assert _read("B 7 12") == Pushed("B", 7, 12)
    for rest in ("", " ", " 1", " x y", " 1 2 3"):
        assert _read("B" + rest) == Pushed("B")
