"""The two tables, in SQLAlchemy Core, which knows the dialects.

Times are whole microseconds in 64-bit integers, never a type of the database for times: those lose digits here and
zones there. Texts compare byte by byte, so that two names are the same only if they are. The table of locks has no
index but its key: with one on the score, every step would write there, too.
"""

from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, oracle, postgresql

NAME, KEY = 404, 200  # namespace, separators and name; the key of an item

LISTENER = "fairlock_"  # how the name of each channel begins
ROW_CHANGED = "="  # how a wake-up begins that names no ticket but the key of a changed row

Id = sa.BigInteger


def _binary(length: int) -> Any:
    """Return a text whose order and equality are those of its bytes."""
    return (
        sa.String(length)
        .with_variant(postgresql.TEXT(collation="C"), "postgresql")
        .with_variant(mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_nopad_bin"), "mariadb")
        .with_variant(mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_0900_bin"), "mysql")
        .with_variant(oracle.VARCHAR2(length), "oracle")
    )


def _text(on_oracle: Any = oracle.CLOB) -> Any:
    long = mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin")
    return sa.Text().with_variant(long, "mariadb", "mysql").with_variant(on_oracle, "oracle")


def _label() -> Any:
    """Return the type of an owner or a note, which people read."""
    return _text(oracle.VARCHAR2(4000))


METADATA = sa.MetaData()

LOCKS = sa.Table(
    "fairlock_locks",
    METADATA,
    sa.Column("key", _binary(NAME), primary_key=True, comment="namespace and name"),
    sa.Column("score", Id, nullable=False, comment="the last fence given out"),
    sa.Column("owner", _label(), nullable=False, comment="the current holders"),
    sa.Column("body", _text(), nullable=False, comment="the state of the lock, JSON"),
    sa.Column("version", Id, nullable=False, comment="new with every write, never again the same"),
    # Half of each page stays free: then a new version of a row finds room beside the old one and no index is touched.
    # And a long queue stays in the row as it is, as far as a page goes, or it would be cut up by each write. Nor is it
    # compressed (TUNING): with 64 in the queue that would be two thirds of the server's work.
    info={"postgresql": "WITH (fillfactor=50, toast_tuple_target=8160)"},  # SQLAlchemy 2.0 has no keyword for it
    mysql_engine="InnoDB",
    mariadb_engine="InnoDB",
)

ITEMS = sa.Table(
    "fairlock_items",
    METADATA,
    sa.Column("pool", _binary(NAME), primary_key=True, comment="namespace and name"),
    sa.Column("key", _binary(KEY), primary_key=True),
    sa.Column("score", Id, nullable=False, comment="when it is due, in microseconds; -1 = done"),
    sa.Column("fence", Id, nullable=False, comment="of the last take"),
    sa.Column("ticket", _binary(KEY), nullable=False, comment="whose it is"),
    sa.Column("lease", Id, nullable=False, comment="for how long it is taken, or was to rest"),
    sa.Column("owner", _label(), nullable=False),
    sa.Column("note", _label(), nullable=False),
    sa.Column("body", _text(), nullable=False, comment="JSON: [format, body, checksum of pool, key and body]"),
    mysql_engine="InnoDB",
    mariadb_engine="InnoDB",
)
TUNING = {"postgresql": f"ALTER TABLE {LOCKS.name} ALTER COLUMN body SET STORAGE EXTERNAL"}
"""What comes after the tables; only for speed. Before PostgreSQL 16 a CREATE TABLE cannot contain it."""
DUE = sa.Index("fairlock_due", ITEMS.c.pool, ITEMS.c.score)


class Statement(NamedTuple):
    """The text for the driver, and in which order it wants the values if it does not take them by name."""

    text: str
    order: tuple[str, ...] | None
    reads: bool  # changes nothing, so that it may simply be repeated
    shows: bool = False  # replies with rows; a driver takes longer to find out
    may_wait: bool = True  # for a row that a transaction has locked; its connection is busy for as long
    many: bool = False  # the values are those of many rows, and the driver sends them together

    def fill(self, values: dict[str, Any]) -> Any:
        return values if self.order is None else [values[name] for name in self.order]


def compiled(clause: Any, dialect: sa.Dialect, reads: bool = False) -> Statement:
    made = clause.compile(dialect=dialect)
    assert all(value is None for value in made.params.values()), made.params  # every value has a name of ours
    text = str(made)
    shows = reads or text.startswith("WITH done") or "RETURNING " in text
    return Statement(text, tuple(made.positiontup) if made.positional else None, reads, shows, not reads)


def value(name: str, kind: Any = None) -> Any:
    """Return a parameter. Its name is never a column's, which Core keeps for itself."""
    return sa.bindparam("v_" + name, type_=kind if kind is not None else sa.Text())


def number(name: str) -> Any:
    return sa.bindparam("v_" + name, type_=sa.BigInteger())


def ddl(dialect: sa.Dialect, if_absent: bool = True) -> list[str]:
    """Return the statements that create the tables."""
    found = []
    for table in METADATA.sorted_tables:
        made = str(sa.schema.CreateTable(table, if_not_exists=if_absent).compile(dialect=dialect))
        found.append(f"{made.rstrip()} {table.info.get(dialect.name, '')}")
        found += [
            str(sa.schema.CreateIndex(index, if_not_exists=if_absent).compile(dialect=dialect))
            for index in sorted(table.indexes, key=lambda index: str(index.name))
        ]
    found += [TUNING[dialect.name]] if dialect.name in TUNING else []
    return ["\n".join(line.rstrip() for line in text.strip().splitlines()) for text in found]
