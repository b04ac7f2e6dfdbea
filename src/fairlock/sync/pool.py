"""Pools for threads: a set of named items of which each worker takes any that is free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, cast, overload

from ..engine import cancel_event, fast_item, pool_acquire, pool_admin, pool_release, pool_renewal, validate
from ..engine.acquire import named
from ..engine.cancel_event import Cancel
from ..engine.grant import LeaseBase
from ..engine.pickling import NotPickled
from ..engine.pool_acquire import BACK_OFF, PoolRequest, Seeker
from ..engine.pool_admin import PoolCounts, PoolItem, body_text
from ..engine.run_sync import run
from ..engine.validate import KEEP, Seconds
from ..rules.pools import Finish, Give, Remove
from ..stores import deadline
from .lease import surely
from .runtime import me

if TYPE_CHECKING:
    from ..engine.session import Session
    from .client import Locks


class Item(LeaseBase):
    """An acquired item, for as long as it is renewed. Any thread may use it. `with item:` releases it."""

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

    def renew(self) -> None:
        """Renew now, before the keeper does. LeaseLost if it was lost, StoreError if the store does not reply."""
        run(pool_renewal.touch(self._session, self))

    def extend(self, seconds: Seconds) -> None:
        """Let it last for at least this many seconds from now, even if this process never renews it again. It never
        becomes shorter. Errors as of `renew`."""
        run(pool_renewal.extend(self._session, self, validate.lease(seconds)))

    def update(self, body: Any) -> None:
        """Store this as its body, which outlives this process; it is renewed, too. Errors as of `renew`."""
        run(pool_renewal.touch(self._session, self, body_text(body)))

    def release(self, body: Any = KEEP, after: Seconds = 0) -> None:
        """Release it, to the end of the free items; it is free after `after` seconds. A second call does nothing.

        LeaseLost if it had been lost. StoreError if the store cannot be reached: it may be called again, and the
        keeper keeps trying until the lease ends. The same holds for `done` and `delete`.
        """
        rest = int(validate.rest(after) * 1e6)
        _let_go(self, named(Give, (self._grant.ticket, self.fence, rest, None if body is KEEP else body_text(body))))

    def done(self, body: Any = KEEP) -> None:
        """Mark it as done: it stays in the pool, and nobody acquires it again. NotHeld if it was released."""
        _let_go(self, named(Finish, (self._grant.ticket, self.fence, None if body is KEEP else body_text(body))))

    def delete(self) -> None:
        """Remove it from the pool. NotHeld if it was released."""
        _let_go(self, Remove(self._grant.ticket, self.fence))

    def __enter__(self) -> Self:
        self.ensure_held()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        session = self._session
        try:
            if error is None:
                ticket, fence = self._grant.ticket, self.fence
                end = named(Finish, (ticket, fence, None)) if self._done else named(Give, (ticket, fence, 0, None))
                if fast_item.let_go(session, self, end) and not self._reason:
                    return
            run(pool_release.leave(session, self, self._done, self._back_off, error))
        except KeyboardInterrupt:
            _leave_surely(self, error)
            raise


def _let_go(item: Item, command: Finish | Give | Remove) -> None:
    session = item._session
    try:
        if not fast_item.let_go(session, item, command):
            run(pool_release.let_go(session, item, command))
    except KeyboardInterrupt:
        _let_go_surely(item, command)
        raise


# Not written where they are needed: a function with a lambda in it is dearer from its first line on.


def _let_go_surely(item: Item, command: Finish | Give | Remove) -> None:
    surely(lambda: run(pool_release.let_go(item._session, item, command, quiet=True)))


def _leave_surely(item: Item, error: BaseException | None) -> None:
    surely(lambda: run(pool_release.leave(item._session, item, item._done, item._back_off, error)))


def _withdraw_surely(session: Session, seeker: Seeker) -> None:
    surely(lambda: run(pool_acquire.undo(session, seeker)))


class Pool(NotPickled):
    """A set of named items with a JSON body. Nothing is sent before it is used."""

    def __init__(self, locks: Locks, name: str, lease: float) -> None:
        self._session = locks._session
        self._name = name
        self._lease = lease
        self._any = PoolRequest(name, lease)

    @property
    def name(self) -> str:
        return self._name

    def add(self, key: str, body: Any = None) -> bool:
        """Add an item. Return False if the key exists, in any state: that item stays as it is."""
        return bool(run(pool_admin.add(self._session, self._name, [(key, body)])))

    def add_many(self, rows: Mapping[str, Any] | Iterable[str | tuple[str, Any]]) -> int:
        """Add many, in this order: a mapping from key to body, or keys, or pairs of both. Return how many were new.

        If one of them is bad, none is added. After a StoreError, repeat the call: existing items stay as they are.
        """
        return run(pool_admin.add(self._session, self._name, rows))

    def remove(self, key: str, *, force: bool = False) -> bool:
        """Remove an item. Return False if there is none. ConfigError if it is held; with force its holder loses it."""
        return run(pool_admin.remove(self._session, self._name, key, force))

    def items(self, state: str | None = None) -> list[PoolItem]:
        """Return the items of the pool by key: all of them, or those in this state: free, resting, taken, expired, done
        or damaged (it cannot be read)."""
        return run(pool_admin.items(self._session, self._name, state))

    def counts(self) -> PoolCounts:
        """Return the number of items in each state."""
        return run(pool_admin.counts(self._session, self._name))

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
        seeker = Seeker(self._any) if key is None and renew is True else self._seeker(key, renew)
        plain = blocking is True and (timeout is None or (type(timeout) is int and timeout == 0))
        limit: Any = timeout if plain else validate.blocking(blocking, timeout)
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
        """Return a context manager for one use. It enters with an Item, or raises LockTimeout.

        A clean block finishes the item (finish=True) or releases it; one that raises releases it after `back_off`.
        """
        seeker = self._seeker(key, renew)
        return ItemHolding(self, seeker, validate.timeout(timeout), bool(finish), validate.rest(back_off))

    def _seeker(self, key: str | None, renew: bool) -> Seeker:
        if key is None and renew:
            return Seeker(self._any)
        wanted = validate.name(key, "A key") if key is not None else ""
        return Seeker(PoolRequest(self._name, self._lease, wanted, bool(renew)))

    def _get(self, seeker: Seeker, limit: float | None, cancel: Cancel | None = None) -> Item | None:
        session = self._session
        seeker.who = me.token
        try:
            if limit is not None:
                deadline.begin(limit)
            if cancel is not None:
                cancel_event.begin(session, seeker, cancel)
            item = fast_item.take(session, seeker, limit == 0)
            if item is None:
                item = run(pool_acquire.seek(session, seeker, limit if not limit else session.clock() + limit))
            if limit is not None:
                deadline.end()
            if cancel is not None:
                cancel_event.end(session, seeker)
            return item  # type: ignore[return-value]
        except BaseException:
            _withdraw_surely(session, seeker)
            deadline.end()
            cancel_event.end(session, seeker)
            raise

    def __repr__(self) -> str:
        return f"<fairlock.Pool {self._name!r}>"


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
        session = self._pool._session
        try:
            item = self._pool._get(self._seeker, self._limit)
            if item is None:
                raise run(pool_acquire.timed_out(session, self._seeker, self._limit or 0.0))
            item._done, item._back_off = self._finish, self._back_off
            return item
        except BaseException:
            _withdraw_surely(session, self._seeker)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        item = cast(Item, self._seeker.hold)
        item.__exit__(kind, error, tb)
