"""What is said to a database about the items of pools. One index on (pool, score) answers everything.

PostgreSQL takes with one statement: the one that has been due for longest and that nobody else is just taking. The
bound of that search is the time when the statement came in, for an index is of no use against a clock that goes on.
The others show a few that are due, and one of them is written on condition that it is still the same.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql

from ...pool import AGO, DONE
from .dialects import SCANNED, Dialect, literal
from .tables import ITEMS, LOCKS, Statement, compiled, number, value

CANDIDATES = 16
COLUMNS = tuple(ITEMS.c[name] for name in ("key", "score", "fence", "ticket", "lease", "owner", "note", "body"))
NONE: Any = sa.literal_column("0")
ONE: Any = sa.literal_column("1")
FINISHED: Any = sa.literal_column(str(DONE))
AT_ONCE = {"PostgreSQL": 100, "MariaDB": 100}  # items added with one statement; elsewhere one by one

_here = ITEMS.c.pool == value("pool")
_this = sa.and_(_here, ITEMS.c.key == value("key"))
_new = {
    "score": number("score"), "fence": number("fence"), "ticket": value("ticket"), "lease": number("lease"),
    "owner": value("owner"), "note": value("note"), "body": value("body"),
}  # fmt: skip


def items_of(dialect: Dialect) -> "Items":
    if dialect not in _compiled:
        _compiled[dialect] = Items(dialect)
    return _compiled[dialect]


class Items:
    """The statements, compiled for one driver."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._adds: dict[int, Statement] = {}
        self.at_once = AT_ONCE.get(dialect.name, 1)
        just = dialect._one()
        same = sa.and_(
            _this, ITEMS.c.score == number("old_score"), ITEMS.c.fence == number("old_fence"),
            ITEMS.c.ticket == value("old_ticket"),
        )  # fmt: skip
        now = self._now()
        self.get = self._say(sa.select(now, *COLUMNS).select_from(just.outerjoin(ITEMS, _this)), True)
        self.put = self._say(sa.update(ITEMS).where(same, dialect.clock() >= number("now")).values(_new))
        self.put_and_look: Statement | None = None
        if dialect.name == "PostgreSQL":
            put = sa.update(ITEMS).where(same, dialect.clock() >= number("now")).values(_new)
            done = put.returning(ITEMS.c.fence).cte("done")
            both = just.outerjoin(done, sa.true()).outerjoin(LOCKS, LOCKS.c.key == value("line"))
            self.put_and_look = self._say(sa.select(done.c.fence, LOCKS.c.body).select_from(both))
        self.delete = self._say(sa.delete(ITEMS).where(same))
        due = sa.and_(_here, ITEMS.c.score >= NONE, ITEMS.c.score <= now)
        alone = ~sa.exists().where(LOCKS.c.key == value("line"), LOCKS.c.score > NONE)
        self.take = self._taking(due)
        self.take_if_alone = self._taking(sa.and_(due, alone))
        self.due = self._say(dialect.first(1, sa.select(ONE).select_from(ITEMS).where(due)), True)
        self.this_due = self._say(sa.select(ONE).select_from(ITEMS).where(_this, ITEMS.c.score <= now), True)
        later = sa.and_(_here, ITEMS.c.score > now, ITEMS.c.score <= now + number("span"))
        mine = sa.and_(later, ITEMS.c.ticket == value("ticket"))
        self.of = self._say(dialect.first(1, sa.select(now, *COLUMNS).where(mine)), True)
        self.coming = self._say(sa.select(now, sa.func.min(ITEMS.c.score)).where(later), True)
        found = dialect.first(SCANNED, sa.select(now, *COLUMNS).where(_here).order_by(ITEMS.c.key))
        self.all = self._say(found, True)
        self.all_on = self._say(found.where(ITEMS.c.key > value("key")), True)
        self.count = self._say(self._counting(now), True)

    def _say(self, words: Any, reads: bool = False) -> Statement:
        return compiled(words, self._dialect.sa, reads)

    def _now(self) -> Any:
        """The time when the statement came in: the same all over it."""
        if self._dialect.name == "PostgreSQL":
            came = sa.extract("epoch", sa.func.statement_timestamp()) * sa.literal_column("1000000")
            return sa.cast(came, sa.BigInteger)
        return self._dialect.clock()

    def _taking(self, due: Any) -> Statement:
        limit = 1 if self._dialect.name == "PostgreSQL" else CANDIDATES
        found = self._dialect.first(limit, sa.select(*COLUMNS).where(due).order_by(ITEMS.c.score))
        if self._dialect.name != "PostgreSQL":
            return self._say(found.add_columns(self._now()), True)
        now = self._now()
        one = found.with_only_columns(ITEMS.c.pool, ITEMS.c.key).with_for_update(skip_locked=True).cte("one")
        words = sa.update(ITEMS).where(ITEMS.c.pool == one.c.pool, ITEMS.c.key == one.c.key)
        fence = sa.func.greatest(ITEMS.c.fence + ONE, now)
        taken = {**_new, "score": now + number("span"), "fence": fence}
        del taken["body"]
        return self._say(words.values(taken).returning(*COLUMNS, now.label("now")))

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
        """So many new ones, where there is none of that key. They are due since long ago, in the order of coming."""
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
            words: Any
            if self._dialect.name == "PostgreSQL":
                words = postgresql.insert(ITEMS).values(values).on_conflict_do_nothing()
            elif self._dialect.name == "MariaDB":
                words = mysql.insert(ITEMS).values(values).prefix_with("IGNORE")
            else:
                words = sa.insert(ITEMS).values(values[0])
            self._adds[rows] = self._say(words)
        return self._adds[rows]


_compiled: dict[Dialect, Items] = {}
