"""Lock, RWLock and Semaphore for threads. They differ in two numbers only: capacity and weight."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Literal, ParamSpec, overload

from ..engine import with_block
from ..engine.cancel_event import Cancel
from ..engine.lock_base import HoldingBase, LockBase, RWLockBase, SemaphoreBase
from ..engine.release import release
from ..engine.run_sync import run
from ..engine.validate import OWN, Seconds
from ..errors import NotHeld
from ..stores import deadline
from . import acquire_release
from .acquire_release import get, surely
from .lease import Lease
from .runtime import me

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # known to every checker; a default needs Python 3.13 otherwise

    T = TypeVar("T", bound=Lease | None, default=Lease | None, covariant=True)
else:
    from typing import TypeVar

    T = TypeVar("T")  # what a plain acquire() gives: None as well, if this lock has a timeout of its own

P = ParamSpec("P")
R = TypeVar("R")


class Lock(LockBase["Holding"], Generic[T]):
    """A lock that spans threads, processes and machines. Nothing is sent before the first acquire."""

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
        lease = Lease(self._session, self._request, me.token)
        return get(lease, self._limit(blocking, timeout), cancel, self._reentrant, self._holds)

    def release(self) -> None:
        """Release this thread's newest lease of this object, else the oldest. NotHeld if there is none."""
        self._newest(me.token).release()

    def locked(self) -> bool:
        """Return True if an attempt would be refused at this moment. Asks the store."""
        from ..engine.snapshots import refused_now

        return run(refused_now(self._session, self._request))

    def __enter__(self) -> Lease:
        return self._enter(Lease(self._session, self._request, me.token), self._timeout, self)

    def _enter(self, lease: Lease, limit: float | None, by: object) -> Lease:
        """Acquire it by the `with` of the caller's caller."""
        session, frame = self._session, sys._getframe(2)
        try:
            if limit is not None:
                deadline.begin(limit)
            if not acquire_release.acquire(session, lease, limit, self._reentrant, self._holds):
                raise run(with_block.timed_out(session, lease, limit or 0.0))
            lease._by = by
            with session.mutex:  # another thread may leave what this one has entered
                lease._outer = session.entered.get(lease._who)
                lease._instruction, lease._entered = frame.f_lasti, frame
                session.entered[lease._who] = lease
            if limit is not None:
                deadline.end()
            return lease
        except BaseException:
            surely(with_block.undo, session, lease)
            deadline.end()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        lease = None
        session = self._session
        try:
            who = me.token
            with session.mutex:
                top = session.entered.get(who)
                if top is not None and top._by is self:
                    lease = top
                    if lease._outer is None:
                        del session.entered[who]
                    else:
                        session.entered[who] = lease._outer
            if lease is not None:
                lease._entered = None  # not under the mutex: what ends with the frame may use this client
            else:
                lease = self._last_entered(who)
                with_block.no_longer_entered(session, lease)
            acquire_release.give_back(session, lease, leaving=True)
            if lease._reason:
                with_block.raise_loss(lease, error)
        except KeyboardInterrupt:  # before it was left, or after: either way it is left now, and once
            surely(with_block.leave, session, lease or self._last_entered(me.token), error)
            raise

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
            # In silence: a Condition that is left here by an exception keeps a dead waiter.
            surely(release, self._session, lease, quiet=True)
        return mine

    def _acquire_restore(self, saved: list[Lease]) -> None:
        """As many as there were, each in the place of the one that was released: a `with` around it leaves the new."""
        for old in saved:
            new = Lease(self._session, self._request, me.token)
            get(new, None, None, self._reentrant, self._holds)
            with_block.enter_instead(self._session, old, new)
            if old._reason:  # in the very moment of the wait: the `with` around it must learn of it
                loss = old._grant.loss
                self._session.lose(new._grant, old._reason, loss.detail if loss is not None else "")


class Holding(HoldingBase):
    """One use of a lock as a context manager. It may be left by another thread than the one that entered."""

    def __enter__(self) -> Lease:
        lock = self._made_by
        self._begin(Lease(lock._session, self._request, me.token))
        try:
            return lock._enter(self._hold, self._limit, self)  # type: ignore[no-any-return]
        except BaseException:
            self._hold = None
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        lease = self._hold
        try:
            with_block.no_longer_entered(lease._session, lease)
            acquire_release.leave(lease._session, lease, error)
        except KeyboardInterrupt:
            surely(with_block.leave, lease._session, lease, error)
            raise


class RWLock(RWLockBase[Lock[T]], Generic[T]):
    """One writer or many readers. `.write()` is the same resource as `lock(name)`."""


class Semaphore(SemaphoreBase["Holding"], Lock[T]):
    """A limited number of slots. Each acquire takes one slot, or as many as its weight."""

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
        lease = Lease(self._session, self._request_for(weight), me.token)
        return get(lease, self._limit(blocking, timeout), cancel, self._reentrant, self._holds)


Lock._holding_type = Holding
