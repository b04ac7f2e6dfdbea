"""The client for tasks."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, cast, overload

from ..backends.contract import Backend
from ..doorman import ALL
from ..errors import ConfigError
from ..flow import change, check, handles, look
from ..flow.check import Seconds
from ..flow.close import close, close_at_exit, warn_dropped
from ..flow.desk import Desk
from ..flow.events import Event
from ..flow.look import Snapshot
from ..flow.naming import Naming, fill
from ..flow.pickling import NotPickled
from ..flow.wish import Wish
from .colour import TaskColour, running_loop
from .guard import P, R, guarded
from .lease import Lease
from .lock import Lock, RWLock, Semaphore
from .lock_all import HoldingAll

if TYPE_CHECKING:
    from ..flow.options import LockOptions, SemaphoreOptions
    from .pool import Pool

PLAIN = (None, None, None, True, True, "", None, None)
KNOWN = 4096  # plain locks that are kept in mind


class Locks(NotPickled):
    """One client of one store: makes locks, keeps their leases, tells who holds what. A context manager."""

    def __init__(
        self,
        backend: Backend,
        colour: TaskColour,
        *,
        owner: str | None,
        lease: float,
        on_event: Callable[[Event], object] | None = None,
    ) -> None:
        self._colour = colour
        self._desk = Desk(backend, colour, owner, on_event, Lease)
        self._lease = lease
        self._plain: dict[str, Wish] = {}  # those of the locks without options, by name
        colour.at_end = partial(_close_at_the_end, weakref.ref(self._desk), backend)
        try:
            colour.loop()  # from now on its end is watched, also if nothing is ever acquired
        except ConfigError:
            pass  # made before any loop runs: the first use tells
        close_at_exit(self._desk)

    def _here(self) -> Desk:
        """The desk, for a call in the loop of this client; ConfigError if no loop of asyncio runs, or another one."""
        self._colour.check_loop()
        return self._desk

    @property
    def store(self) -> str:
        """Names the store, without credentials."""
        return self._desk.backend.where

    @overload
    def lock(self, name: str, *, timeout: None = None, **options: Unpack[LockOptions[Lease]]) -> Lock[Lease]: ...

    @overload
    def lock(self, name: str, *, timeout: Seconds | None, **options: Unpack[LockOptions[Lease]]) -> Lock: ...

    def lock(
        self,
        name: str,
        *,
        timeout: Seconds | None = None,
        lease: Seconds | None = None,
        max_hold: Seconds | None = None,
        at_least: Seconds | None = None,
        fair: bool = True,
        local_handoff: bool = True,
        reentrant: bool = False,
        note: str = "",
        on_lost: Callable[[Lease], object] | None = None,
        handle: str | None = None,
    ) -> Lock:
        """A lock: one holder at a time.

        timeout: how long to wait (None: for ever). lease: how long others wait if this process dies; it renews
        itself. max_hold: the longest anyone may keep it. at_least: stays closed for so long after it was taken, even
        if released sooner. fair=False may pass the line. on_lost is called when it is lost while held. handle: a secret
        by which another process may release or extend it: `release`, `extend`.
        """
        if (lease, max_hold, at_least, fair, local_handoff, note, on_lost, handle) == PLAIN:
            wish = self._plain.get(name) if type(name) is str else None
            if wish is None:
                if len(self._plain) >= KNOWN:
                    self._plain.clear()
                wish = self._plain[name] = Wish(check.name(name), ALL, ALL, self._lease)
        else:
            wish = self._wish(name, ALL, ALL, lease, max_hold, at_least, fair, local_handoff, note, on_lost, handle)
        return Lock(self, wish, None if timeout is None else check.timeout(timeout), reentrant)

    @overload
    def rwlock(self, name: str, *, timeout: None = None, **options: Unpack[LockOptions[Lease]]) -> RWLock[Lease]: ...

    @overload
    def rwlock(self, name: str, *, timeout: Seconds | None, **options: Unpack[LockOptions[Lease]]) -> RWLock: ...

    def rwlock(
        self,
        name: str,
        *,
        timeout: Seconds | None = None,
        lease: Seconds | None = None,
        max_hold: Seconds | None = None,
        at_least: Seconds | None = None,
        fair: bool = True,
        local_handoff: bool = True,
        reentrant: bool = False,
        note: str = "",
        on_lost: Callable[[Lease], object] | None = None,
        handle: str | None = None,
    ) -> RWLock:
        """A readers-writer lock: `.read()` and `.write()` are locks. Options as for `lock`."""
        wish = self._wish(name, ALL, ALL, lease, max_hold, at_least, fair, local_handoff, note, on_lost, handle)
        return RWLock(self, wish, check.timeout(timeout), reentrant)

    @overload
    def semaphore(
        self, name: str, slots: int | None, *, timeout: None = None, **options: Unpack[SemaphoreOptions[Lease]]
    ) -> Semaphore[Lease]: ...

    @overload
    def semaphore(
        self, name: str, slots: int | None, *, timeout: Seconds | None, **options: Unpack[SemaphoreOptions[Lease]]
    ) -> Semaphore: ...

    def semaphore(
        self,
        name: str,
        slots: int | None,
        *,
        timeout: Seconds | None = None,
        lease: Seconds | None = None,
        max_hold: Seconds | None = None,
        at_least: Seconds | None = None,
        fair: bool = True,
        note: str = "",
        on_lost: Callable[[Lease], object] | None = None,
        handle: str | None = None,
    ) -> Semaphore:
        """At most `slots` in use at once (None: as many as the store says). Options as for `lock`.

        While it is in use, another number is a ConfigError. After `resize` the number set there counts instead.
        """
        capacity = 0 if slots is None else check.slots(slots)
        wish = self._wish(name, capacity, 1, lease, max_hold, at_least, fair, False, note, on_lost, handle)
        return Semaphore(self, wish, check.timeout(timeout), False)

    def pool(self, name: str, *, lease: Seconds = 60) -> Pool:
        """A set of named items of which each worker takes any that is free. lease: how long an item stays taken when
        its worker dies; it renews itself. ConfigError if this store keeps no pools."""
        from ..flow.orders import pools_of
        from .pool import Item, Pool

        self._desk.item = Item
        pools_of(self._desk)
        return Pool(self, check.name(name), check.lease(lease))

    def _wish(
        self,
        name: str,
        capacity: int,
        weight: int,
        lease: Seconds | None,
        max_hold: Seconds | None,
        at_least: Seconds | None,
        fair: bool,
        handoff: bool,
        note: str,
        on_lost: Callable[[Lease], object] | None,
        handle: str | None,
    ) -> Wish:
        return Wish(
            check.name(name),
            capacity,
            weight,
            self._lease if lease is None else check.lease(lease),
            bool(fair),
            bool(handoff),
            check.label(note, "A note") if note else "",
            check.optional(max_hold, "max_hold"),
            check.optional(at_least, "at_least"),
            check.callback(on_lost, "on_lost"),
            "" if handle is None else handles.mark(name, check.handle(handle)),
        )

    def lock_all(
        self, *names_or_locks: str | Lock, timeout: Seconds | None = None
    ) -> AbstractAsyncContextManager[Mapping[str, Lease]]:
        """Hold all of these at once: taken in the order of their names, under one deadline, or none of them.

        A context manager for one use: enters with a mapping from name to Lease, or LockTimeout.
        """
        locks = [x if isinstance(x, Lock) else self.lock(check.of_lock_all(x)) for x in names_or_locks]
        if len({x.name for x in locks}) != len(locks):
            raise ConfigError("lock_all() was given the same name twice; it would wait for itself.")
        return HoldingAll(locks, check.timeout(timeout))

    @overload
    def guard(self, name_or_function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]: ...

    @overload
    def guard(
        self, name_or_function: str, *, skip: Literal[False] = False, **options: Any
    ) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], Callable[P, Coroutine[Any, Any, R]]]: ...

    @overload
    def guard(
        self, name_or_function: str, *, skip: bool, **options: Any
    ) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], Callable[P, Coroutine[Any, Any, R | None]]]: ...

    def guard(self, name_or_function: Any, *, skip: bool = False, **options: Any) -> Any:
        """Decorate a function: it holds the lock while it runs. "order:{order}" is filled from its arguments.

        skip=True: if the lock is taken, the call does nothing and gives None. Other options as for `lock`. Bare
        `@locks.guard` takes the function's own name.
        """
        if callable(name_or_function):
            own_name = Naming(name_or_function).full_name
            lock = self.lock(own_name)
            return guarded(name_or_function, lambda _: lock)
        template = check.name(name_or_function)
        self.lock("x", **options)  # bad options are an error where they are written, not in the first call
        return lambda function: guarded(
            function, lambda arguments: self.lock(fill(template, arguments), **options), skip
        )

    async def attach(self, name: str, ticket: str) -> Lease:
        """Take over a lease that was detached, by its ticket; it is renewed from now on. NotHeld if it is gone."""
        return cast(Lease, await change.attach(self._here(), check.name(name), check.ticket(ticket)))

    async def release(self, name: str, *, handle: str) -> bool:
        """End what is held with this handle, by whatever process, at once; whether there was anything. A holder that is
        still at work learns of it as of an eviction."""
        return await handles.release(self._here(), check.name(name), check.handle(handle))

    async def extend(self, name: str, seconds: Seconds, *, handle: str) -> None:
        """Let what is held with this handle last for at least so many seconds from now. NotHeld if nothing is."""
        await handles.extend(self._here(), check.name(name), check.handle(handle), check.lease(seconds))

    async def evict(
        self, name: str, *, reason: str, ticket: str | None = None, at_once: bool = False, pattern: bool = False
    ) -> tuple[str, ...]:
        """No more renewals for all inside (or for one ticket); they learn of it, and the lock is free when its lease
        ends. at_once: free now, and the holder may still be at work. pattern: every name that matches, with * and ? as
        in `snapshot`; without it both are characters like others. The tickets that it met."""
        return await look.evict(self._here(), name, reason, ticket, bool(at_once), bool(pattern))

    async def resize(self, name: str, slots: int | None) -> None:
        """Give a semaphore another number of slots, even in use. Those inside stay. From then on this number counts,
        whatever number a program asks for. None gives it back: the programs' number counts as soon as it is idle."""
        await look.resize(self._here(), check.name(name), None if slots is None else check.slots(slots))

    async def snapshot(self, pattern: str = "*") -> Snapshot:
        """Who is inside and who waits, for all names that match."""
        return await look.snapshot(self._here(), check.pattern(pattern))

    async def repair(self, name: str) -> tuple[str, ...]:
        """Reset what is damaged under this name (RecordDamaged). Fences go on rising. A sentence for each thing done.

        Nobody is asked: a holder of it that has not noticed the damage yet may still be at work.
        """
        return await look.repair(self._here(), check.name(name))

    async def ping(self) -> float:
        """Seconds that the store took to answer. BackendError if it does not."""
        return await look.ping(self._here())

    async def close(self) -> None:
        """Release what is held and close the store. May be repeated."""
        running_loop()
        await close(self._desk)
        self._colour.no_longer_guarded()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self.close()

    def __del__(self) -> None:
        desk = getattr(self, "_desk", None)
        if desk is not None and desk.inside() and not desk.closed:
            warn_dropped(desk)

    def __repr__(self) -> str:
        return f"<holdfast.aio.Locks {self.store}>"


async def _close_at_the_end(client: weakref.ref[Desk], backend: Backend) -> None:
    """The loop ends, and nobody has closed this client: what it holds, waits for and owes is given up now. Or the
    client was forgotten: then its connections are closed."""
    desk = client()
    if desk is None:
        await backend.close()
    else:
        await close(desk, wait=0.0)
