"""A database that is killed in the middle of everything and comes back; connections that it cuts."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

import fairlock
import fairlock.aio
from tests.servers.sql import Database, MariaDB, PgBouncer, PostgreSQL

WORKERS = 20


@pytest.fixture(params=["postgresql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


def test_killed_among_twenty_workers_and_restarted(database: Database) -> None:
    holders: list[int] = []
    fences: list[int] = []
    wrong: list[str] = []
    after = [0] * WORKERS
    again = threading.Event()
    over = threading.Event()

    def work(number: int) -> None:
        with fairlock.connect(database.url, owner=f"worker {number}", lease=5) as locks:
            while not over.is_set():
                try:
                    with locks.lock("x").hold(timeout=20) as lease:
                        holders.append(number)
                        if holders != [number]:
                            wrong.append(f"two inside: {holders}")
                        if fences and lease.fence <= fences[-1]:
                            wrong.append(f"fence {lease.fence} after {fences[-1]}")
                        fences.append(lease.fence)
                        time.sleep(0.002)
                        holders.remove(number)
                        after[number] += again.is_set()
                except fairlock.LockError:
                    time.sleep(0.05)

    crowd = [threading.Thread(target=work, args=(number,)) for number in range(WORKERS)]
    for one in crowd:
        one.start()
    time.sleep(1)
    database.kill()
    time.sleep(0.3)
    database.restart()
    again.set()
    end = time.monotonic() + 40
    while min(after) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    over.set()
    for one in crowd:
        one.join(60)
    assert wrong == []
    assert min(after) >= 2, after


def cut_all(database: Database) -> None:
    """Every connection of the program, as an operator would."""
    if isinstance(database, MariaDB):
        for row in database.run("SHOW PROCESSLIST"):
            if row[1] == "app":
                with suppress(*database.errors):  # it has ended by itself
                    database.run(f"KILL {row[0]}")
    else:
        database.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'")


def waits(locks: fairlock.Locks, number: int = 1) -> None:
    limit = time.monotonic() + 20
    while len(locks.snapshot("x").resources[0].queue) != number:
        assert time.monotonic() < limit, "nobody waits"
        time.sleep(0.01)


def test_connections_cut_during_a_wait_are_opened_again(database: Database) -> None:
    with fairlock.connect(database.url) as one, fairlock.connect(database.url) as other:
        lease = one.lock("x").acquire()
        assert lease is not None
        got: list[float] = []

        def wait() -> None:
            with other.lock("x"):
                got.append(time.monotonic())

        waiting = threading.Thread(target=wait)
        waiting.start()
        waits(one)
        cut_all(database)
        time.sleep(0.1)
        assert lease.held
        lease.release()
        waiting.join(20)
        assert got


def test_the_same_for_tasks(database: Database) -> None:
    async def play() -> None:
        async with fairlock.aio.connect(database.url) as one, fairlock.aio.connect(database.url) as other:
            lease = await one.lock("x").acquire()
            assert lease is not None
            waiting = asyncio.ensure_future(other.lock("x").acquire(timeout=20))
            while not (await one.snapshot("x")).resources[0].queue:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(cut_all, database)
            await lease.release()
            assert await waiting

    asyncio.run(play())


def heard(url: str, other: Callable[[], None] = lambda: None, **options: object) -> float:
    """Return how long it takes until a waiter is granted the lock, after it has waited for a while."""
    with fairlock.connect(url, **options) as one, fairlock.connect(url, **options) as two:
        lease = one.lock("x").acquire()
        assert lease is not None
        got: list[float] = []

        def wait() -> None:
            with two.lock("x"):
                got.append(time.monotonic())

        waiting = threading.Thread(target=wait)
        waiting.start()
        waits(one)
        time.sleep(0.6)
        other()
        begun = time.monotonic()
        lease.release()
        waiting.join(20)
        return got[0] - begun


def until_there_are(number: int, server: PostgreSQL) -> None:
    """After a cut it may take a second until somebody listens again."""
    limit = time.monotonic() + 20
    while listeners(server) != number:
        assert time.monotonic() < limit, f"{listeners(server)} listen"
        time.sleep(0.02)


def listeners(server: PostgreSQL) -> int:
    return int(server.run("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fairlock listener'")[0][0])


def test_postgresql_wakes_by_notify_and_one_connection_hears_for_all(postgresql: PostgreSQL) -> None:
    found = [heard(postgresql.url, lambda: until_there_are(1, postgresql)) for _ in range(3)]
    assert min(found) < 0.09


def test_behind_a_pooler_one_polls_or_listens_directly(pgbouncer: PgBouncer) -> None:
    def nobody() -> None:
        assert listeners(pgbouncer.server) == before

    before = listeners(pgbouncer.server)
    assert heard(pgbouncer.url, nobody) < 1
    direct = pgbouncer.server.url + "?connect_timeout=3"

    heard(pgbouncer.url, lambda: until_there_are(before + 1, pgbouncer.server), listen=direct)


def test_a_forked_child_has_connections_of_its_own(database: Database) -> None:
    with fairlock.connect(database.url) as locks:
        with locks.lock("x"):
            pass
        pid = os.fork()
        if not pid:
            code = 1
            try:
                with locks.lock("x"):
                    code = 0
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
        for _ in range(3):
            with locks.lock("x"):
                pass
