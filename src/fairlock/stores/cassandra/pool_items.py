"""The items of pools in Cassandra: a table of their own, each pool in sixteen partitions.

The transactions of one partition wait for each other. While no other is in its way, a worker takes what has been due
for longest in all of them. One that has just lost a race begins with a random bucket and takes what has been due
for longest there; only if there is nothing does it look into all the others. So in a crowd "first come, first served"
holds among the items of a bucket, not of the whole pool.

Nothing is deleted: a removed item has the score -2 and counts as absent. It keeps its fence, so that fences rise even
if it is added again.

The column of a body is [format, body, checksum], and the checksum is about pool, key and body, as in SQL databases. An
item that is found damaged on the way in gets the score BROKEN, so that no other client tries it again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING, Any
from zlib import crc32

from ...errors import LockError, RecordDamaged
from ...rules.pools import BROKEN, ItemState, count_states
from ...rules.pools.codec import encode_body
from ..base import ItemSnapshot, ItemWrite, OutcomeUnknown
from ..damaged_items import aside, item_damaged, shown, sound
from ..polling import LONGEST
from ..take_item_by_cas import TRIES, SwappedItems
from . import cql

if TYPE_CHECKING:
    from .store import CassandraStore

BUCKETS = 16
REMOVED = -2
CROWDED = 2.0  # seconds for which the loser of a race keeps out of the way, and the others know what is next
AHEAD = 256  # items that are known to be next
FEW = 64  # that come at once: see cql
POOLS = 64  # pools
ITEM = ItemState._fields


def bucket_for(key: str, buckets: int = BUCKETS) -> int:
    return crc32(key.encode()) % buckets


class CassandraItemStore(SwappedItems):
    _store: CassandraStore
    buckets = BUCKETS

    def __init__(self, store: CassandraStore) -> None:
        self._store = store
        self.batch_size = store.batch_size
        self._sender = store.sender
        self._clock = store.sender.runtime.clock
        self.crowded = 0.0  # until when other workers may be in our way
        self._ahead: dict[str, tuple[float, list[str]]] = {}  # by pool: until when, and what is to be taken, last first

    def _place(self, pool: str, key: str) -> tuple[str, int, str]:
        return pool, bucket_for(key, self.buckets), key

    @property
    def _all(self) -> list[int]:
        return list(range(self.buckets))

    async def get(self, pool: str, key: str, settle: bool = False) -> ItemSnapshot:
        at = self._clock()
        return await self._seen(pool, key, await self._sender.read(cql.GET, self._place(pool, key), settle), at)

    async def _seen(self, pool: str, key: str, rows: list[Any], at: float) -> ItemSnapshot:
        if not rows:
            return ItemSnapshot(None, None, await self._store.time(), at)
        now = self._store.note(rows[0].now, at)
        kept = _kept(rows[0])
        try:
            item = sound(pool, kept)
        except ValueError as bad:
            raise item_damaged(pool, key, self._store.where, bad) from None
        return ItemSnapshot(item if item.score != REMOVED else None, item, now, at)

    async def _tried(self, pool: str, key: str) -> ItemSnapshot | None:
        """Return the item that another client wrote; None if it is damaged: then it is set apart."""
        try:
            return await self.get(pool, key)
        except RecordDamaged:
            kept = _kept((await self._sender.read(cql.GET, self._place(pool, key), True))[0])
            await self._mend(pool, kept, (BROKEN, kept.fence or 0, kept.body or ""))
            return None

    async def _mend(self, pool: str, kept: ItemState, new: tuple[int, int, str]) -> bool:
        """Put score, fence and body in the place of what is damaged."""
        same = (kept.score, kept.fence, kept.ticket)
        return bool((await self._sender.transact(cql.MEND, (*new, *self._place(pool, kept.key), *same)))["applied"])

    async def put(self, pool: str, key: str, item: ItemState | None, seen: ItemSnapshot) -> bool:
        before = seen.version
        if not isinstance(before, ItemState):
            return False  # what is new comes by `add`
        if item is None:
            item = before._replace(score=REMOVED, ticket="", owner="", note="", body="null")
        return bool((await self._sender.transact(cql.PUT, self._values(pool, item, before, seen.now)))["applied"])

    def _values(self, pool: str, item: ItemState, before: ItemState, now: int) -> tuple[Any, ...]:
        from .store import since_1970

        new = (*item[1:7], encode_body(item.body, pool, item.key))
        same = (before.score, before.fence, before.ticket)
        return *new, *self._place(pool, item.key), *same, since_1970(now)

    async def get_many(self, keys: Sequence[tuple[str, str]]) -> list[ItemSnapshot | OutcomeUnknown | LockError]:
        at = self._clock()
        found: list[ItemSnapshot | OutcomeUnknown | LockError] = []
        replies = await self._sender.read_many(cql.GET, [self._place(pool, key) for pool, key in keys])
        for (pool, key), rows in zip(keys, replies, strict=True):
            try:
                found.append(rows if isinstance(rows, LockError) else await self._seen(pool, key, rows, at))
            except RecordDamaged as damage:
                found.append(damage)
        return found

    async def put_many(self, writes: Sequence[ItemWrite]) -> list[bool | OutcomeUnknown | LockError]:
        """Write these items, of each partition one at a time: its transactions would be in each other's way."""
        found: dict[int, bool | OutcomeUnknown | LockError] = {}
        rest = dict(enumerate(writes))
        while rest:
            firsts = {self._place(one.pool, one.item.key)[:2]: number for number, one in reversed(rest.items())}
            numbers = sorted(firsts.values())
            values = []
            for pool, item, seen in map(rest.pop, numbers):
                assert isinstance(seen.version, ItemState)  # what is new comes by `add`
                values.append(self._values(pool, item, seen.version, seen.now))
            for number, done in zip(numbers, await self._sender.transact_many(cql.PUT, values), strict=True):
                found[number] = done if isinstance(done, Exception) else bool(done["applied"])
        return [found[number] for number in range(len(writes))]

    async def _now(self, pool: str) -> int:
        return await self._store.time()

    async def _add(self, pool: str, item: ItemState) -> bool:
        doubt = False
        for _ in range(TRIES):
            try:
                new = (*self._place(pool, item.key), item.score, encode_body(item.body, pool, item.key))
                done = await self._sender.transact(cql.ADD, new)
                if done["applied"]:
                    return True
            except OutcomeUnknown:
                if doubt:
                    raise
                doubt = True
            seen = await self.get(pool, item.key, doubt)
            if seen.item is not None:
                return doubt and seen.item == item  # put there by the request whose answer was lost
            if isinstance(seen.version, ItemState) and await self.put(
                pool, item.key, item._replace(fence=seen.version.fence), seen
            ):
                return True
        return False

    async def _candidate(self, pool: str, queue: str, lost: int) -> ItemSnapshot | None:
        if lost:
            self._ahead.pop(pool, None)
            self.crowded = self._clock() + CROWDED
        if queue and self.buckets > 1 and self._clock() < self.crowded:  # in a queue only the first one takes
            one = await self._oldest_in_a_bucket(pool)
            if one is not None:
                return one
        for _ in range(TRIES):  # what is damaged is set apart
            key = await self._next(pool, at_random=bool(queue and lost))
            one = await self._tried(pool, key) if key is not None else None
            if key is None or one is not None:
                return one
        return None

    async def _oldest_in_a_bucket(self, pool: str) -> ItemSnapshot | None:
        """Return what has been due for longest in a random bucket. Few are read at once; of many the nodes find it."""
        bucket = os.urandom(1)[0] % self.buckets
        now, at = await self._store.sample()
        rows = await self._sender.read(cql.DUE_IN_BUCKET, (pool, bucket, 0, now))
        if len(rows) >= FEW:
            (found,) = await self._sender.read(cql.LEAST, (pool, bucket, 0, now))
            if found.score is not None:
                rows = await self._sender.read(cql.WITH_SCORE, (pool, bucket, found.score)) or rows
        first = min((_kept(row) for row in rows), key=lambda item: (item.score, item.key), default=None)
        return await self._checked(pool, first, now, at) if first is not None else None

    async def _checked(self, pool: str, kept: ItemState, now: int, at: float) -> ItemSnapshot | None:
        try:
            item = sound(pool, kept)
        except ValueError:
            return await self._tried(pool, kept.key)
        return ItemSnapshot(item, item, now, at)

    async def _next(self, pool: str, at_random: bool) -> str | None:
        """Return what has been due for longest in all buckets. Others that were due then are remembered for a while:
        whatever is added, given back or expires from now on has a greater score. At random: the first of any bucket,
        because in a crowd two workers that try the same one only conflict."""
        until, keys = self._ahead.get(pool, (0.0, []))
        if at_random or not keys or self._clock() > until:
            rows = await self._sender.read(cql.DUE, (pool, self._all, 0, await self._store.time()))
            keys = [row.key for row in nsmallest(AHEAD, rows, key=lambda row: (row.score, row.key))][::-1]
            if len(self._ahead) > POOLS:
                self._ahead.clear()
            if not at_random:
                self._ahead[pool] = self._clock() + CROWDED, keys
        if at_random and keys:
            key = keys[-1 - os.urandom(1)[0] % min(len(keys), BUCKETS)]
            if self.buckets > 1:
                key = next(each for each in reversed(keys) if bucket_for(each) == bucket_for(key))
            return key
        try:
            return keys.pop()
        except IndexError:  # nothing is due; or another thread was quicker
            return None

    async def of(self, pool: str, ticket: str, span: int) -> ItemSnapshot | None:
        now, at = await self._store.sample()
        found = await self._sender.read(cql.OF, (pool, self._all, now, now + span, ticket))
        return await self._checked(pool, _kept(found[0]), now, at) if found else None

    async def coming(self, pool: str, span: int) -> int | None:
        now = await self._store.time()
        rows = await self._sender.read(cql.SOON, (pool, self._all, now + 1, now + span))
        return max(min(row.score for row in rows) - now, 1) if rows else None

    async def due_in(self, pool: str, key: str) -> float:
        """Return in how many seconds an item of this pool is due; with a key: when that item is."""
        if key:
            seen = await self.get(pool, key)
            score, now = (seen.item.score if seen.item is not None else -1), seen.now
        else:
            now = await self._store.time()
            rows = await self._sender.read(cql.SOON, (pool, self._all, 0, now + int(LONGEST * 1e6)))
            score = min((row.score for row in rows), default=-1)
        return (score - now) / 1e6 if score >= 0 else LONGEST

    async def all(self, pool: str) -> tuple[list[ItemState], int]:
        found = [shown(pool, kept) for kept in await self._kept(pool)]
        return sorted(item for item in found if item.score != REMOVED), await self._store.time()

    async def _kept(self, pool: str) -> list[ItemState]:
        return [_kept(row) for row in await self._sender.read(cql.ALL, (pool, self._all))]

    async def repair(self, pool: str) -> list[str]:
        """Set the damaged items of this pool aside; their keys."""
        done = []
        for kept in await self._kept(pool):
            if shown(pool, kept).score == BROKEN:
                item = aside(kept.key, kept.fence, kept.body, await self._store.time())
                new = (item.score, item.fence, encode_body(item.body, pool, item.key))
                if await self._mend(pool, kept, new):
                    done.append(kept.key)
        return sorted(done)

    async def pools(self) -> list[str]:
        return sorted({row.pool for row in await self._sender.read(cql.POOLS)})

    async def count(self, pool: str) -> dict[str, int]:
        rows = await self._sender.read(cql.SCORES, (pool, self._all))
        now = await self._store.time()
        known = (row for row in rows if row.score is not None and row.score != REMOVED)
        return count_states((ItemState(row.key, row.score, ticket=row.ticket) for row in known), now)


def _kept(row: Any) -> ItemState:
    """Return the row as it is, with the text of its body; what was never written is None."""
    return ItemState._make([getattr(row, name) for name in ITEM])
