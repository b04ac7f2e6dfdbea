"""Pools for tasks: a set of named items of which each worker takes any that is free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, Self, overload

from ..engine import cancel_event, lease_ops, pool_admin, validate, with_block
from ..engine.cancel_event import Cancel
from ..engine.lock_base import HoldingBase
from ..engine.pool_admin import PoolItem, body_text
from ..engine.pool_base import PoolBase
from ..engine.pool_counts import PoolCounts
from ..engine.pool_request import ItemBase, timed_out
from ..engine.release import briefly
from ..engine.validate import KEEP, Seconds
from ..engine.withdraw_request import withdraw
from ..rules.pools import Finish, Give, Remove
from ..stores import deadline
from .lease import Held


class Item(ItemBase, Held):
    """An acquired item, for as long as it is renewed. Any task may use it. `async with item:` gives it back.

    If it is lost inside the block, the task that entered is cancelled there and LeaseLost raised in its place.
    """

    async def update(self, body: Any) -> None:
        """Store this as its body, which outlives this process; it is renewed, too. Errors as of `renew`."""
        await lease_ops.renew(self._session, self, body_text(body))

    async def release(self, body: Any = KEEP, after: Seconds = 0) -> None:
        """Release it, to the end of the free items; it is free after `after` seconds. A second call does nothing.

        LeaseLost if it had been lost. StoreError if the store cannot be reached: it may be called again, and the
        keeper keeps trying until the lease ends. The same holds for `done` and `delete`.
        """
        text = None if body is KEEP else body_text(body)
        self._ends_by(Give(self._grant.ticket, self.fence, int(validate.rest(after) * 1e6), text))
        await self._give_back(False)

    async def done(self, body: Any = KEEP) -> None:
        """Mark it as done: it stays in the pool, and no worker acquires it again. NotHeld if it was released."""
        self._ends_by(Finish(self._grant.ticket, self.fence, None if body is KEEP else body_text(body)))
        await self._give_back(False)

    async def delete(self) -> None:
        """Remove it from the pool. NotHeld if it was released."""
        self._ends_by(Remove(self._grant.ticket, self.fence))
        await self._give_back(False)

    def _ends(self, error: BaseException | None) -> None:
        self._ends_by(self._end_of_block(error), quiet=True)

    async def __aenter__(self) -> Self:
        self.ensure_held()
        self._watch()
        return self


class Pool(PoolBase["ItemHolding"]):
    """A set of named items with a JSON body. Nothing is sent before it is used."""

    async def add(self, key: str, body: Any = None) -> bool:
        """Add an item. Return False if the key exists, in any state: that item stays as it is."""
        return bool(await pool_admin.add(self._locks._here(), self._request.name, [(key, body)]))

    async def add_many(self, rows: Mapping[str, Any] | Iterable[str | tuple[str, Any]]) -> int:
        """Add many, in this order: a mapping from key to body, or keys, or pairs of both. Return how many were new.

        If one of them is bad, none is added. After a StoreError, repeat the call: existing items stay as they are.
        """
        return await pool_admin.add(self._locks._here(), self._request.name, rows)

    async def remove(self, key: str, *, force: bool = False) -> bool:
        """Remove an item. Return False if there is none. ConfigError if it is held; with force its holder loses it."""
        return await pool_admin.remove(self._locks._here(), self._request.name, key, force)

    async def items(self, state: str | None = None) -> list[PoolItem]:
        """Return the items of the pool by key: all of them, or those in this state: free, resting, taken, expired, done
        or damaged (it cannot be read)."""
        return await pool_admin.items(self._locks._here(), self._request.name, state)

    async def counts(self) -> PoolCounts:
        """Return the number of items in each state."""
        return await pool_admin.counts(self._locks._here(), self._request.name)

    @overload
    async def acquire(
        self, blocking: Literal[True] = True, timeout: None = None, *, key: str | None = None, renew: bool = True
    ) -> Item: ...

    @overload
    async def acquire(
        self,
        blocking: bool = True,
        timeout: Seconds | None = None,
        *,
        key: str | None = None,
        renew: bool = True,
        cancel: Cancel | None = None,
    ) -> Item | None: ...

    async def acquire(
        self,
        blocking: bool = True,
        timeout: Seconds | None = None,
        *,
        key: str | None = None,
        renew: bool = True,
        cancel: Cancel | None = None,
    ) -> Item | None:
        """Return any free item, or the one of this key; None if there was none in time. First come, first served.

        None or -1 = wait forever, 0 or blocking=False = only try. renew=False: it is held for one lease, unless you
        renew it. ConfigError if the one of this key is done. Cancellation leaves nothing behind. cancel: as for a lock.
        """
        item = Item(self._session, self._wanted(key, renew), self._session.runtime.current())
        return await self._get(item, validate.blocking(blocking, timeout), cancel)

    async def _get(self, item: Item, limit: float | None, cancel: Cancel | None = None) -> Item | None:
        session = self._locks._here()
        before = None if limit is None else deadline.begin(limit)
        try:
            if cancel is not None:
                cancel_event.begin(session, item, cancel)
            return item if await with_block.get(session, item, limit) else None
        except BaseException:
            await session.runtime.shield(briefly(withdraw(session, item)))
            raise
        finally:
            if before is not None:
                deadline.end(before)
            if cancel is not None:
                cancel_event.end(session, item)


class ItemHolding(HoldingBase):
    """One use of a pool as a context manager."""

    async def __aenter__(self) -> Item:
        session = self._made_by._locks._here()
        item: Item = self._begin(Item(session, self._request, session.runtime.current()))
        item._done, item._back_off = self._finish, self._back_off
        try:
            if await self._made_by._get(item, self._limit) is None:
                raise await timed_out(session, item, self._limit or 0.0)
            item._watch()
            return item
        except BaseException:
            await session.runtime.shield(briefly(withdraw(session, item)))
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self._hold._leave(error)


Pool._holding_type = ItemHolding
