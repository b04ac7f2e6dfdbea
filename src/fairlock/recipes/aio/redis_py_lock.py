"""RedisPyLock for tasks: the interface of redis.asyncio's Lock, on a lock of fairlock."""

from __future__ import annotations

from types import TracebackType
from typing import Literal, Self
from weakref import WeakKeyDictionary

from ...aio import Lease, Locks
from ...aio.locks import Asking
from ..redis_py_lock_base import RedisPyLockBase
from .client_per_redis_client import client_for


class _PerTask:
    """The tokens of this object: of the calling task, or else the latest."""

    def __init__(self) -> None:
        self._by_task: WeakKeyDictionary[object, bytes] = WeakKeyDictionary()
        self._all: list[bytes] = []

    @property
    def token(self) -> bytes | None:
        from asyncio import current_task

        mine = self._by_task.get(current_task())
        return mine if mine in self._all else self._all[-1] if self._all else None

    @token.setter
    def token(self, token: bytes | None) -> None:
        from asyncio import current_task

        if token is None:
            self.forget(self.token or b"")
            return
        self._all.append(token)
        self._by_task[current_task()] = token

    def forget(self, token: bytes) -> None:
        self._all = [each for each in self._all if each != token]


class RedisPyLock(RedisPyLockBase):
    """A drop-in for the Lock of redis.asyncio, with a queue, a fence and a notice of loss:

        lock = client.lock("orders", timeout=10, lock_class=RedisPyLock)
        async with lock:
            await write(order, fence=lock.lease.fence)

    Everything that the docstring of `fairlock.recipes.RedisPyLock` states applies here too. Besides:

    - Each task has its own token, where redis.asyncio has one for all tasks of a thread, so that a late task
      cannot release what another has acquired since. A task that has locked nothing itself releases what the object
      holds.
    - A cancelled `acquire` leaves nothing behind, and a cancelled `release` is finished nevertheless.
    - `if lock.locked():` without `await` is a TypeError, not always true; `owned` likewise.
    - A block that outlives its timeout is not cancelled, as one of fairlock's own would be: check `lock.lease.lost`.
    """

    _blocks = False
    _local = (_PerTask, _PerTask)

    @property
    def lease(self) -> Lease | None:
        """The lease that this task holds through this object: `fence`, `lost`, `remaining()`, `ensure_held()`."""
        return self._leases.get(self.local.token or b"")

    async def acquire(
        self,
        blocking: bool | None = None,
        blocking_timeout: float | None = None,
        token: str | bytes | None = None,
    ) -> bool:
        """Return True if acquired: at once, or after a wait as long as the arguments or the object allow."""
        return await self._acquire(self._new_lock(token), self._limit(blocking, blocking_timeout), token)

    async def release(self) -> None:
        """Release it. LockError if nothing is locked here, LockNotOwnedError if it has been lost since."""
        await self._release()

    def locked(self) -> Asking[bool]:
        """Return True if any client holds it. Asks the server."""
        return Asking(self._is_locked())

    def owned(self) -> Asking[bool]:
        """Return True if this task holds it, through this object. Asks the server."""
        return Asking(self._is_owned())

    async def extend(self, additional_time: float, replace_ttl: bool = False) -> Literal[True]:
        """Let it last this many seconds longer, or with `replace_ttl` this many seconds from now.

        LockError if it is not locked or has no timeout, LockNotOwnedError if it has been lost.
        """
        return await self._set_end("extend", additional_time, not replace_ttl)

    async def reacquire(self) -> Literal[True]:
        """Let it last its timeout from now on. Raises as `extend` does."""
        return await self._set_end("reacquire", self.timeout or 0, False)

    @property
    def _locks(self) -> Locks:
        return client_for(self.redis)

    async def __aenter__(self) -> Self:
        if not await self.acquire():
            raise self._not_acquired()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            await self.release()
        except Exception as trouble:
            self._at_exit(trouble, error)
