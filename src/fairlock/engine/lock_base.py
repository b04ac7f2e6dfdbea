"""What the locks of the two faces share: everything that does no I/O."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, TypeVar

from ..errors import NotHeld
from . import validate
from .refuse_pickling import NotPickled
from .request import LockRequest
from .session import Session
from .validate import OWN, Seconds
from .with_block import entered_by

HoldingT = TypeVar("HoldingT")
LockT = TypeVar("LockT")


class LockBase(NotPickled, Generic[HoldingT]):
    """A lock of a client, without the part that waits."""

    __slots__ = ("__dict__", "__weakref__", "_holds", "_locks", "_reentrant", "_request", "_session", "_timeout")
    _holding_type: Any
    _session: Session

    def __init__(self, locks: Any, request: LockRequest, timeout: float | None, reentrant: bool) -> None:
        self._locks = locks
        self._session = locks._session
        self._request = request
        self._timeout = timeout
        self._reentrant = reentrant
        self._holds: list[Any] = []

    @property
    def name(self) -> str:
        return self._request.name

    @property
    def held(self) -> bool:
        """True if this object holds it, by the client's own clock. Sends nothing."""
        return any(h.held for h in list(self._holds))

    def hold(self, *, timeout: Seconds | None = OWN, note: str | None = None) -> HoldingT:
        """Return a context manager for one use. It enters with a Lease, or raises LockTimeout."""
        return self._hold(self._request, timeout, note)

    def _hold(self, request: LockRequest, timeout: Seconds | None, note: str | None) -> HoldingT:
        if note is not None:
            request = request.but(note=validate.label(note, "A note"))
        return self._holding_type(self, request, self._limit(True, timeout))  # type: ignore[no-any-return]

    def _limit(self, blocking: bool, timeout: Seconds | None) -> float | None:
        if timeout is OWN:
            return self._timeout if blocking else 0.0
        return validate.blocking(blocking, timeout)

    def _newest(self, who: Hashable) -> Any:
        """Return the newest lease of this thread or task, else the oldest of all."""
        holds = [h for h in list(self._holds) if not h._released]
        if not holds:
            raise NotHeld(f"{self.name!r} is not held by this object, so there is nothing to release.")
        return next((h for h in reversed(holds) if h._who is who), holds[0])

    def _last_entered(self, who: Hashable) -> Any:
        """Return the lease with which the `with` of this very object was entered by this thread or task."""
        with self._session.mutex:
            found = entered_by(self._session, who)
        for lease in found:
            if lease._by is self:
                return lease
        kind = "thread" if self._session.runtime.blocking else "task"
        raise NotHeld(f"This {kind} leaves {self.name!r} without having entered it. Use hold() across {kind}s.")

    def __repr__(self) -> str:
        state = "locked" if self.held else "unlocked"
        package = "fairlock" if self._session.runtime.blocking else "fairlock.aio"
        return f"<{state} {package}.{type(self).__name__} object {self.name!r} at {id(self):#x}>"


class SemaphoreBase(LockBase[HoldingT]):
    """A limited number of slots, without the part that waits."""

    __slots__ = ()

    @property
    def slots(self) -> int | None:
        """The number of slots that this client asks for; None: the stored number."""
        return self._request.capacity or None

    def hold(self, *, timeout: Seconds | None = OWN, note: str | None = None, weight: int = 1) -> HoldingT:
        """Return a context manager for one use. It enters with a Lease, or raises LockTimeout."""
        return self._hold(self._request_for(weight), timeout, note)

    def _request_for(self, weight: int) -> LockRequest:
        return self._request.but(weight=validate.weight(weight, self._request.capacity))


class RWLockBase(NotPickled, Generic[LockT]):
    """One writer or many readers. `.write()` is the same resource as `lock(name)`."""

    _read: LockT
    _write: LockT

    def __init__(self, write: Any) -> None:
        self.name = write.name
        self._write = write
        self._read = type(write)(write._locks, write._request.but(weight=1), write._timeout, write._reentrant)

    def read(self) -> LockT:
        """Return the lock for a reader."""
        return self._read

    def write(self) -> LockT:
        """Return the lock for a writer."""
        return self._write


class HoldingBase(NotPickled):
    """One use of a lock or a pool as a context manager."""

    def __init__(
        self, made_by: Any, request: LockRequest, limit: float | None, finish: bool = False, back_off: float = 0.0
    ) -> None:
        self._made_by = made_by
        self._request = request
        self._limit = limit
        self._finish = finish  # of an item: how its block ends
        self._back_off = back_off
        self._hold: Any = None

    def _begin(self, hold: Any) -> Any:
        """Use it, once."""
        if self._hold is not None:
            raise RuntimeError("hold() is for one use; call it again for another.")
        self._hold = hold
        return hold


class HoldingAllBase:
    """One use of several locks as a context manager. It enters with a mapping from name to Lease; else LockTimeout."""

    def __init__(self, locks: Any, limit: float | None) -> None:
        self._locks = locks
        self._limit = limit
        self._holds: Any = None

    def _begin(self) -> list[tuple[LockRequest, bool]]:
        """Use it, once. Return what to acquire."""
        if self._holds is not None:
            raise RuntimeError("lock_all() is for one use; call it again for another.")
        self._holds = []
        return [(lock._request, lock._reentrant) for lock in self._locks]
