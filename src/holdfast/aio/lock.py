"""Lock, RWLock and Semaphore for tasks. They differ in two numbers only: capacity and weight."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

from ..doorman import ALL
from ..errors import NotHeld
from ..flow import check, enter, look
from ..flow.check import OWN, Seconds
from ..flow.wish import Wish
from .lease import Lease

if TYPE_CHECKING:
    from .locks import Locks

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


class Lock:
    """A lock that spans threads, processes and machines. Nothing is sent before the first acquire."""

    def __init__(self, locks: Locks, wish: Wish, timeout: float | None, reentrant: bool) -> None:
        self._locks = locks
        self._desk = locks._desk
        self._wish = wish
        self._timeout = timeout
        self._reentrant = reentrant
        self._holds: list[Lease] = []
        self._entered: dict[object, list[Lease]] = {}

    @property
    def name(self) -> str:
        return self._wish.name

    async def acquire(self, blocking: bool = True, timeout: Seconds | None = OWN) -> Lease | None:
        """A Lease, or None if it was not to be had in time: None or -1 = wait for ever, 0 or blocking=False = try.

        BackendError if the store cannot be reached to begin with. Cancellation leaves nothing behind.
        """
        return await self._get(self._wish, self._limit(blocking, timeout))

    def hold(self, *, timeout: Seconds | None = OWN, note: str | None = None) -> Holding:
        """A context manager for one use: enters with a Lease, or LockTimeout."""
        wish = self._wish if note is None else self._wish.but(note=check.label(note, "A note"))
        return Holding(self, wish, self._limit(True, timeout))

    async def release(self) -> None:
        """Release this task's newest lease of this object, else the oldest. NotHeld if there is none."""
        await self._newest().release()

    def locked(self) -> Asking[bool]:
        """Whether a try would be refused at this moment. Asks the store."""
        return Asking(look.refused_now(self._desk, self._wish))

    @property
    def held(self) -> bool:
        """Whether this object holds it, as far as the clock tells. Asks nobody."""
        return any(h.held for h in list(self._holds))

    def _limit(self, blocking: bool, timeout: Seconds | None) -> float | None:
        if timeout is OWN:
            return self._timeout if blocking else 0.0
        return check.blocking(blocking, timeout)

    async def _get(self, wish: Wish, limit: float | None) -> Lease | None:
        lease = self._lease(wish)
        try:
            return lease if await self._gets(lease, limit) else None
        except BaseException:
            await self._desk.colour.shield(enter.undo(self._desk, lease))
            raise

    def _lease(self, wish: Wish) -> Lease:
        self._locks._colour.check_loop()
        return Lease(self._desk, wish, self._desk.colour.current())

    async def _gets(self, lease: Lease, limit: float | None) -> bool:
        """Whether it is had in time. On any exception: undo."""
        desk = self._desk
        if limit is None and any(h._who == lease._who for h in self._holds):
            lease._warn_at = desk.clock() + 1.0
        if not await enter.get_soon(desk, lease, limit, self._reentrant):
            if not await enter.get(desk, lease, limit, self._reentrant):
                return False
        lease._home = cast(Any, self._holds)
        self._holds.append(lease)
        return True

    def _newest(self) -> Lease:
        who = self._desk.colour.current()
        holds = [h for h in list(self._holds) if not h._released]
        if not holds:
            raise NotHeld(f"{self.name!r} is not held by this object, so there is nothing to release.")
        return next((h for h in reversed(holds) if h._who == who), holds[0])

    async def __aenter__(self) -> Lease:
        lease = await Holding(self, self._wish, self._timeout).enter(4)
        self._entered.setdefault(lease._who, []).append(lease)
        return lease

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        who = self._desk.colour.current()
        stack = self._entered.get(who)
        if not stack:
            raise NotHeld(f"This task leaves {self.name!r} without having entered it. Use hold() across tasks.")
        lease = stack.pop()
        if not stack:
            del self._entered[who]
        await lease._leave(error)

    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
        from .guard import guarded

        return guarded(function, lambda _: self)

    def __repr__(self) -> str:
        state = "locked" if self.held else "unlocked"
        return f"<{state} holdfast.aio.{type(self).__name__} object {self.name!r} at {id(self):#x}>"


class Holding:
    """One use of a lock as a context manager. It may be left by another task than the one that entered."""

    def __init__(self, lock: Lock, wish: Wish, limit: float | None) -> None:
        self._lock = lock
        self._wish = wish
        self._limit = limit
        self._lease: Lease | None = None

    async def __aenter__(self) -> Lease:
        return await self.enter(4)

    async def enter(self, depth: int) -> Lease:
        if self._lease is not None:
            raise RuntimeError("hold() is for one use; call it again for another.")
        desk = self._lock._desk
        lease = self._lock._lease(self._wish)
        try:
            if not await self._lock._gets(lease, self._limit):
                raise await enter.timed_out(desk, lease, self._limit or 0.0)
            lease._enter(depth)
            self._lease = lease
            return lease
        except BaseException:
            await desk.colour.shield(enter.undo(desk, lease))
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        assert self._lease is not None
        await self._lease._leave(error)


class RWLock:
    """One writer or many readers. `.write()` is the same resource as `lock(name)`."""

    def __init__(self, locks: Locks, wish: Wish, timeout: float | None, reentrant: bool) -> None:
        self._read = Lock(locks, wish.but(weight=1), timeout, reentrant)
        self._write = Lock(locks, wish.but(weight=ALL), timeout, reentrant)
        self.name = wish.name

    def read(self) -> Lock:
        """The lock of a reader."""
        return self._read

    def write(self) -> Lock:
        """The lock of the writer."""
        return self._write


class Semaphore(Lock):
    """At most so many slots in use at once. Each acquire takes one, or as many as its weight says."""

    @property
    def slots(self) -> int | None:
        """How many slots this client says there are; None: as stored."""
        return self._wish.capacity or None

    async def acquire(self, blocking: bool = True, timeout: Seconds | None = OWN, *, weight: int = 1) -> Lease | None:
        wish = self._wish.but(weight=check.weight(weight, self._wish.capacity))
        return await self._get(wish, self._limit(blocking, timeout))

    def hold(self, *, timeout: Seconds | None = OWN, note: str | None = None, weight: int = 1) -> Holding:
        wish = self._wish.but(weight=check.weight(weight, self._wish.capacity))
        if note is not None:
            wish = wish.but(note=check.label(note, "A note"))
        return Holding(self, wish, self._limit(True, timeout))
