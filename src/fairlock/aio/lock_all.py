"""Several locks at once, for tasks."""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Mapping, Sequence
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, cast

from ..engine import with_block
from ..engine.grant import LeaseBase
from .lease import Lease

if TYPE_CHECKING:
    from .locks import Lock


class HoldingAll:
    """One use of several locks as a context manager. It enters with a mapping from name to Lease; else LockTimeout."""

    def __init__(self, locks: Sequence[Lock], limit: float | None) -> None:
        self._locks = locks
        self._limit = limit
        self._holds: list[LeaseBase] | None = None

    def __aenter__(self) -> Coroutine[Any, Any, Mapping[str, Lease]]:
        return self._enter(sys._getframe(1))

    async def _enter(self, frame: FrameType) -> Mapping[str, Lease]:
        if self._holds is not None:
            raise RuntimeError("lock_all() is for one use; call it again for another.")
        self._holds = []
        if not self._locks:
            return {}
        session = self._locks[0]._session
        who = self._locks[0]._locks._runtime.task()
        requests = [(lock._request, lock._reentrant) for lock in self._locks]
        try:
            granted = await with_block.get_all(session, requests, self._limit, who, self._holds)
            leases = cast("dict[str, Lease]", granted)
            for lease in leases.values():
                lease._enter(frame)
            return leases
        except BaseException:
            await session.runtime.shield(with_block.put_back(session, self._holds))
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Leave all of them, the last taken first, whatever happens to one."""
        raised = error
        for hold in reversed(self._holds or ()):
            try:
                await cast(Lease, hold)._leave(raised)
            except BaseException as worse:
                raised = worse
        if raised is not None and raised is not error:
            raise raised
