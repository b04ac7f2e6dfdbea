"""RedisPyLock: redis-py's Lock to the letter, on the doorman."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Literal, Self

from ..client import Lease, Lock, Locks
from ..client.lease import surely
from ..errors import LeaseLost, NotHeld
from ..flow import change
from ..flow.run import run
from .clients import locks_of
from .redis_py import Terms, extend_elsewhere, ticket_of


class _ForAll:
    """One token for all threads."""

    token: bytes | None = None

    def forget(self, token: bytes) -> None:
        if self.token == token:
            self.token = None


class _PerThread(_ForAll, threading.local):
    """For each thread its own."""


class RedisPyLock(Terms):
    """A drop-in for redis-py's Lock, which gives it the line, the fence and the news of a loss:

        lock = client.lock("orders", timeout=10, lock_class=RedisPyLock)
        with lock:
            write(order, fence=lock.lease.fence)

    Constructor, methods and exceptions are redis-py's. `lock.lease` is new: the Lease that this thread has, or None.
    It is another lock than redis-py's own of the same name (that one is a key of its own): let all users of a name
    change over at once, or use ExpLock. It is the same as `holdfast.connect(client).lock(name)`.

    What differs:

    - Whoever waits stands in line and is woken. `sleep` is accepted and means nothing, so a `blocking_timeout` that is
      shorter than `sleep` is waited for as well. `acquire(False)`, whose first argument is `sleep`, tries once.
    - `timeout` is still the longest that one hold lasts. Its holder is told in time: `lock.lease.lost` turns true, and
      `owned()` false, before anybody else is let in, which is a ninth of it later. If its process dies, the time counts
      from the last sign of life.
    - Without a `timeout` a lock lasts as long as its process renews it, not for ever: 30 s after a crash it is free.
      `timeout=0`, for redis-py the same as none, is an error, as is a negative one.
    - `extend` and `reacquire` set a new end; until then the lease is renewed as it needs. With the token of another
      client's hold they let it last at least that long, and never make it shorter; if its holder is gone, it ends then.
    - A lost answer does no harm: the same question is asked again, and neither `acquire` nor `release` is refused
      because its first try had worked. After a `release` that could not reach the server it may be called again.
    - The error of a release at the end of a `with` block becomes a note on the exception that the body raised, if it
      did. A child process after a fork does not release what its parent holds.
    - Any thread of a shared object may ask for `local.token`; redis-py has an AttributeError for most. A token is
      unique to a hold unless the caller chooses it; a chosen one is shown to others as the note of the holder.
    - Names and tokens are text: 1 to 200 bytes of UTF-8 without control characters. There is no key to look at in
      Redis: ask `locked()`, or `holdfast ls`. The scripts and the do_… methods of redis-py are not there.
    """

    _blocks = True
    _local = (_PerThread, _ForAll)

    @property
    def lease(self) -> Lease | None:
        """What this thread holds through this object: `fence`, `lost`, `remaining()`, `ensure_held()`."""
        return self._leases.get(self.local.token or b"")

    def acquire(
        self,
        sleep: float | None = None,
        blocking: bool | None = None,
        blocking_timeout: float | None = None,
        token: str | bytes | None = None,
    ) -> bool:
        """Whether it is ours now: at once, or after waiting for it as long as the arguments or the object say."""
        if isinstance(sleep, bool) and blocking is None:
            blocking = sleep
        with self._their_errors():
            door = self._door(token)
        try:
            with self._their_errors():
                lease = door.acquire(timeout=self._limit(blocking, blocking_timeout))
                if lease is not None:
                    self._keep(lease, token)
                return lease is not None
        except BaseException:  # such as a Ctrl-C between any two of these lines
            surely(lambda: door.release() if door.held else None)
            raise

    def release(self) -> None:
        """Give it back. LockError if this thread has not locked it, LockNotOwnedError if it has lost it since."""
        token = self._token("release")
        with self._their_errors():
            try:
                self._held(token).release()
            except (LeaseLost, NotHeld):
                self._forget(token)
                raise
            self._forget(token)  # only now: after a BackendError it may be released again

    def locked(self) -> bool:
        """Whether anybody has it. Asks the server."""
        with self._their_errors():
            return self._door().locked()

    def owned(self) -> bool:
        """Whether this thread has it, through this object. Asks the server."""
        token, lease = self.local.token, self.lease
        if token is None or (lease is not None and not lease.held):
            return False
        with self._their_errors():
            try:
                run(ticket_of(self._locks._desk.backend, self._name, token))
                return True
            except NotHeld:
                return False

    def extend(self, additional_time: float, replace_ttl: bool = False) -> Literal[True]:
        """Let it last so many seconds more, or with `replace_ttl` so many from now on.

        LockError if it is not locked or has no timeout, LockNotOwnedError if it has been lost.
        """
        return self._prolong("extend", additional_time, not replace_ttl)

    def reacquire(self) -> Literal[True]:
        """Let it last its timeout from now on. Raises as `extend` does."""
        return self._prolong("reacquire", self.timeout or 0, False)

    def _prolong(self, doing: str, seconds: float, more: bool) -> Literal[True]:
        token = self._token(doing)
        with self._their_errors():
            lease = self._leases.get(token)
            if lease is None:
                run(extend_elsewhere(self._locks._desk, self._name, token, seconds, more))
            else:
                run(change.prolong(lease._desk, lease, seconds, more))
        return True

    def _door(self, token: str | bytes | None = None) -> Lock:
        return self._locks.lock(self._name, **self._options(token))

    def _held(self, token: bytes) -> Lease:
        """The lease behind a token: ours, or one that another process took and whose token was brought here."""
        lease = self._leases.get(token)
        if lease is None:
            ticket = run(ticket_of(self._locks._desk.backend, self._name, token))
            lease = self._leases[token] = self._locks.attach(self._name, ticket)
        return lease

    @property
    def _locks(self) -> Locks:
        return locks_of(self.redis)

    def __enter__(self) -> Self:
        from redis.exceptions import LockError

        before = self.local.token
        try:
            if self.acquire():
                return self
        except BaseException:
            if self.local.token != before:
                surely(self.release)
            raise
        raise LockError("Unable to acquire lock within the time specified", lock_name=self._name)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            self.release()
        except Exception as trouble:
            self._at_exit(trouble, error)
