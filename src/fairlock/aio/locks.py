"""Lock, RWLock and Semaphore for tasks. They differ in two numbers only: capacity and weight."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, cast, overload

from ..engine import admin, async_fast_acquire, cancel_event, validate, with_block
from ..engine.cancel_event import Cancel
from ..engine.pickling import NotPickled
from ..engine.request import LockRequest
from ..engine.validate import OWN, Seconds
from ..errors import NotHeld
from ..rules.locks import EXCLUSIVE
from ..stores import deadline
from ..stores.async_deadline import in_time
from ..stores.base import OutcomeUnknown
from .lease import Lease

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # known to every checker; a default needs Python 3.13 otherwise

    from .client import Locks

    T = TypeVar("T", bound=Lease | None, default=Lease | None, covariant=True)
else:
    from typing import TypeVar

    T = TypeVar("T")  # what a plain acquire() gives: None as well, if this lock has a timeout of its own

P = ParamSpec("P")
R = TypeVar("R")


class Asking(Generic[R]):
    """An answer that has to be awaited. `if lock.locked():` without await fails loudly instead of being always true."""

    def __init__(self, work: Coroutine[Any, Any, R]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, Any, R]:
        return self._work.__await__()

    def __bool__(self) -> bool:
        self._work.close()
        raise TypeError("This has to be awaited: `if await lock.locked():`")


class Lock(NotPickled, Generic[T]):
    """A lock that spans threads, processes and machines. Nothing is sent before the first acquire."""

    __slots__ = ("__dict__", "__weakref__", "_holds", "_locks", "_reentrant", "_request", "_session", "_timeout")

    def __init__(self, locks: Locks, request: LockRequest, timeout: float | None, reentrant: bool) -> None:
        self._locks = locks
        self._session = locks._session
        self._request = request
        self._timeout = timeout
        self._reentrant = reentrant
        self._holds: list[Lease] = []

    @property
    def name(self) -> str:
        return self._request.name

    @overload
    async def acquire(self, blocking: Literal[True] = True) -> T: ...

    @overload
    async def acquire(self, blocking: Literal[True] = True, *, timeout: None) -> Lease: ...

    @overload
    async def acquire(
        self, blocking: bool = True, timeout: Seconds | None = OWN, *, cancel: Cancel | None = None
    ) -> Lease | None: ...

    async def acquire(
        self, blocking: bool = True, timeout: Seconds | None = OWN, *, cancel: Cancel | None = None
    ) -> Lease | None:
        """Return a Lease, or None if it could not be acquired in time: None or -1 = wait forever, 0 = only try.

        StoreError if the store cannot be reached at the start. blocking=False is timeout=0. Cancellation leaves
        nothing behind. cancel: an Event; soon after another thread or task sets it, the wait ends and returns None.
        """
        return await self._get(self._request, self._limit(blocking, timeout), cancel)

    def hold(self, *, timeout: Seconds | None = OWN, note: str | None = None) -> Holding:
        """Return a context manager for one use. It enters with a Lease, or raises LockTimeout."""
        request = self._request if note is None else self._request.but(note=validate.label(note, "A note"))
        return Holding(self, request, self._limit(True, timeout))

    async def release(self) -> None:
        """Release this task's newest lease of this object, else the oldest. NotHeld if there is none."""
        await self._newest().release()

    def locked(self) -> Asking[bool]:
        """Return True if an attempt would be refused at this moment. Asks the store."""
        return Asking(admin.refused_now(self._locks._here(), self._request))

    @property
    def held(self) -> bool:
        """True if this object holds it, by the client's own clock. Sends nothing."""
        return any(h.held for h in list(self._holds))

    def _limit(self, blocking: bool, timeout: Seconds | None) -> float | None:
        if timeout is OWN:
            return self._timeout if blocking else 0.0
        return validate.blocking(blocking, timeout)

    async def _get(self, request: LockRequest, limit: float | None, cancel: Cancel | None = None) -> Lease | None:
        session = self._session
        lease = Lease(session, request, self._locks._runtime.task())
        before = None if limit is None else deadline.begin(limit)
        try:
            if cancel is not None:
                cancel_event.begin(session, lease, cancel)
            asked = self._knock(lease, limit)
            try:
                had = asked is not None and async_fast_acquire.sit(
                    session, lease, await (asked if before is None else in_time(asked))
                )
            except (OutcomeUnknown, TimeoutError):
                had = False  # it was sent and perhaps arrived: it is repeated, with the same ticket
            if not had and not await with_block.get(session, lease, limit, self._reentrant):
                return None
            lease._home = cast(Any, self._holds)
            self._holds.append(lease)
            return lease
        except BaseException:
            await session.runtime.shield(with_block.undo(session, lease))
            raise
        finally:
            if before is not None:
                deadline.end(before)
            if cancel is not None:
                cancel_event.end(session, lease)

    def _knock(self, lease: Lease, limit: float | None) -> Awaitable[Any] | None:
        """Send the request now if it is one message, and return its reply to be awaited."""
        session = self._session
        if limit is None:
            who = lease._who
            for other in self._holds:
                if other._who is who:
                    lease._warn_at = session.clock() + 1.0
            for entered in session.entered.get(who, ()):
                if entered._request.name == lease._request.name:
                    return None
        return None if self._reentrant else async_fast_acquire.knock(session, lease)

    async def _enter(self, lease: Lease, limit: float | None, by: object, frame: FrameType) -> Lease:
        """By `async with`, which stands in this frame."""
        session = self._session
        before = None if limit is None else deadline.begin(limit)
        try:
            if self._holds or lease._who in session.entered or self._reentrant:
                asked = self._knock(lease, limit)
            else:
                asked = async_fast_acquire.knock(session, lease)
            try:
                had = asked is not None and async_fast_acquire.sit(
                    session, lease, await (asked if before is None else in_time(asked))
                )
            except (OutcomeUnknown, TimeoutError):
                had = False
            if not had and not await with_block.get(session, lease, limit, self._reentrant):
                raise await with_block.timed_out(session, lease, limit or 0.0)
            lease._home = holds = self._holds  # type: ignore[assignment]
            holds.append(lease)
            lease._by = by
            with_block.enter(session, lease, frame)
            lease._watch(lease._who)  # type: ignore[arg-type]
            return lease
        except BaseException:
            await session.runtime.shield(with_block.undo(session, lease))
            raise
        finally:
            if before is not None:
                deadline.end(before)

    def _newest(self) -> Lease:
        who = self._locks._runtime.task()
        holds = [h for h in list(self._holds) if not h._released]
        if not holds:
            raise NotHeld(f"{self.name!r} is not held by this object, so there is nothing to release.")
        return next((h for h in reversed(holds) if h._who == who), holds[0])

    def __aenter__(self) -> Coroutine[Any, Any, Lease]:
        session = self._session
        lease = Lease(session, self._request, session.runtime.task())  # type: ignore[attr-defined]
        return self._enter(lease, self._timeout, self, sys._getframe(1))

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> Coroutine[Any, Any, None]:
        session = self._session
        who = session.runtime.task()  # type: ignore[attr-defined]
        for lease in reversed(session.entered.get(who, ())):
            if lease._by is self:
                return lease._leave(error)  # type: ignore[attr-defined, no-any-return]
        raise NotHeld(f"This task leaves {self.name!r} without having entered it. Use hold() across tasks.")

    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
        from .decorator import guarded

        return guarded(function, lambda _: self)

    def __repr__(self) -> str:
        state = "locked" if self.held else "unlocked"
        return f"<{state} fairlock.aio.{type(self).__name__} object {self.name!r} at {id(self):#x}>"


