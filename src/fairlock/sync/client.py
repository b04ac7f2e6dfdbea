"""The client for threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast, overload

from ..engine import lease_ops, validate
from ..engine.client_base import ClientBase
from ..engine.close_client import close, close_at_exit
from ..engine.events import Event
from ..engine.run_sync import run
from ..engine.session import Session
from ..engine.validate import Seconds
from ..stores.base import Backend
from .lease import Lease
from .lock_all import HoldingAll
from .locks import Lock, RWLock, Semaphore
from .runtime import ThreadRuntime

if TYPE_CHECKING:
    from ..engine.operator_audit import AuditLine
    from ..engine.snapshots import Snapshot
    from ..recipes.election import Election, Leader
    from ..recipes.idempotent import Idempotent
    from ..recipes.once_per_tick import Once
    from ..recipes.path_tree_locks import Tree
    from ..recipes.throttle import Throttle
    from .decorator import P, R
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
        AbstractContextManager[Mapping[str, Lease]],
    ]
):
    """A client of one store: makes locks, renews their leases, shows who holds what. A context manager."""

    _lock_type, _rwlock_type, _semaphore_type, _all_type = Lock, RWLock, Semaphore, HoldingAll

    def __init__(
        self,
        backend: Backend,
        runtime: ThreadRuntime,
        *,
        owner: str | None,
        lease: float,
        on_event: Callable[[Event], object] | None = None,
    ) -> None:
        super().__init__(Session(backend, runtime, owner, on_event, Lease), lease)
        close_at_exit(self._session)

    @overload
    def guard(self, name_or_function: Callable[P, R]) -> Callable[P, R]: ...

    @overload
    def guard(
        self, name_or_function: str, *, skip: Literal[False] = False, **options: Any
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    @overload
    def guard(
        self, name_or_function: str, *, skip: bool, **options: Any
    ) -> Callable[[Callable[P, R]], Callable[P, R | None]]: ...

    def guard(self, name_or_function: Any, *, skip: bool = False, **options: Any) -> Any:
        """Decorate a function: it holds the lock while it runs. "order:{order}" is filled from its arguments.

        skip=True: if the lock is taken, the call does nothing and returns None. Other options as for `lock`. Bare
        `@locks.guard` uses the function's own name.
        """
        from .decorator import guarded

        return self._guard(guarded, name_or_function, skip, options)

    def pool(self, name: str, *, lease: Seconds = 60) -> Pool:
        """Return a set of named items of which each worker takes any that is free. lease: how long an item stays taken
        when its worker dies; it renews itself. ConfigError if this store keeps no pools."""
        from .pool import Pool

        self._session.pools()  # or ConfigError
        return Pool(self, validate.name(name), validate.lease(lease))

    def elect(self, name: str, *, lease: Seconds | None = None, note: str = "") -> Election:
        """Let one of several processes lead: `with locks.elect(name) as term:` waits for that, and so does
        `.run(main)`. It is the lock of this name, and a term is its lease."""
        from ..recipes.election import Election

        return Election(self, name, lease=lease, note=note)

    def leader(self, name: str) -> Leader | None:
        """Return who leads this election: owner, since, fence; None if there is none at this moment."""
        from ..recipes.election import leader

        return leader(self, name)

    def tree(
        self, path: str, *, timeout: Seconds | None = None, lease: Seconds | None = None, note: str = ""
    ) -> Tree:
        """Return the locks of a path such as "repo/src": `.write()` excludes everyone at, below and above it, `.read()`
        the writers."""
        from ..recipes.path_tree_locks import Tree

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
        """Execute once per tick of the store's clock over all machines: a decorator, or a `with` block, which enters
        with None if this process is not to execute it. A crash frees the tick for `tries` executions in all."""
        from ..recipes.once_per_tick import Once

        return Once(self, name, every=every, cron=cron, tries=tries, timeout=timeout, lease=lease)

    def idempotent(self, name: str, *, lease: Seconds | None = None) -> Idempotent:
        """Results by key: `.run(key, function)` calls the function once per key, in whatever process."""
        from ..recipes.idempotent import Idempotent

        return Idempotent(self, name, lease=lease)

    def throttle(self, name: str, limit: int, *, per: Seconds, timeout: Seconds | None = None) -> Throttle:
        """Allow at most `limit` starts in any window of `per` seconds over all machines: `.wait()`, or a decorator."""
        from ..recipes.throttle import Throttle

        return Throttle(self, name, limit, per=per, timeout=timeout)

    def build(
        self,
        name: str,
        *,
        get: Callable[[], T | None],
        make: Callable[[], T],
        put: Callable[[T], object],
        timeout: Seconds | None = None,
        lease: Seconds | None = None,
    ) -> T:
        """Return what `get` returns; if that is None, one process calls `make` and `put`, the others wait and read."""
        from ..recipes.build_missing_value import build

        return build(self, name, get=get, make=make, put=put, timeout=timeout, lease=lease)

    def attach(self, name: str, ticket: str) -> Lease:
        """Take over a detached lease by its ticket; it is renewed from now on. NotHeld if it has ended."""
        return cast(Lease, run(lease_ops.attach(self._session, validate.name(name), validate.ticket(ticket))))

    def release(self, name: str, *, handle: str) -> bool:
        """End what any process holds with this handle, at once. Return False if nothing was held. A holder that is
        still at work is notified as by an eviction."""
        from ..engine import lease_handles

        return run(lease_handles.release(self._session, validate.name(name), validate.handle(handle)))

    def extend(self, name: str, seconds: Seconds, *, handle: str) -> None:
        """Let what is held with this handle last for at least this many seconds from now. NotHeld if nothing is."""
        from ..engine import lease_handles

        run(lease_handles.extend(self._session, validate.name(name), validate.handle(handle), validate.lease(seconds)))

    def ask(self, name: str, *, reason: str, ticket: str | None = None) -> tuple[str, ...]:
        """Ask the current holders (or the one with this ticket) to release: the polite step before `evict`. They are
        notified (`Lease.asked_to_release`, `on_asked`) and hold it as before. Returns the tickets of the asked."""
        from ..engine import operator_actions

        return run(operator_actions.ask(self._session, name, reason, ticket))

    def audit(self, name: str) -> tuple[AuditLine, ...]:
        """Return what operators did to this name (ask, evict, resize, repair), with their reasons: the newest
        hundred, the newest first."""
        from ..engine import operator_audit

        return run(operator_audit.audit(self._session, validate.name(name)))

    def evict(
        self, name: str, *, reason: str, ticket: str | None = None, at_once: bool = False, pattern: bool = False
    ) -> tuple[str, ...]:
        """Stop renewing the leases of the current holders (or of one ticket). They are notified, and the lock is free
        when its lease ends. at_once: it is free now, and the holder may still be at work. pattern: every name that
        matches, with * and ? as in `snapshot`; without it both are ordinary characters. Returns the tickets of the
        evicted holders."""
        from ..engine import operator_actions

        return run(operator_actions.evict(self._session, name, reason, ticket, bool(at_once), bool(pattern)))

    def resize(self, name: str, slots: int | None) -> None:
        """Set the number of slots of a semaphore, even in use. Its holders stay. From then on this number applies,
        whatever number a program asks for. None undoes that: the programs' number applies as soon as it is idle."""
        from ..engine import operator_actions

        slots = None if slots is None else validate.slots(slots)
        run(operator_actions.resize(self._session, validate.name(name), slots))

    def snapshot(self, pattern: str = "*", *, idle: bool = False, namespaces: bool = False) -> Snapshot:
        """Return the holders and the waiters of all names that match and are busy: held, waited for, damaged, or left
        with an expired lease. A pattern without * and ? is a name, which is shown even if it is idle. idle: all that
        the store knows, read in pages. namespaces: those of all namespaces."""
        from ..engine import snapshots

        return run(snapshots.snapshot(self._session, validate.pattern(pattern), bool(idle), bool(namespaces)))

    def repair(self, name: str) -> tuple[str, ...]:
        """Reset what is damaged under this name (RecordDamaged). Fences keep rising. Returns a sentence per repair.

        It does not wait for anyone: a holder that has not noticed the damage yet may still be at work.
        """
        from ..engine import operator_actions

        return run(operator_actions.repair(self._session, validate.name(name)))

    def ping(self) -> float:
        """Return the seconds that the store took to reply. StoreError if it does not."""
        from ..engine import snapshots

        return run(snapshots.ping(self._session))

    def close(self) -> None:
        """Release what is held and close the store. It may be called again."""
        run(close(self._session))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<fairlock.Locks {self.store}>"
