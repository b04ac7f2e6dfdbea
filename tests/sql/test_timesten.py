"""TimesTen (Oracle In-Memory Database): its statements are compared with its documented grammar, and were never run."""

from __future__ import annotations

import re

import pytest
from sqlalchemy.engine import make_url

import fairlock
from fairlock.stores.sql.item_statements import Items
from fairlock.stores.sql.oracle import TimesTen
from fairlock.stores.sql.schema import Statement, ddl

NOT_THERE = ("SYSTIMESTAMP", "SYS_EXTRACT_UTC", "FETCH FIRST", "OFFSET", "LIMIT", "NLS_COMP", "ROWNUM", "RETURNING")
INTERVAL = "(tt_sysdate - CAST(TIMESTAMP '1970-01-01 00:00:00' AS TT_TIMESTAMP))"


@pytest.fixture(scope="module")
def timesten() -> TimesTen:
    return TimesTen(make_url("oracle+oracledb://").get_dialect()())


def texts(timesten: TimesTen) -> dict[str, str]:
    everything = {**vars(timesten), **vars(Items(timesten)), "add": Items(timesten).add(1)}
    said = {name: each.text for name, each in everything.items() if isinstance(each, Statement)}
    said["read_many"] = timesten.many.read([("a",), ("b",)])[0].text
    assert len(said) >= 20
    return {name: " ".join(text.split()) for name, text in said.items()}


def test_nothing_is_used_that_it_has_not(timesten: TimesTen) -> None:
    for text in [*texts(timesten).values(), *ddl(timesten.sa, timesten.makes_if_absent), timesten.session]:
        assert not [word for word in NOT_THERE if word in text], text


def test_the_clock_is_its_own(timesten: TimesTen) -> None:
    """EXTRACT from the difference of two TT_TIMESTAMP, field by field, as its SQL reference has it."""
    assert timesten.now == (
        f"(EXTRACT(DAY FROM {INTERVAL}) * 86400000000 + EXTRACT(HOUR FROM {INTERVAL}) * 3600000000"
        f" + EXTRACT(MINUTE FROM {INTERVAL}) * 60000000 + TRUNC(EXTRACT(SECOND FROM {INTERVAL}) * 1000000))"
    )
    for name, text in texts(timesten).items():
        assert "sysdate" not in text.replace(timesten.now, ""), name


def test_so_many_rows_are_asked_for_at_the_front(timesten: TimesTen) -> None:
    """SELECT [FIRST NumRows | ROWS m TO n] SelectList: each page goes on behind the last key, so no ROWS is needed."""
    said = texts(timesten)
    wanted = {"scan": 1000, "scan_on": 1000, "scan_all": 1000, "take": 16, "due": 1, "of": 1, "all": 1000}
    for name, rows in wanted.items():
        assert re.match(rf"SELECT FIRST {rows} ", said[name]), said[name]
    assert "WHERE fairlock_locks.key > :v_key ORDER BY fairlock_locks.key" in said["scan_on"]


def test_it_is_chosen_by_the_url() -> None:
    for url, options in (("oracle://u:p@sample?timesten=true", {}), ("oracle://u:p@sample", {"timesten": True})):
        with fairlock.connect(url, **options) as locks:  # type: ignore[arg-type]
            assert isinstance(locks._session.backend.store.dialect, TimesTen)  # type: ignore[attr-defined]
            assert locks.store == "timesten://sample/"
            printed = locks._session.backend.schema()
            assert "QUOTA" not in printed
    for url in ("postgresql://h/d?timesten=true", "oracle://sample?timesten=perhaps"):
        with pytest.raises(fairlock.ConfigError, match="timesten=true goes with oracle://"):
            fairlock.connect(url)
