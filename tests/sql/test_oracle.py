"""Oracle Database, of which no server can be installed for tests: the statements are pinned, and its errors are mapped.
test_oracle_stand_in.py runs them on a stand-in, test_oracle_driver.py has the driver meet bad listeners. With
FAIRLOCK_TEST_ORACLE_URL the whole contract runs on a real one."""

from __future__ import annotations

import pytest
import sqlalchemy
from oracledb import errors as driver_errors
from sqlalchemy.engine import make_url

from fairlock.errors import ConfigError, StoreError
from fairlock.stores.base import OutcomeUnknown
from fairlock.stores.sql import errors
from fairlock.stores.sql.item_statements import Items
from fairlock.stores.sql.oracle import Oracle
from fairlock.stores.sql.schema import Statement, ddl

SINCE = "(SYS_EXTRACT_UTC(SYSTIMESTAMP) - TIMESTAMP '1970-01-01 00:00:00')"
CLOCK = (
    f"(EXTRACT(DAY FROM {SINCE}) * 86400000000 + EXTRACT(HOUR FROM {SINCE}) * 3600000000"
    f" + EXTRACT(MINUTE FROM {SINCE}) * 60000000 + TRUNC(EXTRACT(SECOND FROM {SINCE}) * 1000000))"
)


@pytest.fixture(scope="module")
def dialect() -> sqlalchemy.Dialect:
    made: sqlalchemy.Dialect = make_url("oracle+oracledb://").get_dialect()()
    return made


@pytest.fixture(scope="module")
def oracle(dialect: sqlalchemy.Dialect) -> Oracle:
    return Oracle(dialect)


def one_line(statement: Statement) -> str:
    return " ".join(statement.text.split()).replace(CLOCK, "<now>")


def test_the_statements_about_locks(oracle: Oracle) -> None:
    columns = "fairlock_locks.score, fairlock_locks.owner, fairlock_locks.body, fairlock_locks.version"
    assert one_line(oracle.read) == (
        f"SELECT <now> AS now, {columns} FROM (SELECT 1 AS one FROM DUAL) just"
        " LEFT OUTER JOIN fairlock_locks ON fairlock_locks.key = :v_key"
    )
    assert one_line(oracle.write) == (
        "UPDATE fairlock_locks SET score=:v_score, owner=:v_owner, body=:v_body, version=:v_version"
        " WHERE fairlock_locks.key = :v_key AND fairlock_locks.version = :v_expected"
        " AND <now> BETWEEN :v_now AND :v_now + 1000000"
    )
    read_many, keys = oracle.many.read([("a",), ("b",), ("c",)])
    asked = " UNION ALL ".join(
        f"SELECT CAST(:v_key{n} AS VARCHAR2(404 CHAR)) AS key FROM DUAL" for n in range(4)
    )  # the last one twice: so there are few texts
    assert one_line(read_many) == (
        f"SELECT <now> AS now, {columns}, asked.key FROM ({asked}) asked"
        " LEFT OUTER JOIN fairlock_locks ON fairlock_locks.key = asked.key"
    )
    assert keys == {"v_key0": "a", "v_key1": "b", "v_key2": "c", "v_key3": "c"}
    write_many, values = oracle.many.write([{"v_key": "a"}, {"v_key": "b"}])
    assert write_many == oracle.write._replace(many=True)  # array DML: the statement for one row
    assert values == {"rows": [{"v_key": "a"}, {"v_key": "b"}]}
    assert one_line(oracle.insert) == (
        "INSERT INTO fairlock_locks (key, score, owner, body, version)"
        " VALUES (:v_key, :v_score, :v_owner, :v_body, :v_version)"
    )
    assert one_line(oracle.claim) == (
        "UPDATE fairlock_locks SET version=:v_version WHERE fairlock_locks.key = :v_key"
    )
    assert one_line(oracle.scan) == (
        f"SELECT <now> AS now, fairlock_locks.key, {columns} FROM fairlock_locks"
        " WHERE fairlock_locks.key >= :v_key ORDER BY fairlock_locks.key FETCH FIRST 1000 ROWS ONLY"
    )
    assert one_line(oracle.scan_all) == one_line(oracle.scan).replace(" WHERE fairlock_locks.key >= :v_key", "")
    assert oracle.session == "ALTER SESSION SET NLS_SORT=BINARY NLS_COMP=BINARY"


