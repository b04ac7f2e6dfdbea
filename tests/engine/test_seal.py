"""lease.seal: a holder that has lost the lock cannot commit, and nobody gets in before a sealed transaction ends."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import fairlock
import fairlock.aio
from fairlock import ConfigError, LeaseLost, NotHeld
from tests.engine.seal_place import STORES, Place, make_place
from tests.servers.sql import DATABASE, PASSWORD, USER, MariaDB, PostgreSQL


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return make_place(request, tmp_path)


def write(db: Any, fence: int) -> None:
    db.cursor().execute(f"INSERT INTO journal VALUES ({fence})")


def test_a_holder_commits(place: Place) -> None:
    with fairlock.connect(place.url) as locks:
        with locks.lock("a") as lease, contextlib.closing(place.driver()) as db:
            write(db, lease.fence)
            lease.seal(db)
            lease.seal(db)  # again: no difference
            db.commit()
        assert lease.reason is None
    assert place.written() == 1


async def sleep_on(session: Any, attend: bool = True) -> float:
    """Take the place of the keeper: a process that was stopped does not learn of anything."""
    return float(session.clock()) + 60


@pytest.mark.parametrize("sealed", [True, False])
def test_a_holder_that_was_replaced_commits_only_without_a_seal(
    place: Place, sealed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlock.engine.renewal._round", sleep_on)
    with fairlock.connect(place.url) as locks, fairlock.connect(place.url) as other:
        stale = locks.lock("a").acquire()
        db = place.driver()
        if place.kind == "sqlite":
            db.rollback()  # its write lock would keep out all others from here on
        other.evict("a", reason="a test", at_once=True)
        with other.lock("a") as current:
            if place.kind == "sqlite":
                db.execute("BEGIN IMMEDIATE")
            write(db, stale.fence)
            assert stale.held, "it does not know yet"
            if sealed:
                with pytest.raises(LeaseLost, match="evicted") as error:
                    stale.seal(db)
                assert error.value.reason == "evicted" and stale.lost
                db.rollback()
            else:
                db.commit()
            db.close()
            assert current.held
    assert place.written() == (0 if sealed else 1)


def test_nobody_gets_in_before_the_transaction_has_ended(place: Place) -> None:
    with fairlock.connect(place.url) as locks, fairlock.connect(place.url) as other:
        lease = locks.lock("a").acquire()
        db = place.driver()
        write(db, lease.fence)
        lease.seal(db)
        seen: list[int] = []

        def come() -> None:
            other.evict("a", reason="a test", at_once=True)
            with other.lock("a"):
                seen.append(place.written())

        thread = threading.Thread(target=come)
        thread.start()
        time.sleep(0.5)
        assert not seen
        db.commit()
        thread.join(20)
        assert seen == [1], "it sees what was committed"
        db.close()


def test_the_next_thread_of_the_same_client_does_not_get_in_either(place: Place) -> None:
    with fairlock.connect(place.url) as locks:
        lock = locks.lock("a")
        lease = lock.acquire()
        seen: list[int] = []

        def come() -> None:
            with lock:
                seen.append(place.written())

        waits = threading.Thread(target=come)
        waits.start()
        while not locks.snapshot("a").resources:
            time.sleep(0.01)
        db = place.driver()
        write(db, lease.fence)
        lease.seal(db)
        releases = threading.Thread(target=lease.release)  # in the wrong order: before the commit
        releases.start()
        time.sleep(0.5)
        assert not seen and releases.is_alive()
        db.commit()
        releases.join(20)
        waits.join(20)
        assert seen == [1]
        db.close()


def test_connections_and_sessions_of_sqlalchemy(place: Place) -> None:
    engine = place.engine()
    with fairlock.connect(place.url) as locks:
        lease = locks.lock("a").acquire()
        with engine.begin() as connection:
            connection.execute(sa.text(f"INSERT INTO journal VALUES ({lease.fence})"))
            lease.seal(connection)
        with Session(engine) as session, session.begin():
            session.execute(sa.text(f"INSERT INTO journal VALUES ({lease.fence})"))
            lease.seal(session)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            with pytest.raises(ConfigError, match="autocommit"):
                lease.seal(connection)
        locks.evict("a", reason="a test", at_once=True)
        with pytest.raises(LeaseLost), engine.begin() as connection:
            connection.execute(sa.text("INSERT INTO journal VALUES (1)"))
            lease.seal(connection)
    engine.dispose()
    assert place.written() == 2


@contextlib.asynccontextmanager
async def driver_for_tasks(place: Place) -> AsyncIterator[Any]:
    if place.kind == "postgresql":
        async with await psycopg.AsyncConnection.connect(place.url) as db:
            yield db
        return
    if place.kind == "sqlite":
        with contextlib.closing(place.driver()) as plain:  # the standard library has no other
            yield plain
        return
    import aiomysql

    assert place.server is not None
    host, _, port = place.server.address.partition(":")
    raw = await aiomysql.connect(host=host, port=int(port), user=USER, password=PASSWORD, db=DATABASE)
    yield raw
    raw.close()


def test_tasks(place: Place) -> None:
    async def ended(result: Any) -> None:
        if hasattr(result, "__await__"):
            await result

    async def main() -> None:
        async with fairlock.aio.connect(place.url) as locks:
            lease = await locks.lock("a").acquire()
            async with driver_for_tasks(place) as db:
                cursor = db.cursor()
                cursor = await cursor if hasattr(cursor, "__await__") else cursor
                await ended(cursor.execute(f"INSERT INTO journal VALUES ({lease.fence})"))
                await lease.seal(db)
                await ended(db.commit())
                if place.kind != "sqlite":
                    engine = create_async_engine(place.engine_url(tasks=True))
                    async with engine.begin() as connection:
                        await connection.execute(sa.text(f"INSERT INTO journal VALUES ({lease.fence})"))
                        await lease.seal(connection)
                    async with AsyncSession(engine) as session, session.begin():
                        await session.execute(sa.text(f"INSERT INTO journal VALUES ({lease.fence})"))
                        await lease.seal(session)
                    await engine.dispose()
                await locks.evict("a", reason="a test", at_once=True)
                if place.kind == "sqlite":
                    db.execute("BEGIN IMMEDIATE")
                with pytest.raises(LeaseLost):
                    await lease.seal(db)
                await ended(db.rollback())

    asyncio.run(main())
    assert place.written() == (1 if place.kind == "sqlite" else 3)


def test_a_released_lease_seals_nothing(place: Place) -> None:
    with fairlock.connect(place.url) as locks, contextlib.closing(place.driver()) as db:
        if place.kind == "sqlite":
            db.rollback()
        lease = locks.lock("a").acquire()
        lease.release()
        with pytest.raises(NotHeld):
            lease.seal(db)


def test_what_would_protect_nothing_is_refused(place: Place) -> None:
    with fairlock.connect(place.url) as locks, locks.lock("a") as lease:
        with pytest.raises(ConfigError, match="takes the connection of your transaction, not int"):
            lease.seal(7)
        with contextlib.closing(sqlite3.connect(place.path / "elsewhere.db")) as elsewhere:
            with pytest.raises(ConfigError, match=r"not in the (file|database) of the lock"):
                lease.seal(elsewhere)
        db = place.driver()
        if place.kind == "sqlite":
            db.rollback()
        else:
            db.autocommit = True if place.kind == "postgresql" else None
            if place.kind == "mariadb":
                db.autocommit = pymysql.connections.Connection.autocommit.__get__(db)
                db.autocommit(True)
        with pytest.raises(ConfigError, match="autocommit"):
            lease.seal(db)
        db.close()
        assert lease.held, "a mistake of the caller loses nothing"


def test_another_database_of_the_same_server_is_refused(postgresql: PostgreSQL, mariadb: MariaDB) -> None:
    with fairlock.connect(postgresql.url) as locks, locks.lock("a") as lease:
        with contextlib.closing(psycopg.connect(postgresql.url.replace("/fairlock", "/postgres"))) as db:
            with pytest.raises(ConfigError, match="not in the database of the lock"):
                lease.seal(db)
        with contextlib.closing(psycopg.connect(postgresql.url)) as db:
            db.execute("CREATE SCHEMA other; SET search_path TO other")
            db.execute("CREATE TABLE fairlock_locks AS SELECT * FROM public.fairlock_locks")
            lease.seal(db)  # it names the schema
            db.rollback()


def test_a_connection_for_tasks_needs_the_other_face(postgresql: PostgreSQL) -> None:
    async def make() -> Any:
        return await psycopg.AsyncConnection.connect(postgresql.url)

    async def close(db: Any) -> None:
        await db.close()

    loop = asyncio.new_event_loop()
    db = loop.run_until_complete(make())
    with fairlock.connect(postgresql.url) as locks, locks.lock("a") as lease:
        with pytest.raises(ConfigError, match=r"Use fairlock\.aio"):
            lease.seal(db)
    loop.run_until_complete(close(db))
    loop.close()


def test_a_user_without_rights_is_told_which(postgresql: PostgreSQL) -> None:
    postgresql.run("DROP ROLE IF EXISTS poor")
    postgresql.run("CREATE ROLE poor LOGIN PASSWORD 'x'")
    with fairlock.connect(postgresql.url) as locks, locks.lock("a") as lease:
        with contextlib.closing(psycopg.connect(postgresql.url.replace(f"{USER}:{PASSWORD}", "poor:x"))) as db:
            with pytest.raises(ConfigError, match="needs SELECT and UPDATE"):
                lease.seal(db)
    postgresql.run("DROP ROLE poor")


def test_stores_without_transactions_refuse() -> None:
    with fairlock.connect("memory://") as locks, locks.lock("a") as lease:
        with pytest.raises(ConfigError, match=r"has no transactions that could be sealed.*lease\.fence"):
            lease.seal(sqlite3.connect(":memory:"))
