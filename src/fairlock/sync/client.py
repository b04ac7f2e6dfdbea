"""The client for threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, cast, overload

from ..engine import admin, handle_secrets, lease_ops, validate
from ..engine.admin import Snapshot
from ..engine.client_base import ClientBase
from ..engine.close import close, close_at_exit
from ..engine.events import Event
from ..engine.run_sync import run
from ..engine.session import Session
from ..engine.validate import Seconds
from ..stores.base import Backend
from .decorator import P, R, guarded
from .lease import Lease
from .lock_all import HoldingAll
from .locks import Lock, RWLock, Semaphore
from .runtime import ThreadRuntime

if TYPE_CHECKING:
    from .pool import Pool


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
        return self._guard(guarded, name_or_function, skip, options)

    def pool(self, name: str, *, lease: Seconds = 60) -> Pool:
        """A set of named items of which each worker takes any that is free. lease: how long an item stays taken when
        its worker dies; it renews itself. ConfigError if this store keeps no pools."""
        from .pool import Pool

        self._session.pools()  # or ConfigError
        return Pool(self, validate.name(name), validate.lease(lease))

    def attach(self, name: str, ticket: str) -> Lease:
        """Take over a detached lease by its ticket; it is renewed from now on. NotHeld if it has ended."""
        return cast(Lease, run(lease_ops.attach(self._session, validate.name(name), validate.ticket(ticket))))

    def release(self, name: str, *, handle: str) -> bool:
        """End what any process holds with this handle, at once. Return False if nothing was held. A holder that is
        still at work is notified as by an eviction."""
        return run(handle_secrets.release(self._session, validate.name(name), validate.handle(handle)))

    def extend(self, name: str, seconds: Seconds, *, handle: str) -> None:
        """Let what is held with this handle last for at least this many seconds from now. NotHeld if nothing is."""
        run(handle_secrets.extend(self._session, validate.name(name), validate.handle(handle), validate.lease(seconds)))

    def evict(
        self, name: str, *, reason: str, ticket: str | None = None, at_once: bool = False, pattern: bool = False
    ) -> tuple[str, ...]:
        """Stop renewing the leases of the current holders (or of one ticket). They are notified, and the lock is free
        when its lease ends. at_once: it is free now, and the holder may still be at work. pattern: every name that
        matches, with * and ? as in `snapshot`; without it both are ordinary characters. Returns the tickets of the
        evicted holders."""
        return run(admin.evict(self._session, name, reason, ticket, bool(at_once), bool(pattern)))

    def resize(self, name: str, slots: int | None) -> None:
        """Set the number of slots of a semaphore, even in use. Its holders stay. From then on this number applies,
        whatever number a program asks for. None undoes that: the programs' number applies as soon as it is idle."""
        run(admin.resize(self._session, validate.name(name), None if slots is None else validate.slots(slots)))

    def snapshot(self, pattern: str = "*") -> Snapshot:
        """Return the holders and the waiters of all names that match."""
        return run(admin.snapshot(self._session, validate.pattern(pattern)))

    def repair(self, name: str) -> tuple[str, ...]:
        """Reset what is damaged under this name (RecordDamaged). Fences keep rising. Returns a sentence per repair.

        It does not wait for anyone: a holder that has not noticed the damage yet may still be at work.
        """
        return run(admin.repair(self._session, validate.name(name)))

    def ping(self) -> float:
        """Return the seconds that the store took to reply. StoreError if it does not."""
        return run(admin.ping(self._session))

    def close(self) -> None:
        """Release what is held and close the store. It may be called again."""
        run(close(self._session))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<fairlock.Locks {self.store}>"
