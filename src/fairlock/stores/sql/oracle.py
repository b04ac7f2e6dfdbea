"""What is sent to Oracle Database and to TimesTen, and what their replies mean.

Neither can be installed for the tests. They run the statements for Oracle on a stand-in (tests/servers/oracle.py); the
statements for TimesTen are compared with its documented grammar and were never run. docs/sql.md states this.

TimesTen (Oracle In-Memory Database) has no SYSTIMESTAMP, no SYS_EXTRACT_UTC and no FETCH FIRST. Its clock is
`tt_sysdate`, the time of its host, which has no time zone: all hosts of one TimesTen must have the same, and one
without summer time. The In-Memory option of Oracle Database is Oracle Database.
"""

import re
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql.expression import Select

from .dialects import Dialect, of_key
from .many_rows import ByDriver
from .schema import LOCKS, number

SINCE = "(SYS_EXTRACT_UTC(SYSTIMESTAMP) - TIMESTAMP '1970-01-01 00:00:00')"  # an interval


def microseconds(interval: str) -> str:
    return (
        f"(EXTRACT(DAY FROM {interval}) * 86400000000 + EXTRACT(HOUR FROM {interval}) * 3600000000"
        f" + EXTRACT(MINUTE FROM {interval}) * 60000000 + TRUNC(EXTRACT(SECOND FROM {interval}) * 1000000))"
    )


class Oracle(Dialect):
    name, extra = "Oracle", "oracle"
    many_rows = ByDriver
    skips_locked = False
    owned = ("-- if another user owns it: CREATE SYNONYM {user}.{table} FOR the_owner.{table};",)
    quota: Collection[str] = (
        "-- the owner needs room for rows: ALTER USER {user} QUOTA UNLIMITED ON users;  -- or another tablespace",
    )
    nobody = "-"  # '' is NULL there
    label_bytes = 4000  # of a VARCHAR2
    makes_if_absent = False
    # A scan goes on behind the last key of a page, by bytes: ORDER BY must not follow the language of the database.
    session = "ALTER SESSION SET NLS_SORT=BINARY NLS_COMP=BINARY"
    now = microseconds(SINCE)

    conflict = (54, 60, 8177, 30006)
    exists = (1, 955)
    no_table = (942,)
    no_right = (1031, 41900, 1045)
    no_database = (12514, 12505, 12154)
    bad_login = (1017, 28000, 1005, "DPY-4001")
    full = (18, 20, 12516, 12519, 12520)
    read_only = (16000, 1456)
    starting = (1033, 1034, 1089, 1090, 12526, 12527, 12528)
    no_room = (1950, 1536)
    unsupported = {
        "DPY-3010": "This Oracle is older than 12.1, which python-oracledb reaches only in its thick mode.",
        "DPY-3015": "The password of this user is stored in a form that is too old for python-oracledb in its thin "
        "mode. Let an administrator set the password again, or use the thick mode.",
    }  # fmt: skip
    lost = (28, 1012, 1092, 2396, 3113, 3114, 3135, 12537, 12547, 12570, 12583)

    def clock(self) -> Any:
        return sa.literal_column(self.now, sa.BigInteger)

    def _one(self) -> Any:
        return sa.select(sa.literal_column("1").label("one")).select_from(sa.text("DUAL")).subquery("just")

    def _claiming(self) -> Any:
        return sa.update(LOCKS).where(of_key).values(version=number("version"))

    def code(self, error: BaseException) -> Any:
        """Return the number of an ORA code. In its thin mode the driver has codes of its own for what a listener
        replies ("DPY-6001: … (Similar to ORA-12514)"), below a DPY-6005 that means only that there is no connection."""
        full: str = getattr(error.args[0] if error.args else None, "full_code", "") or ""
        if full in self.bad_login or full in self.unsupported:
            return full
        found = re.match(r"ORA-(\d+)$", full) or re.search(r"Similar to ORA-(\d+)", str(error))
        code = int(found[1]) if found else 0
        return code if code and code not in self.lost else None

    def is_late(self, error: BaseException) -> bool:
        return "DPY-4024" in str(error) or super().is_late(error)


class TimesTen(Oracle):
    """Never run: tests/sql/test_timesten.py compares it with the documented grammar."""

    name = "TimesTen"
    quota = ()
    session = "ALTER SESSION SET NLS_SORT=BINARY"  # it has no NLS_COMP: conditions compare bytes
    now = microseconds("(tt_sysdate - CAST(TIMESTAMP '1970-01-01 00:00:00' AS TT_TIMESTAMP))")

    def first(self, rows: int, clause: Any) -> Select[Any]:
        first: Select[Any] = clause.prefix_with(f"FIRST {rows}")
        return first
