"""The items of pools in a SQL database: a table of their own. An item is still the same if score, fence and ticket are:
each step changes one of them.

The column of a body is [format, body, checksum], and the checksum is about pool, key and body: what only clients write.
The statement that takes an item writes the other columns in the server, so no checksum is about those. An item that is
found damaged on the way in gets the score BROKEN, so that no other client takes it again, until it is repaired.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import RecordDamaged
from ...pool import BROKEN, STATES, Item, Take, Taken, apply
from ...pool.wire import encode_body
from ..item_damage import aside, item_damaged, shown, sound
from ..pool_contract import PutAndLook, SeenItem
from .dialects import SCANNED
from .items import Items
from .tables import Statement
from .trouble import Conflict, Exists

if TYPE_CHECKING:
    from .hands import Told
    from .store import SqlStore

TRIES = 400  # more in a row than any real crowd causes


class SqlShelf:
    by_content = True

    def __init__(self, store: "SqlStore", say: Items) -> None:
        self._store = store
        self._say = say
        self._nobody = store.dialect.nobody

    async def _ask(self, statement: Statement, **values: Any) -> "tuple[Told, float]":
        at = self._store.client_clock()
        return await self._store.ask(statement, {"v_" + name: value for name, value in values.items()}), at

    def _kept(self, row: Sequence[Any]) -> Item:
        """The row as it is, with the text of its body."""
        key, score, fence, ticket, lease, owner, note, body = row
        if self._nobody:
            ticket, owner, note = ("" if text == self._nobody else text for text in (ticket, owner, note))
        return Item(key, int(score), int(fence), ticket, int(lease), owner, note, body)

    def _item(self, pool: str, row: Sequence[Any]) -> Item:
        kept = self._kept(row)
        try:
            return sound(pool, kept)
        except ValueError as bad:
            raise item_damaged(pool, kept.key, self._store.where, bad) from None

    async def _sound(self, pool: str, row: Sequence[Any], now: int) -> Item | None:
        """The item in this row; None if it is damaged: then it is set apart."""
        try:
            return self._item(pool, row)
        except RecordDamaged:
            kept = self._kept(row)
            broken = kept._replace(score=BROKEN, ticket="", owner="", note="")
            await self._put(self._written(pool, broken, kept, now) | {"v_body": kept.body or self._nobody})
            return None

    def _same(self, pool: str, item: Item) -> dict[str, Any]:
        """What tells that it is still this one."""
        return {
            "v_pool": pool, "v_key": item.key, "v_old_score": item.score, "v_old_fence": item.fence,
            "v_old_ticket": item.ticket or self._nobody,
        }  # fmt: skip

    def _written(self, pool: str, item: Item, before: Item | None, now: int) -> dict[str, Any]:
        assert before is not None  # what is new comes by `add`
        nobody = self._nobody
        key, score, fence, ticket, lease, owner, note, body = item
        return self._same(pool, before) | {
            "v_score": score, "v_fence": fence, "v_ticket": ticket or nobody, "v_lease": lease,
            "v_owner": owner or nobody, "v_note": note or nobody, "v_body": encode_body(body, pool, key), "v_now": now,
        }  # fmt: skip

    async def get(self, pool: str, key: str, settle: bool = False) -> SeenItem:
        told, at = await self._ask(self._say.get, pool=pool, key=key)
        now, *row = told.rows[0]
        return SeenItem(self._item(pool, row) if row[0] is not None else None, None, self._store.sampled(now, at), at)

    async def put(self, pool: str, key: str, item: Item | None, seen: SeenItem) -> bool:
        if item is not None:
            return await self._put(self._written(pool, item, seen.item, seen.now))
        assert seen.item is not None
        try:
            return (await self._store.ask(self._say.delete, self._same(pool, seen.item))).met > 0
        except Conflict:
            return False

    async def _put(self, values: dict[str, Any]) -> bool:
        try:
            return (await self._store.ask(self._say.put, values)).met > 0
        except Conflict:
            return False

    @property
    def put_and_look(self) -> PutAndLook | None:
        return self._put_and_look if self._say.put_and_look is not None else None

    async def _put_and_look(
        self, pool: str, key: str, item: Item, seen: SeenItem, line: str
    ) -> tuple[bool, str | None]:
        assert self._say.put_and_look is not None
        values = self._written(pool, item, seen.item, seen.now)
        values["v_line"] = line
        try:
            told = await self._store.ask(self._say.put_and_look, values)
        except Conflict:
            return False, None
        fence, text = told.rows[0]
        return fence is not None, text

    async def add(self, pool: str, rows: Sequence[tuple[str, str]], first: int = 0) -> int:
        new = 0
        step = self._say.at_once
        for start in range(0, len(rows), step):
            values: dict[str, Any] = {"pool": pool}
            chunk = rows[start : start + step]
            for n, (key, body) in enumerate(chunk):
                values |= {f"key{n}": key, f"body{n}": encode_body(body, pool, key), f"nth{n}": first + start + n}
            new += await self._add(self._say.add(len(chunk)), values)
        return new

    async def _add(self, statement: Statement, values: dict[str, Any]) -> int:
        for _ in range(TRIES):
            try:
                return max((await self._ask(statement, **values))[0].met, 0)
            except Exists:
                return 0
            except Conflict:
                continue
        raise self._store.crowded()

    async def take(self, pool: str, take: Take, line: str) -> SeenItem | None:
        statement = self._say.take_if_alone if line else self._say.take
        if self._store.dialect.shows:
            return await self._take_at_once(statement, pool, line, take)
        values: dict[str, Any] = {"pool": pool, "line": line} if line else {"pool": pool}
        for turn in range(TRIES):
            told, at = await self._ask(statement, **values)
            if not told.rows:
                return None
            # Somebody new may have any of them, and two who try the same one only get in each other's way.
            row = told.rows[os.urandom(1)[0] % len(told.rows) if turn and line else 0]
            now = self._store.sampled(row[8], at)
            before = SeenItem(await self._sound(pool, row[:8], now), None, now, at)
            if before.item is None:
                continue
            item, reply = apply(before.item, take, now)
            if isinstance(reply, Taken) and await self.put(pool, before.item.key, item, before):
                return SeenItem(item, None, now, at)
        raise self._store.crowded()

    async def _take_at_once(self, statement: Statement, pool: str, line: str, take: Take) -> SeenItem | None:
        span = min(take.window, take.lease) if take.window else take.lease
        said = {
            "v_pool": pool, "v_ticket": take.ticket, "v_lease": take.lease, "v_owner": take.owner, "v_note": take.note,
            "v_span": span,
        }  # fmt: skip
        if line:
            said["v_line"] = line
        for _ in range(TRIES):
            at = self._store.client_clock()
            try:
                told = await self._store.ask(statement, said)
            except Conflict:
                continue
            if not told.rows:
                return None
            *row, now = told.rows[0]
            now = self._store.sampled(now, at)
            item = await self._sound(pool, row, now)
            if item is not None:
                return SeenItem(item, None, now, at)
        raise self._store.crowded()

    async def of(self, pool: str, ticket: str, span: int) -> SeenItem | None:
        told, at = await self._ask(self._say.of, pool=pool, ticket=ticket, span=span)
        if not told.rows:
            return None
        now, *row = told.rows[0]
        now = self._store.sampled(now, at)
        item = await self._sound(pool, row, now)
        return SeenItem(item, None, now, at) if item is not None else None

    async def coming(self, pool: str, span: int) -> int | None:
        told, _ = await self._ask(self._say.coming, pool=pool, span=span)
        now, score = told.rows[0]
        return None if score is None else max(int(score) - int(now), 1)

    async def is_due(self, pool: str, key: str = "") -> bool:
        """Whether anything can be had now, or this one, or whether this one is done: for one who looks for himself."""
        if key:
            return bool((await self._ask(self._say.this_due, pool=pool, key=key))[0].rows)
        return bool((await self._ask(self._say.due, pool=pool))[0].rows)

    async def all(self, pool: str) -> tuple[list[Item], int]:
        found, now = await self._all(pool)
        return [shown(pool, kept) for kept in found], now

    async def repair(self, pool: str) -> list[str]:
        """Set the damaged items of this pool aside; their keys."""
        found, now = await self._all(pool)
        done = []
        for kept in found:
            if shown(pool, kept).score == BROKEN:
                item = aside(kept.key, kept.fence, kept.body, now)
                if await self._put(self._written(pool, item, kept, now)):
                    done.append(kept.key)
        return done

    async def _all(self, pool: str) -> tuple[list[Item], int]:
        found: list[Item] = []
        told, at = await self._ask(self._say.all, pool=pool)
        while True:
            found += [self._kept(row) for _, *row in told.rows]
            if len(told.rows) < SCANNED:
                break
            told, at = await self._ask(self._say.all_on, pool=pool, key=found[-1].key)
        if told.rows:
            return found, self._store.sampled(told.rows[0][0], at)
        await self._store.ping()
        sample = self._store.now()
        assert sample is not None
        return found, sample.now

    async def count(self, pool: str) -> dict[str, int]:
        told, _ = await self._ask(self._say.count, pool=pool)
        return dict(zip(STATES, [int(number or 0) for number in told.rows[0]], strict=True))
