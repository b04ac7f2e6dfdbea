"""Pools for tasks: a set of named items of which each worker takes any that is free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, cast, overload

from ..engine import cancel_event, pool_acquire, pool_admin, pool_release, pool_renewal, validate
from ..engine.cancel_event import Cancel
from ..engine.pickling import NotPickled
from ..engine.pool_acquire import BACK_OFF, PoolRequest, Seeker
from ..engine.pool_admin import PoolCounts, PoolItem, body_text
from ..engine.validate import KEEP, Seconds
from ..stores import deadline
from .lease import Held

if TYPE_CHECKING:
    from .client import Locks


class Item(Held):
    """An acquired item, for as long as it is renewed. Any task may use it. `async with item:` gives it back.

    If it is lost inside the block, the task that entered is cancelled there and LeaseLost raised in its place.
    """

    __slots__ = ("_back_off", "_done", "_text")
    _text: str
    _done: bool
    _back_off: float

    @property
    def _what(self) -> str:
        return f"{self.key!r} of {self.name!r}"

    @property
    def key(self) -> str:
        """The key of the item in its pool; `name` is the name of the pool."""
        return cast(str, self._grant.key)  # type: ignore[attr-defined]

    @property
    def body(self) -> Any:
        """The body as it was acquired, or as it was updated since. A new copy each time."""
        return pool_admin.body(self._text, self.name, self.key)

    async def renew(self) -> None:
        """Renew now, before the keeper does. LeaseLost if it was lost, StoreError if the store does not reply."""
        await pool_renewal.touch(self._session, self)

    async def extend(self, seconds: Seconds) -> None:
        """Let it last for at least this many seconds from now, even if this process never renews it again. It never
        becomes shorter. Errors as of `renew`."""
        await pool_renewal.extend(self._session, self, validate.lease(seconds))

    async def update(self, body: Any) -> None:
        """Store this as its body, which outlives this process; it is renewed, too. Errors as of `renew`."""
        await pool_renewal.touch(self._session, self, body_text(body))

    async def release(self, body: Any = KEEP, after: Seconds = 0) -> None:
        """Release it, to the end of the free items; it is free after `after` seconds. A second call does nothing.

        LeaseLost if it had been lost. StoreError if the store cannot be reached: it may be called again, and the
        keeper keeps trying until the lease ends. The same holds for `done` and `delete`.
        """
        text = None if body is KEEP else body_text(body)
        await self._session.runtime.shield(pool_release.give(self._session, self, validate.rest(after), text))

    async def done(self, body: Any = KEEP) -> None:
        """Mark it as done: it stays in the pool, and nobody acquires it again. NotHeld if it was released."""
        text = None if body is KEEP else body_text(body)
        await self._session.runtime.shield(pool_release.finish(self._session, self, text))

    async def delete(self) -> None:
        """Remove it from the pool. NotHeld if it was released."""
        await self._session.runtime.shield(pool_release.delete(self._session, self))

    async def _let_go(self, error: BaseException | None) -> None:
        await pool_release.leave(self._session, self, self._done, self._back_off, error)

    async def __aenter__(self) -> Self:
        self.ensure_held()
        self._watch()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self._leave(error)


class Pool(NotPickled):
    """A set of named items with a JSON body. Nothing is sent before it is used."""

    def __init__(self, locks: Locks, name: str, lease: float) -> None:
        self._locks = locks
        self._session = locks._session
        self._name = name
        self._lease = lease

    @property
    def name(self) -> str:
        return self._name

    async def add(self, key: str, body: Any = None) -> bool:
        """Add an item. Return False if the key exists, in any state: that item stays as it is."""
        return bool(await pool_admin.add(self._locks._here(), self._name, [(key, body)]))

    async def add_many(self, rows: Mapping[str, Any] | Iterable[str | tuple[str, Any]]) -> int:
        """Add many, in this order: a mapping from key to body, or keys, or pairs of both. Return how many were new.

        If one of them is bad, none is added. After a StoreError, repeat the call: existing items stay as they are.
        """
        return await pool_admin.add(self._locks._here(), self._name, rows)

    async def remove(self, key: str, *, force: bool = False) -> bool:
        """Remove an item. Return False if there is none. ConfigError if it is held; with force its holder loses it."""
        return await pool_admin.remove(self._locks._here(), self._name, key, force)

    async def items(self, state: str | None = None) -> list[PoolItem]:
        """Return the items of the pool by key: all of them, or those in this state: free, resting, taken, expired, done
        or damaged (it cannot be read)."""
        return await pool_admin.items(self._locks._here(), self._name, state)

    async def counts(self) -> PoolCounts:
        """Return the number of items in each state."""
        return await pool_admin.counts(self._locks._here(), self._name)

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
        return await self._get(self._seeker(key, renew), validate.blocking(blocking, timeout), cancel)

    def hold(
        self,
        *,
        finish: bool = False,
        timeout: Seconds | None = None,
        key: str | None = None,
        renew: bool = True,
        back_off: Seconds = BACK_OFF,
    ) -> ItemHolding:
        """Return a context manager for one use. It enters with an Item, or raises LockTimeout.

        A clean block finishes the item (finish=True) or releases it; one that raises releases it after `back_off`.
        """
        seeker = self._seeker(key, renew)
        return ItemHolding(self, seeker, validate.timeout(timeout), bool(finish), validate.rest(back_off))

    def _seeker(self, key: str | None, renew: bool) -> Seeker:
        wanted = validate.name(key, "A key") if key is not None else ""
        return Seeker(PoolRequest(self._name, self._lease, wanted, bool(renew)))

    async def _get(self, seeker: Seeker, limit: float | None, cancel: Cancel | None = None) -> Item | None:
        session = self._session
        self._locks._runtime.check_loop()
        seeker.who = session.runtime.current()
        before = None if limit is None else deadline.begin(limit)
        try:
            if cancel is not None:
                cancel_event.begin(session, seeker, cancel)
            until = limit if not limit else session.clock() + limit
            return cast("Item | None", await pool_acquire.seek(session, seeker, until))
        except BaseException:
            await session.runtime.shield(pool_acquire.undo(session, seeker))
            raise
        finally:
            if before is not None:
                deadline.end(before)
            if cancel is not None:
                cancel_event.end(session, seeker)

    def __repr__(self) -> str:
        return f"<fairlock.aio.Pool {self._name!r}>"


class ItemHolding(NotPickled):
    """One use of a pool as a context manager."""

    def __init__(self, pool: Pool, seeker: Seeker, limit: float | None, finish: bool, back_off: float) -> None:
        self._pool = pool
        self._seeker = seeker
        self._limit = limit
        self._finish = finish
        self._back_off = back_off

    async def __aenter__(self) -> Item:
        if self._seeker.ticket:
            raise RuntimeError("hold() is for one use; call it again for another.")
        session = self._pool._locks._here()
        try:
            item = await self._pool._get(self._seeker, self._limit)
            if item is None:
                raise await pool_acquire.timed_out(session, self._seeker, self._limit or 0.0)
            item._done, item._back_off = self._finish, self._back_off
            item._watch()
            return item
        except BaseException:
            await session.runtime.shield(pool_acquire.undo(session, self._seeker))
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        item = cast(Item, self._seeker.hold)
        await item._leave(error)
