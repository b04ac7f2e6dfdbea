"""Items that a client adds one by one, and takes by reading one and writing it back: what stores share that do so.

A store that finds and takes an item by one statement, as PostgreSQL does, needs none of this.
"""

from abc import abstractmethod
from collections.abc import Sequence

from ..rules.pools import Add, ItemState, Take, Taken, apply
from .base import ItemSnapshot, ItemStore, OutcomeUnknown, Store

TRIES = 400  # more in a row than any real crowd causes
DOUBTS = 3


class SwappedItems(ItemStore):
    _store: Store
    _added = 0  # the time of the last item added

    @abstractmethod
    async def _now(self, pool: str) -> int:
        """Return the store's time, by what is known of it if possible."""

    async def add(self, pool: str, rows: Sequence[tuple[str, str]], first: int = 0) -> int:
        new = 0
        now = max(await self._now(pool), self._added + 1)  # by what is guessed it may be a little earlier
        self._added = now + first + len(rows)
        for key, body in rows:
            item, _ = apply(None, Add(body, first + new), now, key)
            assert item is not None
            new += await self._add(pool, item)
        return new

    @abstractmethod
    async def _add(self, pool: str, item: ItemState) -> bool:
        """Add this item unless its key exists; return whether it is new."""

    async def take(self, pool: str, take: Take, queue: str) -> ItemSnapshot | None:
        waiting = (await self._store.read(queue)).row if queue else None
        if waiting is not None and waiting.score > 0:  # a newcomer must not take an item before others
            return None
        for lost in range(TRIES):
            one = await self._candidate(pool, queue, lost)
            if one is None:
                return None
            took = await self._take(pool, one, take)
            if took is not None:
                return took
        return None

    @abstractmethod
    async def _candidate(self, pool: str, queue: str, lost: int) -> ItemSnapshot | None:
        """Find an item to take: what has been due for longest. But of two newcomers (there is a `queue`) that try the
        same one, one fails: one that has `lost` a race may take any that is due."""

    async def _take(self, pool: str, one: ItemSnapshot, take: Take) -> ItemSnapshot | None:
        """Take this item; None if another client was faster. After an unknown outcome take the same one again and no
        other: the lost write might still arrive, and the worker would have two."""
        doubts = 0
        while one.item is not None:
            item, reply = apply(one.item, take, one.now)
            if not isinstance(reply, Taken):
                return None
            if item == one.item:
                return one
            try:
                if await self.put(pool, one.item.key, item, one):
                    return ItemSnapshot(item, None, one.now, one.at)
                if not doubts:
                    return None
            except OutcomeUnknown:
                doubts += 1
                if doubts > DOUBTS:
                    raise
            one = await self.get(pool, one.item.key, True)
        return None
