"""RedisPyLock: the interface of redis-py's Lock, on a lock of fairlock."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Literal, Self

from ..engine.run_sync import run
from ..sync import Lease, Locks
from ..sync.acquire_release import surely
from .client_per_redis_client import client_for
from .redis_py_lock_base import RedisPyLockBase


class _ForAll:
    """One token for all threads."""

    token: bytes | None = None

    def forget(self, token: bytes) -> None:
        if self.token == token:
            self.token = None


class _PerThread(_ForAll, threading.local):
    """One token for each thread."""


class RedisPyLock(RedisPyLockBase):
    """A drop-in for redis-py's Lock, with a queue, a fence and a notice of loss:

        lock = client.lock("orders", timeout=10, lock_class=RedisPyLock)
        with lock:
            write(order, fence=lock.lease.fence)

    Constructor, methods and exceptions are redis-py's. `lock.lease` is new: the Lease that this thread holds, or None.
    It is another lock than redis-py's own of the same name (that one is a key of its own): let all users of a name
    change over at once, or give `also=True` until they have: then it acquires that key, too.
    It is the same as `fairlock.connect(client).lock(name)`.

    What differs:

    - A waiter is in the queue and is woken. `sleep` is accepted and means nothing, so a `blocking_timeout` that
      is shorter than `sleep` is waited for as well. `acquire(False)`, whose first argument is `sleep`, tries once.
    - `timeout` is still the longest that one hold lasts. Its holder is notified in time: `lock.lease.lost` becomes
      true, and `owned()` false, before any other client is granted it, which is a ninth of it later. If its
      process dies, the time counts from the last sign of life.
    - Without a `timeout` a lock lasts as long as its process renews it, not forever: 30 s after a crash it is free.
      `timeout=0`, for redis-py the same as none, is an error, as is a negative one.
    - `extend` and `reacquire` set a new end; until then the lease is renewed as it needs. With the token of another
      client's hold they let it last at least that long, and never make it shorter; if its holder is gone, it ends then.
    - A lost reply does no harm: the request is repeated, and neither `acquire` nor `release` is refused because its
      first attempt had succeeded. After a `release` that could not reach the server it may be called again.
    - The error of a release at the end of a `with` block becomes a note on the exception that the body raised, if it
      did. A child process after a fork does not release what its parent holds.
    - Any thread of a shared object may read `local.token`; redis-py raises AttributeError for most. A token is
      unique to a hold unless the caller chooses it; others see a chosen one as the note of the holder.
    - Names and tokens are text: 1 to 200 bytes of UTF-8 without control characters. There is no key of its own in
      Redis: call `locked()`, or `fairlock ls`. The scripts and the do_… methods of redis-py do not exist.
    """

    _blocks = True
    _local = (_PerThread, _ForAll)

    @property
    def lease(self) -> Lease | None:
        """The lease that this thread holds through this object: `fence`, `lost`, `remaining()`, `ensure_held()`."""
        return self._leases.get(self.local.token or b"")

    def acquire(
        self,
        sleep: float | None = None,
        blocking: bool | None = None,
        blocking_timeout: float | None = None,
        token: str | bytes | None = None,
    ) -> bool:
        """Return True if acquired: at once, or after a wait as long as the arguments or the object allow."""
        if isinstance(sleep, bool) and blocking is None:
            blocking = sleep
        lock = self._new_lock(token)
        try:
            return run(self._acquire(lock, self._limit(blocking, blocking_timeout), token))
        except BaseException:  # such as a Ctrl-C between any two of these lines
            surely(lambda: lock.release() if lock.held else None)
            raise

    def release(self) -> None:
        """Release it. LockError if this thread has not locked it, LockNotOwnedError if it has lost it since."""
        run(self._release())

    def locked(self) -> bool:
        """Return True if any client holds it. Asks the server."""
        return run(self._is_locked())

    def owned(self) -> bool:
        """Return True if this thread holds it, through this object. Asks the server."""
        return run(self._is_owned())

    def extend(self, additional_time: float, replace_ttl: bool = False) -> Literal[True]:
        """Let it last this many seconds longer, or with `replace_ttl` this many seconds from now.

        LockError if it is not locked or has no timeout, LockNotOwnedError if it has been lost.
        """
        return run(self._set_end("extend", additional_time, not replace_ttl))

    def reacquire(self) -> Literal[True]:
        """Let it last its timeout from now on. Raises as `extend` does."""
        return run(self._set_end("reacquire", self.timeout or 0, False))

    @property
    def _locks(self) -> Locks:
        return client_for(self.redis)

    def __enter__(self) -> Self:
        before = self.local.token
        try:
            if self.acquire():
                return self
        except BaseException:
            if self.local.token != before:
                surely(self.release)
            raise
        raise self._not_acquired()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            self.release()
        except Exception as trouble:
            self._at_exit(trouble, error)
