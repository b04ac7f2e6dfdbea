"""The client for tasks."""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast, overload

from ..engine import lease_ops, snapshots, validate
from ..engine.client_base import ClientBase
from ..engine.close_client import close, close_at_exit
from ..engine.events import Event
from ..engine.session import Session
from ..engine.snapshots import Snapshot
from ..engine.validate import Seconds
from ..errors import ConfigError
from ..stores.base import Backend
from .decorator import P, R, guarded
from .lease import Lease
from .lock_all import HoldingAll
from .locks import Lock, RWLock, Semaphore
from .runtime import TaskRuntime, running_loop

if TYPE_CHECKING:
    from ..engine.operator_audit import AuditLine
    from ..recipes.aio.election import Election
    from ..recipes.aio.idempotent import Idempotent
    from ..recipes.aio.once_per_tick import Once
    from ..recipes.aio.path_tree_locks import Tree
    from ..recipes.aio.throttle import Throttle
    from ..recipes.election import Leader
    from .pool import Pool

T = TypeVar("T")


class Locks(
    ClientBase[
        Lease,
        Lock[Lease],
        Lock,
        RWLock[Lease],
        RWLock,
        Semaphore[Lease],
        Semaphore,
        AbstractAsyncContextManager[Mapping[str, Lease]],
    ]
):
    """A client of one store: makes locks, renews their leases, shows who holds what. A context manager."""

    _lock_type, _rwlock_type, _semaphore_type, _all_type = Lock, RWLock, Semaphore, HoldingAll

    def __init__(
        self,
        backend: Backend,
        runtime: TaskRuntime,
        *,
        owner: str | None,
        lease: float,
        on_event: Callable[[Event], object] | None = None,
    ) -> None:
        self._runtime = runtime
        super().__init__(Session(backend, runtime, owner, on_event, Lease), lease)
        runtime.at_end = partial(_close_at_the_end, weakref.ref(self._session), backend, weakref.ref(runtime))
        try:
            runtime.loop()  # from now on its end is watched, also if nothing is ever acquired
        except ConfigError:
            pass  # made before any loop runs: the first use raises
        close_at_exit(self._session)

    def _here(self) -> Session:
        """Return the session, for a call in the loop of this client. ConfigError if another loop runs, or none."""
        self._runtime.check_loop()
        return self._session

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

        skip=True: if the lock is taken, the call does nothing and returns None. Other options as for `lock`. Bare
        `@locks.guard` uses the function's own name.
        """
        return self._guard(guarded, name_or_function, skip, options)

    def pool(self, name: str, *, lease: Seconds = 60) -> Pool:
        """Return a set of named items of which each worker takes any that is free. lease: how long an item stays taken
        when its worker dies; it renews itself. ConfigError if this store keeps no pools."""
        from .pool import Pool

        self._session.pools()  # or ConfigError
        return Pool(self, validate.name(name), validate.lease(lease))

    def elect(self, name: str, *, lease: Seconds | None = None, note: str = "") -> Election:
        """Let one of several processes lead: `async with locks.elect(name) as term:` waits for that, and so does
        `.run(main)`. It is the lock of this name, and a term is its lease."""
        from ..recipes.aio.election import Election

        return Election(self, name, lease=lease, note=note)

    async def leader(self, name: str) -> Leader | None:
        """Return who leads this election: owner, since, fence; None if there is none at this moment."""
        from ..recipes.aio.election import leader

        return await leader(self, name)

    def tree(
        self, path: str, *, timeout: Seconds | None = None, lease: Seconds | None = None, note: str = ""
    ) -> Tree:
        """Return the locks of a path such as "repo/src": `.write()` excludes everyone at, below and above it, `.read()`
        the writers."""
        from ..recipes.aio.path_tree_locks import Tree

        return Tree(self, path, timeout=timeout, lease=lease, note=note)

    def once(
        self,
        name: str,
        *,
        every: Seconds | None = None,
        cron: str | None = None,
        tries: int = 2,
        timeout: Seconds | None = 0,
        lease: Seconds | None = None,
    ) -> Once:
        """Execute once per tick of the store's clock over all machines: a decorator, or an `async with` block, which
        enters with None if this process is not to execute it. A crash frees the tick for `tries` executions in all."""
        from ..recipes.aio.once_per_tick import Once

        return Once(self, name, every=every, cron=cron, tries=tries, timeout=timeout, lease=lease)

    def idempotent(self, name: str, *, lease: Seconds | None = None) -> Idempotent:
        """Results by key: await `.run(key, function)` calls the function once per key, in whatever process."""
        from ..recipes.aio.idempotent import Idempotent

        return Idempotent(self, name, lease=lease)

    def throttle(self, name: str, limit: int, *, per: Seconds, timeout: Seconds | None = None) -> Throttle:
        """Allow at most `limit` starts in any window of `per` seconds over all machines: await `.wait()`, or a
        decorator."""
        from ..recipes.aio.throttle import Throttle

        return Throttle(self, name, limit, per=per, timeout=timeout)

    async def build(
        self,
        name: str,
        *,
        get: Callable[[], Awaitable[T | None]],
        make: Callable[[], Awaitable[T]],
        put: Callable[[T], Awaitable[object]],
        timeout: Seconds | None = None,
        lease: Seconds | None = None,
    ) -> T:
        """Return what `get` returns; if that is None, one process calls `make` and `put`, the others wait and read."""
        from ..recipes.aio.build_missing_value import build

        return await build(self, name, get=get, make=make, put=put, timeout=timeout, lease=lease)

    async def attach(self, name: str, ticket: str) -> Lease:
        """Take over a detached lease by its ticket; it is renewed from now on. NotHeld if it has ended."""
        return cast(Lease, await lease_ops.attach(self._here(), validate.name(name), validate.ticket(ticket)))

    async def release(self, name: str, *, handle: str) -> bool:
        """End what any process holds with this handle, at once. Return False if nothing was held. A holder that is
        still at work is notified as by an eviction."""
        from ..engine import lease_handles

        return await lease_handles.release(self._here(), validate.name(name), validate.handle(handle))

    async def extend(self, name: str, seconds: Seconds, *, handle: str) -> None:
        """Let what is held with this handle last for at least this many seconds from now. NotHeld if nothing is."""
        from ..engine import lease_handles

        await lease_handles.extend(self._here(), validate.name(name), validate.handle(handle), validate.lease(seconds))

    async def ask(self, name: str, *, reason: str, ticket: str | None = None) -> tuple[str, ...]:
        """Ask the current holders (or the one with this ticket) to release: the polite step before `evict`. They are
        notified (`Lease.asked_to_release`, `on_asked`) and hold it as before. Returns the tickets of the asked."""
        from ..engine import operator_actions

        return await operator_actions.ask(self._here(), name, reason, ticket)

    async def audit(self, name: str) -> tuple[AuditLine, ...]:
        """Return what operators did to this name (ask, evict, resize, repair), with their reasons: the newest
        hundred, the newest first."""
        from ..engine import operator_audit

        return await operator_audit.audit(self._here(), validate.name(name))

    async def evict(
        self, name: str, *, reason: str, ticket: str | None = None, at_once: bool = False, pattern: bool = False
    ) -> tuple[str, ...]:
        """Stop renewing the leases of the current holders (or of one ticket). They are notified, and the lock is free
        when its lease ends. at_once: it is free now, and the holder may still be at work. pattern: every name that
        matches, with * and ? as in `snapshot`; without it both are ordinary characters. Returns the tickets of the
        evicted holders."""
        from ..engine import operator_actions

        return await operator_actions.evict(self._here(), name, reason, ticket, bool(at_once), bool(pattern))

    async def resize(self, name: str, slots: int | None) -> None:
        """Set the number of slots of a semaphore, even in use. Its holders stay. From then on this number applies,
        whatever number a program asks for. None undoes that: the programs' number applies as soon as it is idle."""
        from ..engine import operator_actions

        slots = None if slots is None else validate.slots(slots)
        await operator_actions.resize(self._here(), validate.name(name), slots)

    async def snapshot(self, pattern: str = "*", *, idle: bool = False, namespaces: bool = False) -> Snapshot:
        """Return the holders and the waiters of all names that match and are busy: held, waited for, damaged, or left
        with an expired lease. A pattern without * and ? is a name, which is shown even if it is idle. idle: all that
        the store knows, read in pages. namespaces: those of all namespaces."""
        return await snapshots.snapshot(self._here(), validate.pattern(pattern), bool(idle), bool(namespaces))

    async def repair(self, name: str) -> tuple[str, ...]:
        """Reset what is damaged under this name (RecordDamaged). Fences keep rising. Returns a sentence per repair.

        It does not wait for anyone: a holder that has not noticed the damage yet may still be at work.
        """
        from ..engine import operator_actions

        return await operator_actions.repair(self._here(), validate.name(name))

    async def ping(self) -> float:
        """Return the seconds that the store took to reply. StoreError if it does not."""
        return await snapshots.ping(self._here())

    async def close(self) -> None:
        """Release what is held and close the store. It may be called again."""
        running_loop()
        await close(self._session)
        self._runtime.drop_guard()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<fairlock.aio.Locks {self.store}>"


async def _close_at_the_end(
    client: weakref.ref[Session], backend: Backend, runs_in: weakref.ref[TaskRuntime]
) -> None:
    """The loop ends, and this client was not closed: release what it holds and withdraw what it waits for now. Or the
    client was garbage-collected: close its connections."""
    session = client()
    if session is None:
        await backend.close()
    elif not session.closed:
        await close(session, wait=0.0)
        if (runtime := runs_in()) is not None:
            await runtime.end_tasks()  # a keeper that has just been started, for one: or asyncio would complain
