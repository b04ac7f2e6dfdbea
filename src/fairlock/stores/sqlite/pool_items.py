"""The items of pools in SQLite: a table of their own, and one statement that takes any of them.

What has been due for longest is the first entry from 0 on in an index of scores, whatever the number of items. An index
of only what is not done would be smaller, but no quicker, and SQLite uses one only if its condition is in the
statement; as one more lower bound there it made a search for one score read all that is due. The first client
that needs the table creates it.

An item is still the same if score, fence and ticket are: each step changes one of them.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import LockError, RecordDamaged
from ...rules.pools import AGO, STATES, ItemState, Take
from ..base import ItemSnapshot, ItemStore, ItemWrite, OutcomeUnknown
from ..damaged_items import aside, item_damaged
from .connection import Connection
from .item_checksums import SOUND, register, sealed, sealed_again, shown, unsealed

if TYPE_CHECKING:
    from .store import SqliteStore

ITEMS = (
    """CREATE TABLE IF NOT EXISTS fairlock_items (
    pool TEXT NOT NULL,        -- namespace and name
    key TEXT NOT NULL,
    score INTEGER NOT NULL,    -- when it is due, in microseconds; -1 = done
    fence INTEGER NOT NULL,    -- of the last take
    ticket TEXT NOT NULL,      -- of the client that has it
    lease INTEGER NOT NULL,    -- how long it is taken, or rests
    owner TEXT NOT NULL,
    note TEXT NOT NULL,
    body TEXT NOT NULL,        -- JSON: [format, body, checksum of the row]
    PRIMARY KEY (pool, key)
)""",
    "CREATE INDEX IF NOT EXISTS fairlock_due ON fairlock_items (pool, score)",
)
COLUMNS = "key, score, fence, ticket, lease, owner, note, body"
FIRST = f"""SELECT rowid FROM fairlock_items WHERE pool=:pool AND score>=0 AND score<=:now AND {SOUND}
    ORDER BY score LIMIT 1"""
RESEALED = sealed_again("pool", "key", ":until", "max(fence+1, :now)", ":ticket", ":lease", ":owner", ":note")
TAKE = f"""UPDATE fairlock_items SET score=:until, fence=max(fence+1, :now), ticket=:ticket, lease=:lease, owner=:owner,
    note=:note, body={RESEALED} WHERE rowid=({FIRST})"""
TAKE_IF_NOBODY_WAITS = TAKE + " AND NOT EXISTS (SELECT 1 FROM fairlock_locks WHERE key=:queue AND score>0)"
TOOK = f"SELECT {COLUMNS} FROM fairlock_items WHERE pool=:pool AND score=:until AND ticket=:ticket"
NEW = "(?, ?, ?, 0, '', 0, '', '', ?)"
ADD = f"INSERT INTO fairlock_items VALUES {NEW}"
IF_ABSENT = " ON CONFLICT DO NOTHING"
GET = f"SELECT {COLUMNS} FROM fairlock_items WHERE pool=? AND key=?"
PUT = """UPDATE fairlock_items SET score=?, fence=?, ticket=?, lease=?, owner=?, note=?, body=?
    WHERE pool=? AND key=? AND score=? AND fence=? AND ticket=?"""
DELETE = "DELETE FROM fairlock_items WHERE pool=? AND key=? AND score=? AND fence=? AND ticket=?"
OF = f"SELECT {COLUMNS} FROM fairlock_items WHERE pool=? AND score>? AND score<=? AND ticket=? LIMIT 1"
COMING = "SELECT min(score) FROM fairlock_items WHERE pool=? AND score>? AND score<=?"
ALL = f"SELECT {COLUMNS} FROM fairlock_items WHERE pool=? AND key>? ORDER BY key LIMIT 1000"
ALL_ANYHOW = ALL.replace(COLUMNS, "CAST(key AS BLOB), score, fence, '', lease, '', '', CAST(body AS BLOB)")
ASIDE = """UPDATE fairlock_items SET score=?, fence=?, ticket=?, lease=?, owner=?, note=?, body=?
    WHERE pool=? AND key=? AND score IS ? AND fence IS ?"""
COUNT = """SELECT sum(score>=0 AND score<=:now AND ticket=''), sum(score>:now AND ticket=''),
    sum(score>:now AND ticket<>''), sum(score>=0 AND score<=:now AND ticket<>''), sum(score<0)
    FROM fairlock_items WHERE pool=:pool"""
POOLS = "SELECT min(pool) FROM fairlock_items WHERE pool>?"  # one after the other, by the index: not by all items
TAKEN = f"SELECT {COLUMNS} FROM fairlock_items WHERE pool=? AND score>? AND ticket<>'' ORDER BY score LIMIT 1000"
IS_THERE = "SELECT 1 FROM sqlite_master WHERE name='fairlock_items'"
BATCH = 64  # items renewed in one statement: fewer than locks, because each has more values
NEW_ITEM = "(" + ", ".join("?" * 12) + ")"
GET_MANY = f"SELECT pool, {COLUMNS} FROM fairlock_items WHERE (pool, key) IN (VALUES {{}})"
PUT_MANY = """UPDATE fairlock_items SET score=new.column1, fence=new.column2, ticket=new.column3, lease=new.column4,
    owner=new.column5, note=new.column6, body=new.column7 FROM (VALUES {}) AS new
    WHERE fairlock_items.pool=new.column8 AND fairlock_items.key=new.column9 AND fairlock_items.score=new.column10
    AND fairlock_items.fence=new.column11 AND fairlock_items.ticket=new.column12
    RETURNING fairlock_items.pool, fairlock_items.key"""
CHUNK = 200  # items added in one statement: for more, some builds of SQLite take too few parameters

T = TypeVar("T")


class SqliteItemStore(ItemStore):
    def __init__(self, store: "SqliteStore") -> None:
        self._store = store
        self.batch_size = min(BATCH, store.batch_size)

    async def get(self, pool: str, key: str, settle: bool = False) -> ItemSnapshot:
        return await self._call(lambda db, at: self._seen(pool, db.rows(GET, (pool, key)), db.now(), at))

    async def put(self, pool: str, key: str, item: ItemState | None, seen: ItemSnapshot) -> bool:
        assert seen.item is not None  # what is new comes by `add`
        same = (pool, key, seen.item.score, seen.item.fence, seen.item.ticket)
        if item is None:
            done = await self._call(lambda db, at: db.change(DELETE, same))
        else:
            values = (*item[1:7], sealed(pool, item))
            done = await self._call(lambda db, at: db.change(PUT, (*values, *same)))
        await self._store.wrote()
        return bool(done)

    async def get_many(self, keys: Sequence[tuple[str, str]]) -> Sequence[ItemSnapshot | OutcomeUnknown | LockError]:
        marks = ", ".join(["(?, ?)"] * len(keys))
        values = tuple(word for name in keys for word in name)

        def read(db: Connection, at: float) -> list[ItemSnapshot | RecordDamaged]:
            rows = {(row[0], row[1]): row[1:] for row in db.rows(GET_MANY.format(marks), values)}
            now = db.now()
            found: list[ItemSnapshot | RecordDamaged] = []
            for pool, key in keys:
                try:
                    found.append(self._seen(pool, [rows[pool, key]] if (pool, key) in rows else [], now, at))
                except RecordDamaged as damage:
                    found.append(damage)
            return found

        try:
            return await self._call(read)
        except LockError:
            return await super().get_many(keys)  # one of them is no text: this shows which

    async def put_many(self, writes: Sequence[ItemWrite]) -> list[bool]:
        values: list[object] = []
        for pool, item, seen in writes:
            assert seen.item is not None  # what is new comes by `add`
            values += (*item[1:7], sealed(pool, item), pool, item.key, *seen.item[1:4])
        marks = ", ".join([NEW_ITEM] * len(writes))
        done = {*await self._call(lambda db, at: db.rows(PUT_MANY.format(marks), tuple(values)))}
        await self._store.wrote()
        return [(one.pool, one.item.key) in done for one in writes]

    async def add(self, pool: str, rows: Sequence[tuple[str, str]], first: int = 0) -> int:
        new = 0
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]

            def write(db: Connection, at: float, chunk: Sequence[tuple[str, str]] = chunk, start: int = start) -> int:
                since = max(db.now() - AGO, 0) + first + start
                items = [ItemState(key, since + n, body=body) for n, (key, body) in enumerate(chunk)]
                values = [value for i in items for value in (pool, i.key, i.score, sealed(pool, i))]
                return db.change(", ".join([ADD, *[NEW] * (len(chunk) - 1)]) + IF_ABSENT, tuple(values))

            new += await self._call(write)
            await self._store.wrote()
        return new

    async def take(self, pool: str, take: Take, queue: str) -> ItemSnapshot | None:
        values: dict[str, Any] = {
            "pool": pool, "queue": queue, "ticket": take.ticket, "lease": take.lease, "owner": take.owner,
            "note": take.note,
        }  # fmt: skip
        span = min(take.window, take.lease) if take.window else take.lease

        def write(db: Connection, at: float) -> ItemSnapshot | None:
            now = db.now()
            values.update(now=now, until=now + span)
            if not queue and not db.rows(FIRST, values):
                return None  # a waiter looks every second: that must not block writers
            if not db.change(TAKE_IF_NOBODY_WAITS if queue else TAKE, values):
                return None
            return ItemSnapshot(None, None, now, at)

        took = await self._call(write)
        if took is None:
            return None
        await self._store.wrote()
        return await self._call(lambda db, at: self._seen(pool, db.rows(TOOK, values), took.now, took.at))

    async def of(self, pool: str, ticket: str, span: int) -> ItemSnapshot | None:
        def read(db: Connection, at: float) -> ItemSnapshot:
            now = db.now()
            return self._seen(pool, db.rows(OF, (pool, now, now + span, ticket)), now, at)

        seen = await self._call(read)
        return seen if seen.item is not None else None

    async def coming(self, pool: str, span: int) -> int | None:
        def read(db: Connection, at: float) -> int | None:
            now = db.now()
            score = db.rows(COMING, (pool, now, now + span))[0][0]
            return None if score is None else max(score - now, 1)

        return await self._call(read)

    async def all(self, pool: str) -> tuple[list[ItemState], int]:
        rows = await self._rows(pool)
        return [shown(pool, row) for row in rows], await self._call(lambda db, at: db.now())

    async def pools(self) -> list[str]:
        if not await self._call(lambda db, at: db.rows(IS_THERE, ())):
            return []
        found: list[str] = []
        while True:
            ((last,),) = await self._call(lambda db, at: db.rows(POOLS, (found[-1] if found else "",)))
            if last is None:
                return found
            found.append(last)

    async def taken(self, pool: str) -> tuple[list[ItemState], int]:
        def read(db: Connection, at: float) -> tuple[list[ItemState], int]:
            now = db.now()
            return [shown(pool, row) for row in db.rows(TAKEN, (pool, now))], now

        return await self._call(read)

    async def _rows(self, pool: str) -> list[Any]:
        found: list[Any] = []
        while True:
            last = found[-1][0] if found else ""
            rows: list[Any] = await self._call(lambda db, at: _all(db, pool, last))  # noqa: B023
            found += rows
            if len(rows) < 1000:
                return found

    async def repair(self, pool: str) -> list[str]:
        """Set the damaged items of this pool aside. Return their keys."""
        done: list[str] = []
        for row in await self._rows(pool):
            try:
                unsealed(pool, row)
            except ValueError:
                now = await self._call(lambda db, at: db.now())
                item = aside(row[0], row[2], row[7], now)
                values = (*item[1:7], sealed(pool, item), pool, row[0], row[1], row[2])
                if await self._call(lambda db, at: db.change(ASIDE, values)):  # noqa: B023
                    done.append(str(item.key))
        return done

    async def count(self, pool: str) -> dict[str, int]:
        def read(db: Connection, at: float) -> list[int | None]:
            return list(db.rows(COUNT, {"pool": pool, "now": db.now()})[0])

        return dict(zip(STATES, [number or 0 for number in await self._call(read)], strict=True))

    async def _call(self, statement: Callable[[Connection, float], T]) -> T:
        def run(db: Connection) -> T:
            at = self._store.client_clock()
            try:
                return statement(db, at)
            except sqlite3.OperationalError as error:
                if "no such function" in str(error):
                    db.prepare(register)
                elif "no such table" in str(error):
                    db.prepare(register)
                    for text in ITEMS:
                        db.change(text, ())
                else:
                    raise
            return statement(db, at)

        return await self._store.statement(run)

    def _seen(self, pool: str, rows: list[Any], now: int, at: float) -> ItemSnapshot:
        if not rows:
            return ItemSnapshot(None, None, now, at)
        try:
            return ItemSnapshot(unsealed(pool, rows[0]), None, now, at)
        except ValueError as bad:
            raise item_damaged(pool, rows[0][0], self._store.where, bad) from None


def _all(db: Connection, pool: str, last: str) -> list[Any]:
    try:
        return db.rows(ALL, (pool, last))
    except sqlite3.OperationalError as error:
        if "decode to UTF-8" not in str(error):
            raise
    rows = db.rows(ALL_ANYHOW, (pool, last))
    return [(str(key, "utf-8", "replace") if type(key) is bytes else key, *rest) for key, *rest in rows]
