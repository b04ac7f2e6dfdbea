"""An Engine or AsyncEngine of SQLAlchemy that somebody has already: connections are made as it makes them, and it is
left as it is."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

import fairlock
import fairlock.aio
from tests.servers.sql import Database, PostgreSQL


@pytest.fixture(params=["postgresql", "mariadb", "pgbouncer"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


def url_of(database: Database, mariadb: str) -> str:
    return database.url.replace("mariadb://", f"mariadb+{mariadb}://").replace("postgresql://", "postgresql+psycopg://")


def poolers(database: Database) -> dict[str, Any]:
    """Return the arguments of an engine whose user has a pooler."""
    return {"connect_args": {"prepare_threshold": None}} if database.scheme == "postgresql" else {}


def test_an_engine(database: Database) -> None:
    engine = sa.create_engine(url_of(database, "pymysql"), **poolers(database))
    made: list[object] = []
    sa.event.listen(engine, "connect", lambda connection, _: made.append(connection))
    with fairlock.connect(engine) as locks, fairlock.connect(engine) as other:
        with locks.lock("x") as lease:
            assert lease.held
            assert "open-sesame" not in locks.store
            assert other.lock("x").acquire(False) is None
            through: list[bool] = []
            waiting = threading.Thread(target=lambda: through.append(other.lock("x").acquire(timeout=20) is not None))
            waiting.start()
            limit = time.monotonic() + 20
            while not locks.snapshot("x").resources[0].queue:
                assert time.monotonic() < limit, "nobody waits"
                time.sleep(0.01)
        waiting.join(20)
        assert through == [True]
        locks.pool("jobs").add("a")
        other.pool("jobs").acquire(False).done()  # type: ignore[union-attr]
        assert made, "its handlers see our connections, too"
        assert engine.pool.checkedout() == 0, "none of its own is kept"  # type: ignore[attr-defined]
    with engine.connect() as connection:
        assert connection.get_isolation_level() != "AUTOCOMMIT"
        assert connection.execute(sa.text("SELECT 1")).scalar() == 1
    engine.dispose()


def test_an_async_engine(database: Database) -> None:
    async def play() -> None:
        engine = create_async_engine(url_of(database, "aiomysql"), **poolers(database))
        async with fairlock.aio.connect(engine) as locks, fairlock.aio.connect(engine) as other:
            async with locks.lock("x") as lease:
                assert lease.held
                assert "open-sesame" not in locks.store
                assert await other.lock("x").acquire(False) is None
                waiting = asyncio.ensure_future(other.lock("x").acquire(timeout=20))
                async with asyncio.timeout(20):
                    while not (await locks.snapshot("x")).resources[0].queue:
                        await asyncio.sleep(0.01)
            assert await waiting
            await locks.pool("jobs").add("a")
            item = await other.pool("jobs").acquire(False)
            assert item is not None
            await item.done()
            assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]
        async with engine.connect() as connection:
            assert await connection.get_raw_connection()
            assert (await connection.execute(sa.text("SELECT 1"))).scalar() == 1
            assert await connection.run_sync(lambda inner: inner.get_isolation_level()) != "AUTOCOMMIT"
        await engine.dispose()

    asyncio.run(play())


def test_an_engine_with_another_driver_needs_no_psycopg(
    postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are no wake-ups then, and waiters poll."""
    monkeypatch.setitem(sys.modules, "fairlock.stores.sql.notify_listener", None)
    with fairlock.connect(postgresql.url) as one, fairlock.connect(postgresql.url) as other:
        lease = one.lock("x").acquire()
        assert lease is not None
        assert other.lock("x").acquire(timeout=0.2) is None
        lease.release()
        assert other.lock("x").acquire(timeout=20) is not None


def test_each_where_it_belongs() -> None:
    url = "postgresql+psycopg://app@127.0.0.1/fairlock"
    with pytest.raises(fairlock.ConfigError, match=r"is for asyncio\. Use fairlock\.aio"):
        fairlock.connect(create_async_engine(url))
    with pytest.raises(fairlock.ConfigError, match=r"blocks, and the whole loop with it\. Use create_async_engine\(\)"):
        fairlock.aio.connect(sa.create_engine(url))
    with pytest.raises(fairlock.ConfigError, match="There is no store for sqlite"):
        fairlock.connect(sa.create_engine("sqlite://"))
