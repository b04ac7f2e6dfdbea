"""What is said to each database, and what its answers mean.

Each step is one statement in a transaction of its own (autocommit), so that nobody can be stopped or killed in the
middle of one, and it is right behind a pooler that gives each transaction another session. The server's clock is read
inside the statement: a write is refused if the time that the rules were applied with is ahead of it, for then somebody
living might have been dropped, or more than a second behind it.

- PostgreSQL writes, notifies and shows what is there instead with one statement.
- MariaDB and MySQL answer an UPDATE with how many rows it met and, by way of LAST_INSERT_ID, with the time of its
  check; what is there instead takes a SELECT. (One INSERT … ON DUPLICATE KEY UPDATE … RETURNING could do both on
  MariaDB, but it would make a row anew that is gone, and with it a lock that was lost.)
- Oracle (`oracle`) answers an UPDATE with how many rows it met.

`claim` gives a row a new version and shows it: whoever else wants to write has to read first. That is for one that was
beaten again and again, and after an unknown outcome, when what was lost on the way must not arrive any more.
"""

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql

from ...doorman import EMPTY, wire
from .address import ORACLE
from .tables import LOCKS, Statement, compiled, number, value

FRESH: Any = sa.literal_column("1000000")  # microseconds
SCANNED = 1000  # rows at a time
EMPTY_BODY = wire.encode(EMPTY)

of_key = LOCKS.c.key == value("key")
_row = (LOCKS.c.score, LOCKS.c.owner, LOCKS.c.body, LOCKS.c.version)
_new = {
    "score": number("score"), "owner": value("owner"), "body": value("body"), "version": number("version")
}  # fmt: skip


def literal(text: str) -> Any:
    return sa.literal_column("'" + text.replace("'", "''") + "'")


class Dialect:
    """The statements of one database, compiled for one driver."""

    name = ""
    extra = ""
    grants = ""
    owned: Collection[str] = ()  # how a user finds a table that belongs to another one
    quota: Collection[str] = ()  # what the owner of the tables needs
    nobody = ""  # how 'no owner' is written
    label_bytes = 1 << 30  # the room for an owner
    session = ""  # what each new connection is told first
    makes_if_absent = True
    shows = False
    """Whether a write answers with what is there instead."""
    hears = False
    """Whether it can wake those who wait."""

    # What its errors mean, by their codes.
    conflict: Collection[Any] = ()  # nothing was done, and the same may be said again
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
        self.read = self._say(self._reading(*_row).select_from(self._one().outerjoin(LOCKS, of_key)), True)
        self.write = self._say(self._writing())
        self.insert = self._say(self._inserting())
        self.claim = self._say(self._claiming())
        self.delete = self._say(sa.delete(LOCKS).where(of_key, LOCKS.c.version == number("expected")))
        found = self.first(SCANNED, self._reading(LOCKS.c.key, *_row).order_by(LOCKS.c.key))
        self.scan_all = self._say(found, True)  # not `key >= ''`: on Oracle that is NULL, and met by no row
        self.scan = self._say(found.where(LOCKS.c.key >= value("key")), True)
        self.scan_on = self._say(found.where(LOCKS.c.key > value("key")), True)
        self.time = self._say(self._reading().select_from(self._one()), True)

    def _say(self, words: Any, reads: bool = False) -> Statement:
        return compiled(words, self.sa, reads)

    def first(self, rows: int, words: Any) -> Any:
        """A SELECT of no more than this many rows."""
        return words.limit(sa.literal_column(str(rows)))

    def clock(self) -> Any:
        """The server's time in microseconds, at the moment when it is read."""
        raise NotImplementedError

    def _one(self) -> Any:
        """One row: the time is to be shown even if nothing else is there."""
        return sa.select(sa.literal_column("1").label("one")).subquery("just")

    def _reading(self, *columns: Any) -> Any:
        return sa.select(self.clock().label("now"), *columns)

    def _in_time(self) -> Any:
        return self.clock().between(number("now"), number("now") + FRESH)

    def _updating(self) -> Any:
        return sa.update(LOCKS).where(of_key, LOCKS.c.version == number("expected")).values(_new)

    def _writing(self) -> Any:
        return self._updating().where(self._in_time())

    def _inserting(self) -> Any:
        return sa.insert(LOCKS).values({"key": value("key"), **_new})

    def _empty(self) -> dict[str, Any]:
        """An empty record in place of none: so that an insert that was lost on the way finds something there."""
        nobody = {"score": sa.literal_column("0"), "owner": literal(self.nobody), "body": literal(EMPTY_BODY)}
        return {"key": value("key"), **nobody, "version": number("version")}

    def _claiming(self) -> Any:
        raise NotImplementedError

    def code(self, error: BaseException) -> Any:
        """The number or word by which the server names this error; None: it did not say anything."""
        raise NotImplementedError

    def is_late(self, error: BaseException) -> bool:
        """Whether this says that no reply came in time."""
        return isinstance(error, TimeoutError) or "timed out" in str(error) or "timeout" in type(error).__name__.lower()

    def label(self, owner: str) -> str:
        """As many of these owners as there is room for."""
        if len(owner.encode()) <= self.label_bytes:
            return owner
        kept = owner.encode()[: self.label_bytes - 8].decode(errors="ignore")
        return kept.rpartition(", ")[0] + ", …"

    def notify(self, statement: str) -> Statement:
        raise NotImplementedError

    def outcome(self, cursor: Any) -> tuple[int, int]:
        """How many rows a write met, and the time of its check if it says that (else 0)."""
        return cursor.rowcount, 0


