"""The same store in an event loop: nothing blocks it, and a cancelled task leaves nothing behind."""

import asyncio
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import fairlock.aio
from fairlock.aio.runtime import TaskRuntime
from fairlock.errors import StoreError
from fairlock.rules.locks import Wakeup
from fairlock.stores.base import Pushed, Row, Written
from fairlock.stores.sqlite import SqliteStore
from tests.sqlite.processes import python

FOREVER = 30.0


@pytest.fixture(autouse=True)
def no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlock.stores.sqlite.wait_for_wakeup.LOOK", FOREVER)


def in_loop(path: Path, work: Callable[[SqliteStore, SqliteStore], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        one, two = SqliteStore(str(path), TaskRuntime()), SqliteStore(str(path), TaskRuntime())
        try:
            await one.ping()  # a client sends after a write: its database is open
            await asyncio.wait_for(work(one, two), 20)
        finally:
            await one.close()
            await two.close()

    asyncio.run(main())


async def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end, "it never came to be"
        await asyncio.sleep(0.001)


def waiters(store: SqliteStore) -> int:
    return sum(len(w) for w in store._waiters._waiters.values())


def wait(store: SqliteStore, ticket: str, timeout: float = FOREVER) -> "asyncio.Task[Pushed | None]":
    return asyncio.create_task(store.wait_for_wakeup("k", ticket, timeout, ()))


def test_a_wakeup_wakes_the_task_it_names(path: Path) -> None:
    async def work(one: SqliteStore, two: SqliteStore) -> None:
        tasks = {ticket: wait(two, ticket) for ticket in "ABC"}
        await until(lambda: waiters(two) == 3)
        for ticket in "BAC":
            await one.wake([Wakeup(two.open_listener(), ticket)])
            assert await tasks[ticket] == Pushed(ticket)
        assert waiters(two) == 0

    in_loop(path, work)


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_cancelled_task_passes_the_reading_on(path: Path, victim: int) -> None:
    async def work(one: SqliteStore, two: SqliteStore) -> None:
        tasks = []
        for ticket in "ABC":
            tasks.append(wait(two, ticket))
            await until(lambda: waiters(two) == len(tasks))
        tasks[victim].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[victim]
        assert waiters(two) == 2
        for i, ticket in enumerate("ABC"):
            if i != victim:
                await one.wake([Wakeup(two.open_listener(), ticket)])
                assert await tasks[i] == Pushed(ticket)
        assert two._waiters._reader is None

    in_loop(path, work)


def test_all_cancelled_at_once(path: Path) -> None:
    async def work(one: SqliteStore, two: SqliteStore) -> None:
        tasks = [wait(two, f"t{i}") for i in range(50)]
        await until(lambda: waiters(two) == 50)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(e, asyncio.CancelledError) for e in ended)
        assert waiters(two) == 0
        assert two._waiters._reader is None
        last = wait(two, "last")
        await until(lambda: waiters(two) == 1)
        await one.wake([Wakeup(two.open_listener(), "last")])
        assert await last == Pushed("last")

    in_loop(path, work)


def test_time_runs_out_on_time(path: Path) -> None:
    async def work(one: SqliteStore, two: SqliteStore) -> None:
        began = time.monotonic()
        results = await asyncio.gather(*[two.wait_for_wakeup("k", f"t{i}", 0.1 + i / 100, ()) for i in range(10)])
        assert results == [None] * 10
        assert 0.18 < time.monotonic() - began < 10

    in_loop(path, work)


def test_a_stuck_writer_does_not_stop_the_loop(path: Path) -> None:
    """Somebody is stopped in the middle of a write: this store waits, everything else in the loop goes on."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async def work(one: SqliteStore, two: SqliteStore) -> None:
        one.busy_timeout = 0.5
        await one.read("k")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        ticking = asyncio.create_task(tick())
        try:
            with pytest.raises(StoreError, match=r"busy for 0\.5 s"):
                await one.write(Row("k", 1, "", "x"), None, 0, ())
        finally:
            ticking.cancel()
            other.execute("ROLLBACK")
            other.close()
        assert isinstance(await one.write(Row("k", 1, "", "x"), None, 0, ()), Written)
        assert ticks > 10

    in_loop(path, work)


def test_a_killed_process_is_noticed_in_a_loop_too(path: Path) -> None:
    holder = python(
        """
        import fairlock
        locks = fairlock.connect(f"sqlite:///{sys.argv[1]}")
        print(locks.lock("k").acquire().fence, flush=True)
        sys.stdin.read()
        """,
        path,
    )
    assert holder.stdout is not None
    fence = int(holder.stdout.readline())

    async def main() -> None:
        async with fairlock.aio.connect(f"sqlite:///{path}") as locks:
            waiting = asyncio.create_task(locks.lock("k").acquire(timeout=10))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            began = time.monotonic()
            os.kill(holder.pid, signal.SIGKILL)
            lease = await waiting
            assert lease is not None
            assert lease.fence > fence
            assert time.monotonic() - began < 10, "long before its lease ends"

    asyncio.run(main())
    holder.communicate()


def test_two_hundred_tasks_count_to_two_thousand(path: Path) -> None:
    counter = path.with_name("counter")
    counter.write_text("0")

    async def main() -> None:
        async with fairlock.aio.connect(f"sqlite:///{path}") as locks:

            async def work() -> None:
                for _ in range(10):
                    async with locks.lock("k"):
                        value = int(counter.read_text())
                        await asyncio.sleep(0)
                        counter.write_text(str(value + 1))

            await asyncio.gather(*[work() for _ in range(200)])

    asyncio.run(main())
    assert counter.read_text() == "2000"
