"""The differences of Oracle from other databases, on the stand-in (tests/servers/oracle.py), which is no Oracle."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import oracledb
import pytest
import sqlalchemy as sa

import fairlock
import fairlock.aio
from fairlock.engine.run_sync import run
from fairlock.stores.base import RowWrite
from fairlock.stores.sql.schema import Statement
from tests.engine.test_renewals_in_batches import hold
from tests.servers.oracle import OracleStandIn
from tests.servers.oracle_face import connect
from tests.servers.sql import PASSWORD, USER
from tests.sql.test_errors import said


def refusal(url: str, **options: object) -> str:
    """Return the error of a thread. A task gets the same one."""
    return str(said(url, **options))


# -- the stand-in is strict


@pytest.fixture
def session(oracle: OracleStandIn) -> Callable[..., Any]:
    dsn = oracledb.makedsn("127.0.0.1", oracle.port, service_name="fairlock")
    connection = connect(dsn, user=USER, password=PASSWORD)
    connection.autocommit = True
    oracle.run("DROP TABLE IF EXISTS strict")
    cursor = connection.cursor()
    columns = "key VARCHAR2(3 CHAR) NOT NULL PRIMARY KEY, body CLOB, long VARCHAR2(4000 CHAR)"
    cursor.execute(f"CREATE TABLE strict ({columns})")

    def run(text: str, **values: object) -> Any:
        cursor.execute(text, values)
        return cursor.fetchall() if cursor.description else cursor.rowcount

    yield run
    connection.close()
    oracle.run("DROP TABLE strict")


@pytest.mark.parametrize(
    "code, text, values",
    [
        ("ORA-00001", "INSERT INTO strict (key) VALUES ('a')", {}),
        ("ORA-01400", "INSERT INTO strict (key) VALUES (:v_key)", {"v_key": ""}),
        ("ORA-12899", "INSERT INTO strict (key) VALUES (:v_key)", {"v_key": "four"}),
        ("ORA-12899", "UPDATE strict SET long=:v_long WHERE key = 'a'", {"v_long": "ö" * 2001}),
        ("ORA-00942", "SELECT key FROM nothing", {}),
        ("ORA-00955", "CREATE TABLE strict (key NUMBER(19))", {}),
        ("ORA-00904", "SELECT lock FROM strict", {}),
        ("ORA-00933", "SELECT key FROM strict LIMIT 1", {}),
        ("ORA-00933", "SELECT key FROM strict;", {}),
        ("ORA-00933", "CREATE TABLE IF NOT EXISTS strict (key NUMBER(19))", {}),
        ("ORA-00923", "SELECT 1", {}),
        ("ORA-00932", "SELECT key FROM strict WHERE body = :v_body", {"v_body": "x"}),
        ("ORA-02014", "SELECT key FROM strict FETCH FIRST 1 ROWS ONLY FOR UPDATE", {}),
        ("ORA-01745", "SELECT key FROM strict WHERE key = :user", {"user": "x"}),
        ("DPY-4010", "SELECT key FROM strict WHERE key = :v_key", {}),
        ("DPY-4008", "SELECT key FROM strict WHERE key = :v_key", {"v_key": "a", "v_other": "b"}),
    ],
)  # fmt: skip
def test_it_refuses_what_oracle_refuses(
    session: Callable[..., Any], code: str, text: str, values: dict[str, object]
) -> None:
    session("INSERT INTO strict (key, body) VALUES ('a', 'x')")
    with pytest.raises(oracledb.Error) as caught:
        session(text, **values)
    assert caught.value.args[0].full_code == code


def test_an_empty_text_is_null(session: Callable[..., Any]) -> None:
    session("INSERT INTO strict (key, long) VALUES ('a', :v_long)", v_long="")
    assert session("SELECT long FROM strict") == [(None,)]
    assert session("SELECT key FROM strict WHERE key >= :v_key", v_key="") == []
    assert session("SELECT key FROM strict WHERE key >= :v_key", v_key="a") == [("a",)]


def test_a_clob_is_no_text_until_somebody_asks_for_that(session: Callable[..., Any]) -> None:
    session("INSERT INTO strict (key, body) VALUES ('a', 'x')")
    ((found,),) = session("SELECT body FROM strict")
    assert not isinstance(found, str)
    assert found.read() == "x"


def test_the_order_is_that_of_the_language_until_a_session_sets_binary(session: Callable[..., Any]) -> None:
    for key in "aBc":
        session("INSERT INTO strict (key) VALUES (:v_key)", v_key=key)
    assert session("SELECT key FROM strict ORDER BY key") == [("a",), ("B",), ("c",)]
    session("ALTER SESSION SET NLS_SORT=BINARY NLS_COMP=BINARY")
    assert session("SELECT key FROM strict ORDER BY key") == [("B",), ("a",), ("c",)]


# -- what was wrong on it


def test_everything_is_found_without_a_namespace_and_with_one(oracle: OracleStandIn) -> None:
    for namespace in ("", "apart"):
        with fairlock.connect(oracle.url, namespace=namespace) as locks, locks.lock("x"):
            assert [found.name for found in locks.snapshot().resources] == ["x"]


def test_a_scan_of_several_pages_on_a_german_database_finds_all(
    oracle: OracleStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page goes on behind the last key of the one before it, by bytes: the order has to be that of bytes, too."""
    from fairlock.stores.sql import dialects, lock_rows

    for module in (dialects, lock_rows):
        monkeypatch.setattr(module, "SCANNED", 2)
    monkeypatch.setattr(dialects, "_compiled", {})
    names = ["a", "B", "c", "D", "e", "F", "ö"]
    with fairlock.connect(oracle.url) as locks:
        assert "FETCH FIRST 2 ROWS" in locks._session.backend.store.dialect.scan_on.text  # type: ignore[attr-defined]
        for name in names:
            locks.lock(name).acquire()
        assert sorted(found.name for found in locks.snapshot().resources) == sorted(names)


