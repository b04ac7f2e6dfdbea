"""Pools for threads: a set of named items of which each worker takes any that is free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, Self, overload

from ..engine import lease_ops, pool_admin, validate
from ..engine.cancel_event import Cancel
from ..engine.lock_base import HoldingBase
from ..engine.pool_admin import PoolItem, body_text
from ..engine.pool_base import PoolBase
from ..engine.pool_counts import PoolCounts
from ..engine.pool_request import End, ItemBase, leave, timed_out
from ..engine.release import release
from ..engine.request import named
from ..engine.run_sync import run
from ..engine.validate import KEEP, Seconds
from ..engine.withdraw_request import withdraw
from ..rules.pools import Finish, Give, On, Remove
from . import acquire_release
from .acquire_release import get, surely
from .lease import Held
from .runtime import me


class Item(ItemBase, Held):
    """An acquired item, for as long as it is renewed. Any thread may use it. `with item:` releases it."""

    def update(self, body: Any) -> None:
        """Store this as its body, which outlives this process; it is renewed, too. Errors as of `renew`."""
        run(lease_ops.renew(self._session, self, body_text(body)))

    def release(self, body: Any = KEEP, after: Seconds = 0) -> None:
        """Release it, to the end of the free items; it is free after `after` seconds. A second call does nothing.

        LeaseLost if it had been lost. StoreError if the store cannot be reached: it may be called again, and the
        keeper keeps trying until the lease ends. The same holds for `done` and `delete`.
        """
        rest = int(validate.rest(after) * 1e6)
        _release_item(self, Give(self._grant.ticket, self.fence, rest, None if body is KEEP else body_text(body)))

    def done(self, body: Any = KEEP) -> None:
        """Mark it as done: it stays in the pool, and no worker acquires it again. NotHeld if it was released."""
        text = None if body is KEEP else body_text(body)
        _release_item(self, named(Finish, (self._grant.ticket, self.fence, text)))

    def delete(self) -> None:
        """Remove it from the pool. NotHeld if it was released."""
        _release_item(self, Remove(self._grant.ticket, self.fence))

    def __enter__(self) -> Self:
        self.ensure_held()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            self._ends_by(self._end_of_block(error), quiet=True)
            acquire_release.leave(self._session, self, error)
        except KeyboardInterrupt:
            surely(leave, self._session, self, error)
            raise


def _release_item(item: Item, end: End) -> None:
    try:
        if item._released or item._reason:
            item._ends_by(end)
        else:
            item._end = named(On, (item._key, end))
        acquire_release.give_back(item._session, item)
    except KeyboardInterrupt:
        item._ends_by(end, quiet=True)
        surely(release, item._session, item, quiet=True)
        raise


class Pool(PoolBase["ItemHolding"]):
    """A set of named items with a JSON body. Nothing is sent before it is used."""

    def add(self, key: str, body: Any = None) -> bool:
        """Add an item. Return False if the key exists, in any state: that item stays as it is."""
        return bool(run(pool_admin.add(self._session, self._request.name, [(key, body)])))

    def add_many(self, rows: Mapping[str, Any] | Iterable[str | tuple[str, Any]]) -> int:
        """Add many, in this order: a mapping from key to body, or keys, or pairs of both. Return how many were new.

        If one of them is bad, none is added. After a StoreError, repeat the call: existing items stay as they are.
        """
        return run(pool_admin.add(self._session, self._request.name, rows))

    def remove(self, key: str, *, force: bool = False) -> bool:
        """Remove an item. Return False if there is none. ConfigError if it is held; with force its holder loses it."""
        return run(pool_admin.remove(self._session, self._request.name, key, force))

    def items(self, state: str | None = None) -> list[PoolItem]:
        """Return the items of the pool by key: all of them, or those in this state: free, resting, taken, expired, done
        or damaged (it cannot be read)."""
        return run(pool_admin.items(self._session, self._request.name, state))

    def counts(self) -> PoolCounts:
        """Return the number of items in each state."""
        return run(pool_admin.counts(self._session, self._request.name))

    @overload
    def acquire(
        self, blocking: Literal[True] = True, timeout: None = None, *, key: str | None = None, renew: bool = True
    ) -> Item: ...

    @overload
    def acquire(
        self,
        blocking: bool = True,
        timeout: Seconds | None = None,
        *,
        key: str | None = None,
        renew: bool = True,
        cancel: Cancel | None = None,
    ) -> Item | None: ...

    def acquire(
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
        renew it. ConfigError if the one of this key is done. Ctrl-C leaves nothing behind. cancel: as for a lock.
        """
        request = self._request if key is None and renew is True else self._wanted(key, renew)
        plain = blocking is True and (timeout is None or (timeout == 0 and type(timeout) is int))
        limit: Any = timeout if plain else validate.blocking(blocking, timeout)
        return get(Item(self._session, request, me.token), limit, cancel)


class ItemHolding(HoldingBase):
    """One use of a pool as a context manager."""

    def __enter__(self) -> Item:
        session = self._made_by._session
        item: Item = self._begin(Item(session, self._request, me.token))
        item._done, item._back_off = self._finish, self._back_off
        try:
            if get(item, self._limit) is None:
                raise run(timed_out(session, item, self._limit or 0.0))
            return item
        except BaseException:
            surely(withdraw, session, item)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        item = self._hold
        try:  # as Item.__exit__, but not by a call of it: Ctrl-C could come before its first line
            item._ends_by(item._end_of_block(error), quiet=True)
            acquire_release.leave(item._session, item, error)
        except KeyboardInterrupt:
            surely(leave, item._session, item, error)
            raise


Pool._holding_type = ItemHolding
