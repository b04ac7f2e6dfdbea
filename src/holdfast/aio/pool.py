"""Pools for tasks: a set of named items of which each worker takes any that is free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, cast, overload

from ..backends import patience
from ..flow import call_off, check, item_renewal, let_go, pool, shelf
from ..flow.call_off import Cancel
from ..flow.check import KEEP, Seconds
from ..flow.pickling import NotPickled
from ..flow.pool import BACK_OFF, Seeker, Want
from ..flow.shelf import PoolCounts, PoolItem, body_text
from .lease import Held

if TYPE_CHECKING:
    from .locks import Locks


class Item(Held):
    """An item that is yours, for as long as it is renewed. Any task may use it. `async with item:` gives it back.

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
        """What it is called in its pool, whose name is `name`."""
        return cast(str, self._seat.key)  # type: ignore[attr-defined]

    @property
    def body(self) -> Any:
        """Its body: as it was taken, or as you have updated it since. A copy each time."""
        return shelf.body(self._text, self.name, self.key)

    async def renew(self) -> None:
        """Renew now instead of when the keeper would. LeaseLost if it is gone, BackendError if nobody answers."""
        await item_renewal.touch(self._desk, self)

    async def extend(self, seconds: Seconds) -> None:
        """Let it last for at least so many seconds from now, even if this process never renews it again. It never
        becomes shorter. Errors as of `renew`."""
        await item_renewal.extend(self._desk, self, check.lease(seconds))

    async def update(self, body: Any) -> None:
        """Keep this as its body, whatever becomes of you; renews it, too. Errors as of `renew`."""
        await item_renewal.touch(self._desk, self, body_text(body))

    async def release(self, body: Any = KEEP, after: Seconds = 0) -> None:
        """Give it back, behind everything that waits; nobody has it before `after` seconds. A second time: nothing.

        LeaseLost if it had been lost. BackendError if the store cannot be told: it may be called again, and the
        keeper goes on trying until the lease ends. The same holds for `done` and `delete`.
        """
        text = None if body is KEEP else body_text(body)
        await self._desk.colour.shield(let_go.give(self._desk, self, check.rest(after), text))

    async def done(self, body: Any = KEEP) -> None:
        """It is finished: it stays in the pool as done, and nobody gets it again. NotHeld if it was given back."""
        text = None if body is KEEP else body_text(body)
        await self._desk.colour.shield(let_go.finish(self._desk, self, text))

    async def delete(self) -> None:
        """Remove it from the pool. NotHeld if it was given back."""
        await self._desk.colour.shield(let_go.delete(self._desk, self))

    async def _let_go(self, error: BaseException | None) -> None:
        await let_go.leave(self._desk, self, self._done, self._back_off, error)

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
        self._desk = locks._desk
        self._name = name
        self._lease = lease

    @property
    def name(self) -> str:
        return self._name

    async def add(self, key: str, body: Any = None) -> bool:
        """Add an item; False if there is one of that key, in whatever state: it stays as it is."""
        return bool(await shelf.add(self._locks._here(), self._name, [(key, body)]))

    async def add_many(self, rows: Mapping[str, Any] | Iterable[str | tuple[str, Any]]) -> int:
        """Add many, in this order: a mapping from key to body, or keys, or pairs of both. How many were new.

        If one of them is bad, none is added. After a BackendError, say it again: what there is stays as it is.
        """
        return await shelf.add(self._locks._here(), self._name, rows)

    async def remove(self, key: str, *, force: bool = False) -> bool:
        """Remove an item; False if there is none. ConfigError if somebody has it, unless by force: then he loses it."""
        return await shelf.remove(self._locks._here(), self._name, key, force)

    async def items(self, state: str | None = None) -> list[PoolItem]:
        """What is in the pool, by key: all of it, or what is free, resting, taken, expired, done or
        damaged: then it cannot be read."""
        return await shelf.items(self._locks._here(), self._name, state)

    async def counts(self) -> PoolCounts:
        """How many items there are of each state."""
        return await shelf.counts(self._locks._here(), self._name)

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
        """Any item that can be had, or the one of this key; None if there was none in time. First come, first served.

        None or -1 = wait for ever, 0 or blocking=False = try. renew=False: it is yours for one lease, unless you renew
        it. ConfigError if the one of this key is done. Cancellation leaves nothing behind. cancel: as for a lock.
        """
        return await self._get(self._seeker(key, renew), check.blocking(blocking, timeout), cancel)

    def hold(
        self,
        *,
        finish: bool = False,
        timeout: Seconds | None = None,
        key: str | None = None,
        renew: bool = True,
        back_off: Seconds = BACK_OFF,
    ) -> ItemHolding:
        """A context manager for one use: enters with an Item, or LockTimeout.

        A clean body finishes it (finish=True) or gives it back; one that raises gives it back for after `back_off`.
        """
        seeker = self._seeker(key, renew)
        return ItemHolding(self, seeker, check.timeout(timeout), bool(finish), check.rest(back_off))

    def _seeker(self, key: str | None, renew: bool) -> Seeker:
        return Seeker(Want(self._name, self._lease, check.name(key, "A key") if key is not None else "", bool(renew)))

    async def _get(self, seeker: Seeker, limit: float | None, cancel: Cancel | None = None) -> Item | None:
        desk = self._desk
        self._locks._colour.check_loop()
        seeker.who = desk.colour.current()
        before = None if limit is None else patience.begin(limit)
        try:
            if cancel is not None:
                call_off.begin(desk, seeker, cancel)
            return cast("Item | None", await pool.seek(desk, seeker, limit if not limit else desk.clock() + limit))
        except BaseException:
            await desk.colour.shield(pool.withdraw(desk, seeker))
            raise
        finally:
            if before is not None:
                patience.end(before)
            if cancel is not None:
                call_off.end(desk, seeker)

    def __repr__(self) -> str:
        return f"<holdfast.aio.Pool {self._name!r}>"


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
        desk = self._pool._locks._here()
        try:
            item = await self._pool._get(self._seeker, self._limit)
            if item is None:
                raise await pool.timed_out(desk, self._seeker, self._limit or 0.0)
            item._done, item._back_off = self._finish, self._back_off
            item._watch()
            return item
        except BaseException:
            await desk.colour.shield(pool.withdraw(desk, self._seeker))
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        item = cast(Item, self._seeker.hold)
        await item._leave(error)
