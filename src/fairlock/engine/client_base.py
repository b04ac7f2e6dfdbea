"""What the two clients share: everything that does no I/O. An option of a lock has one place to be honoured: here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload

from ..errors import ConfigError
from ..rules.locks import EXCLUSIVE
from . import validate
from .close_client import warn_dropped
from .refuse_pickling import NotPickled
from .request import LockRequest
from .session import Session
from .validate import Seconds

if TYPE_CHECKING:
    from .option_types import LockOptions, SemaphoreOptions
    from .public_session import ClientSession

# The types of a face. Each kind of lock has two: with a timeout of its own, a plain acquire() may return None.
Lease = TypeVar("Lease")
LockT = TypeVar("LockT")
TimedLock = TypeVar("TimedLock")
RWLockT = TypeVar("RWLockT")
TimedRWLock = TypeVar("TimedRWLock")
SemaphoreT = TypeVar("SemaphoreT")
TimedSemaphore = TypeVar("TimedSemaphore")
All = TypeVar("All")

KNOWN = 4096  # requests of locks without options that are kept


class ClientBase(NotPickled, Generic[Lease, LockT, TimedLock, RWLockT, TimedRWLock, SemaphoreT, TimedSemaphore, All]):
    """A client of one store, without the part that waits."""

    _session: Session
    _lease: float
    # The classes of the face.
    _lock_type: Any
    _rwlock_type: Any
    _semaphore_type: Any
    _all_type: Any

    def __init__(self, session: Session, lease: float) -> None:
        self._session = session
        self._lease = lease
        self._plain: dict[str, LockRequest] = {}  # those of the locks without options, by name

    @property
    def store(self) -> str:
        """The name of the store, without credentials."""
        return self._session.backend.where

    @property
    def session(self) -> ClientSession:
        """The public session: single messages and the client's settings, for code that is built on this client."""
        from .public_session import ClientSession

        return ClientSession(self._session, self._lease)

    @overload
    def lock(self, name: str, *, timeout: None = None, **options: Unpack[LockOptions[Lease]]) -> LockT: ...

    @overload
    def lock(self, name: str, *, timeout: Seconds | None, **options: Unpack[LockOptions[Lease]]) -> TimedLock: ...

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
        on_lost: Callable[[Any], object] | None = None,
        on_asked: Callable[[Any], object] | None = None,
        handle: str | None = None,
    ) -> Any:
        """Return a lock: one holder at a time.

        timeout: how long to wait (None: forever). lease: how long others wait if this process dies; it renews
        itself. max_hold: the longest time that anyone may hold it. at_least: it stays closed for this long after it was
        acquired, even if it is released sooner. fair=False may overtake the queue. on_lost is called when it is lost
        while held, on_asked when its holder is asked to release it. handle: a secret by which another process may
        release or extend it: `release`, `extend`.
        """
        options = lease, max_hold, at_least, fair, local_handoff, note, on_lost, on_asked, handle
        request = self._request(name, EXCLUSIVE, EXCLUSIVE, options)
        return self._lock_type(self, request, None if timeout is None else validate.timeout(timeout), reentrant)

    @overload
    def rwlock(self, name: str, *, timeout: None = None, **options: Unpack[LockOptions[Lease]]) -> RWLockT: ...

    @overload
    def rwlock(self, name: str, *, timeout: Seconds | None, **options: Unpack[LockOptions[Lease]]) -> TimedRWLock: ...

    def rwlock(self, name: str, *, timeout: Seconds | None = None, **options: Any) -> Any:
        """Return a readers-writer lock: `.read()` and `.write()` are locks. Options as for `lock`."""
        return self._rwlock_type(self.lock(name, timeout=timeout, **options))

    @overload
    def semaphore(
        self, name: str, slots: int | None, *, timeout: None = None, **options: Unpack[SemaphoreOptions[Lease]]
    ) -> SemaphoreT: ...

    @overload
    def semaphore(
        self, name: str, slots: int | None, *, timeout: Seconds | None, **options: Unpack[SemaphoreOptions[Lease]]
    ) -> TimedSemaphore: ...

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
        on_lost: Callable[[Any], object] | None = None,
        on_asked: Callable[[Any], object] | None = None,
        handle: str | None = None,
    ) -> Any:
        """Return a semaphore: at most `slots` in use at once (None: the number that is stored). Options as for `lock`.

        While it is in use, another number is a ConfigError. After `resize` the number that was set there applies.
        """
        capacity = 0 if slots is None else validate.slots(slots)
        options = lease, max_hold, at_least, fair, False, note, on_lost, on_asked, handle
        return self._semaphore_type(self, self._request(name, capacity, 1, options), validate.timeout(timeout), False)

    def _request(self, name: str, capacity: int, weight: int, options: tuple[Any, ...]) -> LockRequest:
        plain = weight == EXCLUSIVE and options == (None, None, None, True, True, "", None, None, None)
        if plain and type(name) is str and name in self._plain:
            return self._plain[name]
        lease, max_hold, at_least, fair, handoff, note, on_lost, on_asked, handle = options
        request = LockRequest(
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
            "" if handle is None else _mark(name, handle),
            validate.callback(on_asked, "on_asked"),
        )
        if plain:
            if len(self._plain) >= KNOWN:
                self._plain.clear()
            self._plain[name] = request
        return request

    def lock_all(self, *names_or_locks: str | LockT | TimedLock, timeout: Seconds | None = None) -> All:
        """Hold all of these at once, or none. They are acquired in the order of their names, under one deadline.

        Returns a context manager for one use. It enters with a mapping from name to Lease, or raises LockTimeout.
        """
        kind = self._lock_type
        locks: list[Any] = [x if isinstance(x, kind) else self.lock(validate.of_lock_all(x)) for x in names_or_locks]
        if len({x.name for x in locks}) != len(locks):
            raise ConfigError("lock_all() was given the same name twice; it would wait for itself.")
        return self._all_type(locks, validate.timeout(timeout))  # type: ignore[no-any-return]

    def _guard(self, guarded: Any, name_or_function: Any, skip: bool, options: dict[str, Any]) -> Any:
        """Decorate a function by `guarded`, which holds a lock while it runs."""
        from .decorator_names import CallNames, fill

        if callable(name_or_function):
            lock: Any = self.lock(CallNames(name_or_function, self._session.runtime.blocking).full_name)
            return guarded(name_or_function, lambda _: lock)
        template = validate.name(name_or_function)
        self.lock("x", **options)  # bad options are an error where they are written, not in the first call
        return lambda function: guarded(
            function, lambda arguments: self.lock(fill(template, arguments), **options), skip
        )

    def __del__(self) -> None:
        session = getattr(self, "_session", None)
        if session is not None and session.holders() and not session.closed:
            warn_dropped(session)


def _mark(name: str, handle: str) -> str:
    from .lease_handles import mark  # here, because most programs use no handles

    return mark(name, validate.handle(handle))
