"""PostgreSQL by the short way, past psycopg's cursor: the parameters and the results arrive unchanged."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import fairlock
import fairlock.aio
from fairlock.stores.sql.executor import driver_for
from tests.servers.sql import USER, PgBouncer, PostgreSQL

ODD = ["it's", 'say "no"', "100 %", "%(v_key)s", "$1", "back\\slash", "{a,b}", "ünïcödé 🔒"]


@pytest.mark.parametrize("server", ["postgresql", "pgbouncer"])
def test_odd_words_arrive_as_they_are(server: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue(server).url
    with fairlock.connect(url, owner="; ".join(ODD)) as one, fairlock.connect(url) as other:
        for name in ODD:
            for _ in range(3):  # sent for the first time, prepared, prepared already
                with one.lock(name, note=name):
                    (found,) = other.snapshot(name).resources
                    assert (found.name, found.holders[0].note) == (name, name)
                    assert found.holders[0].owner == "; ".join(ODD)
                    assert other.lock(name).acquire(False) is None


@pytest.mark.parametrize("server", ["postgresql", "pgbouncer"])
def test_odd_words_of_tasks_arrive_as_they_are(server: str, request: pytest.FixtureRequest) -> None:
    async def play() -> None:
        url = request.getfixturevalue(server).url
        async with fairlock.aio.connect(url, owner="; ".join(ODD)) as one, fairlock.aio.connect(url) as other:
            for name in ODD:
                for _ in range(3):
                    async with one.lock(name, note=name):
                        (found,) = (await other.snapshot(name)).resources
                        assert (found.name, found.holders[0].note) == (name, name)
                        assert await other.lock(name).acquire(False) is None

    asyncio.run(play())


def test_a_task_uses_the_connection_that_was_used_last(postgresql: PostgreSQL) -> None:
    """Neither SQLAlchemy's bridge nor its pool has a part in it, and a second one at the same time has another."""

    async def play() -> None:
        async with fairlock.aio.connect(postgresql.url) as locks:
            executor = locks._session.backend.store.executor  # type: ignore[attr-defined]
            await locks.ping()
            for _ in range(5):
                async with locks.lock("x"):
                    pass
            assert len(executor._open) == 1
            await asyncio.gather(*(locks.lock(str(number)).acquire() for number in range(4)))
            assert 1 < len(executor._open) <= 8
            assert {driver_for(lent) for lent, _ in executor._parked} == set(executor._open)
            assert {type(libpq).__name__ for _, libpq in executor._parked} == {"AsyncLibpqExecutor"}
            last = executor._parked[-1]
            async with locks.lock("x"):
                pass
            assert executor._parked[-1] == last

    asyncio.run(play())


def test_tasks_have_eight_connections_at_most(postgresql: PostgreSQL) -> None:
    def connections() -> set[int]:
        return {row[0] for row in postgresql.run("SELECT pid FROM pg_stat_activity WHERE usename = %s", USER)}

    async def play() -> None:
        before = connections()  # of clients that earlier tests have left
        async with fairlock.aio.connect(postgresql.url) as locks:
            for _ in range(3):
                leases = await asyncio.gather(*(locks.lock(str(number)).acquire() for number in range(40)))
                await asyncio.gather(*(lease.release() for lease in leases))
            assert len(connections() - before) <= 8

    asyncio.run(play())


def test_a_statement_of_a_task_that_is_cancelled_harms_no_later_one(postgresql: PostgreSQL) -> None:
    """Its reply would be taken for the reply to the next one: the connection is given up."""

    async def play() -> None:
        async with fairlock.aio.connect(postgresql.url) as locks:
            store = locks._session.backend.store  # type: ignore[attr-defined]
            await locks.ping()
            for number in range(20):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0):
                        await store.read(f"nobody knows {number}")
                async with locks.lock(f"x{number}") as lease:
                    assert (await store.read(f"x{number}")).row.score >= lease.fence
                    assert (await store.read("nobody knows this")).row is None

    asyncio.run(play())


def test_a_wakeup_carries_odd_tickets(postgresql: PostgreSQL) -> None:
    name = "".join(ODD)
    with fairlock.connect(postgresql.url, owner=name) as one, fairlock.connect(postgresql.url, owner=name) as other:
        lease = one.lock(name).acquire()
        assert lease is not None
        got: list[bool] = []

        def wait() -> None:
            with other.lock(name):
                got.append(True)

        waiting = threading.Thread(target=wait)
        waiting.start()
        limit = time.monotonic() + 20
        while not one.snapshot(name).resources[0].queue:
            assert time.monotonic() < limit, "nobody waits"
            time.sleep(0.01)
        lease.release()
        waiting.join(20)
        assert got


def test_a_database_of_another_encoding(postgresql: PostgreSQL) -> None:
    with postgresql.connect("") as operator:
        operator.execute("DROP DATABASE IF EXISTS western")
        operator.execute("CREATE DATABASE western OWNER app ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    url = postgresql.url.rpartition("/")[0] + "/western"
    with fairlock.connect(url, owner="Müller") as locks:
        for _ in range(3):
            with locks.lock("Straße"):
                assert locks.snapshot("*").resources[0].holders[0].owner == "Müller"
    with postgresql.connect("western") as operator:
        assert operator.execute("SELECT key FROM fairlock_locks").fetchall() == [("Straße",)]
    with postgresql.connect("") as operator:
        operator.execute("DROP DATABASE western WITH (FORCE)")


def prepared(server: PostgreSQL, url: str) -> int:
    """Return the number of statements that a connection has prepared, as the server reports it."""
    with fairlock.connect(url) as locks:
        for _ in range(4):
            with locks.lock("x"):
                pass
        executor = locks._session.backend.store.executor  # type: ignore[attr-defined]
        lent, _ = executor._lend()
        found = lent.cursor().execute("SELECT count(*) FROM pg_prepared_statements").fetchone()[0]
        lent.close()
        return int(found)


def test_a_repeated_statement_is_prepared_but_not_behind_a_pooler(postgresql: PostgreSQL, pgbouncer: PgBouncer) -> None:
    assert prepared(postgresql, postgresql.url) >= 1
    assert prepared(postgresql, pgbouncer.url) == 0
