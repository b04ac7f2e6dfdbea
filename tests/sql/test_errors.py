"""Each error of a database is a sentence with the cure in it, and no sentence repeats a password."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

import fairlock
import fairlock.aio
from tests.servers.sql import DATABASE, PASSWORD, USER, Database, MariaDB, PostgreSQL


@pytest.fixture(params=["postgresql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


def said(url: str, **options: object) -> fairlock.LockError:
    """Return the error of a thread. A task gets the same one."""
    with fairlock.connect(url, **options) as locks, pytest.raises(fairlock.LockError) as caught:
        locks.lock("x").acquire(False)
    assert PASSWORD not in str(caught.value)
    assert USER not in str(caught.value)

    async def task() -> fairlock.LockError:
        async with fairlock.aio.connect(url, **options) as locks:
            with pytest.raises(fairlock.LockError) as caught:
                await locks.lock("x").acquire(False)
            return caught.value

    result = asyncio.run(task())
    assert (type(result), str(result)) == (type(caught.value), str(caught.value))
    return caught.value


def test_a_wrong_password(database: Database) -> None:
    error = said(database.url.replace(PASSWORD, "wrong-word"))
    assert isinstance(error, fairlock.StoreError)
    assert error.refused
    assert "does not accept this user and password" in str(error)
    assert "wrong-word" not in str(error)


def test_a_database_that_is_not_there(database: Database) -> None:
    if isinstance(database, MariaDB):  # or it says that the user may not go there, whether it is there or not
        database.run(f"GRANT ALL ON elsewhere.* TO {USER}@'127.0.0.1'")
    error = said(database.url.replace(f"/{DATABASE}", "/elsewhere"))
    assert isinstance(error, fairlock.ConfigError)
    assert "there is no such database" in str(error)


def test_no_server_listens(database: Database) -> None:
    with fairlock.connect(database.url) as locks:
        lease = locks.lock("y").acquire()
        assert lease is not None
        database.kill()
        error = said(database.url)
        assert isinstance(error, fairlock.StoreError)
        assert not error.refused
        assert "cannot be reached: nothing listens there. Is it running" in str(error)
        with pytest.raises(fairlock.StoreError):
            locks.lock("x").acquire(False)
        database.restart()
        assert lease.held, "and nothing is lost"
        assert locks.lock("y").acquire(False) is None
        lease.release()
        with locks.lock("x"):
            pass


def test_a_server_that_hangs(database: Database) -> None:
    with fairlock.connect(database.url, timeout=0.5) as locks:
        locks.lock("x").acquire().release()  # type: ignore[union-attr]
        database.stop()
        with pytest.raises(fairlock.StoreError, match="does not reply"):
            locks.lock("x").acquire(False)
        database.cont()


def test_no_such_host_and_no_such_parameter() -> None:
    assert "no such host" in str(said("postgresql://app:open-sesame@no-such-host.invalid/fairlock"))
    with pytest.raises(fairlock.ConfigError, match="'nonsense' is not an option"):
        fairlock.connect("postgresql://h/d", nonsense=1)
    assert "does not know a parameter" in str(said("postgresql://127.0.0.1:1/d?nonsense=1"))
    with pytest.raises(fairlock.ConfigError, match="timeout is a number of seconds above 0"):
        fairlock.connect("mariadb://h/d?timeout=never")
    with pytest.raises(fairlock.ConfigError, match="a parameter is not valid"):
        fairlock.connect("mariadb://h/d?connect_timeout=never")
    with pytest.raises(fairlock.ConfigError, match="SQLAlchemy knows no mariadb"):
        fairlock.connect("mariadb+nonsense://h/d")
    with pytest.raises(fairlock.ConfigError, match="listen is for PostgreSQL"):
        fairlock.connect("mariadb://h/d", listen="postgresql://h/d")
    with pytest.raises(fairlock.ConfigError, match="listen is the URL of the same PostgreSQL"):
        fairlock.connect("postgresql://h/d", listen="redis://h")


@pytest.fixture
def guest(database: Database) -> Iterator[Callable[..., str]]:
    """A user that has only the rights that the test grants, on tables that another user has created."""
    who = "guest" if isinstance(database, PostgreSQL) else "guest@'127.0.0.1'"
    word = "PASSWORD" if isinstance(database, PostgreSQL) else "IDENTIFIED BY"
    database.run(f"CREATE USER {who} {word} 'open-sesame'")

    def allow(*rights: str, tables: bool) -> str:
        for table in database.tables():
            database.run(f"DROP TABLE {table}")
        if tables:
            with fairlock.connect(database.url) as locks:
                locks.lock("x").locked()
        for right in rights:
            database.run(right.format(who=who))
        return database.url.replace(USER, "guest", 1)

    if isinstance(database, PostgreSQL):
        database.run("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    yield allow
    if isinstance(database, PostgreSQL):
        database.run("DROP OWNED BY guest")
    database.run(f"DROP USER {who}")


def test_missing_tables_and_no_right_to_make_them(database: Database, guest: Callable[..., str]) -> None:
    rights = [] if isinstance(database, PostgreSQL) else [f"GRANT SELECT ON {DATABASE}.* TO {{who}}"]
    error = said(guest(*rights, tables=False))
    assert isinstance(error, fairlock.StoreError)
    assert error.refused
    assert "has no tables of fairlock, and this user may not create them" in str(error)
    assert "`fairlock schema`" in str(error)


def test_missing_rights_and_those_that_the_schema_prints(database: Database, guest: Callable[..., str]) -> None:
    rights = [] if isinstance(database, PostgreSQL) else [f"GRANT SELECT ON {DATABASE}.* TO {{who}}"]
    url = guest(*rights, tables=True)
    error = said(url)
    assert isinstance(error, fairlock.StoreError)
    assert error.refused
    assert "does not allow this user to use" in str(error)
    with fairlock.connect(url) as locks:
        printed = locks._session.backend.schema()
        grants = [line for line in printed.splitlines() if line.startswith("GRANT")]
        assert len(grants) == 2
        for grant in grants:
            grant = grant.rstrip(";")
            database.run(grant if isinstance(database, PostgreSQL) else grant.replace("guest", "guest@'127.0.0.1'"))
        with locks.lock("x") as lease:
            assert lease.held
        pool = locks.pool("jobs")
        assert pool.add("a")
        pool.acquire(False).done()  # type: ignore[union-attr]


def test_what_the_schema_prints_makes_the_tables(database: Database) -> None:
    for table in database.tables():
        database.run(f"DROP TABLE {table}")
    with fairlock.connect(database.url) as locks:
        printed = locks._session.backend.schema()
        assert database.tables() == []  # it has run nothing
        code = "\n".join(line for line in printed.splitlines() if not line.startswith(("--", "GRANT")))
        for statement in filter(str.strip, code.split(";\n")):
            database.run(statement.rstrip(";").replace("%", "%%"))
        assert set(database.tables()) == {"fairlock_items", "fairlock_locks"}
        if isinstance(database, PostgreSQL):
            for table in database.tables():
                database.run(f"ALTER TABLE {table} OWNER TO {USER}")
        with locks.lock("x") as lease:
            assert lease.held


def test_a_replica_is_recognised(postgresql: PostgreSQL) -> None:
    """A database that is read-only, as all of them are on a replica."""
    with fairlock.connect(postgresql.url) as locks:
        locks.lock("x").locked()
    postgresql.run(f"ALTER DATABASE {DATABASE} SET default_transaction_read_only = on")
    try:
        error = said(postgresql.url)
        assert "takes no writes" in str(error)
    finally:
        postgresql.run(f"ALTER DATABASE {DATABASE} RESET default_transaction_read_only")


def test_a_server_whose_default_is_repeatable_read(postgresql: PostgreSQL) -> None:
    """There a write that comes second is an error and no conflict; nobody notices."""
    postgresql.run(f"ALTER DATABASE {DATABASE} SET default_transaction_isolation = 'repeatable read'")
    try:
        import threading

        def work() -> None:
            with fairlock.connect(postgresql.url) as locks:
                for _ in range(10):
                    with locks.lock("x"):
                        pass

        crowd = [threading.Thread(target=work) for _ in range(4)]
        for one in crowd:
            one.start()
        for one in crowd:
            one.join(60)
        with fairlock.connect(postgresql.url) as locks:
            assert not locks.lock("x").locked()
    finally:
        postgresql.run(f"ALTER DATABASE {DATABASE} RESET default_transaction_isolation")