def test_the_owners_of_many_slots_find_room(oracle: OracleStandIn) -> None:
    owner = "höchst-wichtig-" + "x" * 60
    with fairlock.connect(oracle.url, owner=owner) as locks:
        leases = [locks.semaphore("gpu", 100).acquire() for _ in range(70)]
        assert all(leases)
        ((result,),) = oracle.run("SELECT owner FROM fairlock_locks")
        assert result.startswith(f"{owner}, {owner}")
        assert result.endswith(f"{owner}, …")
        assert len(result.encode()) <= 4000
        assert len(locks.snapshot("gpu").resources[0].holders) == 70


def test_a_task_leaves_no_connection_behind(oracle: OracleStandIn, recwarn: pytest.WarningsRecorder) -> None:
    async def play() -> None:
        async with fairlock.aio.connect(oracle.url) as locks:
            async with locks.lock("x"):
                assert oracle.sessions() >= 1

    asyncio.run(play())
    limit = time.monotonic() + 10
    while oracle.sessions():
        assert time.monotonic() < limit
        time.sleep(0.01)
    assert not [warning for warning in recwarn if "never awaited" in str(warning.message)]


def test_a_server_that_hangs(oracle: OracleStandIn, caplog: pytest.LogCaptureFixture) -> None:
    """Threads wait for as long as `timeout` says, and so do tasks; and no traceback of the pool is logged."""
    with fairlock.connect(oracle.url, timeout=0.5) as locks:
        locks.lock("x").acquire().release()  # type: ignore[union-attr]
        oracle.stop()
        began = time.monotonic()
        with pytest.raises(fairlock.StoreError, match="does not reply"):
            locks.lock("x").acquire(False)
        assert time.monotonic() - began < 6
        oracle.cont()
        locks.lock("x").acquire().release()  # type: ignore[union-attr]

    async def play() -> None:
        async with fairlock.aio.connect(oracle.url, timeout=0.5) as locks:
            await (await locks.lock("x").acquire()).release()  # type: ignore[union-attr]
            oracle.stop()
            began = time.monotonic()
            with pytest.raises(fairlock.StoreError, match="does not reply"):
                await locks.lock("x").acquire(False)
            assert time.monotonic() - began < 6
            oracle.cont()
            await (await locks.lock("x").acquire()).release()  # type: ignore[union-attr]

    asyncio.run(play())
    assert not [record for record in caplog.records if record.name.startswith("sqlalchemy")]


def test_it_is_killed_and_comes_back(oracle: OracleStandIn) -> None:
    with fairlock.connect(oracle.url) as locks:
        locks.lock("y").acquire()
        oracle.kill()
        error = said(oracle.url)
        assert "cannot be reached: nothing listens there. Is it running" in str(error)
        oracle.restart()
        with locks.lock("x"):
            pass


def test_what_the_url_gets_wrong(oracle: OracleStandIn) -> None:
    assert "there is no such database" in refusal(oracle.url.replace("=fairlock", "=elsewhere"))
    assert "there is no such database" in refusal(oracle.url.replace("/?service_name=fairlock", "/elsewhere"))
    assert "does not accept this user and password" in refusal(oracle.url.replace(PASSWORD, "wrong-word"))
    assert "does not accept this user and password" in refusal(oracle.url.replace(f"{USER}:{PASSWORD}@", ""))


