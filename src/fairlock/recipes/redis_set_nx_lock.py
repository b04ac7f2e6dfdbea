"""ExpLock: the plain lock that many programs keep in Redis, done with care.

One key. The client that sets it with `SET key token NX PX milliseconds` holds the lock; a client that still finds its
own token there may delete it; if none does, the server does. There is no queue, no fence and no renewal: for those use
a lock of fairlock itself. This one is for programs that must agree with others that know only that protocol, such as
redis-py's own Lock.

It consists of two scripts. They differ from the textbook in the reply to the client's *own* token: finding it on
acquire is a success and not a refusal. A reply is lost now and then, and a client that repeats the request (many
drivers do so by themselves) would otherwise be kept out by itself until the key expires.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..engine import validate
from ..engine.boot_clock import boot_clock
from ..engine.validate import Seconds
from ..errors import AlreadyHeld, ConfigError, LockTimeout
from .repeat_lost_calls import repeat_if_lost

if TYPE_CHECKING:
    from redis import Redis, RedisCluster

# KEYS[1] the key, ARGV[1] the token, ARGV[2] how long it lives in milliseconds, 0 = forever. 1: it is ours now.
TAKE = """
local taken
if ARGV[2] == '0' then
    taken = redis.call('SET', KEYS[1], ARGV[1], 'NX')
else
    taken = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
