"""The part of a harness that takes snapshots: what any client sees of the locks."""

from __future__ import annotations

from typing import Any

import fairlock

from .. import aio


class LookHarness:
    _clients: list[Any]

    @property
    def observer(self) -> aio.Locks:
        raise NotImplementedError

    async def resource(self, name: str) -> fairlock.Resource:
        """Return the holders and waiters of this name, as any client sees them."""
        found = await self.observer.snapshot(name)
        return found.resources[0] if found.resources else fairlock.Resource(name, "lock", 0, 0, (), ())

    async def snapshot(self, pattern: str = "*", **options: bool) -> fairlock.Snapshot:
        """Return what any client sees, without the delay that an index of busy names may have."""
        for each in self._clients:
            if not each.session.closed:
                await each.session.list_names()
        return await self.observer.snapshot(pattern, **options)
