"""Ctrl-C before any line of an acquire, of a release, of taking an item, of leaving a block, leaves nothing behind."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fairlock
from tests.engine.ctrl_c import CtrlC, settled

# Interrupted between making a coroutine and its first line, which does no harm.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <coroutine:pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def locks(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[fairlock.Locks]:
    urls = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path}/locks.db"}
    url = urls.get(request.param) or request.getfixturevalue(request.param).url
    with fairlock.connect(url) as client:
        with client.lock("x"), client.rwlock("r").read(), client.semaphore("s", 2):
            pass
        client.pool("jobs").add("a")
        yield client


KINDS: dict[str, Callable[[fairlock.Locks], Any]] = {
    "lock": lambda locks: locks.lock("x"),
    "reentrant": lambda locks: locks.lock("x", reentrant=True),
    "writer": lambda locks: locks.rwlock("r").write(),
    "reader": lambda locks: locks.rwlock("r").read(),
    "semaphore": lambda locks: locks.semaphore("s", 2),
    "pool": lambda locks: locks.pool("jobs"),
}


@pytest.mark.parametrize("timeout", [None, 5], ids=["no timeout", "timeout"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("calls", [False, True], ids=["lines", "calls"])
def test_before_any_line_of_acquiring(locks: fairlock.Locks, kind: str, timeout: float | None, calls: bool) -> None:
    wanted = KINDS[kind](locks)
    for nth in range(1, 1000):
        ctrl_c = CtrlC(nth, calls=calls)
        lease = ctrl_c.run(lambda: wanted.acquire(timeout=timeout))
        if lease is not None:
            lease.release()
        settled(locks)
        assert not locks._session.grants, ctrl_c.at
        assert not [r for r in locks.snapshot().resources if r.holders or r.queue], ctrl_c.at
        assert locks.pool("jobs").counts().taken == 0, ctrl_c.at
        if lease is not None:
            break
    assert 4 < nth < 999


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "pool"])
@pytest.mark.parametrize("calls", [False, True], ids=["lines", "calls"])
def test_before_any_line_of_releasing(locks: fairlock.Locks, kind: str, calls: bool) -> None:
    """It is released, or still held if the release had not begun; never lost, and nothing is left behind."""
    wanted = KINDS[kind](locks)
    for nth in range(1, 400):
        lease = wanted.acquire()
        ctrl_c = CtrlC(nth, calls=calls)
        ctrl_c.run(lease.release)
        settled(locks)
        assert not lease.lost, ctrl_c.at
        if lease.held:
            lease.release()
        assert not locks._session.grants and not wanted._holds, ctrl_c.at
        assert not [r for r in locks.snapshot().resources if r.holders or r.queue], ctrl_c.at
        if not ctrl_c.at:
            break
    assert 4 < nth < 399


BLOCKS: dict[str, Callable[[fairlock.Locks], Any]] = {
    "lock": lambda locks: locks.lock("x"),
    "hold": lambda locks: locks.lock("x").hold(timeout=5),
    "lease": lambda locks: locks.lock("x").acquire(),
    "all": lambda locks: locks.lock_all("x", "y"),
    "pool": lambda locks: locks.pool("jobs").hold(timeout=5),
    "item": lambda locks: locks.pool("jobs").acquire(),
}


@pytest.mark.parametrize("kind", BLOCKS)
def test_before_any_function_of_leaving(locks: fairlock.Locks, kind: str) -> None:
    for nth in range(1, 400):
        block = BLOCKS[kind](locks)
        block.__enter__()
        ctrl_c = CtrlC(nth, calls=True)
        ctrl_c.run(lambda: block.__exit__(None, None, None))  # noqa: B023
        settled(locks)
        assert not locks._session.grants, ctrl_c.at
        assert not [r for r in locks.snapshot().resources if r.holders or r.queue], ctrl_c.at
        assert locks.pool("jobs").counts().taken == 0, ctrl_c.at
        if not ctrl_c.at:
            break
    assert 4 < nth < 399
