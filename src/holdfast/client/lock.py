"""Lock, RWLock and Semaphore for threads. They differ in two numbers only: capacity and weight."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Literal, ParamSpec, cast, overload

from ..backends import patience
from ..doorman import ALL
from ..errors import NotHeld
from ..flow import call_off, check, enter, look
from ..flow.call_off import Cancel
from ..flow.check import OWN, Seconds
from ..flow.pickling import NotPickled
from ..flow.run import run
from ..flow.short import enter as enter_at_once
from ..flow.short import leave as leave_at_once
from ..flow.wish import Wish
from .behind import behind
from .colour import me
from .lease import Lease, leave_again, leave_surely, release_surely, undo_surely

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # known to every checker; a default needs Python 3.13 otherwise

    from .locks import Locks

    T = TypeVar("T", bound=Lease | None, default=Lease | None, covariant=True)
else:
    from typing import TypeVar

    T = TypeVar("T")  # what a plain acquire() gives: None as well, if this lock has a timeout of its own

P = ParamSpec("P")
R = TypeVar("R")


class Lock(NotPickled, Generic[T]):
    """A lock that spans threads, processes and machines. Nothing is sent before the first acquire."""

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
    def acquire(self, blocking: Literal[True] = True) -> T: ...

    @overload
    def acquire(self, blocking: Literal[True] = True, *, timeout: None) -> Lease: ...

    @overload
    def acquire(
        self, blocking: bool = True, timeout: Seconds | None = OWN, *, cancel: Cancel | None = None
    ) -> Lease | None: ...

    def acquire(
        self, blocking: bool = True, timeout: Seconds | None = OWN, *, cancel: Cancel | None = None
    ) -> Lease | None:
        """A Lease, or None if it was not to be had in time: None or -1 = wait for ever, 0 or blocking=False = try.

        BackendError if the store cannot be reached to begin with. Ctrl-C leaves nothing behind.
        cancel: an Event; soon after another thread or task sets it, the wait is over and returns None.
        """
        return self._get(self._wish, self._limit(blocking, timeout), cancel)

    def hold(self, *, timeout: Seconds | None = OWN, note: str | None = None) -> Holding:
        """A context manager for one use: enters with a Lease, or LockTimeout."""
        wish = self._wish if note is None else self._wish.but(note=check.label(note, "A note"))
        return Holding(self, wish, self._limit(True, timeout))

    def release(self) -> None:
        """Release this thread's newest lease of this object, else the oldest. NotHeld if there is none."""
        self._newest().release()

    def locked(self) -> bool:
        """Whether a try would be refused at this moment. Asks the store."""
        return run(look.refused_now(self._desk, self._wish))

    @property
    def held(self) -> bool:
        """Whether this object holds it, as far as the clock tells. Asks nobody."""
        return any(h.held for h in list(self._holds))

    def _limit(self, blocking: bool, timeout: Seconds | None) -> float | None:
        if timeout is OWN:
            return self._timeout if blocking else 0.0
        return check.blocking(blocking, timeout)

    def _get(self, wish: Wish, limit: float | None, cancel: Cancel | None = None) -> Lease | None:
        lease = Lease(self._desk, wish, me.token)
        try:  # around everything: a Ctrl-C between any two lines must not leave it held
            if limit is not None:
                patience.begin(limit)
            if cancel is not None:
                call_off.begin(self._desk, lease, cancel)
            at_once = not self._reentrant and enter_at_once(self._desk, lease, limit == 0)
            had = at_once or self._waits(lease, limit)
            if had:
                home = lease._home = self._holds  # type: ignore[assignment]
                home.append(lease)
            if limit is not None:
                patience.end()
            if cancel is not None:
                call_off.end(self._desk, lease)
            return lease if had else None
        except BaseException:
            undo_surely(lease)
            patience.end()
            call_off.end(self._desk, lease)
            raise

    def _waits(self, lease: Lease, limit: float | None) -> bool:
        """The long way. Whether it is had in time; on any exception: undo."""
        desk = self._desk
        began = desk.clock()
        if limit != 0 and lease._seat.leader is not lease and not self._reentrant and lease._who not in desk.entered:
            if behind(desk, lease, limit):
                return True
            if limit:
                limit = max(limit - (desk.clock() - began), 0.000_001)
        if limit is None and any(h._who is lease._who for h in list(self._holds)):
            lease._warn_at = began + 1.0
        return run(enter.get(desk, lease, limit, self._reentrant))

    def _newest(self) -> Lease:
        who = me.token
        holds = [h for h in list(self._holds) if not h._released]
        if not holds:
            raise NotHeld(f"{self.name!r} is not held by this object, so there is nothing to release.")
        return next((h for h in reversed(holds) if h._who is who), holds[0])

    def __enter__(self) -> Lease:
        return self._enter(Lease(self._desk, self._wish, me.token), self._timeout, self)

    def _enter(self, lease: Lease, limit: float | None, by: object) -> Lease:
        """By the `with` of the caller's caller."""
        desk = self._desk
        try:
            if limit is not None:
                patience.begin(limit)
            if self._reentrant or not enter_at_once(desk, lease, limit == 0):
                if not self._waits(lease, limit):
                    raise run(enter.timed_out(desk, lease, limit or 0.0))
            home = lease._home = self._holds  # type: ignore[assignment]
            home.append(lease)
            lease._by = by
            enter.enter(desk, lease, sys._getframe(2))
            if limit is not None:
                patience.end()
            return lease
        except BaseException:
            undo_surely(lease)
            patience.end()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        lease = None
        desk = self._desk
        try:
            lease = self._last_entered()
            enter.no_longer_entered(desk, lease)
            if not leave_at_once(desk, lease):
                run(enter.leave(desk, lease, error))
        except KeyboardInterrupt:  # before it was left, or after: either way it is left now, and once
            leave_again(lease or self._last_entered(), error)
            raise

    def _last_entered(self) -> Lease:
        """The lease with which this thread's `with` of this very object was entered."""
        stack = self._desk.entered.get(me.token, ())
        if stack and stack[-1]._by is self:
            return stack[-1]  # type: ignore[return-value]
        for lease in reversed(stack):
            if lease._by is self:
                return cast(Lease, lease)
        raise NotHeld(f"This thread leaves {self.name!r} without having entered it. Use hold() across threads.")

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        from .guard import guarded

        return guarded(function, lambda _: self)

    # What threading.Condition asks of a reentrant lock.

    def _is_owned(self) -> bool:
        """LeaseLost if it was lost. A Condition asks this before it waits or notifies, when nothing is changed yet."""
        mine = [h for h in list(self._holds) if h._who is me.token]
        for lease in mine:
            if lease.lost:
                raise lease._loss()
        return any(h.held for h in mine)

    def _release_save(self) -> list[Lease]:
        who = me.token
        mine = [h for h in list(self._holds) if h._who is who]
        if not mine:
            raise NotHeld(f"{self.name!r} is not held by this thread.")
        for lease in reversed(mine):
            release_surely(lease)  # in silence: a Condition that is left here by an exception keeps a dead waiter
        return mine

    def _acquire_restore(self, saved: list[Lease]) -> None:
        """As many as there were, each in the place of the one that was released: a `with` around it leaves the new."""
        for old in saved:
            new = self._get(self._wish, None)
            assert new is not None
            new._entered, new._by = old._entered, old._by
            stack = self._desk.entered.get(new._who, [])
            for place, each in enumerate(stack):
                if each is old:
                    stack[place] = new
            if old._reason:  # in the very moment of the wait: the `with` around it must learn of it
                self._desk.lose(new._seat, old._reason, old._seat.story)

    def __repr__(self) -> str:
        state = "locked" if self.held else "unlocked"
        return f"<{state} holdfast.{type(self).__name__} object {self.name!r} at {id(self):#x}>"


