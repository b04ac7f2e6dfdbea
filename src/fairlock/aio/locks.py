"""Lock, RWLock and Semaphore for tasks. They differ in two numbers only: capacity and weight."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, overload

from ..engine import cancel_event, events, snapshots, with_block
from ..engine.accept_batch import accept_grants
from ..engine.acquire import acquire as wait
from ..engine.acquire import begin_acquire
from ..engine.cancel_event import Cancel
from ..engine.events import report_acquired
from ..engine.lock_base import HoldingBase, LockBase, RWLockBase, SemaphoreBase
from ..engine.release import briefly
from ..engine.request import LockRequest
from ..engine.validate import OWN, Seconds
from ..errors import StoreError
from ..stores import deadline
from ..stores.async_deadline import in_time
from ..stores.base import OutcomeUnknown
from .lease import Lease

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # known to every checker; a default needs Python 3.13 otherwise

    T = TypeVar("T", bound=Lease | None, default=Lease | None, covariant=True)
else:
    from typing import TypeVar

    T = TypeVar("T")  # what a plain acquire() gives: None as well, if this lock has a timeout of its own

P = ParamSpec("P")
R = TypeVar("R")
modules = sys.modules


class Asking(Generic[R]):
    """An answer that has to be awaited. `if lock.locked():` without await fails loudly instead of being always true."""

    def __init__(self, work: Coroutine[Any, Any, R]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, Any, R]:
        return self._work.__await__()

    def __bool__(self) -> bool:
        self._work.close()
        raise TypeError("This has to be awaited: `if await lock.locked():`")


class Lock(LockBase["Holding"], Generic[T]):
    """A lock that spans threads, processes and machines. Nothing is sent before the first acquire."""

    __slots__ = ()

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

    async def release(self) -> None:
        """Release this task's newest lease of this object, else the oldest. NotHeld if there is none."""
        await self._newest(self._locks._runtime.task()).release()

    def locked(self) -> Asking[bool]:
        """Return True if an attempt would be refused at this moment. Asks the store."""
        return Asking(snapshots.refused_now(self._locks._here(), self._request))

    async def _get(self, request: LockRequest, limit: float | None, cancel: Cancel | None = None) -> Lease | None:
        lease = Lease(self._session, request, self._locks._runtime.task())
        if cancel is None:
            return await self._acquire(lease, limit)
        cancel_event.begin(self._session, lease, cancel)
        try:
            return await self._acquire(lease, limit)
        finally:
            cancel_event.end(self._session, lease)

    async def _acquire(self, lease: Lease, limit: float | None, by: object = None, depth: int = 0) -> Lease | None:
        """Acquire: begin, one exchange with the store, finish; then wait if that is needed. None: not in time.

        by: the context manager of an `async with`, which raises LockTimeout; depth: how many frames above this one the
        statement is. Its frame is not needed before it is entered: an object fewer for each task that waits.
        """
        session = self._session
        before = None if limit is None else deadline.begin(limit)
        try:
            home = self._holds
            if home and limit is None:
                self._warn_later(lease)
            until = session.clock() + limit if limit else None
            fields = None if self._reentrant else begin_acquire(session, lease, limit == 0, True)
            had: bool | None = None
            if fields is not None:
                grant = lease._grant
                acquire_soon = session.backend.acquire_soon
                asked = acquire_soon(lease._request.name, grant.ticket, fields, lease, accept_grants)
                try:
                    if asked is not None:
                        had = await (asked if before is None else in_time(asked))
                    if had is None:
                        grant.doubtful = False  # it was not sent, or has done nothing
                except (OutcomeUnknown, StoreError, TimeoutError):
                    pass  # it may have arrived: it is repeated with the same ticket
            if had:
                if session.on_event is not None or (events.quiet_levels.get(10, True) and "logging" in modules):
                    report_acquired(session, lease)
            elif not await (
                with_block.get(session, lease, limit, True) if self._reentrant
                else wait(session, lease, until, limit == 0)
            ):  # fmt: skip
                if not depth:
                    return None
                raise await with_block.timed_out(session, lease, limit or 0.0)
            lease._home = home
            home.append(lease)
            if depth:
                entered, frame = session.entered, sys._getframe(depth)
                task: Any = lease._who
                lease._outer = entered.get(task)
                lease._by, lease._instruction, lease._entered = by, frame.f_lasti, frame
                entered[task] = lease
                grant, lease._task, lease._cancelled = lease._grant, task, False  # as `_watch` does
                lease._cancelling, lease._watched = task.cancelling(), True
                if not session.watching or grant.deadline < session.watch_at or grant.cap < session.watch_at:
                    lease._watch(task)
            return lease
        except BaseException:
            await session.runtime.shield(briefly(with_block.undo(session, lease)))
            raise
        finally:
            if before is not None:
                deadline.end(before)

    def _warn_later(self, lease: Lease) -> None:
        """If this task holds this very object already, it may wait forever: it is warned of that."""
        if any(other._who is lease._who for other in self._holds):
            lease._warn_at = self._session.clock() + 1.0

    def __aenter__(self) -> Coroutine[Any, Any, Lease]:
        session = self._session
        lease = Lease(session, self._request, session.runtime.task())  # type: ignore[attr-defined]
        return self._acquire(lease, self._timeout, self, 1)  # type: ignore[return-value]

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> Coroutine[Any, Any, None]:
        session = self._session
        who = session.runtime.task()  # type: ignore[attr-defined]
        lease: Any = session.entered.get(who)
        if lease is None or lease._by is not self:
            lease = self._last_entered(who)
        return lease._leave(error)  # type: ignore[no-any-return]

    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
        from .decorator import guarded

        return guarded(function, lambda _: self)


class Holding(HoldingBase):
    """One use of a lock as a context manager. It may be left by another task than the one that entered."""

    async def __aenter__(self) -> Lease:
        lock = self._made_by
        self._begin(Lease(lock._session, self._request, lock._locks._runtime.task()))
        try:
            return await lock._acquire(self._hold, self._limit, self, 2)  # type: ignore[no-any-return]
        except BaseException:
            self._hold = None
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self._hold._leave(error)


class RWLock(RWLockBase[Lock[T]], Generic[T]):
    """One writer or many readers. `.write()` is the same resource as `lock(name)`."""


class Semaphore(SemaphoreBase["Holding"], Lock[T]):
    """A limited number of slots. Each acquire takes one slot, or as many as its weight."""

    __slots__ = ()

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
        return await self._get(self._request_for(weight), self._limit(blocking, timeout), cancel)


Lock._holding_type = Holding
