"""Several locks at once, for tasks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Mapping
from types import FrameType, TracebackType
from typing import Any, cast

from ..engine import with_block
from ..engine.lock_base import HoldingAllBase
from ..engine.release import INTERRUPTED, briefly
from ..stores import deadline
from ..stores.async_deadline import in_time
from .lease import Lease


class HoldingAll(HoldingAllBase):
    """One use of several locks as a context manager. It enters with a mapping from name to Lease; else LockTimeout."""

    def __aenter__(self) -> Coroutine[Any, Any, Mapping[str, Lease]]:
        return self._enter(sys._getframe(1))

    async def _enter(self, frame: FrameType) -> Mapping[str, Lease]:
        requests = self._begin()
        if not self._locks:
            return {}
        session = self._locks[0]._session
        who = self._locks[0]._locks._runtime.task()
        try:
            granted = await with_block.get_all(session, requests, self._limit, who, self._holds)
            leases = cast("dict[str, Lease]", granted)
            for lease in leases.values():
                with_block.enter(session, lease, frame)
                lease._watch()
            return leases
        except BaseException:
            await session.runtime.shield(briefly(with_block.put_back(session, self._holds)))
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Leave all of them, the last taken first, whatever happens to one. After a cancellation the rest has half a
        second together: what a store that hangs has not released by then are pending releases."""
        raised = error
        before: float | None = None
        for hold in reversed(self._holds or ()):
            leaving = cast(Lease, hold)._leave(raised)
            try:
                await (leaving if before is None else in_time(leaving))
            except TimeoutError:
                pass
            except BaseException as worse:
                raised = worse
                if before is None and isinstance(worse, asyncio.CancelledError):
                    before = deadline.begin(INTERRUPTED, 0.0)
        if before is not None:
            deadline.end(before)
        if raised is not None and raised is not error:
            raise raised
