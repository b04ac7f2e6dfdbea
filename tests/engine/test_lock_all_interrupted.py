"""Ctrl-C or a cancellation at any moment of lock_all() leaves none of its locks held."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fairlock
from fairlock import aio
from tests.engine.ctrl_c import CtrlC, settled

# Interrupted between making a coroutine and its first line, which does no harm.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <coroutine:pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(params=["memory", "sqlite", "redis_alone", "postgresql"])
def locks(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[fairlock.Locks]:
    urls = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path}/locks.db"}
    url = urls.get(request.param) or request.getfixturevalue(request.param).url
    with fairlock.connect(url) as client:
        with client.lock_all("a", "b"):
            pass
        yield client


def nothing_is_held(locks: fairlock.Locks, at: str) -> None:
    settled(locks)
    assert not locks._session.grants, at
    assert not locks._session.entered, at
    assert not [r for r in locks.snapshot().resources if r.holders or r.queue], at


def test_before_any_line_of_entering(locks: fairlock.Locks) -> None:
    for nth in range(1, 2000):
        ctrl_c = CtrlC(nth)
        several = locks.lock_all("a", "b", timeout=5 if nth % 2 else None)
        leases = ctrl_c.run(several.__enter__)
        if leases is not None:
            several.__exit__(None, None, None)
            break
        nothing_is_held(locks, ctrl_c.at)
    assert 30 < nth < 1999
    nothing_is_held(locks, "")


def test_before_any_line_of_leaving(locks: fairlock.Locks) -> None:
    for nth in range(2, 2000):  # before the first line of __exit__ no code of ours can do anything
        ctrl_c = CtrlC(nth)
        several = locks.lock_all("a", "b")
        several.__enter__()
        if ctrl_c.run(lambda several=several: several.__exit__(None, None, None) or True):  # type: ignore[misc]
            break
        nothing_is_held(locks, ctrl_c.at)
    assert 20 < nth < 1999


def test_a_cancellation_ends_the_leaving_of_all_though_the_replies_never_come() -> None:
    """As those of several nodes of a cluster that hang."""

    async def main() -> None:
        async with aio.connect("memory://") as locks:
            backend: Any = locks.session.backend

            async def work() -> None:
                async with locks.lock_all("x", "y", "z"):
                    backend.release_soon = lambda *_: asyncio.get_running_loop().create_future()

            task = asyncio.create_task(work())
            await asyncio.sleep(0.1)
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=10)
            assert done and task.cancelled()
            assert not (await locks.snapshot()).resources

    asyncio.run(main())
