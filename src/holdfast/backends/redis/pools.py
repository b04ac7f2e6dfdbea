"""That this backend keeps pools. They are opened with the first one: most programs use none, and start-up counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .shelf import RedisPools


class KeepsPools:
    _pools: RedisPools | None = None

    @property
    def pools(self) -> RedisPools:
        if self._pools is None:
            from .shelf import RedisPools

            self._pools = RedisPools(self)
        return self._pools
