"""The items of pools in a SQL database, in a table of their own. An item is unchanged if score, fence and ticket are:
each step changes one of them.

The column of a body is [format, body, checksum], and the checksum is about pool, key and body: what only clients write.
The statement that takes an item writes the other columns in the server, so no checksum is about those. An item that is
found damaged while it is taken gets the score BROKEN, so that no other client takes it again, until it is repaired.
"""

import os
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ...errors import LockError, RecordDamaged
from ...rules.pools import BROKEN, DONE, STATES, ItemState, Take, Taken, apply
from ...rules.pools.codec import encode_body
from ..base import ItemSnapshot, ItemStore, ItemWrite
from ..damaged_items import aside, item_damaged, shown, sound
from ..keys import SEPARATOR
from ..polling import LONGEST
from ..take_item_by_cas import TRIES
from .errors import Conflict, Exists
from .item_statements import Items
from .lock_rows import BATCH
from .schema import Statement

if TYPE_CHECKING:
    from .executor import Result
    from .store import SqlStore

_new = tuple.__new__  # makes a named tuple in half the time of its own constructor; every field must be given


class SqlItemStore(ItemStore):
    by_content = True
    batch_size = BATCH

    def __init__(self, store: "SqlStore", statements: Items) -> None:
        self._store = store
        self._statements = statements
        self._nobody = store.dialect.nobody

    async def _call(self, statement: Statement, **values: Any) -> "tuple[Result, float]":
        at = self._store.client_clock()
        return await self._store.call(statement, {"v_" + name: value for name, value in values.items()}), at

    def _kept(self, row: Sequence[Any]) -> ItemState:
        """Return the row as an item, with the text of its body unread."""
        key, score, fence, ticket, lease, owner, note, body = row
        if self._nobody:
            ticket, owner, note = ("" if text == self._nobody else text for text in (ticket, owner, note))
        return _new(ItemState, (key, int(score), int(fence), ticket, int(lease), owner, note, body))

    def _item(self, pool: str, row: Sequence[Any]) -> ItemState:
        kept = self._kept(row)
        try:
            return sound(pool, kept)
        except ValueError as bad:
            raise item_damaged(pool, kept.key, self._store.where, bad) from None

    async def _sound(self, pool: str, row: Sequence[Any], now: int) -> ItemState | None:
        """Return the item in this row; None if it is damaged: then it is set apart."""
        try:
            return self._item(pool, row)
        except RecordDamaged:
            kept = self._kept(row)
            broken = kept._replace(score=BROKEN, ticket="", owner="", note="")
            await self._put(self._written(pool, broken, kept, now) | {"v_body": kept.body or self._nobody})
            return None

    def _same(self, pool: str, item: ItemState) -> dict[str, Any]:
        """Return the values that prove that it is still the same item."""
        return {
            "v_pool": pool, "v_key": item.key, "v_old_score": item.score, "v_old_fence": item.fence,
            "v_old_ticket": item.ticket or self._nobody,
        }  # fmt: skip

    def _written(self, pool: str, item: ItemState, before: ItemState | None, now: int) -> dict[str, Any]:
        assert before is not None  # what is new comes by `add`
        nobody = self._nobody
        key, score, fence, ticket, lease, owner, note, body = item
        return self._same(pool, before) | {
            "v_score": score, "v_fence": fence, "v_ticket": ticket or nobody, "v_lease": lease,
            "v_owner": owner or nobody, "v_note": note or nobody, "v_body": encode_body(body, pool, key), "v_now": now,
        }  # fmt: skip

    async def get(self, pool: str, key: str, settle: bool = False) -> ItemSnapshot:
        result, at = await self._call(self._statements.get, pool=pool, key=key)
        now, *row = result.rows[0]
        return self.snapshot(pool, row, now, at)

    def snapshot(self, pool: str, row: Sequence[Any], now: Any, at: float) -> ItemSnapshot:
        """Return what this row shows; its columns are None if there is no such item."""
        item = self._item(pool, row) if row[0] is not None else None
        return ItemSnapshot(item, None, self._store.sampled(now, at), at)

    async def put(self, pool: str, key: str, item: ItemState | None, seen: ItemSnapshot) -> bool:
        if item is not None:
            return await self._put(self._written(pool, item, seen.item, seen.now))
        assert seen.item is not None
        try:
            return (await self._store.call(self._statements.delete, self._same(pool, seen.item))).matched > 0
        except Conflict:
            return False

    async def _put(self, values: dict[str, Any], statement: Statement | None = None) -> bool:
        try:
            return (await self._store.call(statement or self._statements.put, values)).matched > 0
        except Conflict:
            return False

    async def get_many(self, keys: Sequence[tuple[str, str]]) -> list[ItemSnapshot | RecordDamaged]:
        at = self._store.client_clock()
        result = await self._store.call(*self._statements.many.read(keys))
        found: dict[tuple[str, str], ItemSnapshot | RecordDamaged] = {}
        for now, *row, pool, key in result.rows:
            now = self._store.sampled(now, at)
            try:
                item = self._item(pool, row) if row[0] is not None else None
                found[pool, key] = ItemSnapshot(item, None, now, at)
            except RecordDamaged as damage:
                found[pool, key] = damage
        return [found[name] for name in keys]

    async def put_many(self, writes: Sequence[ItemWrite]) -> list[bool | LockError]:
        rows = [self._written(one.pool, one.item, one.seen.item, one.seen.now) for one in writes]
        if await self._store.write_all(self._statements.many, sorted(rows, key=itemgetter("v_pool", "v_key"))):
            return [True] * len(writes)
        seen = await self.get_many([(one.pool, one.item.key) for one in writes])
        found: list[bool | LockError] = []
        for one, each in zip(writes, seen, strict=True):
            if isinstance(each, RecordDamaged):
                found.append(False)
            elif each.item == one.seen.item and each.now >= one.seen.now:
                found.append(self._store.locked(f"{one.item.key!r} of {one.pool.rpartition(SEPARATOR)[2]!r}") or False)
            else:
                found.append(each.item is not None and each.item[1:4] == one.item[1:4])  # what each step changes
        return found

    async def put_and_read_queue(
        self, pool: str, key: str, item: ItemState, seen: ItemSnapshot, queue: str
    ) -> tuple[bool, str | None] | None:
        statement = self._statements.put_and_read_queue
        if statement is None:
            return None
        before = seen.item
        if before is not None and item == before._replace(score=DONE, ticket=""):
            statement, values = self._statements.finish_and_look, self._same(pool, before)
            values["v_now"] = seen.now
        else:
            values = self._written(pool, item, before, seen.now)
        values["v_queue"] = queue
        try:
            result = await self._store.call(statement, values)
        except Conflict:
            return False, None
        return (True, result.rows[0][1]) if result.rows else (False, None)

    async def add(self, pool: str, rows: Sequence[tuple[str, str]], first: int = 0) -> int:
        new = 0
        step = self._statements.rows_per_add
        for start in range(0, len(rows), step):
            values: dict[str, Any] = {"pool": pool}
            chunk = rows[start : start + step]
            for n, (key, body) in enumerate(chunk):
                values |= {f"key{n}": key, f"body{n}": encode_body(body, pool, key), f"nth{n}": first + start + n}
            new += await self._add(self._statements.add(len(chunk)), values)
        return new

    async def _add(self, statement: Statement, values: dict[str, Any]) -> int:
        for _ in range(TRIES):
            try:
                return max((await self._call(statement, **values))[0].matched, 0)
            except Exists:
                return 0
            except Conflict:
                continue
        raise self._store.crowded()

    async def take(self, pool: str, take: Take, queue: str) -> ItemSnapshot | None:
        statement = self._statements.take_if_alone if queue else self._statements.take
        at_once = self._store.dialect.shows
        values: dict[str, Any] = {"v_pool": pool}
        if at_once:
            values |= {
                "v_ticket": take.ticket, "v_lease": take.lease, "v_owner": take.owner, "v_note": take.note,
                "v_span": min(take.window, take.lease) if take.window else take.lease,
            }  # fmt: skip
        if queue:
            values["v_queue"] = queue
        for turn in range(TRIES):
            at = self._store.client_clock()
            try:
                result = await self._store.call(statement, values)
            except Conflict:
                continue
            if not result.rows:
                return None
            # A new client may take any of them, and two that try the same one only conflict.
            *row, now = result.rows[os.urandom(1)[0] % len(result.rows) if turn and queue else 0]
            now = self._store.sampled(now, at)
            item = await self._sound(pool, row, now)
            if item is None:
                continue
            seen = _new(ItemSnapshot, (item, None, now, at))
            if at_once:
                return seen
            item, reply = apply(item, take, now)
            if isinstance(reply, Taken) and await self.put(pool, row[0], item, seen):
                return ItemSnapshot(item, None, now, at)
        raise self._store.crowded()

    async def of(self, pool: str, ticket: str, span: int) -> ItemSnapshot | None:
        result, at = await self._call(self._statements.of, pool=pool, ticket=ticket, span=span)
        if not result.rows:
            return None
        now, *row = result.rows[0]
        now = self._store.sampled(now, at)
        item = await self._sound(pool, row, now)
        return ItemSnapshot(item, None, now, at) if item is not None else None

    async def coming(self, pool: str, span: int) -> int | None:
        result, _ = await self._call(self._statements.coming, pool=pool, span=span)
        now, score = result.rows[0]
        return None if score is None else max(int(score) - int(now), 1)

    async def due_in(self, pool: str, key: str) -> float:
        """Return 0 if an item is due now, with a key: if that one is due or done. Else the longest pause of a poll."""
        due, values = (self._statements.this_due, {"key": key}) if key else (self._statements.due, {})
        return 0.0 if (await self._call(due, pool=pool, **values))[0].rows else LONGEST

    async def all(self, pool: str) -> tuple[list[ItemState], int]:
        found, now = await self._all(pool)
        return [shown(pool, kept) for kept in found], now

    async def pools(self) -> list[str]:
        found: list[str] = []
        result, _ = await self._call(self._statements.first_pool)
        while (name := result.rows[0][0]) is not None:
            found.append(name)
            result, _ = await self._call(self._statements.next_pool, pool=name)
        return found

    async def taken(self, pool: str) -> tuple[list[ItemState], int]:
        result, at = await self._call(self._statements.taken, pool=pool)
        found = [shown(pool, self._kept(row)) for _, *row in result.rows]
        return found, self._store.sampled(result.rows[0][0], at) if result.rows else 0

    async def repair(self, pool: str) -> list[str]:
        """Set the damaged items of this pool aside. Return their keys."""
        found, now = await self._all(pool)
        done = []
        for kept in found:
            if shown(pool, kept).score == BROKEN:
                item = aside(kept.key, kept.fence, kept.body, now)
                if await self._put(self._written(pool, item, kept, now)):
                    done.append(kept.key)
        return done

    async def _all(self, pool: str) -> tuple[list[ItemState], int]:
        found = await self._store.pages(self._statements.all, self._statements.all_on, {"v_pool": pool})
        if not found:
            await self._store.ping()
            sample = self._store.now()
            assert sample is not None
            return [], sample.now
        last, at = found[-1]
        return [self._kept(row) for (_, *row), _ in found], self._store.sampled(last[0], at)

    async def count(self, pool: str) -> dict[str, int]:
        result, _ = await self._call(self._statements.count, pool=pool)
        return dict(zip(STATES, [int(number or 0) for number in result.rows[0]], strict=True))