def test_the_statements_about_items(oracle: Oracle) -> None:
    items = Items(oracle)
    assert "FETCH FIRST 16 ROWS ONLY" in items.take.text
    assert "FOR UPDATE" not in items.take.text  # not together with FETCH FIRST: ORA-02014
    assert one_line(items.put).startswith("UPDATE fairlock_items SET score=:v_score, fence=:v_fence")
    assert one_line(items.add(1)) == (
        "INSERT INTO fairlock_items (pool, key, score, fence, ticket, lease, owner, note, body)"
        " VALUES (:v_pool, :v_key0, ((<now> - 1000000000000000) + :v_nth0), 0, '-', 0, '-', '-', :v_body0)"
    )
    assert items.rows_per_add == 1


def test_the_tables(dialect: sqlalchemy.Dialect) -> None:
    texts = ddl(dialect, if_absent=False)
    assert "key VARCHAR2(404 CHAR) NOT NULL" in texts[2]
    assert "version NUMBER(19) NOT NULL" in texts[2]
    assert "body CLOB NOT NULL" in texts[2]
    assert texts[1] == "CREATE INDEX fairlock_due ON fairlock_items (pool, score)"


def test_no_name_of_a_value_is_too_long_or_empty(oracle: Oracle) -> None:
    for statement in vars(oracle).values():
        if isinstance(statement, Statement):
            names = [word for word in statement.text.split() if word.startswith(":")]
            assert all(1 < len(name.rstrip(",)")) < 30 for name in names)


def error_of(code: str) -> Exception:
    """As python-oracledb raises it."""
    error = driver_errors._Error(f"{code}: so it says", code=int(code[4:]) if code.startswith("ORA-") else 0)
    made: Exception = error.exc_type(error)
    return made


@pytest.mark.parametrize(
    "code, meaning",
    [
        ("ORA-00001", errors.Exists), ("ORA-00955", errors.Exists), ("ORA-00942", errors.NoTable),
        ("ORA-00054", errors.Conflict), ("ORA-00060", errors.Conflict), ("ORA-08177", errors.Conflict),
        ("ORA-01031", StoreError), ("ORA-16000", StoreError), ("ORA-12345", StoreError),
        ("ORA-03113", OutcomeUnknown), ("ORA-03135", OutcomeUnknown), ("DPY-4011", OutcomeUnknown),
        ("DPY-1001", OutcomeUnknown), ("DPY-4024", OutcomeUnknown), ("ORA-01950", StoreError),
        ("ORA-01536", StoreError), ("ORA-05700", StoreError),
    ],
)  # fmt: skip
def test_what_its_errors_mean(oracle: Oracle, code: str, meaning: type[Exception]) -> None:
    assert type(errors.explain_failure(oracle, "oracle://h/d", error_of(code))) is meaning


def test_no_answer_in_time_and_no_room_are_called_so(oracle: Oracle) -> None:
    assert str(errors.explain_failure(oracle, "oracle://h/d", error_of("DPY-4024"))) == "no reply came in time"
    assert str(errors.explain_failure(oracle, "oracle://h/d", error_of("DPY-4011"))) == "the connection broke"
    for code in ("ORA-01950", "ORA-01536"):
        error = errors.explain_failure(oracle, "oracle://h/d", error_of(code))
        assert isinstance(error, StoreError)
        assert error.refused
        assert "no room for rows. Its administrator sets a quota. `fairlock schema`" in str(error)


@pytest.mark.parametrize(
    "code, meaning, words",
    [
        ("ORA-01017", StoreError, "does not accept this user and password"),
        ("ORA-12514", ConfigError, "no such database"),
        ("ORA-12520", StoreError, "no connection left"),
        ("ORA-01033", StoreError, "starting or stopping"),
        ("ORA-01045", StoreError, "does not allow this user to connect"),
        ("DPY-3010", StoreError, "older than 12.1"),
        ("DPY-3015", StoreError, "set the password again"),
        ("DPY-4001", StoreError, "does not accept this user and password"),
    ],
)
def test_why_there_is_no_connection(oracle: Oracle, code: str, meaning: type[Exception], words: str) -> None:
    error = errors.cannot_connect(oracle, "oracle://h/d", error_of(code))
    assert type(error) is meaning
    assert words in str(error)
