"""Oracle Database, of which no server can be installed for tests: the statements are pinned, and its errors are mapped.
test_oracle_stand_in.py runs them on a stand-in, test_oracle_driver.py has the driver meet bad listeners. With
HOLDFAST_TEST_ORACLE_URL the whole contract runs on a real one."""

from __future__ import annotations

import pytest
import sqlalchemy
from oracledb import errors
from sqlalchemy.engine import make_url

from holdfast.backends.contract import Unknown
from holdfast.backends.sql import trouble
from holdfast.backends.sql.items import Items
from holdfast.backends.sql.oracle import Oracle
from holdfast.backends.sql.tables import Statement, ddl
from holdfast.errors import BackendError, ConfigError

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


def test_what_is_said_about_locks(oracle: Oracle) -> None:
    columns = "holdfast_locks.score, holdfast_locks.owner, holdfast_locks.body, holdfast_locks.version"
    assert one_line(oracle.read) == (
        f"SELECT <now> AS now, {columns} FROM (SELECT 1 AS one FROM DUAL) just"
        " LEFT OUTER JOIN holdfast_locks ON holdfast_locks.key = :v_key"
    )
    assert one_line(oracle.write) == (
        "UPDATE holdfast_locks SET score=:v_score, owner=:v_owner, body=:v_body, version=:v_version"
        " WHERE holdfast_locks.key = :v_key AND holdfast_locks.version = :v_expected"
        " AND <now> BETWEEN :v_now AND :v_now + 1000000"
    )
    assert one_line(oracle.insert) == (
        "INSERT INTO holdfast_locks (key, score, owner, body, version)"
        " VALUES (:v_key, :v_score, :v_owner, :v_body, :v_version)"
    )
    assert one_line(oracle.claim) == (
        "UPDATE holdfast_locks SET version=:v_version WHERE holdfast_locks.key = :v_key"
    )
    assert one_line(oracle.scan) == (
        f"SELECT <now> AS now, holdfast_locks.key, {columns} FROM holdfast_locks"
        " WHERE holdfast_locks.key >= :v_key ORDER BY holdfast_locks.key FETCH FIRST 1000 ROWS ONLY"
    )
    assert one_line(oracle.scan_all) == one_line(oracle.scan).replace(" WHERE holdfast_locks.key >= :v_key", "")
    assert oracle.session == "ALTER SESSION SET NLS_SORT=BINARY NLS_COMP=BINARY"


def test_what_is_said_about_items(oracle: Oracle) -> None:
    items = Items(oracle)
    assert "FETCH FIRST 16 ROWS ONLY" in items.take.text
    assert "FOR UPDATE" not in items.take.text  # not together with FETCH FIRST: ORA-02014
    assert one_line(items.put).startswith("UPDATE holdfast_items SET score=:v_score, fence=:v_fence")
    assert one_line(items.add(1)) == (
        "INSERT INTO holdfast_items (pool, key, score, fence, ticket, lease, owner, note, body)"
        " VALUES (:v_pool, :v_key0, ((<now> - 1000000000000000) + :v_nth0), 0, '-', 0, '-', '-', :v_body0)"
    )
    assert items.at_once == 1


def test_the_tables(dialect: sqlalchemy.Dialect) -> None:
    texts = ddl(dialect, if_absent=False)
    assert "key VARCHAR2(404 CHAR) NOT NULL" in texts[2]
    assert "version NUMBER(19) NOT NULL" in texts[2]
    assert "body CLOB NOT NULL" in texts[2]
    assert texts[1] == "CREATE INDEX holdfast_due ON holdfast_items (pool, score)"


def test_no_name_of_a_value_is_too_long_or_empty(oracle: Oracle) -> None:
    for statement in vars(oracle).values():
        if isinstance(statement, Statement):
            names = [word for word in statement.text.split() if word.startswith(":")]
            assert all(1 < len(name.rstrip(",)")) < 30 for name in names)


def error_of(code: str) -> Exception:
    """As python-oracledb raises it."""
    error = errors._Error(f"{code}: so it says", code=int(code[4:]) if code.startswith("ORA-") else 0)
    made: Exception = error.exc_type(error)
    return made


@pytest.mark.parametrize(
    "code, meaning",
    [
        ("ORA-00001", trouble.Exists), ("ORA-00955", trouble.Exists), ("ORA-00942", trouble.NoTable),
        ("ORA-00054", trouble.Conflict), ("ORA-00060", trouble.Conflict), ("ORA-08177", trouble.Conflict),
        ("ORA-01031", BackendError), ("ORA-16000", BackendError), ("ORA-12345", BackendError),
        ("ORA-03113", Unknown), ("ORA-03135", Unknown), ("DPY-4011", Unknown), ("DPY-1001", Unknown),
        ("DPY-4024", Unknown), ("ORA-01950", BackendError), ("ORA-01536", BackendError), ("ORA-05700", BackendError),
    ],
)  # fmt: skip
def test_what_its_errors_mean(oracle: Oracle, code: str, meaning: type[Exception]) -> None:
    assert type(trouble.said_no(oracle, "oracle://h/d", error_of(code))) is meaning


def test_no_answer_in_time_and_no_room_are_called_so(oracle: Oracle) -> None:
    assert str(trouble.said_no(oracle, "oracle://h/d", error_of("DPY-4024"))) == "no answer came in time"
    assert str(trouble.said_no(oracle, "oracle://h/d", error_of("DPY-4011"))) == "the connection broke"
    for code in ("ORA-01950", "ORA-01536"):
        error = trouble.said_no(oracle, "oracle://h/d", error_of(code))
        assert isinstance(error, BackendError)
        assert error.refused
        assert "no room for rows. Its administrator sets a quota. `holdfast schema`" in str(error)


@pytest.mark.parametrize(
    "code, meaning, words",
    [
        ("ORA-01017", BackendError, "does not accept this user and password"),
        ("ORA-12514", ConfigError, "no such database"),
        ("ORA-12520", BackendError, "no connection left"),
        ("ORA-01033", BackendError, "starting or stopping"),
        ("ORA-01045", BackendError, "does not allow this user to connect"),
        ("DPY-3010", BackendError, "older than 12.1"),
        ("DPY-3015", BackendError, "set the password again"),
        ("DPY-4001", BackendError, "does not accept this user and password"),
    ],
)
def test_why_there_is_no_connection(oracle: Oracle, code: str, meaning: type[Exception], words: str) -> None:
    error = trouble.cannot_connect(oracle, "oracle://h/d", error_of(code))
    assert type(error) is meaning
    assert words in str(error)
