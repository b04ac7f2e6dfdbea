"""The statements that read or write many rows at once: the renewals of a client.

What is wanted comes with the statement, as a table beside the one in the database. A write locks those rows that are
still as they were read, in the order of their keys, and skips what another client has locked. So two clients that renew
the same leases never wait for each other, and none waits for a transaction that has sealed a row. The reply shows how
many rows were written; if some were not, a read shows which.

- PostgreSQL gets one array for each column.
- MariaDB and MySQL get a UNION ALL of rows. Their comments for a version let each do what it can: MySQL since 8.0.1 and
  MariaDB since 10.6 skip a locked row; by an older MariaDB the whole write is refused as long as one is locked.
- Oracle has no such UPDATE. It gets the statement for one row once, and the values of all rows with it (array DML): one
  request and one transaction, in which a row that is locked is waited for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from .schema import Statement, compiled, value

if TYPE_CHECKING:
    from .dialects import Dialect

Values = dict[str, Any]


class Rows(NamedTuple):
    """The rows of a table, as they are read and written."""

    table: sa.Table
    key: tuple[str, ...]
    shown: Sequence[sa.Column[Any]]
    same: dict[str, str]
    """By column, the key included: the value by which a row is found to be unchanged."""
    new: tuple[str, ...]
    """The columns that are written."""
    fresh: bool
    """Whether a write is also refused if its time is more than a second old."""


class ManyRows(ABC):
    """These statements for one database and driver. Each takes the same values as the statement for one row."""

    def __init__(self, dialect: Dialect, rows: Rows, one: Statement) -> None:
        self._dialect = dialect
        self._rows = rows
        self._one = one
        self._reads: dict[int, Statement] = {}

    def read(self, keys: Sequence[tuple[str, ...]]) -> tuple[Statement, Values]:
        """Return a statement that shows for each of these keys the time, the columns or NULL, and the key."""
        names, size = self._rows.key, _rounded(len(keys))
        if size not in self._reads:
            rows = [sa.select(*(self._asked(name, n) for name in names)) for n in range(size)]
            self._reads[size] = self._reading(sa.union_all(*rows).subquery("asked"))
        values: Values = {}
        for n, key in enumerate([*keys, *[keys[-1]] * (size - len(keys))]):
            values |= {f"v_{name}{n}": text for name, text in zip(names, key, strict=True)}
        return self._reads[size], values

    def _asked(self, name: str, number: int) -> Any:
        return value(f"{name}{number}").label(name)

    def _reading(self, asked: Any) -> Statement:
        table = self._rows.table
        same = sa.and_(*(table.c[name] == asked.c[name] for name in self._rows.key))
        columns = [self._dialect.clock().label("now"), *self._rows.shown, *asked.c]
        return compiled(sa.select(*columns).select_from(asked.outerjoin(table, same)), self._dialect.sa, True)

    @abstractmethod
    def write(self, rows: Sequence[Values]) -> tuple[Statement, Values]:
        """Return a statement that writes these rows, which are in the order of their keys."""

    def _condition(self, new: str) -> str:
        """Return the condition that a row is still the one that was read."""
        return " AND ".join(f"{self._of(column)} = {new}.{name}" for column, name in self._columns(self._rows.same))

    def _in_time(self, new: str) -> str:
        clock = str(self._dialect.clock().compile(dialect=self._dialect.sa))
        return f"{clock} BETWEEN {new}.now AND {new}.now + 1000000" if self._rows.fresh else f"{clock} >= {new}.now"

    def _of(self, column: str) -> str:
        return f"{self._rows.table.name}.{column}"

    def _columns(self, names: dict[str, str]) -> list[tuple[str, str]]:
        """Return the names of columns and of their values, as they are written in a statement."""
        quoted = self._dialect.sa.identifier_preparer.quote
        return [(quoted(column), quoted(name)) for column, name in names.items()]

    @property
    def _names(self) -> list[str]:
        return [*self._rows.same.values(), *self._rows.new, "now"]


class ByArrays(ManyRows):
    """PostgreSQL."""

    def __init__(self, dialect: Dialect, rows: Rows, one: Statement) -> None:
        super().__init__(dialect, rows, one)
        texts = postgresql.ARRAY(sa.Text)
        asked = sa.func.unnest(*(value(name, texts) for name in rows.key)).table_valued(*rows.key, name="asked")
        self._read = self._reading(asked.render_derived())
        self._write = compiled(sa.text(self._writing()), dialect.sa)._replace(may_wait=False)

    def _writing(self) -> str:
        table, key = self._rows.table, self._rows.key
        kinds = {name: table.c[column].type for column, name in self._rows.same.items()}
        kinds |= {name: table.c[name].type for name in self._rows.new} | {"now": sa.BigInteger()}
        arrays = (
            f"CAST(:v_{name} AS {'BIGINT' if isinstance(kinds[name], sa.BigInteger) else 'TEXT'}[])"
            for name in self._names
        )
        keys = ", ".join(map(self._of, key))
        return f"""WITH new AS (
    SELECT * FROM unnest({", ".join(arrays)}) AS new ({", ".join(self._names)})
), free AS (
    SELECT {keys} FROM {table.name} JOIN new ON {self._condition("new")}
    ORDER BY {keys} FOR NO KEY UPDATE OF {table.name} SKIP LOCKED
)
UPDATE {table.name} SET {", ".join(f"{name} = new.{name}" for name in self._rows.new)}
FROM new JOIN free ON {" AND ".join(f"free.{name} = new.{name}" for name in key)}
WHERE {self._condition("new")} AND {self._in_time("new")}"""

    def read(self, keys: Sequence[tuple[str, ...]]) -> tuple[Statement, Values]:
        return self._read, {
            f"v_{name}": list(texts) for name, texts in zip(self._rows.key, zip(*keys, strict=True), strict=True)
        }

    def write(self, rows: Sequence[Values]) -> tuple[Statement, Values]:
        return self._write, {name: [row[name] for row in rows] for name in rows[0]}


class ByUnion(ManyRows):
    """MariaDB and MySQL."""

    def __init__(self, dialect: Dialect, rows: Rows, one: Statement) -> None:
        super().__init__(dialect, rows, one)
        self._writes: dict[int, Statement] = {}

    def _writing(self, size: int) -> str:
        table = self._rows.table.name
        quoted = self._dialect.sa.identifier_preparer.quote
        values = [", ".join(f":v_{name}{n} AS {quoted(name)}" for name in self._names) for n in range(size)]
        changes = self._columns({name: name for name in self._rows.new})
        # Both joins follow the order of the new rows: so all clients lock rows in the order of their keys. LIMIT keeps
        # the two apart: merged into one, they would not skip a row.
        return f"""/*M! SET STATEMENT innodb_lock_wait_timeout=0 FOR */
