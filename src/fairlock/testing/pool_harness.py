"""The part of a harness for pools: whether its store keeps any, and the workers that wait there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from .. import aio


class PoolHarness:
    @property
    def observer(self) -> aio.Locks:
        raise NotImplementedError

    async def until(self, check: Callable[[], Awaitable[object]], what: str) -> None:
        raise NotImplementedError

    def unwrapped(self, client: aio.Locks) -> Any:
        raise NotImplementedError

    def keeps_pools(self) -> bool:
        """Return True if this store keeps pools."""
        return self.unwrapped(self.observer)._session.backend.pools is not None

    async def workers(self, pool: str, number: int) -> None:
        """Wait until that many workers are in the queue of this pool."""
        await self.until(lambda: self._waits(pool, number, 0), f"{number} in the queue for the pool {pool!r}")

    async def watchers(self, pool: str, number: int) -> None:
        """Wait until that many workers wait for named items of it."""
        await self.until(lambda: self._waits(pool, number, 1), f"{number} workers wait for named items of {pool!r}")

    async def _waits(self, pool: str, number: int, which: int) -> bool:
        backend = self.unwrapped(self.observer)._session.backend
        queue = await backend.pools.queue(pool)
        return len((queue.workers, queue.watchers)[which]) == number
