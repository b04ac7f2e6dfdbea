"""The pools of the store, imported with the first one: most programs use none, and start-up time counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .pool_items import RedisPools


class LazyPools:
    _pools: RedisPools | None = None

    @property
    def pools(self) -> RedisPools:
        if self._pools is None:
            from .pool_items import RedisPools

            self._pools = RedisPools(self)
        return self._pools
