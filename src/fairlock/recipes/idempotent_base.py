"""Idempotency keys, written once for threads and asyncio: the first call with a key runs, later ones get its result.

The lock `idempotent:NAME:KEY` is held while the function runs: it makes the others wait, it ends when a process dies,
and its fence rises from one attempt to the next. The result is an item of the pool `idempotent:NAME`, which is added
only if there is none: the first result stays, whatever a process does that was stopped for too long.

A result ends by the store's clock: the time is part of it. An ended one is removed by the next call with its key, and
by calls with other keys: each fourth new result looks at eight others, those first that have ended. A result that has
not ended then rests until it does, so it is looked at twice in its life, and nothing piles up.

Rejected alternatives: the item alone, taken while the function runs (a waiter would have to poll for the result); a
result in the note of a lock (200 characters); to store exceptions (the caller could never try again).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Generic

from ..engine import validate
from ..engine.name_from_text import safe_name
from ..engine.pool_admin import body_text
from ..engine.validate import Seconds
from ..errors import ConfigError, LockError, LockTimeout
from .await_if_needed import Client, EitherBlock, await_if_needed, checked_function

SWEEP_EVERY = 4  # new results
SWEEP = 8  # results that are looked at then: more than one for each new one
RETRY = 0.05


class InProgress(LockTimeout):
    """Another call with the same key is still running, and did not end within the timeout."""


class IdempotentBase(Generic[Client]):
    """Results by key, without the part that waits."""

    def __init__(self, locks: Client, name: str, *, lease: Seconds | None = None) -> None:
        self.name = validate.name(name)
        self._locks: Any = locks
        self._lease = None if lease is None else validate.lease(lease)
        self._pool = locks.pool(safe_name(f"idempotent:{name}"))
        self._stored = 0

    async def _run(self, key: Any, function: Callable[[Any], Any], keep: Seconds, timeout: Seconds | None) -> Any:
        if not isinstance(key, str) or not key:
            raise ConfigError(f"A key is a string that is not empty, such as 'order-42'; not {validate.shown(key)}.")
        checked_function(function, "The function", self._locks)
        kept, limit = validate.seconds(keep, "keep"), validate.timeout(timeout)
        lock_name, item = safe_name(f"idempotent:{self.name}:{key}"), safe_name(key)
        found = await self._look(lock_name, item)
        if found is not None:
            return found["result"]
        lock = self._locks.lock(lock_name, lease=self._lease, local_handoff=False)
        lease = None
        try:
            async with EitherBlock(lock.hold(timeout=limit)) as lease:
                found = await self._look(lock_name, item, remove=True)
                if found is None:
                    result = await await_if_needed(function(lease))
                    found = await self._store(lease, item, result, kept)
        except LockTimeout as late:
            if lease is not None:
                raise  # of the function itself
            found = await self._look(lock_name, item)  # it may have ended just now, and others read it one by one
            if found is not None:
                return found["result"]
            error = InProgress(f"{key!r} of {self.name!r} is still running: {late}")
            error.name, error.holders, error.waited = key, late.holders, late.waited
            raise error from None
        return found["result"]

    async def _look(self, lock_name: str, key: str, remove: bool = False) -> Any:
        """Return the stored result, or None. remove: also remove one that has ended."""
        item = await self._locks.session.read_item(self._pool.name, key)
        if item is None:
            return None
        found = json.loads(item.body)
        now = await self._now(lock_name)
        if now < found["until"]:
            return found
        if remove:
            await self._tidy(key, now)
        return None

    async def _store(self, lease: Any, key: str, result: Any, keep: float) -> Any:
        """Store the result if there is none, and return the one that is stored then."""
        plain = json.loads(body_text(result))  # as later callers get it
        while True:
            now = await self._now(lease.name)
            body = {"result": plain, "until": now + int(keep * 1e6), "fence": lease.fence}
            lease.ensure_held()  # the last thing before it is stored: the request above may have taken long
            if await await_if_needed(self._pool.add(key, body)):
                break
            found = await self._look(lease.name, key, remove=True)  # of one that has overtaken this, or an old one
            if found is not None:
                return found
            await self._locks.session.runtime.sleep(RETRY)
        self._stored += 1
        if self._stored % SWEEP_EVERY == 0:
            for _ in range(SWEEP):
                if not await self._tidy(None, now):
                    break
        return body

    async def _tidy(self, key: str | None, now: int) -> bool:
        """Remove this item, or any, if its result has ended; else let it rest until it does. False: there is none.

        An error is none of the call's: it has its result, or will meet the same error by what it does next.
        """
        try:
            item = await await_if_needed(self._pool.acquire(False, key=key, renew=False))
            if item is None:
                return False
            left = item.body["until"] - now
            await await_if_needed(item.delete() if left <= 0 else item.release(after=left / 1e6))
        except LockError:
            return False
        return True

    async def _now(self, name: str) -> int:
        """Return the store's clock, in microseconds."""
        now: int = (await self._locks.session.read(name))[1]
        return now

    def __repr__(self) -> str:
        return f"<Idempotent {self.name!r}>"
