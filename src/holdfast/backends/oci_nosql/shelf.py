"""Items of pools as rows of the same table; fence, ticket and lease are in the body, for the table has no column.

What is due is found by a query, which shows no etag: whoever takes one reads it first. With an index on the score the
query gives the lowest sixteen; without one it cannot sort, and all that is due comes over the wire to be sorted here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ConfigError
from ...pool import Add, Take, apply
from ...pool.wire import encode_item
from ..contract import Seen, Unknown
from ..item_rows import CANDIDATES, Rows
from ..names import SEPARATOR
from ..polling import LONGEST
from ..pool_contract import SeenItem
from .table import Kept

if TYPE_CHECKING:
    from .store import OciStore

DUE = (
    "DECLARE $low STRING; $high STRING; $from LONG; $to LONG; SELECT t.key, t.score, t.owner, t.body FROM {table} t "
    "WHERE t.key >= $low AND t.key < $high AND t.score >= $from AND t.score <= $to"
)
SORTED = DUE + f" ORDER BY t.score LIMIT {CANDIDATES}"


class OciShelf(Rows):
    def __init__(self, store: OciStore) -> None:
        self._store: OciStore = store

    async def due_in(self, line: str, key: str) -> float:
        """In how many seconds there is something to be had in the pool of this line; with a key: when that is."""
        sample = self._store.now()
        now = sample[0] if sample is not None else await self._store.clock.ask()
        if key:
            value = (await self._store.table.get(line + SEPARATOR + key)).value
            scores = [int(value["score"])] if value is not None else []
        else:
            scores = [row.score for row in await self._found(line + SEPARATOR, 0, now + int(LONGEST * 1e6))]
        return min([(score - now) / 1e6 for score in scores if score >= 0], default=LONGEST)

    async def _due(self, pool: str, low: int, high: int) -> list[SeenItem]:
        at = self._store.table.colour.clock()
        found = await self._found(self._prefix(pool), low, high)
        sample = self._store.now()
        now = sample[0] if sample is not None else await self._store.clock.ask()
        return [self._item(pool, Seen(row, None, now, at)) for row in found]

    async def _found(self, prefix: str, low: int, high: int) -> list[Any]:
        from .store import END, _row

        table = self._store.table
        span = {"$low": prefix, "$high": prefix + END, "$from": low, "$to": high}
        rows = None
        if self._store.sorts:
            try:
                rows = await table.query(SORTED, span, most=CANDIDATES)
            except ConfigError:
                self._store.sorts = False  # there is no index on the score
        if rows is None:
            rows = await table.query(DUE, span)
            rows.sort(key=lambda value: int(value["score"]))
        return [_row(value["key"], value) for value in rows[:CANDIDATES]]

    async def _take(self, pool: str, one: SeenItem, take: Take) -> SeenItem | None:
        assert one.item is not None
        seen = await self.get(pool, one.item.key)
        return await super()._take(pool, seen, take) if seen.item is not None else None

    async def add(self, pool: str, rows: Sequence[tuple[str, str]], first: int = 0) -> int:
        new = 0
        sample = self._store.now()
        asked = sample[0] if sample is not None else await self._store.clock.ask()
        now = max(asked, self._store.added + 1)  # by what is guessed it may be a little earlier
        self._store.added = now + first + len(rows)
        for key, body in rows:
            item, _ = apply(None, Add(body, first + new), now, key)
            assert item is not None
            value = {"key": self._prefix(pool) + key, "score": item.score, "owner": "",
                     "body": json.loads(encode_item(item))}  # fmt: skip
            new += await self._added(value)
        return new

    async def _added(self, value: dict[str, Any]) -> bool:
        try:
            return isinstance(await self._store.table.put(value, None), str)
        except Unknown:
            # Whoever finds it there now may have put it there by the lost request: then it is new, as far as he knows.
            done = await self._store.table.put(value, None)
            there = done.value if isinstance(done, Kept) and done.value is not None else {}
            return isinstance(done, str) or there.get("score") == value["score"]