class Holding(NotPickled):
    """One use of a lock as a context manager. It may be left by another task than the one that entered."""

    def __init__(self, lock: Lock, request: LockRequest, limit: float | None) -> None:
        self._lock = lock
        self._request = request
        self._limit = limit
        self._lease: Lease | None = None

    def __aenter__(self) -> Coroutine[Any, Any, Lease]:
        return self._enter(sys._getframe(1))

    async def _enter(self, frame: FrameType) -> Lease:
        if self._lease is not None:
            raise RuntimeError("hold() is for one use; call it again for another.")
        lock = self._lock
        lease = self._lease = Lease(lock._session, self._request, lock._locks._runtime.task())
        try:
            return await lock._enter(lease, self._limit, self, frame)
        except BaseException:
            self._lease = None
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        assert self._lease is not None
        await self._lease._leave(error)


class RWLock(NotPickled, Generic[T]):
    """One writer or many readers. `.write()` is the same resource as `lock(name)`."""

    def __init__(self, locks: Locks, request: LockRequest, timeout: float | None, reentrant: bool) -> None:
        self._read: Lock[T] = Lock(locks, request.but(weight=1), timeout, reentrant)
        self._write: Lock[T] = Lock(locks, request.but(weight=EXCLUSIVE), timeout, reentrant)
        self.name = request.name

    def read(self) -> Lock[T]:
        """Return the lock for a reader."""
        return self._read

    def write(self) -> Lock[T]:
        """Return the lock for a writer."""
        return self._write


class Semaphore(Lock[T]):
    """A limited number of slots. Each acquire takes one slot, or as many as its weight."""

    @property
    def slots(self) -> int | None:
        """The number of slots that this client asks for; None: the stored number."""
        return self._request.capacity or None

    @overload
    async def acquire(self, blocking: Literal[True] = True, *, weight: int = 1) -> T: ...

    @overload
    async def acquire(self, blocking: Literal[True] = True, *, timeout: None, weight: int = 1) -> Lease: ...

    @overload
    async def acquire(
        self, blocking: bool = True, timeout: Seconds | None = OWN, *, weight: int = 1, cancel: Cancel | None = None
    ) -> Lease | None: ...

    async def acquire(
        self, blocking: bool = True, timeout: Seconds | None = OWN, *, weight: int = 1, cancel: Cancel | None = None
    ) -> Lease | None:
        request = self._request.but(weight=validate.weight(weight, self._request.capacity))
        return await self._get(request, self._limit(blocking, timeout), cancel)

    def hold(self, *, timeout: Seconds | None = OWN, note: str | None = None, weight: int = 1) -> Holding:
        request = self._request.but(weight=validate.weight(weight, self._request.capacity))
        if note is not None:
            request = request.but(note=validate.label(note, "A note"))
        return Holding(self, request, self._limit(True, timeout))
