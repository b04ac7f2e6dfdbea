"""Items that a client takes by reading one that is due and writing it back: what stores share that do so.

A store that finds and takes an item by one statement, as PostgreSQL does, needs none of this.
"""

from ..rules.pools import Take, Taken, apply
from .base import ItemSnapshot, ItemStore, OutcomeUnknown, Store

TRIES = 400  # more in a row than any real crowd causes
DOUBTS = 3


class SwappedItems(ItemStore):
    _store: Store

    async def _has_waiters(self, queue: str) -> bool:
        """Return True if others wait in this queue: a newcomer must not take an item before them. '': do not ask."""
        if not queue:
            return False
        seen = await self._store.read(queue)
        return seen.row is not None and seen.row.score > 0

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
