"""Pools for threads: a set of named items of which each worker takes any that is free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, cast, overload

from ..backends import patience
from ..flow import call_off, check, item_renewal, let_go, pool, shelf, short_item
from ..flow.acquire import named
from ..flow.call_off import Cancel
from ..flow.check import KEEP, Seconds
from ..flow.pickling import NotPickled
from ..flow.pool import BACK_OFF, Seeker, Want
from ..flow.run import run
from ..flow.seat import Hold
from ..flow.shelf import PoolCounts, PoolItem, body_text
from ..pool import Finish, Give, Remove
from .colour import me
from .lease import surely

if TYPE_CHECKING:
    from ..flow.desk import Desk
    from .locks import Locks


class Item(Hold):
    """An item that is yours, for as long as it is renewed. Any thread may use it. `with item:` gives it back."""

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

    def renew(self) -> None:
        """Renew now instead of when the keeper would. LeaseLost if it is gone, BackendError if nobody answers."""
        run(item_renewal.touch(self._desk, self))

    def extend(self, seconds: Seconds) -> None:
        """Let it last for at least so many seconds from now, even if this process never renews it again. It never
        becomes shorter. Errors as of `renew`."""
        run(item_renewal.extend(self._desk, self, check.lease(seconds)))

    def update(self, body: Any) -> None:
        """Keep this as its body, whatever becomes of you; renews it, too. Errors as of `renew`."""
        run(item_renewal.touch(self._desk, self, body_text(body)))

    def release(self, body: Any = KEEP, after: Seconds = 0) -> None:
        """Give it back, behind everything that waits; nobody has it before `after` seconds. A second time: nothing.

        LeaseLost if it had been lost. BackendError if the store cannot be told: it may be called again, and the
        keeper goes on trying until the lease ends. The same holds for `done` and `delete`.
        """
        rest = int(check.rest(after) * 1e6)
        _let_go(self, named(Give, (self._seat.ticket, self.fence, rest, None if body is KEEP else body_text(body))))

    def done(self, body: Any = KEEP) -> None:
        """It is finished: it stays in the pool as done, and nobody gets it again. NotHeld if it was given back."""
        _let_go(self, named(Finish, (self._seat.ticket, self.fence, None if body is KEEP else body_text(body))))

    def delete(self) -> None:
        """Remove it from the pool. NotHeld if it was given back."""
        _let_go(self, Remove(self._seat.ticket, self.fence))

    def __enter__(self) -> Self:
        self.ensure_held()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        desk = self._desk
        try:
            if error is None:
                ticket, fence = self._seat.ticket, self.fence
                end = named(Finish, (ticket, fence, None)) if self._done else named(Give, (ticket, fence, 0, None))
                if short_item.let_go(desk, self, end) and not self._reason:
                    return
            run(let_go.leave(desk, self, self._done, self._back_off, error))
        except KeyboardInterrupt:
            _leave_surely(self, error)
            raise


def _let_go(item: Item, command: Finish | Give | Remove) -> None:
    desk = item._desk
    try:
        if not short_item.let_go(desk, item, command):
            run(let_go.let_go(desk, item, command))
    except KeyboardInterrupt:
        _let_go_surely(item, command)
        raise


# Not written where they are needed: a function with a lambda in it is dearer from its first line on.


def _let_go_surely(item: Item, command: Finish | Give | Remove) -> None:
    surely(lambda: run(let_go.let_go(item._desk, item, command, quiet=True)))


def _leave_surely(item: Item, error: BaseException | None) -> None:
    surely(lambda: run(let_go.leave(item._desk, item, item._done, item._back_off, error)))


def _withdraw_surely(desk: Desk, seeker: Seeker) -> None:
    surely(lambda: run(pool.withdraw(desk, seeker)))


class Pool(NotPickled):
    """A set of named items with a JSON body. Nothing is sent before it is used."""

    def __init__(self, locks: Locks, name: str, lease: float) -> None:
        self._desk = locks._desk
        self._name = name
        self._lease = lease
        self._any = Want(name, lease)

    @property
    def name(self) -> str:
        return self._name

    def add(self, key: str, body: Any = None) -> bool:
        """Add an item; False if there is one of that key, in whatever state: it stays as it is."""
        return bool(run(shelf.add(self._desk, self._name, [(key, body)])))

    def add_many(self, rows: Mapping[str, Any] | Iterable[str | tuple[str, Any]]) -> int:
        """Add many, in this order: a mapping from key to body, or keys, or pairs of both. How many were new.

        If one of them is bad, none is added. After a BackendError, say it again: what there is stays as it is.
        """
        return run(shelf.add(self._desk, self._name, rows))

    def remove(self, key: str, *, force: bool = False) -> bool:
        """Remove an item; False if there is none. ConfigError if somebody has it, unless by force: then he loses it."""
        return run(shelf.remove(self._desk, self._name, key, force))

    def items(self, state: str | None = None) -> list[PoolItem]:
        """What is in the pool, by key: all of it, or what is free, resting, taken, expired, done or
        damaged: then it cannot be read."""
        return run(shelf.items(self._desk, self._name, state))

    def counts(self) -> PoolCounts:
        """How many items there are of each state."""
        return run(shelf.counts(self._desk, self._name))

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
        """Any item that can be had, or the one of this key; None if there was none in time. First come, first served.

        None or -1 = wait for ever, 0 or blocking=False = try. renew=False: it is yours for one lease, unless you renew
        it. ConfigError if the one of this key is done. Ctrl-C leaves nothing behind. cancel: as for a lock.
        """
        seeker = Seeker(self._any) if key is None and renew is True else self._seeker(key, renew)
        plain = blocking is True and (timeout is None or (type(timeout) is int and timeout == 0))
        limit: Any = timeout if plain else check.blocking(blocking, timeout)
        return self._get(seeker, limit, cancel)

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
        if key is None and renew:
            return Seeker(self._any)
        return Seeker(Want(self._name, self._lease, check.name(key, "A key") if key is not None else "", bool(renew)))

    def _get(self, seeker: Seeker, limit: float | None, cancel: Cancel | None = None) -> Item | None:
        desk = self._desk
        seeker.who = me.token
        try:
            if limit is not None:
                patience.begin(limit)
            if cancel is not None:
                call_off.begin(desk, seeker, cancel)
            item = short_item.take(desk, seeker, limit == 0)
            if item is None:
                item = run(pool.seek(desk, seeker, limit if not limit else desk.clock() + limit))
            if limit is not None:
                patience.end()
            if cancel is not None:
                call_off.end(desk, seeker)
            return item  # type: ignore[return-value]
        except BaseException:
            _withdraw_surely(desk, seeker)
            patience.end()
            call_off.end(desk, seeker)
            raise

    def __repr__(self) -> str:
        return f"<holdfast.Pool {self._name!r}>"


class ItemHolding(NotPickled):
    """One use of a pool as a context manager."""

    def __init__(self, pool: Pool, seeker: Seeker, limit: float | None, finish: bool, back_off: float) -> None:
        self._pool = pool
        self._seeker = seeker
        self._limit = limit
        self._finish = finish
        self._back_off = back_off

    def __enter__(self) -> Item:
        if self._seeker.ticket:
            raise RuntimeError("hold() is for one use; call it again for another.")
        desk = self._pool._desk
        try:
            item = self._pool._get(self._seeker, self._limit)
            if item is None:
                raise run(pool.timed_out(desk, self._seeker, self._limit or 0.0))
            item._done, item._back_off = self._finish, self._back_off
            return item
        except BaseException:
            _withdraw_surely(desk, self._seeker)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        item = cast(Item, self._seeker.hold)
        item.__exit__(kind, error, tb)
