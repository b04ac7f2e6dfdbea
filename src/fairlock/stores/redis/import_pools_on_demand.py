"""The pools of the store, imported with the first one: most programs use none, and start-up time counts."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .pool_items import RedisPools


class LazyPools:
    @cached_property
    def pools(self) -> RedisPools:
        from .pool_items import RedisPools

        return RedisPools(self)
