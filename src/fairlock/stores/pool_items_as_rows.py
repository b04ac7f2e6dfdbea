"""The item_store of any store that can find rows by their score: each item of a pool is a row like all others."""

import os
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, cast

from ..errors import LockError, RecordDamaged
from ..rules.pools import BROKEN, ItemState
from ..rules.pools.codec import decode_item, encode_item
from .base import ItemSnapshot, ItemWrite, OutcomeUnknown, Row, RowSnapshot, RowWrite, ScoredStore, Store, Written
from .damaged_items import aside, item_damaged
from .keys import SEPARATOR, is_queue, queue_key
from .polling import pool_for_queue
from .take_item_by_cas import SwappedItems

CANDIDATES = 16  # read at once; a newcomer tries one of them at random


class Rows(SwappedItems):
    """Items as rows. `_due` is what a store has to know."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.batch_size = store.batch_size

    def _prefix(self, pool: str) -> str:
        return queue_key(pool) + SEPARATOR

    def _item(self, pool: str, seen: RowSnapshot) -> ItemSnapshot:
        row = seen.row
        if row is None:
            return ItemSnapshot(None, seen.version, seen.now, seen.at)
        key = row.key.removeprefix(self._prefix(pool))
        try:
            return ItemSnapshot(decode_item(key, row.score, row.owner, row.body), seen.version, seen.now, seen.at)
        except ValueError as bad:
            raise item_damaged(pool, key, self._store.where, bad) from None

    def _sound(self, pool: str, found: Sequence[RowSnapshot]) -> list[ItemSnapshot]:
        """Return the items that can be read: one that is damaged affects no other."""
        items = []
        for seen in found:
            try:
                items.append(self._item(pool, seen))
            except RecordDamaged:
                continue
        return items

    async def get(self, pool: str, key: str, settle: bool = False) -> ItemSnapshot:
        return self._item(pool, await self._store.read(self._prefix(pool) + key, settle))

    async def put(self, pool: str, key: str, item: ItemState | None, seen: ItemSnapshot) -> bool:
        version: Any = seen.version
        if item is None:
            return await self._store.delete(self._prefix(pool) + key, version)
        return isinstance(await self._store.write(self._row(pool, item), version, seen.now, ()), Written)

    def _row(self, pool: str, item: ItemState) -> Row:
        return Row(self._prefix(pool) + item.key, item.score, item.owner, encode_item(item))

    async def get_many(self, keys: Sequence[tuple[str, str]]) -> list[ItemSnapshot | OutcomeUnknown | LockError]:
        found: list[ItemSnapshot | OutcomeUnknown | LockError] = []
        rows = await self._store.read_many([self._prefix(pool) + key for pool, key in keys])
        for (pool, _), seen in zip(keys, rows, strict=True):
            try:
                found.append(seen if isinstance(seen, Exception) else self._item(pool, seen))
            except RecordDamaged as damage:
                found.append(damage)
        return found

    async def put_many(self, writes: Sequence[ItemWrite]) -> list[bool | OutcomeUnknown | LockError]:
        rows = [RowWrite(self._row(pool, item), cast(int | str, seen.version), seen.now) for pool, item, seen in writes]
        done = await self._store.write_many(rows)
        return [each if isinstance(each, Exception) else each is not None for each in done]

    async def _add(self, pool: str, item: ItemState) -> bool:
        seen = await self.get(pool, item.key)
        return seen.item is None and await self.put(pool, item.key, item, seen)

    @abstractmethod
    async def _due(self, pool: str, low: int, high: int) -> list[ItemSnapshot]:
        """Find items that are due in this time, the oldest first: all, or some of the first."""

    async def _now(self, pool: str) -> int:
        sample = self._store.now()
        return sample[0] if sample is not None else (await self._store.read(queue_key(pool))).now

    async def _candidate(self, pool: str, queue: str, lost: int) -> ItemSnapshot | None:
        found = await self._due(pool, 0, await self._now(pool))
        return found[os.urandom(1)[0] % len(found) if lost and queue else 0] if found else None

    async def of(self, pool: str, ticket: str, span: int) -> ItemSnapshot | None:
        low = await self._now(pool)
        high = low + span
        while found := await self._due(pool, low + 1, high):
            for each in found:
                assert each.item is not None
                if each.item.ticket == ticket:
                    return each
                low = each.item.score
        return None

    async def coming(self, pool: str, span: int) -> int | None:
        now = await self._now(pool)
        found = await self._due(pool, now + 1, now + span)
        return max(found[0].item.score - found[0].now, 1) if found and found[0].item is not None else None

    async def pools(self) -> list[str]:
        keys = [seen.row.key.rpartition(SEPARATOR)[0] for seen in await self._store.scan("") if seen.row is not None]
        return sorted({pool_for_queue(key) for key in keys if is_queue(key)})

    async def all(self, pool: str) -> tuple[list[ItemState], int]:
        found = [self._shown(pool, seen) for seen in await self._store.scan(self._prefix(pool))]
        return sorted(found), await self._now(pool)

    def _shown(self, pool: str, seen: RowSnapshot) -> ItemState:
        assert seen.row is not None
        try:
            item = self._item(pool, seen).item
            assert item is not None
            return item
        except RecordDamaged:
            return ItemState(seen.row.key.removeprefix(self._prefix(pool)), BROKEN)

    async def repair(self, pool: str) -> list[str]:
        """Set the damaged items of this pool aside; their keys."""
        done = []
        for each in (await self.all(pool))[0]:
            if each.score == BROKEN:
                seen = await self._store.read(self._prefix(pool) + each.key)
                item = aside(each.key, 0, seen.row.body if seen.row is not None else "", seen.now)
                if await self.put(pool, each.key, item, ItemSnapshot(each, seen.version, seen.now, seen.at)):
                    done.append(each.key)
        return done


class ScoredRows(Rows):
    """The same over a store that finds rows by their score."""

    _store: ScoredStore

    async def _due(self, pool: str, low: int, high: int) -> list[ItemSnapshot]:
        return self._sound(pool, await self._store.between(self._prefix(pool), low, high, CANDIDATES))