UPDATE (
    SELECT new.* FROM (SELECT {" UNION ALL SELECT ".join(values)}) AS new
    STRAIGHT_JOIN {table} FORCE INDEX (PRIMARY) ON {self._condition("new")}
    LIMIT {size} /*!80001 FOR UPDATE SKIP LOCKED */ /*M!100600 FOR UPDATE SKIP LOCKED */
) AS free STRAIGHT_JOIN {table} FORCE INDEX (PRIMARY) ON {self._condition("free")}
SET {", ".join(f"{self._of(column)} = free.{name}" for column, name in changes)}
WHERE {self._in_time("free")}"""

    def write(self, rows: Sequence[Values]) -> tuple[Statement, Values]:
        size = _rounded(len(rows))
        if size not in self._writes:
            made = compiled(sa.text(self._writing(size)), self._dialect.sa)
            self._writes[size] = made._replace(may_wait=False)
        nothing = dict.fromkeys(rows[0])  # no row has these keys
        filled = [*rows, *[nothing] * (size - len(rows))]
        return self._writes[size], {f"{name}{n}": each for n, row in enumerate(filled) for name, each in row.items()}


class ByDriver(ManyRows):
    """Oracle."""

    def _asked(self, name: str, number: int) -> Any:
        return sa.cast(value(f"{name}{number}"), self._rows.table.c[name].type).label(name)

    def write(self, rows: Sequence[Values]) -> tuple[Statement, Values]:
        return self._one._replace(many=True), {"rows": list(rows)}


def _rounded(number: int) -> int:
    """Return the next power of two: so there are few statements that differ."""
    return 1 << (number - 1).bit_length()
