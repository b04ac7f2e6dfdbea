"""The owner is the process that holds: in a forked child, a client made before the fork is named after the child."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import fairlock
from fairlock import LockTimeout, aio


@contextmanager
def child(hold: Callable[[Callable[[], None]], None]) -> Iterator[int]:
    """A forked child that calls this; what it is given returns when the block here is over."""
    mine, its = socket.socketpair()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            mine.close()

            def until_told() -> None:
                its.send(b"inside")
                its.recv(1)

            hold(until_told)
            code = 0
        finally:
            os._exit(code)
    its.close()
    try:
        mine.settimeout(20)
        assert mine.recv(6) == b"inside"
        yield pid
    finally:
        mine.close()
        assert os.waitpid(pid, 0)[1] == 0


@pytest.fixture(params=["sqlite", "redis_alone", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/locks.db"
    return str(request.getfixturevalue(request.param).url)


def by_threads(locks: fairlock.Locks, until_told: Callable[[], None]) -> None:
    with locks.lock("x"), locks.pool("jobs").hold(timeout=5):
        until_told()


def by_tasks(locks: aio.Locks, until_told: Callable[[], None]) -> None:
    async def hold() -> None:
        async with locks.lock("x"), locks.pool("jobs").hold(timeout=5):
            until_told()
        await locks.close()

    asyncio.run(hold())


def owners_shown(locks: fairlock.Locks) -> list[str]:
    """Return the owners of the lock and of the item; check that the LockTimeout of a waiter names the first."""
    with pytest.raises(LockTimeout) as caught:
        with locks.lock("x").hold(timeout=0.2):
            pass
    (holders,) = locks.snapshot("x").resources[0].holders
    (item,) = locks.pool("jobs").items()
    assert holders.owner in str(caught.value)
    return [holders.owner, item.owner]


@pytest.mark.parametrize("face", ["threads", "tasks"])
def test_a_child_is_called_after_its_own_process(url: str, face: str) -> None:
    with fairlock.connect(url) as locks:
        locks.pool("jobs").add("one")
        made = aio.connect(url) if face == "tasks" else None
        with child(lambda told: by_tasks(made, told) if made else by_threads(locks, told)) as pid:
            assert [owner.rpartition(":")[2] for owner in owners_shown(locks)] == [str(pid)] * 2
        with locks.lock("x") as lease:
            assert lease.owner.endswith(f":{os.getpid()}"), "the parent keeps its name"


def test_a_name_that_was_given_stays(tmp_path: Path) -> None:
    with fairlock.connect(f"sqlite:///{tmp_path}/locks.db", owner="web") as locks:
        locks.pool("jobs").add("one")
        with child(lambda told: by_threads(locks, told)):
            assert owners_shown(locks) == ["web", "web"]
