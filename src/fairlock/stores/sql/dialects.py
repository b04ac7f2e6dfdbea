"""The statements for each database, and the meaning of its replies.

Each step is one statement in a transaction of its own (autocommit), so that no client can be stopped or killed in
the middle of one, and it is correct behind a pooler that gives each transaction another session. The statement reads
the server's clock: a write is refused if the time that the rules were applied with is ahead of it (then a
living client might have been dropped), or more than a second behind it.

- PostgreSQL writes, notifies and, on a conflict, shows the current row with one statement.
- MariaDB and MySQL reply to an UPDATE with how many rows it matched and, by way of LAST_INSERT_ID, with the time of its
  check; the current row takes a SELECT. (One INSERT … ON DUPLICATE KEY UPDATE … RETURNING could do both on MariaDB,
  but it would create a deleted row again, and with it a lock that was lost.)
- Oracle (`oracle`) replies to an UPDATE with how many rows it matched.

`claim` gives a row a new version and shows it: any other client that wants to write must read first. It is for a client
that has lost many races, and after an unknown outcome, when a request that is still on its way must not be applied.
"""

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql

from ...rules.locks import EMPTY, codec
from .many_rows import ByArrays, ByUnion, ManyRows, Rows
from .schema import LOCKS, Statement, compiled, number, value
from .url import ORACLE

FRESH: Any = sa.literal_column("1000000")  # microseconds
SCANNED = 1000  # rows at a time
EMPTY_BODY = codec.encode(EMPTY)

of_key = LOCKS.c.key == value("key")
_row = (LOCKS.c.score, LOCKS.c.owner, LOCKS.c.body, LOCKS.c.version)
_new = {
    "score": number("score"), "owner": value("owner"), "body": value("body"), "version": number("version")
}  # fmt: skip
LOCK_ROWS = Rows(LOCKS, ("key",), _row, {"key": "key", "version": "expected"}, tuple(_new), True)


def literal(text: str) -> Any:
    return sa.literal_column("'" + text.replace("'", "''") + "'")


class Dialect:
    """The statements of one database, compiled for one driver."""

    name = ""
    extra = ""
    owned: Collection[str] = ()  # how a user finds a table that belongs to another one
    quota: Collection[str] = ()  # what the owner of the tables needs
    nobody = ""  # how 'no owner' is written
    label_bytes = 1 << 30  # the room for an owner
    session = ""  # the first statement on each new connection
    makes_if_absent = True
    skips_locked = True
    """Whether a write of many rows does not wait for one that a transaction has locked."""
    many_rows: type[ManyRows]
    shows = False
    """Whether a refused write replies with the current row."""

    # What its errors mean, by their codes.
    conflict: Collection[Any] = ()  # nothing was done, and the statement may be repeated
    exists: Collection[Any] = ()  # there is such a row, or such a table, already
    no_table: Collection[Any] = ()
    no_right: Collection[Any] = ()
    no_database: Collection[Any] = ()
    bad_login: Collection[Any] = ()
    full: Collection[Any] = ()
    read_only: Collection[Any] = ()
    starting: Collection[Any] = ()
    no_room: Collection[Any] = ()
    unsupported: Mapping[Any, str] = {}  # what the driver cannot do here, and what helps

    def __init__(self, dialect: sa.Dialect) -> None:
        self.sa = dialect
        self.read = self.compile(self._reading(*_row).select_from(self._one().outerjoin(LOCKS, of_key)), True)
        self.write = self.compile(self._writing())
        self.many = self.many_rows(self, LOCK_ROWS, self.write)
        self.insert = self.compile(self._inserting())
        self.claim = self.compile(self._claiming())
        self.delete = self.compile(sa.delete(LOCKS).where(of_key, LOCKS.c.version == number("expected")))
        found = self.first(SCANNED, self._reading(LOCKS.c.key, *_row).order_by(LOCKS.c.key))
        self.scan_all = self.compile(found, True)  # not `key >= ''`: on Oracle that is NULL, and true of no row
        self.scan = self.compile(found.where(LOCKS.c.key >= value("key")), True)
        self.scan_on = self.compile(found.where(LOCKS.c.key > value("key")), True)
        busy = found.where(LOCKS.c.owner != literal(self.nobody))
        self.scan_busy = self.compile(busy, True)
        self.scan_busy_on = self.compile(busy.where(LOCKS.c.key > value("key")), True)
        self.time = self.compile(self._reading().select_from(self._one()), True)

    def compile(self, clause: Any, reads: bool = False) -> Statement:
        return compiled(clause, self.sa, reads)

    def first(self, rows: int, clause: Any) -> Any:
        """Limit a SELECT to this many rows."""
        return clause.limit(sa.literal_column(str(rows)))

    def clock(self) -> Any:
        """Return an expression: the server's time in microseconds, at the moment when it is read."""
        raise NotImplementedError

    def _one(self) -> Any:
        """Return a table of one row, so that the time is shown even if there is no lock."""
        return sa.select(sa.literal_column("1").label("one")).subquery("just")

    def _reading(self, *columns: Any) -> Any:
        return sa.select(self.clock().label("now"), *columns)

    def _in_time(self) -> Any:
        return self.clock().between(number("now"), number("now") + FRESH)

    def _writing(self) -> Any:
        same = of_key, LOCKS.c.version == number("expected"), self._in_time()
        return sa.update(LOCKS).where(*same).values(_new)

    def _inserting(self) -> Any:
        return sa.insert(LOCKS).values({"key": value("key"), **_new})

    def _empty(self) -> dict[str, Any]:
        """Return an empty record in place of none, so that an insert that arrives late conflicts."""
        nobody = {"score": sa.literal_column("0"), "owner": literal(self.nobody), "body": literal(EMPTY_BODY)}
        return {"key": value("key"), **nobody, "version": number("version")}

    def _claiming(self) -> Any:
        raise NotImplementedError

    def code(self, error: BaseException) -> Any:
        """Return the number or word by which the server names this error; None if there was no reply."""
        raise NotImplementedError

    def is_late(self, error: BaseException) -> bool:
        """Return whether this error means that no reply came in time."""
        return isinstance(error, TimeoutError) or "timed out" in str(error) or "timeout" in type(error).__name__.lower()

    def label(self, owner: str) -> str:
        """Return as many of these owners as there is room for."""
        if len(owner.encode()) <= self.label_bytes:
            return owner
        kept = owner.encode()[: self.label_bytes - 8].decode(errors="ignore")
        return kept.rpartition(", ")[0] + ", …"

    def outcome(self, cursor: Any) -> tuple[int, int]:
        """Return how many rows a write matched, and the time of its check if it shows that (else 0)."""
        return cursor.rowcount, 0


