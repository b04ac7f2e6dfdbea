"""The plain key of redis-py's own Lock, held beside a lock of fairlock while a fleet changes over.

Old processes use `SET key token NX PX`; new ones use RedisPyLock with `also`, which acquires both: first ours, in the
queue, so that only one new process at a time competes for the key; then the key, by polling, as redis-py does. So old
and new processes exclude each other. When no old process is left, `also` is removed.

The key has the token of the lock. With a `timeout` it ends by that, as redis-py's does. Without one it is renewed
beside the lease, and ends by itself after a crash. If the key is lost, the lease is lost, too.
"""

from __future__ import annotations

from typing import Any

from ..engine.grant import LeaseBase
from ..engine.public_session import ClientSession
from ..errors import LeaseLost, StoreError
from .await_if_needed import await_if_needed, raise_if_cancelled, times_cancelled
from .redis_set_nx_lock import DROP, TAKE

KEPT = 1.5  # a key that is renewed lasts this many leases: a client that has died keeps out old processes that long

# KEYS[1] the key, ARGV[1] the token, ARGV[2] milliseconds, ARGV[3] 1: these are added. 1: done, 0: it is not ours.
EXTEND = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local left = ARGV[3] == '1' and math.max(redis.call('PTTL', KEYS[1]), 0) or 0
redis.call('PEXPIRE', KEYS[1], left + ARGV[2])
return 1
"""


class PlainKey:
    """The key that redis-py's Lock of this name uses. Each method is one request; its errors are redis-py's."""

    def __init__(self, redis: Any, key: str | bytes | memoryview, timeout: float | None, lease: float | None) -> None:
        self.key = key
        self._lease = lease
        self._redis = redis
        self._timeout = timeout
        self.loss = f"the key {key!r} of redis-py's Lock was deleted, has expired, or belongs to another client"
        """The reason of a lost lease, in words."""
        self._take, self._drop, self._extend = (redis.register_script(text) for text in (TAKE, DROP, EXTEND))

    async def acquire(
        self, session: ClientSession, lease: Any, token: bytes, until: float | None, pause: float
    ) -> bool:
        """Acquire it for this lease, which has this token: try again after each `pause`, by the client's clock `until`.
        Return False if it was not acquired in time. Then, and after an exception, the lease is released."""
        seconds = self._lease or session.default_lease
        cancelled = times_cancelled()
        try:
            while True:
                taken = await self.take(token, seconds)
                raise_if_cancelled(cancelled)
                if taken:
                    break
                left = pause if until is None else min(pause, until - session.clock())
                if left <= 0:
                    await await_if_needed(lease.release())
                    return False
                await session.runtime.sleep(left)
                lease.ensure_held()
            if self._timeout is not None:
                await session.set_end(lease, self._timeout)
            else:
                session.start(self.renew(session, lease, token, seconds), "fairlock-plain-key")
            return True
        except BaseException:
            await session.runtime.shield(self._undo(lease, token))
            raise

    async def _undo(self, lease: Any, token: bytes) -> None:
        try:
            await self.drop(token)
        except Exception:
            pass  # it expires
        try:
            await await_if_needed(lease.release())
        except (LeaseLost, StoreError):
            pass  # the keeper sends it again

    async def take(self, token: bytes, lease: float) -> bool:
        """Set it, if it is free or has this token already."""
        return bool(await self._call(self._take, token, self._milliseconds(lease)))

    async def drop(self, token: bytes) -> bool:
        """Delete it, if it has this token. Return False if it is lost."""
        return int(await self._call(self._drop, token)) == 1

    async def extend(self, token: bytes, seconds: float, more: bool = False) -> bool:
        """Let it last this many seconds from now, or (more) this many longer. Return False if it is lost."""
        return bool(await self._call(self._extend, token, max(int(seconds * 1000), 1), int(more)))

    async def is_set(self, token: bytes | None = None) -> bool:
        """Return True if it is there, or if it is there with this token."""
        found = await await_if_needed(self._redis.get(self.key))
        found = found.encode() if isinstance(found, str) else found
        return found is not None if token is None else found == token

    async def _call(self, script: Any, *args: object) -> Any:
        return await await_if_needed(script(keys=[self.key], args=list(args)))

    def _milliseconds(self, lease: float) -> int:
        return max(int((lease * KEPT if self._timeout is None else self._timeout) * 1000), 1)

    async def renew(self, session: ClientSession, lease: LeaseBase, token: bytes, seconds: float) -> None:
        """Renew it until the lease is over. If the key is lost, the lease is lost."""
        kept_until = session.clock() + seconds * KEPT
        while True:
            await session.runtime.sleep(seconds / 3)
            if not lease.held:
                return
            now = session.clock()
            try:
                if not await self.extend(token, seconds * KEPT):
                    kept_until = 0.0
                else:
                    kept_until = now + seconds * KEPT
            except Exception:
                pass  # the server cannot be reached: it is tried again
            if session.clock() >= kept_until and lease.held:
                session.lose(lease, self.loss)
                return

    def not_owned(self, name: str) -> LeaseLost:
        """Return the error of a lock of this name whose key is lost."""
        return LeaseLost(f"The lease on {name!r} was lost: {self.loss}.")