class Holding(NotPickled):
    """One use of a lock as a context manager. It may be left by another thread than the one that entered."""

    def __init__(self, lock: Lock, wish: Wish, limit: float | None) -> None:
        self._lock = lock
        self._wish = wish
        self._limit = limit
        self._lease: Lease | None = None

    def __enter__(self) -> Lease:
        if self._lease is not None:
            raise RuntimeError("hold() is for one use; call it again for another.")
        self._lease = Lease(self._lock._desk, self._wish, me.token)
        try:
            return self._lock._enter(self._lease, self._limit, self)
        except BaseException:
            self._lease = None
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        assert self._lease is not None
        leave_surely(self._lease, error)


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
    def acquire(self, blocking: Literal[True] = True, *, weight: int = 1) -> T: ...

    @overload
    def acquire(self, blocking: Literal[True] = True, *, timeout: None, weight: int = 1) -> Lease: ...

    @overload
    def acquire(
        self, blocking: bool = True, timeout: Seconds | None = OWN, *, weight: int = 1, cancel: Cancel | None = None
    ) -> Lease | None: ...

    def acquire(
        self, blocking: bool = True, timeout: Seconds | None = OWN, *, weight: int = 1, cancel: Cancel | None = None
    ) -> Lease | None:
        wish = self._wish.but(weight=check.weight(weight, self._wish.capacity))
        return self._get(wish, self._limit(blocking, timeout), cancel)

    def hold(self, *, timeout: Seconds | None = OWN, note: str | None = None, weight: int = 1) -> Holding:
        wish = self._wish.but(weight=check.weight(weight, self._wish.capacity))
        if note is not None:
            wish = wish.but(note=check.label(note, "A note"))
        return Holding(self, wish, self._limit(True, timeout))
