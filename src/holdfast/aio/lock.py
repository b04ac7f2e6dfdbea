"""Lock, RWLock and Semaphore for tasks. They differ in two numbers only: capacity and weight."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, cast, overload

from ..backends import patience
from ..backends.contract import Unknown
from ..backends.in_time import in_time
from ..doorman import ALL
from ..errors import NotHeld
from ..flow import call_off, check, enter, look, soon
from ..flow.call_off import Cancel
from ..flow.check import OWN, Seconds
from ..flow.pickling import NotPickled
from ..flow.wish import Wish
from .lease import Lease

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # known to every checker; a default needs Python 3.13 otherwise

    from .locks import Locks

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

    __slots__ = ("__dict__", "__weakref__", "_desk", "_holds", "_locks", "_reentrant", "_timeout", "_wish")

    def __init__(self, locks: Locks, wish: Wish, timeout: float | None, reentrant: bool) -> None:
        self._locks = locks
        self._desk = locks._desk
        self._wish = wish
        self._timeout = timeout
        self._reentrant = reentrant
        self._holds: list[Lease] = []

    @property
    def name(self) -> str:
        return self._wish.name

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
        """A Lease, or None if it was not to be had in time: None or -1 = wait for ever, 0 or blocking=False = try.

        BackendError if the store cannot be reached to begin with. Cancellation leaves nothing behind.
        cancel: an Event; soon after another thread or task sets it, the wait is over and returns None.
        """
        return await self._get(self._wish, self._limit(blocking, timeout), cancel)

    def hold(self, *, timeout: Seconds | None = OWN, note: str | None = None) -> Holding:
        """A context manager for one use: enters with a Lease, or LockTimeout."""
        wish = self._wish if note is None else self._wish.but(note=check.label(note, "A note"))
        return Holding(self, wish, self._limit(True, timeout))

    async def release(self) -> None:
        """Release this task's newest lease of this object, else the oldest. NotHeld if there is none."""
        await self._newest().release()

    def locked(self) -> Asking[bool]:
        """Whether a try would be refused at this moment. Asks the store."""
        return Asking(look.refused_now(self._locks._here(), self._wish))

    @property
    def held(self) -> bool:
        """Whether this object holds it, as far as the clock tells. Asks nobody."""
        return any(h.held for h in list(self._holds))

    def _limit(self, blocking: bool, timeout: Seconds | None) -> float | None:
        if timeout is OWN:
            return self._timeout if blocking else 0.0
        return check.blocking(blocking, timeout)

    async def _get(self, wish: Wish, limit: float | None, cancel: Cancel | None = None) -> Lease | None:
        desk = self._desk
        lease = Lease(desk, wish, self._locks._colour.task())
        before = None if limit is None else patience.begin(limit)
        try:
            if cancel is not None:
                call_off.begin(desk, lease, cancel)
            asked = self._knock(lease, limit)
            try:
                had = asked is not None and soon.sit(desk, lease, await (asked if before is None else in_time(asked)))
            except (Unknown, TimeoutError):
                had = False  # it was said, and perhaps heard: it is said again, by the same ticket
            if not had and not await enter.get(desk, lease, limit, self._reentrant):
                return None
            lease._home = cast(Any, self._holds)
            self._holds.append(lease)
            return lease
        except BaseException:
            await desk.colour.shield(enter.undo(desk, lease))
            raise
        finally:
            if before is not None:
                patience.end(before)
            if cancel is not None:
                call_off.end(desk, lease)

    def _knock(self, lease: Lease, limit: float | None) -> Awaitable[Any] | None:
        """Say what it wants, if that takes one message: its answer is to be awaited."""
        desk = self._desk
        if limit is None:
            who = lease._who
            for other in self._holds:
                if other._who is who:
                    lease._warn_at = desk.clock() + 1.0
            for entered in desk.entered.get(who, ()):
                if entered._wish.name == lease._wish.name:
                    return None
        return None if self._reentrant else soon.knock(desk, lease)

    async def _enter(self, lease: Lease, limit: float | None, by: object, frame: FrameType) -> Lease:
        """By `async with`, which stands in this frame."""
        desk = self._desk
        before = None if limit is None else patience.begin(limit)
        try:
            if self._holds or lease._who in desk.entered or self._reentrant:
                asked = self._knock(lease, limit)
            else:
                asked = soon.knock(desk, lease)
            try:
                had = asked is not None and soon.sit(desk, lease, await (asked if before is None else in_time(asked)))
            except (Unknown, TimeoutError):
                had = False
            if not had and not await enter.get(desk, lease, limit, self._reentrant):
                raise await enter.timed_out(desk, lease, limit or 0.0)
            lease._home = holds = self._holds  # type: ignore[assignment]
            holds.append(lease)
            lease._by = by
            enter.enter(desk, lease, frame)
            lease._watch(lease._who)  # type: ignore[arg-type]
            return lease
        except BaseException:
            await desk.colour.shield(enter.undo(desk, lease))
            raise
        finally:
            if before is not None:
                patience.end(before)

    def _newest(self) -> Lease:
        who = self._locks._colour.task()
        holds = [h for h in list(self._holds) if not h._released]
        if not holds:
            raise NotHeld(f"{self.name!r} is not held by this object, so there is nothing to release.")
        return next((h for h in reversed(holds) if h._who == who), holds[0])

    def __aenter__(self) -> Coroutine[Any, Any, Lease]:
        desk = self._desk
        lease = Lease(desk, self._wish, desk.colour.task())  # type: ignore[attr-defined]
        return self._enter(lease, self._timeout, self, sys._getframe(1))

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> Coroutine[Any, Any, None]:
        desk = self._desk
        who = desk.colour.task()  # type: ignore[attr-defined]
        for lease in reversed(desk.entered.get(who, ())):
            if lease._by is self:
                return lease._leave(error)  # type: ignore[attr-defined, no-any-return]
        raise NotHeld(f"This task leaves {self.name!r} without having entered it. Use hold() across tasks.")

    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
        from .guard import guarded

        return guarded(function, lambda _: self)

    def __repr__(self) -> str:
        state = "locked" if self.held else "unlocked"
        return f"<{state} holdfast.aio.{type(self).__name__} object {self.name!r} at {id(self):#x}>"


