"""A timeout is a promise: on a database that hangs, whatever has one is back at most a second after it."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
import sqlalchemy as sa

import fairlock
from fairlock import StoreError, aio
from fairlock.stores.sql.url import CONNECTIONS
from tests.hanging_server import LATE, SOME, how_late
from tests.machine_load import within
from tests.redis.proxy import Proxy
from tests.servers.server import until
from tests.servers.sql import Database

MOST = 16  # requests of a client that connects and acquires


@pytest.fixture(params=["postgresql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    with fairlock.connect(found.url) as locks, locks.lock("x"):
        pass  # the tables are there
    return found


@pytest.mark.parametrize("database", ["postgresql", "mariadb", "oracle"], indirect=True)
def test_a_server_that_hangs(database: Database) -> None:
    assert max(how_late(database.url, [database], (0, 0.4), SOME)) < within(LATE, below=2)


@pytest.mark.parametrize("face", ["threads", "tasks"])
def test_a_server_that_begins_to_hang_while_a_client_connects(database: Database, face: str) -> None:
    """At each of its requests, each time another one, all of them at once."""

    def by_thread(url: str, answer: Callable[[], None]) -> float | None:
        with fairlock.connect(url) as locks:
            began = time.monotonic()
            try:
                return None if locks.lock(url).acquire(timeout=0.2) else -1.0
            except StoreError:
                return time.monotonic() - began - 0.2
            finally:
                answer()

    async def by_task(url: str, answer: Callable[[], None]) -> float | None:
        async with aio.connect(url) as locks:
            began = time.monotonic()
            try:
                return None if await locks.lock(url).acquire(timeout=0.2) else -1.0
            except StoreError:
                return time.monotonic() - began - 0.2
            finally:
                answer()

    def late(nth: int) -> float | None:
        """None if all that it asked for was before that."""
        passed = count(1)
        with Proxy(database.port) as proxy:
            proxy.fate = lambda request: "swallow" if next(passed) >= nth else ""
            url = database.url.replace(f":{database.port}", f":{proxy.port}")

            def answer() -> None:
                proxy.fate = lambda request: ""

            return by_thread(url, answer) if face == "threads" else asyncio.run(by_task(url, answer))

    with ThreadPoolExecutor(MOST) as threads:
        found = list(threads.map(late, range(1, MOST + 1)))
    assert found[0] is not None
    assert found[-1] is None
    assert max(each for each in found if each is not None) < within(LATE, below=2), found


def test_an_engine_that_has_no_limits(database: Database) -> None:
    """Somebody else's: made as everybody makes them, and so it would wait for minutes."""
    driver = "postgresql+psycopg" if database.scheme == "postgresql" else "mariadb+pymysql"
    engine = sa.create_engine(database.url.replace(database.scheme, driver, 1))
    with fairlock.connect(engine) as locks:
        database.stop()
        try:
            began = time.monotonic()
            with pytest.raises(StoreError, match="does not reply in time"):
                locks.lock("x").acquire(timeout=0.2)
            assert time.monotonic() - began - 0.2 < within(LATE, below=2)
        finally:
            database.cont()
        with locks.lock("x", timeout=20):
            pass
    engine.dispose()


def test_one_that_waits_for_a_connection_which_others_use(database: Database) -> None:
    """They have no timeout, and wait for their replies as long as a client does."""
    with fairlock.connect(database.url) as locks, ThreadPoolExecutor(CONNECTIONS) as threads:
        with locks.lock("x"):
            pass
        database.stop()
        try:
            others = [threads.submit(locks.lock(f"{n}").acquire) for n in range(CONNECTIONS)]
            pool = locks._session.backend.store.address.engine.pool  # type: ignore[attr-defined]
            until(lambda: pool.checkedout() == CONNECTIONS, "all connections are in use")
            began = time.monotonic()
            with pytest.raises(StoreError):
                locks.lock("x").acquire(timeout=0.2)
            assert time.monotonic() - began - 0.2 < within(LATE, below=2)
        finally:
            database.cont()
        for other in others:
            assert other.result(20)