class PostgreSQL(Dialect):
    name, extra = "PostgreSQL", "postgresql"
    shows = hears = True
    grants = "GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {user};"
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
        self.write_and_tell = self._say(self._shown(self._updating().where(self._in_time()), True))
        self.tell = self._say(sa.select(self._telling()))

    def clock(self) -> Any:
        # Never now(), which stands still in a transaction.
        return sa.cast(sa.extract("epoch", sa.func.clock_timestamp()) * FRESH, sa.BigInteger)

    def _telling(self) -> Any:
        texts = postgresql.ARRAY(sa.Text)
        woken = sa.func.unnest(value("ears", texts), value("hints", texts)).table_valued("ear", "hint", name="woken")
        woken = woken.render_derived()
        return sa.select(sa.func.count(sa.func.pg_notify(woken.c.ear, woken.c.hint))).scalar_subquery()

    def _shown(self, words: Any, tell: bool = False) -> Any:
        """Write; and if nothing was written, show what is there. Those who are let in are told by the same step."""
        back = [LOCKS.c.version, self._telling().label("told")] if tell else [LOCKS.c.version]
        done = words.returning(*back).cte("done")
        both = self._one().outerjoin(done, sa.true())
        both = both.outerjoin(LOCKS, sa.and_(of_key, done.c.version.is_(None)))
        return self._reading(*_row, done.c.version.label("written")).select_from(both)

    def _writing(self) -> Any:
        return self._shown(super()._writing())

    def _inserting(self) -> Any:
        words = postgresql.insert(LOCKS).values({"key": value("key"), **_new})
        return self._shown(words.on_conflict_do_nothing(index_elements=[LOCKS.c.key]))

    def _claiming(self) -> Any:
        words = postgresql.insert(LOCKS).values(self._empty())
        words = words.on_conflict_do_update(index_elements=[LOCKS.c.key], set_={"version": words.excluded.version})
        return words.returning(self.clock().label("now"), *_row)

    def code(self, error: BaseException) -> Any:
        return getattr(error, "sqlstate", None) or None


class MariaDB(Dialect):
    """And MySQL."""

    name, extra = "MariaDB", "mariadb"
    grants = "GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {user};"
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
        words = mysql.insert(LOCKS).values(self._empty())
        return words.on_duplicate_key_update(version=words.inserted.version)

    def code(self, error: BaseException) -> Any:
        number = error.args[0] if error.args and isinstance(error.args[0], int) else None
        return number if number is not None and number and not 2000 <= number < 3000 else None

    def outcome(self, cursor: Any) -> tuple[int, int]:
        return cursor.rowcount, cursor.lastrowid or 0


def dialect_of(scheme: str, dialect: sa.Dialect) -> Dialect:
    """What is said to this database by this driver: compiled once."""
    key = (scheme, dialect.driver, dialect.paramstyle)
    if key not in _compiled:
        _compiled[key] = _kind(scheme)(dialect)
    return _compiled[key]


def _kind(scheme: str) -> type[Dialect]:
    if scheme in ORACLE:
        from .oracle import Oracle, TimesTen

        return TimesTen if scheme == "timesten" else Oracle
    return PostgreSQL if scheme == "postgresql" else MariaDB


_compiled: dict[tuple[str, ...], Dialect] = {}
