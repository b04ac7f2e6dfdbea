"""What a world knows of pools: whether its store keeps any, and who waits there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from .. import aio


class PoolWorld:
    @property
    def eye(self) -> aio.Locks:
        raise NotImplementedError

    async def until(self, check: Callable[[], Awaitable[object]], what: str) -> None:
        raise NotImplementedError

    def undressed(self, client: aio.Locks) -> Any:
        raise NotImplementedError

    def keeps_pools(self) -> bool:
        """Whether this store keeps pools."""
        return getattr(self.undressed(self.eye)._desk.backend, "pools", None) is not None

    async def workers(self, pool: str, number: int) -> None:
        """Wait until so many stand in the line of this pool."""
        await self.until(lambda: self._waits(pool, number, 0), f"{number} in line for the pool {pool!r}")

    async def watchers(self, pool: str, number: int) -> None:
        """Wait until so many wait for named items of it."""
        await self.until(lambda: self._waits(pool, number, 1), f"{number} who wait for items of {pool!r}")

    async def _waits(self, pool: str, number: int, which: int) -> bool:
        backend = self.undressed(self.eye)._desk.backend
        line = await backend.pools.line(pool)
        return len((line.workers, line.watchers)[which]) == number
