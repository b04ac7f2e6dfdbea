"""The shelf of any store that can find rows by their score: each item of a pool is a row like all others."""

import os
from collections.abc import Sequence
from typing import Any

from ..errors import RecordDamaged
from ..pool import BROKEN, STATES, Add, Added, Item, Take, Taken, apply
from ..pool.wire import decode_item, encode_item
from .contract import Row, Seen, Store, Unknown, Written
from .item_damage import aside, item_damaged
from .names import SEPARATOR, line_key
from .pool_contract import SeenItem

TRIES = 400  # more in a row than any real crowd causes
DOUBTS = 3
CANDIDATES = 16  # read at once; somebody new tries one of them at random


class Rows:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._between: Any = store.between  # type: ignore[attr-defined]

    def _prefix(self, pool: str) -> str:
        return line_key(pool) + SEPARATOR

    def _item(self, pool: str, seen: Seen) -> SeenItem:
        row = seen.row
        if row is None:
            return SeenItem(None, seen.version, seen.now, seen.at)
        key = row.key.removeprefix(self._prefix(pool))
        try:
            return SeenItem(decode_item(key, row.score, row.owner, row.body), seen.version, seen.now, seen.at)
        except ValueError as bad:
            raise item_damaged(pool, key, self._store.where, bad) from None

    def _sound(self, pool: str, found: Sequence[Seen]) -> list[SeenItem]:
        """Those that can be read: one that is damaged costs nobody else anything."""
        items = []
        for seen in found:
            try:
                items.append(self._item(pool, seen))
            except RecordDamaged:
                continue
        return items

    async def get(self, pool: str, key: str, settle: bool = False) -> SeenItem:
        return self._item(pool, await self._store.read(self._prefix(pool) + key, settle))

    async def put(self, pool: str, key: str, item: Item | None, seen: SeenItem) -> bool:
        name = self._prefix(pool) + key
        version: Any = seen.version
        if item is None:
            return await self._store.delete(name, version)
        row = Row(name, item.score, item.owner, encode_item(item))
        return isinstance(await self._store.write(row, version, seen.now, ()), Written)

    async def add(self, pool: str, rows: Sequence[tuple[str, str]], first: int = 0) -> int:
        new = 0
        for key, body in rows:
            seen = await self.get(pool, key)
            item, reply = apply(seen.item, Add(body, first + new), seen.now, key)
            if isinstance(reply, Added):
                new += await self.put(pool, key, item, seen)
        return new

    async def _due(self, pool: str, low: int, high: int) -> list[SeenItem]:
        found = await self._between(self._prefix(pool), low, high, CANDIDATES)
        return self._sound(pool, found)

    async def _now(self, pool: str) -> int:
        sample = self._store.now()
        return sample[0] if sample is not None else (await self._store.read(line_key(pool))).now

    async def take(self, pool: str, take: Take, line: str) -> SeenItem | None:
        if line:
            seen = await self._store.read(line)
            if seen.row is not None and seen.row.score > 0:
                return None
        for turn in range(TRIES):
            found = await self._due(pool, 0, await self._now(pool))
            if not found:
                return None
            # Somebody new may have any of them, and two who try the same one only get in each other's way.
            one = found[os.urandom(1)[0] % len(found) if turn and line else 0]
            took = await self._take(pool, one, take)
            if took is not None:
                return took
        return None

    async def _take(self, pool: str, one: SeenItem, take: Take) -> SeenItem | None:
        """Take this one, unless somebody was quicker. After an unknown outcome the same one again and no other: or what
        was lost might still arrive, and he would have two."""
        doubts = 0
        while one.item is not None:
            item, reply = apply(one.item, take, one.now)
            if not isinstance(reply, Taken):
                return None
            if item == one.item:
                return one
            try:
                if await self.put(pool, one.item.key, item, one):
                    return SeenItem(item, None, one.now, one.at)
                if not doubts:
                    return None
            except Unknown:
                doubts += 1
                if doubts > DOUBTS:
                    raise
            one = await self.get(pool, one.item.key, True)
        return None

    async def of(self, pool: str, ticket: str, span: int) -> SeenItem | None:
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

    async def all(self, pool: str) -> tuple[list[Item], int]:
        found = [self._shown(pool, seen) for seen in await self._store.scan(self._prefix(pool))]
        return sorted(found), await self._now(pool)

    def _shown(self, pool: str, seen: Seen) -> Item:
        assert seen.row is not None
        try:
            item = self._item(pool, seen).item
            assert item is not None
            return item
        except RecordDamaged:
            return Item(seen.row.key.removeprefix(self._prefix(pool)), BROKEN)

    async def repair(self, pool: str) -> list[str]:
        """Set the damaged items of this pool aside; their keys."""
        done = []
        for each in (await self.all(pool))[0]:
            if each.score == BROKEN:
                seen = await self._store.read(self._prefix(pool) + each.key)
                item = aside(each.key, 0, seen.row.body if seen.row is not None else "", seen.now)
                if await self.put(pool, each.key, item, SeenItem(each, seen.version, seen.now, seen.at)):
                    done.append(each.key)
        return done

    async def count(self, pool: str) -> dict[str, int]:
        items, now = await self.all(pool)
        counts = dict.fromkeys(STATES, 0)
        for item in items:
            if item.score != BROKEN:
                counts[item.state(now)] += 1
        return counts
