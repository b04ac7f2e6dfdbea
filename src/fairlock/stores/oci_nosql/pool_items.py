"""Items of pools as rows of the same table; fence, ticket and lease are in the body, because the table has no column.

What is due is found by a query, which shows no etag: a client that takes an item reads it first. No query of the
service sorts, with or without an index. So all that is due comes over the wire and is sorted here; for a while a worker
then takes what it knows to be next, as long as no other worker is quicker.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from ...rules.pools import ItemState, Take
from ..base import ItemSnapshot, OutcomeUnknown, Row, RowSnapshot
from ..keys import SEPARATOR, queue_key
from ..polling import LONGEST
from ..pool_items_as_rows import CANDIDATES, Rows
from .row_format import ALL, from_value, key_range, to_value
from .table_requests import Kept

if TYPE_CHECKING:
    from .store import OciStore

DUE = (
    "DECLARE $low STRING; $high STRING; $since LONG; $until LONG; " + ALL + " "
    "WHERE t.key >= $low AND t.key < $high AND t.score >= $since AND t.score <= $until"
)
KNOWN = 2.0  # seconds for which a worker knows what comes next
POOLS = 64  # pools


class OciItemStore(Rows):
    _store: OciStore

    def __init__(self, store: OciStore) -> None:
        super().__init__(store)
        self._ahead: dict[str, tuple[float, list[ItemSnapshot]]] = {}  # by pool: until when; what is due, oldest first

    async def due_in(self, pool: str, key: str) -> float:
        """Return in how many seconds an item of this pool is due; with a key: when that item is."""
        now, queue = await self._now(pool), queue_key(pool)
        if key:
            row, _ = await self._store._get(queue + SEPARATOR + key)
            scores = [row.score] if row is not None else []
        else:
            scores = [row.score for row in await self._found(queue + SEPARATOR, 0, now + int(LONGEST * 1e6))]
        return min([(score - now) / 1e6 for score in scores if score >= 0], default=LONGEST)

    async def _now(self, pool: str) -> int:
        sample = self._store.now()
        return sample[0] if sample is not None else await self._store.clock.call()

    async def _due(self, pool: str, low: int, high: int) -> list[ItemSnapshot]:
        clock = self._store.table.runtime.clock
        until, known = self._ahead.get(pool, (0.0, []))
        if not low and known and clock() < until:
            return known[:CANDIDATES]
        at = clock()
        rows = await self._found(self._prefix(pool), low, high)
        now = await self._now(pool)
        found = self._sound(pool, [RowSnapshot(row, None, now, at) for row in rows])
        if low:
            return found
        # New items come before all others, in the order of their adding: nothing that is added later precedes them.
        new = list(takewhile(lambda seen: seen.item is not None and not seen.item.fence, found))
        if len(self._ahead) >= POOLS:
            self._ahead.clear()
        self._ahead[pool] = at + KNOWN, new
        return found[:CANDIDATES]

    async def _found(self, prefix: str, low: int, high: int) -> list[Row]:
        """Return the rows of the pool that are due in this time, oldest first."""
        first, last = key_range(prefix)
        between = {"$low": first, "$high": last, "$since": low, "$until": high}
        rows = [from_value(value) for value in await self._store.table.query(DUE, between)]
        return sorted(rows, key=lambda row: (row.score, row.key))

    async def _take(self, pool: str, one: ItemSnapshot, take: Take) -> ItemSnapshot | None:
        assert one.item is not None
        key = one.item.key
        until, known = self._ahead.pop(pool, (0.0, []))
        seen = await self.get(pool, key)
        took = await super()._take(pool, seen, take) if seen.item is not None else None
        if took is not None:  # otherwise others are at work here, and what is known is of no use
            self._ahead[pool] = until, [each for each in known if each.item is not None and each.item.key != key]
        return took

    async def _add(self, pool: str, item: ItemState) -> bool:
        value = to_value(self._row(pool, item))
        try:
            return isinstance(await self._store.table.put(value, None), str)
        except OutcomeUnknown:
            # If it is there now, the request whose reply was lost may have put it there: then it counts as new.
            done = await self._store.table.put(value, None)
            there = done.value if isinstance(done, Kept) and done.value is not None else {}
            return isinstance(done, str) or there.get("score") == value["score"]
