"""The file is deleted or replaced while leases are held: what the client knows, its leases know at once."""

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fairlock
from fairlock import Lease, Locks, aio
from fairlock.errors import LeaseLost, LockError
from tests.machine_load import within

KNOWN = "was deleted or replaced while in use"
AT_ONCE = 0.5  # seconds from the moment at which the client knows; a third of the lease would be 40
LEASE = 120


@pytest.fixture
def locks(path: Path) -> Iterator[Locks]:
    with fairlock.connect(f"sqlite:///{path}", lease=LEASE) as client:
        yield client


def vanish(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        os.unlink(f"{path}{end}")


def until(happens: Callable[[], object], seconds: float) -> float:
    begun = time.monotonic()
    while not happens():
        assert time.monotonic() - begun < seconds, "it did not happen"
        time.sleep(0.01)
    return time.monotonic() - begun


def test_leases_know_as_soon_as_the_client_knows(
    locks: Locks, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Lease] = []
    first = locks.lock("first", on_lost=told.append).acquire()
    second = locks.lock("second").acquire()
    assert first is not None
    assert second is not None
    with caplog.at_level(logging.WARNING, "fairlock"):
        vanish(path)
        until(lambda: KNOWN in caplog.text, 5)
    until(lambda: first.lost and second.lost and told, AT_ONCE)
    assert first.reason == second.reason == "store_reset"
    assert told == [first]


def test_leases_know_when_another_thread_of_the_client_finds_out(locks: Locks, path: Path) -> None:
    lease = locks.lock("held").acquire()
    assert lease is not None
    vanish(path)
    time.sleep(0.21)  # the client looks at the files every 200 ms of use
    with locks.lock("other"):
        until(lambda: lease.lost, AT_ONCE)


def test_a_file_that_was_replaced_while_the_directory_was_gone_is_noticed_too(tmp_path: Path) -> None:
    home = tmp_path / "d"
    home.mkdir()
    with fairlock.connect(f"sqlite:///{home}/x.db", lease=LEASE) as locks:
        lease = locks.lock("held").acquire()
        assert lease is not None
        shutil.rmtree(home)
        until(lambda: not locks_answer(locks), 5)
        home.mkdir()
        with fairlock.connect(f"sqlite:///{home}/x.db") as other, other.lock("held"):
            until(lambda: lease.lost, 2 + AT_ONCE)  # it tries again every second


def locks_answer(locks: Locks) -> bool:
    try:
        locks.ping()
    except LockError:
        return False
    return True


def test_tasks_learn_of_it_as_soon_as_the_client_knows(path: Path) -> None:
    async def work() -> None:
        async with aio.connect(f"sqlite:///{path}", lease=LEASE) as locks, locks.lock("held"):
            vanish(path)
            await asyncio.sleep(10)

    begun = time.monotonic()
    with pytest.raises(LeaseLost, match="no longer knows it"):
        asyncio.run(work())
    assert time.monotonic() - begun < within(1 + AT_ONCE, below=9)  # the keeper looks at the files every second
