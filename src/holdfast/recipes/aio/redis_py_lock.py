"""RedisPyLock for tasks: the Lock of redis.asyncio to the letter, on the doorman."""

from __future__ import annotations

from types import TracebackType
from typing import Literal, Self
from weakref import WeakKeyDictionary

from ...aio import Lease, Lock, Locks
from ...aio.lock import Asking
from ...errors import BackendError, NotHeld
from ...flow import change
from ..redis_py import Terms, extend_elsewhere, ticket_of
from .clients import locks_of


class _PerTask:
    """The tokens of this object: of the task that asks, or else the latest."""

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


class RedisPyLock(Terms):
    """A drop-in for the Lock of redis.asyncio, which gives it the line, the fence and the news of a loss:

        lock = client.lock("orders", timeout=10, lock_class=RedisPyLock)
        async with lock:
            await write(order, fence=lock.lease.fence)

    All that `holdfast.recipes.RedisPyLock` says about itself holds here too. Besides:

    - Each task has its own token, where redis.asyncio has one for all tasks of a thread, so that one which is late
      cannot release what another has got since. A task that has locked nothing itself releases what the object holds.
    - A cancelled `acquire` leaves nothing behind, and a cancelled `release` is finished all the same.
    - `if lock.locked():` without `await` is a TypeError, not always true; `owned` likewise.
    - A block that outlives its timeout is not cancelled, as one of holdfast's own would be: ask `lock.lease.lost`.
    """

    _blocks = False
    _local = (_PerTask, _PerTask)

    @property
    def lease(self) -> Lease | None:
        """What this task holds through this object: `fence`, `lost`, `remaining()`, `ensure_held()`."""
        return self._leases.get(self.local.token or b"")

    async def acquire(
        self,
        blocking: bool | None = None,
        blocking_timeout: float | None = None,
        token: str | bytes | None = None,
    ) -> bool:
        """Whether it is ours now: at once, or after waiting for it as long as the arguments or the object say."""
        with self._their_errors():
            lease = await self._door(token).acquire(timeout=self._limit(blocking, blocking_timeout))
            if lease is not None:
                self._keep(lease, token)
            return lease is not None

    async def release(self) -> None:
        """Give it back. LockError if nothing is locked here, LockNotOwnedError if it has been lost since."""
        token = self._token("release")
        with self._their_errors():
            try:
                lease = await self._held(token)
            except NotHeld:
                self._forget(token)
                raise
            try:
                await lease.release()
            except BackendError:
                raise  # it may be released again
            except BaseException:  # lost; or cancelled, and then it is finished all the same
                self._forget(token)
                raise
            self._forget(token)

    def locked(self) -> Asking[bool]:
        """Whether anybody has it. Asks the server."""
        return Asking(self._locked())

    async def _locked(self) -> bool:
        with self._their_errors():
            return await self._door().locked()

    def owned(self) -> Asking[bool]:
        """Whether this task has it, through this object. Asks the server."""
        return Asking(self._owned())

    async def _owned(self) -> bool:
        token, lease = self.local.token, self.lease
        if token is None or (lease is not None and not lease.held):
            return False
        with self._their_errors():
            try:
                await ticket_of(self._locks._desk.backend, self._name, token)
                return True
            except NotHeld:
                return False

    async def extend(self, additional_time: float, replace_ttl: bool = False) -> Literal[True]:
        """Let it last so many seconds more, or with `replace_ttl` so many from now on.

        LockError if it is not locked or has no timeout, LockNotOwnedError if it has been lost.
        """
        return await self._prolong("extend", additional_time, not replace_ttl)

    async def reacquire(self) -> Literal[True]:
        """Let it last its timeout from now on. Raises as `extend` does."""
        return await self._prolong("reacquire", self.timeout or 0, False)

    async def _prolong(self, doing: str, seconds: float, more: bool) -> Literal[True]:
        token = self._token(doing)
        with self._their_errors():
            lease = self._leases.get(token)
            if lease is None:
                await extend_elsewhere(self._locks._desk, self._name, token, seconds, more)
            else:
                await change.prolong(lease._desk, lease, seconds, more)
        return True

    def _door(self, token: str | bytes | None = None) -> Lock:
        return self._locks.lock(self._name, **self._options(token))

    async def _held(self, token: bytes) -> Lease:
        """The lease behind a token: ours, or one that another process took and whose token was brought here."""
        lease = self._leases.get(token)
        if lease is None:
            ticket = await ticket_of(self._locks._desk.backend, self._name, token)
            lease = self._leases[token] = await self._locks.attach(self._name, ticket)
        return lease

    @property
    def _locks(self) -> Locks:
        return locks_of(self.redis)

    async def __aenter__(self) -> Self:
        from redis.exceptions import LockError

        if not await self.acquire():
            raise LockError("Unable to acquire lock within the time specified", lock_name=self._name)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            await self.release()
        except Exception as trouble:
            self._at_exit(trouble, error)