def test_an_engine_of_somebody_else(oracle: OracleStandIn) -> None:
    engine = sa.create_engine(oracle.url.replace("oracle:", "oracle+oracledb:"))
    with fairlock.connect(engine) as locks, locks.lock("x") as lease:
        assert lease.held
    engine.dispose()


def test_the_doctor_reads_the_character_set(oracle: OracleStandIn) -> None:
    def told() -> dict[str, str]:
        with fairlock.connect(oracle.url) as locks:
            store = locks._session.backend.store  # type: ignore[attr-defined]
            return {text: kind for kind, text in run(store.doctor())}

    assert any("AL32UTF8" in text and kind == "ok" for text, kind in told().items())
    oracle.run("UPDATE nls_database_parameters SET value = 'WE8ISO8859P1' WHERE parameter = 'NLS_CHARACTERSET'")
    try:
        (warning,) = [text for text, kind in told().items() if kind == "warning"]
        assert "WE8ISO8859P1" in warning
        assert "two names may become one" in warning
    finally:
        oracle.run("UPDATE nls_database_parameters SET value = 'AL32UTF8' WHERE parameter = 'NLS_CHARACTERSET'")


def test_what_the_schema_prints_makes_the_tables(oracle: OracleStandIn) -> None:
    for table in oracle.tables():
        oracle.run(f"DROP TABLE {table}")
    with fairlock.connect(oracle.url) as locks:
        store = locks._session.backend.store  # type: ignore[attr-defined]
        printed = store.schema()
        assert "CREATE SYNONYM app.fairlock_locks FOR the_owner.fairlock_locks;" in printed
        assert "ALTER USER app QUOTA UNLIMITED ON users;" in printed
        code = "\n".join(line for line in printed.splitlines() if not line.startswith(("--", "GRANT")))
        for text in filter(str.strip, code.split(";\n")):
            store.executor.execute(Statement(text.rstrip(";"), (), False), {})
        assert set(oracle.tables()) == {"fairlock_items", "fairlock_locks"}
        with locks.lock("x") as lease:
            assert lease.held


def test_skew_is_taken_off_a_lease(oracle: OracleStandIn) -> None:
    """On RAC each instance reads the clock of its own host."""
    with fairlock.connect(oracle.url + "&skew=2", lease=30) as locks, locks.lock("x") as lease:
        assert 20 < lease.remaining() <= 25
    with pytest.raises(fairlock.ConfigError, match="skew is a number of seconds"):
        fairlock.connect(oracle.url, skew=-1)


def test_a_crowd(oracle: OracleStandIn) -> None:
    """Four clients with connections of their own: never two inside, and every one gets in."""
    holders: list[int] = []
    wrong: list[int] = []
    fences: list[int] = []

    def work(number: int) -> None:
        with fairlock.connect(oracle.url) as locks:
            for _ in range(5):
                with locks.lock("x") as lease:
                    holders.append(number)
                    fences.append(lease.fence)
                    if len(holders) != 1:
                        wrong.append(number)
                    holders.remove(number)

    crowd = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join(60)
    assert not wrong
    assert len(fences) == 20
    assert fences == sorted(fences)


def test_no_statement_reads_the_clock_but_by_the_expression_that_is_replaced(oracle: OracleStandIn) -> None:
    """Or it would be another one that runs here than there."""
    with fairlock.connect(oracle.url) as locks:
        dialect = locks._session.backend.store.dialect  # type: ignore[attr-defined]
        texts = [each.text for each in vars(dialect).values() if isinstance(each, Statement)]
        texts.append(dialect.many.read([("a",), ("b",), ("c",)])[0].text)
    assert texts
    for text in texts:
        assert not re.search(r"SYSTIMESTAMP|SYSDATE|EXTRACT", text.replace(dialect.now, ""))


def test_what_oracle_refuses_is_not_half_done(oracle: OracleStandIn) -> None:
    """An error of one row leaves those before it in an open transaction: the end of its connection undoes that. Then
    each is written by itself, so that it costs no other lease."""

    async def work(backend: Any) -> None:
        store = backend.store
        names = [f"h{n}" for n in range(4)]
        for name in names:
            await hold(backend, name, "t")
        seen = await store.read_many(names)
        writes = [RowWrite(each.row, each.version, each.now) for each in seen]
        writes[2] = writes[2]._replace(row=writes[2].row._replace(score=10**37))
        assert await store.write_many(writes) == [None] * 4
        after = await store.read_many(names)
        assert [each.version for each in after] == [each.version for each in seen]
        writes[2] = RowWrite(*writes[1])._replace(row=seen[2].row, expected=seen[2].version)
        assert None not in await store.write_many(writes)

    with fairlock.connect(oracle.url) as locks:
        run(work(locks._session.backend))
