"""The client for threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, cast, overload

from ..engine import admin, handle_secrets, lease_ops, validate
from ..engine.admin import Snapshot
from ..engine.close import close, close_at_exit, warn_dropped
from ..engine.decorator_names import CallNames, fill
from ..engine.events import Event
from ..engine.pickling import NotPickled
from ..engine.request import LockRequest
from ..engine.run_sync import run
from ..engine.session import Session
from ..engine.validate import Seconds
from ..errors import ConfigError
from ..rules.locks import EXCLUSIVE
from ..stores.base import Backend
from .decorator import P, R, guarded
from .lease import Lease
from .lock_all import HoldingAll
from .locks import Lock, RWLock, Semaphore
from .runtime import ThreadRuntime

if TYPE_CHECKING:
    from ..engine.option_types import LockOptions, SemaphoreOptions
    from ..engine.public_session import ClientSession
    from .pool import Pool


class Locks(NotPickled):
    """A client of one store: makes locks, renews their leases, shows who holds what. A context manager."""

    def __init__(
        self,
        backend: Backend,
        runtime: ThreadRuntime,
        *,
        owner: str | None,
        lease: float,
        on_event: Callable[[Event], object] | None = None,
    ) -> None:
        self._session = Session(backend, runtime, owner, on_event, Lease)
        self._lease = lease
        close_at_exit(self._session)

    @property
    def store(self) -> str:
        """The name of the store, without credentials."""
        return self._session.backend.where

    @property
    def session(self) -> ClientSession:
        """The public session: single messages and the client's settings, for code that is built on this client."""
        from ..engine.public_session import ClientSession

        return ClientSession(self._session, self._lease)

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

        timeout: how long to wait (None: forever). lease: how long others wait if this process dies; it renews
        itself. max_hold: the longest time that anyone may hold it. at_least: it stays closed for this long after it was
        acquired, even if it is released sooner. fair=False may overtake the queue. on_lost is called when it is lost
        while held. handle: a secret by which another process may release or extend it: `release`, `extend`.
        """
        request = self._request(
            name, EXCLUSIVE, EXCLUSIVE, lease, max_hold, at_least, fair, local_handoff, note, on_lost, handle
        )
        return Lock(self, request, validate.timeout(timeout), reentrant)

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
        request = self._request(
            name, EXCLUSIVE, EXCLUSIVE, lease, max_hold, at_least, fair, local_handoff, note, on_lost, handle
        )
        return RWLock(self, request, validate.timeout(timeout), reentrant)

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
        """At most `slots` in use at once (None: the number that is stored). Options as for `lock`.

        While it is in use, another number is a ConfigError. After `resize` the number that was set there applies.
        """
        capacity = 0 if slots is None else validate.slots(slots)
        request = self._request(name, capacity, 1, lease, max_hold, at_least, fair, False, note, on_lost, handle)
        return Semaphore(self, request, validate.timeout(timeout), False)

    def pool(self, name: str, *, lease: Seconds = 60) -> Pool:
        """A set of named items of which each worker takes any that is free. lease: how long an item stays taken when
        its worker dies; it renews itself. ConfigError if this store keeps no pools."""
        from .pool import Item, Pool

        self._session.item = Item
        self._session.pools()  # or ConfigError
        return Pool(self, validate.name(name), validate.lease(lease))

    def _request(
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
    ) -> LockRequest:
        return LockRequest(
            validate.name(name),
            capacity,
            weight,
            self._lease if lease is None else validate.lease(lease),
            bool(fair),
            bool(handoff),
            validate.label(note, "A note") if note else "",
            validate.optional(max_hold, "max_hold"),
            validate.optional(at_least, "at_least"),
            validate.callback(on_lost, "on_lost"),
            "" if handle is None else handle_secrets.mark(name, validate.handle(handle)),
        )

    def lock_all(
        self, *names_or_locks: str | Lock, timeout: Seconds | None = None
    ) -> AbstractContextManager[Mapping[str, Lease]]:
        """Hold all of these at once, or none. They are acquired in the order of their names, under one deadline.

        Returns a context manager for one use. It enters with a mapping from name to Lease, or raises LockTimeout.
        """
        locks = [x if isinstance(x, Lock) else self.lock(validate.of_lock_all(x)) for x in names_or_locks]
        if len({x.name for x in locks}) != len(locks):
            raise ConfigError("lock_all() was given the same name twice; it would wait for itself.")
        return HoldingAll(locks, validate.timeout(timeout))

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
        if callable(name_or_function):
            own_name = CallNames(name_or_function).full_name
            lock = self.lock(own_name)
            return guarded(name_or_function, lambda _: lock)
        template = validate.name(name_or_function)
        self.lock("x", **options)  # bad options are an error where they are written, not in the first call
        return lambda function: guarded(
            function, lambda arguments: self.lock(fill(template, arguments), **options), skip
        )

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

    def __del__(self) -> None:
        session = getattr(self, "_session", None)
        if session is not None and session.holders() and not session.closed:
            warn_dropped(session)

    def __repr__(self) -> str:
        return f"<fairlock.Locks {self.store}>"
