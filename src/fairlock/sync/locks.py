"""Lock, RWLock and Semaphore for threads. They differ in two numbers only: capacity and weight."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Literal, ParamSpec, cast, overload

from ..engine import admin, cancel_event, validate, with_block
from ..engine.cancel_event import Cancel
from ..engine.fast_acquire import enter as enter_at_once
from ..engine.fast_acquire import leave as leave_at_once
from ..engine.pickling import NotPickled
from ..engine.request import LockRequest
from ..engine.run_sync import run
from ..engine.validate import OWN, Seconds
from ..errors import NotHeld
from ..rules.locks import EXCLUSIVE
from ..stores import deadline
from .lease import Lease, leave_again, leave_surely, release_surely, undo_surely
from .runtime import me
from .wait_locally import behind

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # known to every checker; a default needs Python 3.13 otherwise

    from .client import Locks

    T = TypeVar("T", bound=Lease | None, default=Lease | None, covariant=True)
else:
    from typing import TypeVar

    T = TypeVar("T")  # what a plain acquire() gives: None as well, if this lock has a timeout of its own

P = ParamSpec("P")
R = TypeVar("R")


class Lock(NotPickled, Generic[T]):
    """A lock that spans threads, processes and machines. Nothing is sent before the first acquire."""

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
        """Return a Lease, or None if it could not be acquired in time: None or -1 = wait forever, 0 = only try.

        StoreError if the store cannot be reached at the start. blocking=False is timeout=0. Ctrl-C leaves nothing
        behind. cancel: an Event; soon after another thread or task sets it, the wait ends and returns None.
        """
        return self._get(self._request, self._limit(blocking, timeout), cancel)

    def hold(self, *, timeout: Seconds | None = OWN, note: str | None = None) -> Holding:
        """Return a context manager for one use. It enters with a Lease, or raises LockTimeout."""
        request = self._request if note is None else self._request.but(note=validate.label(note, "A note"))
        return Holding(self, request, self._limit(True, timeout))

    def release(self) -> None:
        """Release this thread's newest lease of this object, else the oldest. NotHeld if there is none."""
        self._newest().release()

    def locked(self) -> bool:
        """Return True if an attempt would be refused at this moment. Asks the store."""
        return run(admin.refused_now(self._session, self._request))

    @property
    def held(self) -> bool:
        """True if this object holds it, by the client's own clock. Sends nothing."""
        return any(h.held for h in list(self._holds))

    def _limit(self, blocking: bool, timeout: Seconds | None) -> float | None:
        if timeout is OWN:
            return self._timeout if blocking else 0.0
        return validate.blocking(blocking, timeout)

    def _get(self, request: LockRequest, limit: float | None, cancel: Cancel | None = None) -> Lease | None:
        lease = Lease(self._session, request, me.token)
        try:  # around everything: a Ctrl-C between any two lines must not leave it held
            if limit is not None:
                deadline.begin(limit)
            if cancel is not None:
                cancel_event.begin(self._session, lease, cancel)
            at_once = not self._reentrant and enter_at_once(self._session, lease, limit == 0)
            had = at_once or self._waits(lease, limit)
            if had:
                home = lease._home = self._holds  # type: ignore[assignment]
                home.append(lease)
            if limit is not None:
                deadline.end()
            if cancel is not None:
                cancel_event.end(self._session, lease)
            return lease if had else None
        except BaseException:
            undo_surely(lease)
            deadline.end()
            cancel_event.end(self._session, lease)
            raise

    def _waits(self, lease: Lease, limit: float | None) -> bool:
        """Acquire by waiting. Return True if acquired in time. On any exception the caller must undo it."""
        session = self._session
        began = lease._began = session.clock()
        follows = limit != 0 and lease._grant.leader is not lease
        if follows and not self._reentrant and lease._who not in session.entered:
            if behind(session, lease, limit):
                return True
            if limit:
                limit = max(limit - (session.clock() - began), 0.000_001)
        if limit is None and any(h._who is lease._who for h in list(self._holds)):
            lease._warn_at = began + 1.0
        return run(with_block.get(session, lease, limit, self._reentrant))

    def _newest(self) -> Lease:
        who = me.token
        holds = [h for h in list(self._holds) if not h._released]
        if not holds:
            raise NotHeld(f"{self.name!r} is not held by this object, so there is nothing to release.")
        return next((h for h in reversed(holds) if h._who is who), holds[0])

    def __enter__(self) -> Lease:
        return self._enter(Lease(self._session, self._request, me.token), self._timeout, self)

    def _enter(self, lease: Lease, limit: float | None, by: object) -> Lease:
        """By the `with` of the caller's caller."""
        session = self._session
        try:
            if limit is not None:
                deadline.begin(limit)
            if self._reentrant or not enter_at_once(session, lease, limit == 0):
                if not self._waits(lease, limit):
                    raise run(with_block.timed_out(session, lease, limit or 0.0))
            home = lease._home = self._holds  # type: ignore[assignment]
            home.append(lease)
            lease._by = by
            with_block.enter(session, lease, sys._getframe(2))
            if limit is not None:
                deadline.end()
            return lease
        except BaseException:
            undo_surely(lease)
            deadline.end()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        lease = None
        session = self._session
        try:
            lease = self._last_entered()
            with_block.no_longer_entered(session, lease)
            if not leave_at_once(session, lease):
                run(with_block.leave(session, lease, error))
        except KeyboardInterrupt:  # before it was left, or after: either way it is left now, and once
            leave_again(lease or self._last_entered(), error)
            raise

    def _last_entered(self) -> Lease:
        """The lease with which this thread's `with` of this very object was entered."""
        stack = self._session.entered.get(me.token, ())
        if stack and stack[-1]._by is self:
            return stack[-1]  # type: ignore[return-value]
        for lease in reversed(stack):
            if lease._by is self:
                return cast(Lease, lease)
        raise NotHeld(f"This thread leaves {self.name!r} without having entered it. Use hold() across threads.")

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        from .decorator import guarded

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
            new = self._get(self._request, None)
            assert new is not None
            new._entered, new._by = old._entered, old._by
            stack = self._session.entered.get(new._who, [])
            for place, each in enumerate(stack):
                if each is old:
                    stack[place] = new
            if old._reason:  # in the very moment of the wait: the `with` around it must learn of it
                self._session.lose(new._grant, old._reason, old._grant.story)

    def __repr__(self) -> str:
        state = "locked" if self.held else "unlocked"
        return f"<{state} fairlock.{type(self).__name__} object {self.name!r} at {id(self):#x}>"


class Holding(NotPickled):
    """One use of a lock as a context manager. It may be left by another thread than the one that entered."""

    def __init__(self, lock: Lock, request: LockRequest, limit: float | None) -> None:
        self._lock = lock
        self._request = request
        self._limit = limit
        self._lease: Lease | None = None

    def __enter__(self) -> Lease:
        if self._lease is not None:
            raise RuntimeError("hold() is for one use; call it again for another.")
        self._lease = Lease(self._lock._session, self._request, me.token)
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
        request = self._request.but(weight=validate.weight(weight, self._request.capacity))
        return self._get(request, self._limit(blocking, timeout), cancel)

    def hold(self, *, timeout: Seconds | None = OWN, note: str | None = None, weight: int = 1) -> Holding:
        request = self._request.but(weight=validate.weight(weight, self._request.capacity))
        if note is not None:
            request = request.but(note=validate.label(note, "A note"))
        return Holding(self, request, self._limit(True, timeout))
