"""The statements about items of pools. One index on (pool, score) serves all of them.

PostgreSQL takes an item with one statement: the one that has been due for longest and that no other client is taking.
That search is bounded by the time when the statement arrived, because an index is of no use against a running clock.
The other databases show a few that are due, and one of them is written if it is still unchanged.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql

from ...rules.pools import AGO, DONE
from .dialects import SCANNED, Dialect, literal
from .many_rows import Rows
from .schema import ITEMS, LOCKS, Statement, number, value

CANDIDATES = 16
COLUMNS = tuple(ITEMS.c[name] for name in ("key", "score", "fence", "ticket", "lease", "owner", "note", "body"))
NONE: Any = sa.literal_column("0")
ONE: Any = sa.literal_column("1")
FINISHED: Any = sa.literal_column(str(DONE))
ROWS_PER_ADD = {"PostgreSQL": 100, "MariaDB": 100}  # items added with one statement; elsewhere one by one

_here = ITEMS.c.pool == value("pool")
_this = sa.and_(_here, ITEMS.c.key == value("key"))
_new = {
    "score": number("score"), "fence": number("fence"), "ticket": value("ticket"), "lease": number("lease"),
    "owner": value("owner"), "note": value("note"), "body": value("body"),
}  # fmt: skip
_OLD = {"pool": "pool", "key": "key", "score": "old_score", "fence": "old_fence", "ticket": "old_ticket"}
ITEM_ROWS = Rows(ITEMS, ("pool", "key"), COLUMNS, _OLD, tuple(_new), False)


def items_for(dialect: Dialect) -> "Items":
    if dialect not in _compiled:
        _compiled[dialect] = Items(dialect)
    return _compiled[dialect]


class Items:
    """The statements, compiled for one driver."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._compile = dialect.compile
        self._adds: dict[int, Statement] = {}
        self.rows_per_add = ROWS_PER_ADD.get(dialect.name, 1)
        just = dialect._one()
        same = sa.and_(
            _this, ITEMS.c.score == number("old_score"), ITEMS.c.fence == number("old_fence"),
            ITEMS.c.ticket == value("old_ticket"),
        )  # fmt: skip
        now = self._now()
        self.get = self._compile(sa.select(now, *COLUMNS).select_from(just.outerjoin(ITEMS, _this)), True)
        self.put = self._compile(sa.update(ITEMS).where(same, dialect.clock() >= number("now")).values(_new))
        self.many = dialect.many_rows(dialect, ITEM_ROWS, self.put)
        self.put_and_read_queue: Statement | None = None
        if dialect.name == "PostgreSQL":
            put = sa.update(ITEMS).where(same, dialect.clock() >= number("now"))
            queue = sa.select(LOCKS.c.body).where(LOCKS.c.key == value("queue")).scalar_subquery()
            self.put_and_read_queue = self._compile(put.values(_new).returning(ITEMS.c.fence, queue))
            finished = {"score": FINISHED, "ticket": literal(dialect.nobody)}
            self.finish_and_look = self._compile(put.values(finished).returning(ITEMS.c.fence, queue))
        self.delete = self._compile(sa.delete(ITEMS).where(same))
        due = sa.and_(_here, ITEMS.c.score >= NONE, ITEMS.c.score <= now)
        alone = ~sa.exists().where(LOCKS.c.key == value("queue"), LOCKS.c.score > NONE)
        self.take = self._taking(due)
        self.take_if_alone = self._taking(sa.and_(due, alone))
        self.due = self._compile(dialect.first(1, sa.select(ONE).select_from(ITEMS).where(due)), True)
        self.this_due = self._compile(sa.select(ONE).select_from(ITEMS).where(_this, ITEMS.c.score <= now), True)
        later = sa.and_(_here, ITEMS.c.score > now, ITEMS.c.score <= now + number("span"))
        mine = sa.and_(later, ITEMS.c.ticket == value("ticket"))
        self.of = self._compile(dialect.first(1, sa.select(now, *COLUMNS).where(mine)), True)
        self.coming = self._compile(sa.select(now, sa.func.min(ITEMS.c.score)).where(later), True)
        found = dialect.first(SCANNED, sa.select(now, *COLUMNS).where(_here).order_by(ITEMS.c.key))
        self.all = self._compile(found, True)
        self.all_on = self._compile(found.where(ITEMS.c.key > value("key")), True)
        self.count = self._compile(self._counting(now), True)
        first = sa.select(sa.func.min(ITEMS.c.pool))  # one after the other, by the index: not by all items
        self.first_pool = self._compile(first, True)
        self.next_pool = self._compile(first.where(ITEMS.c.pool > value("pool")), True)
        held = sa.and_(_here, ITEMS.c.score > now, ITEMS.c.ticket != literal(dialect.nobody))
        self.taken = self._compile(dialect.first(SCANNED, sa.select(now, *COLUMNS).where(held)), True)

    def _now(self) -> Any:
        """Return an expression: the time when the statement arrived, the same everywhere in it."""
        if self._dialect.name == "PostgreSQL":
            came = sa.extract("epoch", sa.func.statement_timestamp()) * sa.literal_column("1000000")
            return sa.cast(came, sa.BigInteger)
        return self._dialect.clock()

    def _taking(self, due: Any) -> Statement:
        limit = 1 if self._dialect.name == "PostgreSQL" else CANDIDATES
        found = self._dialect.first(limit, sa.select(*COLUMNS).where(due).order_by(ITEMS.c.score))
        if self._dialect.name != "PostgreSQL":
            return self._compile(found.add_columns(self._now()), True)
        now = self._now()
        one = found.with_only_columns(ITEMS.c.key).with_for_update(skip_locked=True).correlate(None)
        clause = sa.update(ITEMS).where(_here, ITEMS.c.key == one.scalar_subquery())
        fence = sa.func.greatest(ITEMS.c.fence + ONE, now)
        taken = {**_new, "score": now + number("span"), "fence": fence}
        del taken["body"]
        return self._compile(clause.values(taken).returning(*COLUMNS, now.label("now")))

    def _counting(self, now: Any) -> Any:
        free = ITEMS.c.ticket == literal(self._dialect.nobody)
        due = sa.and_(ITEMS.c.score >= NONE, ITEMS.c.score <= now)
        later = ITEMS.c.score > now
        states = (
            sa.and_(due, free), sa.and_(later, free), sa.and_(later, ~free), sa.and_(due, ~free),
            ITEMS.c.score == FINISHED,
        )  # fmt: skip
        return sa.select(*(sa.func.sum(sa.case((state, ONE), else_=NONE)) for state in states)).where(_here)

    def add(self, rows: int) -> Statement:
        """Return a statement that adds this many items, except keys that exist. They are due now, in their order."""
        if rows not in self._adds:
            nobody = literal(self._dialect.nobody)
            ago = self._now() - sa.literal_column(str(AGO))
            values = [
                {
                    "pool": value("pool"), "key": value(f"key{n}"), "score": ago + number(f"nth{n}"), "fence": NONE,
                    "ticket": nobody, "lease": NONE, "owner": nobody, "note": nobody, "body": value(f"body{n}"),
                }
                for n in range(rows)
            ]  # fmt: skip
            clause: Any
            if self._dialect.name == "PostgreSQL":
                clause = postgresql.insert(ITEMS).values(values).on_conflict_do_nothing()
            elif self._dialect.name == "MariaDB":
                clause = mysql.insert(ITEMS).values(values).prefix_with("IGNORE")
            else:
                clause = sa.insert(ITEMS).values(values[0])
            self._adds[rows] = self._compile(clause)
        return self._adds[rows]


_compiled: dict[Dialect, Items] = {}
