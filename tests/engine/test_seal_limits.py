"""lease.seal: isolation levels, and what a transaction that stays open after its seal does to others."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path

import psycopg
import pytest

import fairlock
from fairlock import StoreError
from tests.engine.seal_place import Place
from tests.servers.sql import Database, MariaDB, PostgreSQL

LEVELS = {
    "READ COMMITTED": ("works", "works"), "REPEATABLE READ": ("fails", "works"), "SERIALIZABLE": ("fails", "works"),
}  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_isolation_levels_and_a_renewal_in_between(name: str, level: str, request: pytest.FixtureRequest) -> None:
    """A renewal writes the row. A snapshot of PostgreSQL that is older than that cannot be sealed any more."""
    server: Database = request.getfixturevalue(name)
    place = Place(name, server.url, server, Path())
    with fairlock.connect(server.url) as locks, locks.lock("a") as lease, contextlib.closing(place.driver()) as db:
        for renewed in (False, True):
            cursor = db.cursor()
            if name == "postgresql":
                cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
            else:
                cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
                cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            cursor.execute("SELECT 1 FROM fairlock_items")
            cursor.fetchall()
            if renewed:
                lease.renew()
            if renewed and LEVELS[level][name == "mariadb"] == "fails":
                with pytest.raises(StoreError, match="Roll it back and repeat it, or use READ COMMITTED"):
                    lease.seal(db)
                db.rollback()
                assert lease.held
            else:
                lease.seal(db)
                db.commit()


def test_sqlite_that_has_read_before_others_wrote(tmp_path: Path) -> None:
    with fairlock.connect(f"sqlite:///{tmp_path}/locks.db") as locks, locks.lock("a") as lease:
        with contextlib.closing(sqlite3.connect(tmp_path / "locks.db", isolation_level=None, timeout=0.1)) as db:
            db.execute("BEGIN")
            db.execute("SELECT * FROM fairlock_locks").fetchall()
            lease.renew()
            with pytest.raises(StoreError, match="with BEGIN IMMEDIATE"):
                lease.seal(db)
            db.rollback()
            db.execute("BEGIN")  # the tables of the user are in the same file
            lease.seal(db)
            db.commit()


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_a_sealed_row_does_not_delay_the_renewals_of_others(name: str, request: pytest.FixtureRequest) -> None:
    server: Database = request.getfixturevalue(name)
    place = Place(name, server.url, server, Path())
    with fairlock.connect(server.url) as locks:
        leases = [locks.lock(str(number), lease=2).acquire() for number in range(4)]
        late = locks.lock("late", lease=2)
        with contextlib.closing(place.driver()) as db:
            if name == "postgresql":
                db.execute("SET idle_in_transaction_session_timeout = '60s'")
            leases[0].seal(db)
            time.sleep(1)
            leases.append(late.acquire())
            time.sleep(2.5)
            assert [lease.held for lease in leases] == [False, True, True, True, True]
            assert leases[0].reason == "expired"
            db.rollback()
        for lease in leases[1:]:
            lease.release()


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_a_renewal_comes_through_as_soon_as_the_transaction_has_ended(
    name: str, request: pytest.FixtureRequest
) -> None:
    server: Database = request.getfixturevalue(name)
    place = Place(name, server.url, server, Path())
    with fairlock.connect(server.url) as locks, locks.lock("a", lease=2).acquire() as lease:
        with contextlib.closing(place.driver()) as db:
            lease.seal(db)
            time.sleep(1.0)  # a renewal was due, and was not possible
            db.commit()
        time.sleep(1.2)
        assert lease.held


def test_postgresql_ends_a_transaction_that_stays_idle_after_its_seal(postgresql: PostgreSQL) -> None:
    with fairlock.connect(postgresql.url) as locks, fairlock.connect(postgresql.url) as other:
        lease = locks.lock("a", lease=1).acquire()
        with contextlib.closing(psycopg.connect(postgresql.url)) as db:
            lease.seal(db)
            began = time.monotonic()
            assert other.lock("a").acquire(timeout=10) is not None
            assert 0.5 < time.monotonic() - began < 5
            with pytest.raises(psycopg.Error):
                db.commit()
        with contextlib.closing(psycopg.connect(postgresql.url)) as db:
            db.execute("SET idle_in_transaction_session_timeout = '7s'")
            shared = locks.lock("b", lease=1).acquire()
            shared.seal(db)
            assert db.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("7s",), "the user's own stays"


def test_holders_that_share_a_lock_do_not_wait_for_each_other(postgresql: PostgreSQL, mariadb: MariaDB) -> None:
    for server in (postgresql, mariadb):
        place = Place("postgresql" if server is postgresql else "mariadb", server.url, server, Path())
        with fairlock.connect(server.url) as locks, fairlock.connect(server.url) as other:
            one, two = locks.semaphore("s", 2).acquire(), other.semaphore("s", 2).acquire()
            with contextlib.closing(place.driver()) as first, contextlib.closing(place.driver()) as second:
                one.seal(first)
                two.seal(second)
                second.commit()
                first.commit()
            one.release()
            two.release()
