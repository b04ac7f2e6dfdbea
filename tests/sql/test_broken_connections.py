"""Connections that break or hang at a bad moment: while they are made, and while a task is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

import fairlock
import fairlock.aio
from tests.redis.proxy import Proxy
from tests.servers.sql import USER, Database, PostgreSQL


@pytest.fixture(params=["postgresql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def proxy(database: Database) -> Iterator[Proxy]:
    with Proxy(database.port) as proxy:
        proxy.url = database.url.replace(f":{database.port}", f":{proxy.port}")
        yield proxy


def passes(request: bytes) -> str:
    return ""


@pytest.mark.parametrize("fate", ["cut", "drop"])
def test_a_first_connection_that_breaks_anywhere_raises_a_sentence(proxy: Proxy, fate: str) -> None:
    with fairlock.connect(proxy.url) as locks:
        with locks.lock("x"):  # the tables are there
            pass
    for nth in range(1, 40):
        passed = 0

        def breaks(request: bytes, nth: int = nth) -> str:
            nonlocal passed
            passed += 1
            return fate if passed >= nth else ""

        proxy.fate = breaks
        with fairlock.connect(proxy.url, timeout=2) as locks:
            lease = None
            with contextlib.suppress(fairlock.LockError):  # and nothing else
                lease = locks.lock("x").acquire(False)
            proxy.fate = passes
            if lease is not None:
                lease.release()
                break
    else:
        pytest.fail("it never got through")
    assert nth > 2, "it broke nowhere"


async def stuck(locks: fairlock.aio.Locks, proxy: Proxy) -> asyncio.Task[object]:
    """A task that waits for a reply which does not come."""
    async with locks.lock("x"):
        pass
    proxy.fate = lambda request: "mute"
    task: asyncio.Task[object] = asyncio.create_task(locks.lock("x").acquire())
    before = proxy.cuts
    while proxy.cuts == before:
        await asyncio.sleep(0.01)
    return task


@pytest.mark.parametrize("error", [AttributeError("'NoneType' object has no attribute 'readexactly'"), EOFError()])
def test_what_a_driver_raises_while_it_connects_becomes_a_sentence(
    database: Database, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """aiomysql raises such errors if a connection is closed while it logs in."""

    def breaks(engine: sa.Engine) -> None:
        raise error

    monkeypatch.setattr(sa.Engine, "raw_connection", breaks)

    async def in_asyncio() -> None:
        async with fairlock.aio.connect(database.url, timeout=1) as locks:
            with pytest.raises(fairlock.StoreError, match="cannot be reached"):
                await locks.lock("x").acquire(False)

    asyncio.run(in_asyncio())
    with fairlock.connect(database.url, timeout=1) as locks:
        with pytest.raises(fairlock.StoreError, match="cannot be reached"):
            locks.lock("x").acquire(False)


@pytest.mark.parametrize("breaks", [False, True], ids=["it hangs on", "the connection breaks meanwhile"])
def test_a_task_that_is_cancelled_while_the_server_hangs_is_cancelled(proxy: Proxy, breaks: bool) -> None:
    async def main() -> float:
        async with fairlock.aio.connect(proxy.url, timeout=2) as locks:
            task = await stuck(locks, proxy)
            begun = time.monotonic()
            task.cancel()
            if breaks:
                await asyncio.sleep(0.01)
                proxy.sever()
            with pytest.raises(asyncio.CancelledError):
                await task
            took = time.monotonic() - begun
            proxy.fate = passes
            return took

    assert asyncio.run(main()) < 1.5


@pytest.mark.parametrize("turns", range(4))
def test_a_task_that_is_cancelled_twice_logs_no_error(
    proxy: Proxy, turns: int, caplog: pytest.LogCaptureFixture
) -> None:
    """As by Ctrl-C, where asyncio.run cancels the tasks that a program has cancelled already."""

    async def main() -> None:
        async with fairlock.aio.connect(proxy.url, timeout=2) as locks:
            task = await stuck(locks, proxy)
            task.cancel()
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            proxy.fate = passes

    asyncio.run(main())
    assert not [record for record in caplog.records if record.name.startswith("sqlalchemy")], caplog.text


def sessions(database: Database) -> int:
    if isinstance(database, PostgreSQL):
        found = database.run("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'fairlock%'")
    else:
        found = database.run(f"SELECT count(*) FROM information_schema.processlist WHERE user = '{USER}'")
    return int(found[0][0])


def test_clients_that_are_dropped_without_being_closed_keep_no_connection(database: Database) -> None:
    before = sessions(database)
    for _ in range(5):
        locks = fairlock.connect(database.url)
        with locks.lock("x"):
            pass
        assert sessions(database) > before
        del locks
    limit = time.monotonic() + 10
    while sessions(database) > before:
        gc.collect()
        assert time.monotonic() < limit, f"{sessions(database) - before} connections are left"
        time.sleep(0.1)


def test_a_timeout_does_not_end_the_acquires_of_others(database: Database) -> None:
    """Steps at one row are made together. The one that leads may have a timeout; those that it takes along wait on."""
    outcome: dict[str, object] = {}

    def acquire(who: str, timeout: float) -> None:
        try:
            outcome[who] = locks.semaphore("x", 2).acquire(timeout=timeout)
        except fairlock.LockError as error:
            outcome[who] = error

    with fairlock.connect(database.url) as locks:
        with locks.semaphore("x", 2):  # connected
            pass
        database.stop()
        threads = []
        try:
            for who, timeout, pause in (("first", 20, 0.2), ("hurried", 0.3, 0.5), ("patient", 20, 1.0)):
                threads.append(threading.Thread(target=acquire, args=(who, timeout)))
                threads[-1].start()
                time.sleep(pause)
        finally:
            database.cont()
        for thread in threads:
            thread.join()
    for who in ("first", "patient"):
        assert isinstance(outcome[who], fairlock.Lease), outcome