end
if taken then return 1 end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
"""

# KEYS[1] the key, ARGV[1] the token. 1: deleted, 0: it belongs to another client, -1: there is none.
DROP = """
local token = redis.call('GET', KEYS[1])
if not token then return -1 end
if token ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
return 1
"""


class AlreadyAcquiredLockError(AlreadyHeld):
    """This object holds the lock already: call `unlock` first."""


class TooManyLockAttemptsError(LockTimeout):
    """Another client held the lock in each of the attempts."""


class ExpLock:
    """A lock that is one key with an expiry, for programs that use `SET key token NX PX` and compare-and-delete.

        lock = ExpLock("report", redis=client)
        with lock.synchronize():
            ...

    `expiry` in seconds is the whole life of the lock: it is not renewed, and work that takes longer goes on without
    it. None: it never expires, and a crash locks forever. `retries`: how many attempts follow the first one, every
    `interval` seconds. One object is for one holder; give each thread its own. Bad input: ConfigError. What the
    client raises (`redis.exceptions`) is not changed; after it the same object may be used again.
    """

    def __init__(
        self,
        key: str | bytes,
        *,
        redis: Redis | RedisCluster,
        expiry: Seconds | None = 60,
        retries: int = 0,
        interval: Seconds = 0.01,
    ) -> None:
        from ..stores.redis.address_from_client import refuse_runtime

        refuse_runtime(redis, blocking=True)
        if type(retries) is not int or retries < 0:
            raise ConfigError(f"retries is a whole number, 0 or more, not {retries!r}.")
        self.key = key
        self._redis: Any = redis
        self._take_it = self._redis.register_script(TAKE)
        self._drop_it = self._redis.register_script(DROP)
        self._expiry = validate.optional(expiry, "expiry")
        self._retries = retries
        self._interval = validate.seconds(interval, "interval") if interval else 0.0
        self._token: str | None = None  # of the lock we hold, or may hold: the reply was lost
        self._sure = False
        self._since = 0.0  # when the request was sent
        self._going = 0.0  # when it was released for the first time
        self._process = 0

    @property
    def locked(self) -> bool:
        """True if `lock` or `try_lock` succeeded and `unlock` has not been called since. Sends nothing."""
        return self._sure and self._process == os.getpid()

    def key_locked(self) -> bool:
        """Return True if any client holds the lock. Asks the server."""
        return self._redis.get(self.key) is not None

    def key_owned(self) -> bool:
        """Return True if this object holds the lock and it has not expired. Asks the server."""
        found = self._redis.get(self.key)
        return self.locked and (found.decode() if isinstance(found, bytes) else found) == self._token

    def try_lock(self) -> bool:
        """Acquire the lock if it is free; return True if acquired. AlreadyAcquiredLockError if this object holds it.

        A success that took longer than the whole expiry is none.
        """
        self._refuse_twice()
        if self._process != os.getpid():  # what a parent process may hold is not ours
            self._process, self._token, self._sure = os.getpid(), None, False
        self._token = self._token or os.urandom(16).hex()
        try:
            taken = self._take(self._token)
            if taken and self._over():
                self._withdraw()
            else:
                self._sure, self._token = taken, self._token if taken else None
            return self._sure
        except BaseException:
            self._withdraw()
            raise

    def lock(self) -> int:
        """Acquire the lock, with `retries` every `interval` seconds. Return the number of attempts.

        AlreadyAcquiredLockError if this object holds it already, TooManyLockAttemptsError if it was not free in time.
        """
        begun = boot_clock()
        for attempt in range(1, self._retries + 2):
            if attempt > 1:
                time.sleep(self._interval)
            if self.try_lock():
                return attempt
        tries = f"{attempt} attempt{'s' if attempt > 1 else ''}"
        text = f"{self.key!r} could not be acquired in {tries}. Raise retries or the interval."
        error = TooManyLockAttemptsError(text)
        error.name, error.waited = str(self.key), boot_clock() - begun
        raise error

    def unlock(self) -> bool:
        """Release it. Return False if this object did not hold it, or no longer: it had expired, others may hold it.

        If a reply is lost, the request is repeated, and what the first one did still counts. (A client that retries
        by itself hides such a loss from us; then this may return False although it was our own release.)
        """
        token = self._token
        if token is None or self._process != os.getpid():
            return False
        done = self._drop(token) and self._sure
        self._token, self._sure = None, False  # only now: if the line above raised, it may be called again
        return done

    @contextmanager
    def synchronize(self) -> Iterator[int]:
        """Hold the lock in a `with` block, which receives the number of attempts. Raises as `lock` does."""
        self._refuse_twice()
        try:
            yield self.lock()
        except BaseException as error:
            try:
                self.unlock()
            except Exception as trouble:  # the error of the block matters more than the error after it
                error.add_note(f"And {self.key!r} could not be unlocked: {trouble}")
            raise
        self.unlock()

    def _refuse_twice(self) -> None:
        if self.locked:
            raise AlreadyAcquiredLockError(f"This object holds {self.key!r} already. Call unlock() first.")

    def _take(self, token: str) -> bool:
        life = 0 if self._expiry is None else max(int(self._expiry * 1000), 1)
        self._since, self._going = boot_clock(), 0.0
        return self._run_script(self._take_it, token, life)[0] == 1

    def _drop(self, token: str) -> bool:
        first, self._going = not self._going, self._going or boot_clock()
        answer, again = self._run_script(self._drop_it, token)
        if answer == -1 and (again or not first):  # by the attempt whose reply was lost, unless it had expired
            return not self._over(self._going)
        return answer == 1

    def _over(self, at: float | None = None) -> bool:
        """Return True if it may have expired by then. Counted from before the request: the server cannot be earlier."""
        return self._expiry is not None and (at or boot_clock()) >= self._since + self._expiry

    def _withdraw(self) -> None:
        """Undo an interrupted attempt. If that fails, its token is remembered."""
        if self._token is not None:
            try:
                self._drop(self._token)
                self._token, self._sure = None, False
            except Exception:
                pass

    def _run_script(self, script: Callable[..., int], *arguments: str | int) -> tuple[int, bool]:
        """Return the script's reply, and True if it was repeated because a reply was lost."""
        return repeat_if_lost(lambda: script([self.key], arguments))

    def __repr__(self) -> str:
        return f"<{'locked' if self.locked else 'unlocked'} ExpLock {self.key!r}>"