class Holding(NotPickled):
    """One use of a lock as a context manager. It may be left by another task than the one that entered."""

    def __init__(self, lock: Lock, wish: Wish, limit: float | None) -> None:
        self._lock = lock
        self._wish = wish
        self._limit = limit
        self._lease: Lease | None = None

    def __aenter__(self) -> Coroutine[Any, Any, Lease]:
        return self._enter(sys._getframe(1))

    async def _enter(self, frame: FrameType) -> Lease:
        if self._lease is not None:
            raise RuntimeError("hold() is for one use; call it again for another.")
        lock = self._lock
        lease = self._lease = Lease(lock._desk, self._wish, lock._locks._colour.task())
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

    def __init__(self, locks: Locks, wish: Wish, timeout: float | None, reentrant: bool) -> None:
        self._read: Lock[T] = Lock(locks, wish.but(weight=1), timeout, reentrant)
        self._write: Lock[T] = Lock(locks, wish.but(weight=ALL), timeout, reentrant)
        self.name = wish.name

    def read(self) -> Lock[T]:
        """The lock of a reader."""
        return self._read

    def write(self) -> Lock[T]:
        """The lock of the writer."""
        return self._write


class Semaphore(Lock[T]):
    """At most so many slots in use at once. Each acquire takes one, or as many as its weight says."""

    @property
    def slots(self) -> int | None:
        """How many slots this client says there are; None: as stored."""
        return self._wish.capacity or None

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
        wish = self._wish.but(weight=check.weight(weight, self._wish.capacity))
        return await self._get(wish, self._limit(blocking, timeout), cancel)

    def hold(self, *, timeout: Seconds | None = OWN, note: str | None = None, weight: int = 1) -> Holding:
        wish = self._wish.but(weight=check.weight(weight, self._wish.capacity))
        if note is not None:
            wish = wish.but(note=check.label(note, "A note"))
        return Holding(self, wish, self._limit(True, timeout))