CLOCK = "CAST(EXTRACT(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"


class PostgreSQL(Dialect):
    name, extra = "PostgreSQL", "postgresql"
    many_rows = ByArrays
    shows = True
    conflict = ("40001", "40P01", "55P03")
    exists = ("23505", "42P07", "42710")
    no_table = ("42P01",)
    no_right = ("42501",)
    no_database = ("3D000", "3F000")
    bad_login = ("28P01", "28000")
    full = ("53300",)
    read_only = ("25006",)
    starting = ("57P03",)

    def __init__(self, dialect: sa.Dialect) -> None:
        super().__init__(dialect)
        self.write_and_notify = self.compile(self._shown(super()._writing(), True))
        self.notify = self.compile(sa.select(self._notifying()))

    def clock(self) -> Any:
        # Never now(), which stands still in a transaction.
        return sa.cast(sa.extract("epoch", sa.func.clock_timestamp()) * FRESH, sa.BigInteger)

    def _notifying(self) -> Any:
        texts = postgresql.ARRAY(sa.Text)
        pairs = sa.func.unnest(value("listeners", texts), value("wakeups", texts))
        woken = pairs.table_valued("listener", "wakeup", name="woken").render_derived()
        return sa.select(sa.func.count(sa.func.pg_notify(woken.c.listener, woken.c.wakeup))).scalar_subquery()

    def _shown(self, clause: Any, notify: bool = False) -> Any:
        """Write; if nothing was written, show the current row. With `notify`, also send the wake-ups."""
        back = [LOCKS.c.version, self._notifying().label("notified")] if notify else [LOCKS.c.version]
        done = clause.returning(*back).cte("done")
        both = self._one().outerjoin(done, sa.true())
        both = both.outerjoin(LOCKS, sa.and_(of_key, done.c.version.is_(None)))
        return self._reading(*_row, done.c.version.label("written")).select_from(both)

    def _writing(self) -> Any:
        return self._shown(super()._writing())

    def _inserting(self) -> Any:
        clause = postgresql.insert(LOCKS).values({"key": value("key"), **_new})
        return self._shown(clause.on_conflict_do_nothing(index_elements=[LOCKS.c.key]))

    def _claiming(self) -> Any:
        clause = postgresql.insert(LOCKS).values(self._empty())
        clause = clause.on_conflict_do_update(index_elements=[LOCKS.c.key], set_={"version": clause.excluded.version})
        return clause.returning(self.clock().label("now"), *_row)

    def code(self, error: BaseException) -> Any:
        return getattr(error, "sqlstate", None) or None


class MariaDB(Dialect):
    """And MySQL."""

    name, extra = "MariaDB", "mariadb"
    many_rows = ByUnion
    conflict = (1205, 1213, 1020)
    exists = (1062, 1050, 1061)
    no_table = (1146,)
    no_right = (1142, 1143, 1044, 1370)
    no_database = (1049, 1046)
    bad_login = (1045, 1698)
    full = (1040, 1203, 1226)
    read_only = (1290, 1792, 1836)
    starting = (1053,)

    def clock(self) -> Any:
        began: Any = sa.literal_column("'1970-01-01 00:00:00'")
        return sa.func.timestampdiff(sa.literal_column("MICROSECOND"), began, sa.literal_column("UTC_TIMESTAMP(6)"))

    def _in_time(self) -> Any:
        return sa.func.last_insert_id(self.clock()).between(number("now"), number("now") + FRESH)

    def _claiming(self) -> Any:
        clause = mysql.insert(LOCKS).values(self._empty())
        return clause.on_duplicate_key_update(version=clause.inserted.version)

    def code(self, error: BaseException) -> Any:
        number = error.args[0] if error.args and isinstance(error.args[0], int) else None
        return number if number is not None and number and not 2000 <= number < 3000 else None

    def outcome(self, cursor: Any) -> tuple[int, int]:
        return cursor.rowcount, cursor.lastrowid or 0


def dialect_for(scheme: str, dialect: sa.Dialect) -> Dialect:
    """Return the statements for this database and driver, compiled once."""
    key = (scheme, dialect.driver, dialect.paramstyle)
    if key not in _compiled:
        kind: type[Dialect] = PostgreSQL if scheme == "postgresql" else MariaDB
        if scheme in ORACLE:
            from .oracle import Oracle, TimesTen

            kind = TimesTen if scheme == "timesten" else Oracle
        _compiled[key] = kind(dialect)
    return _compiled[key]


_compiled: dict[tuple[str, ...], Dialect] = {}
