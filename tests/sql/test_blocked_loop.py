"""A task enters with a grant that is not confirmed yet, and then blocks its event loop for longer than such a grant
lasts: a thread confirms it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Self

import pytest

import fairlock
from fairlock import aio
from fairlock.aio import confirm_by_thread
from fairlock.aio.confirm_by_thread import ThreadConfirmer
from fairlock.engine.grant import Grant
from fairlock.errors import LeaseLost
from tests.servers.sql import MariaDB, PostgreSQL

BLOCKED = 3.0  # seconds: a grant that nobody confirms lasts for two
LEASE = 20.0


@pytest.fixture(params=["postgresql", "mariadb"])
def url(request: pytest.FixtureRequest) -> str:
    server: PostgreSQL | MariaDB = request.getfixturevalue(request.param)
    return server.url


class Held:
    """What a thread holds until its event is set; then it comes back and waits, behind the task."""

    def __init__(self, url: str) -> None:
        self.url, self.came_back = url, threading.Event()
        self.release, self.again, self.seconds = threading.Event(), 0.0, 0.0
        self.thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self.thread.join(30)

    def _run(self) -> None:
        with fairlock.connect(self.url) as locks:
            with locks.lock("x", lease=LEASE):
                self.came_back.set()
                self.release.wait(30)
            with locks.lock("x", lease=LEASE, timeout=30):
                self.again = time.monotonic()


async def held_by_a_task_that_blocks(url: str, body: Callable[[aio.Lease], None], young: bool = True) -> None:
    """A task waits in the queue, and its loop is blocked by `body`. young: with a grant that is not confirmed yet. On a
    busy machine it may be found too late for that; then it tries again."""
    for _ in range(10):
        if await tried(url, body, young):
            return
    raise AssertionError("each of ten grants was confirmed before the task went on")


async def tried(url: str, body: Callable[[aio.Lease], None], young: bool) -> bool:
    with Held(url) as other:
        await asyncio.to_thread(other.came_back.wait, 10)
        async with aio.connect(url) as locks:
            waiting = asyncio.create_task(locks.lock("x", lease=LEASE, timeout=20).acquire())
            await asyncio.sleep(0.5)
            other.release.set()
            lease = await waiting
            assert lease is not None
            if young and lease.remaining() > 2:
                await lease.release()
                return False
            body(lease)
            ended = time.monotonic()
            await lease.release()
        await asyncio.to_thread(other.thread.join, 30)
    assert other.again > ended, "the lock was given away while the task held it"
    return True


def test_it_keeps_the_lock(url: str) -> None:
    def body(lease: aio.Lease) -> None:
        time.sleep(BLOCKED)
        lease.ensure_held()
        assert lease.remaining() > LEASE / 2

    asyncio.run(held_by_a_task_that_blocks(url, body))


def test_without_the_thread_it_would_be_lost(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counter-test: the grant was not confirmed by anything else."""
    monkeypatch.setattr(confirm_by_thread, "DUE", 100.0)

    def body(lease: aio.Lease) -> None:
        time.sleep(BLOCKED)
        lease.ensure_held()

    with pytest.raises(LeaseLost):
        asyncio.run(held_by_a_task_that_blocks(url, body))


def test_if_no_thread_can_be_started_the_task_confirms_before_it_goes_on(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(self: ThreadConfirmer, grant: Grant) -> bool:
        return False

    monkeypatch.setattr(ThreadConfirmer, "watch", no_thread)

    def body(lease: aio.Lease) -> None:
        assert lease.remaining() > LEASE / 2

    asyncio.run(held_by_a_task_that_blocks(url, body, young=False))


def test_a_short_section_is_not_confirmed_and_no_thread_is_left(url: str) -> None:
    def body(lease: aio.Lease) -> None:
        assert lease.remaining() < 2

    asyncio.run(held_by_a_task_that_blocks(url, body))
    end = time.monotonic() + 5
    while any(thread.name == "fairlock-confirmer" for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.05)
