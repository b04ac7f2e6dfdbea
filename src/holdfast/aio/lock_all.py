"""Several locks at once, for tasks."""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Mapping, Sequence
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, cast

from ..flow import enter
from ..flow.seat import Hold
from .lease import Lease

if TYPE_CHECKING:
    from .lock import Lock


class HoldingAll:
    """One use of several locks as a context manager: enters with a mapping from name to Lease, or LockTimeout."""

    def __init__(self, locks: Sequence[Lock], limit: float | None) -> None:
        self._locks = locks
        self._limit = limit
        self._holds: list[Hold] | None = None

    def __aenter__(self) -> Coroutine[Any, Any, Mapping[str, Lease]]:
        return self._enter(sys._getframe(1))

    async def _enter(self, frame: FrameType) -> Mapping[str, Lease]:
        if self._holds is not None:
            raise RuntimeError("lock_all() is for one use; call it again for another.")
        self._holds = []
        if not self._locks:
            return {}
        desk = self._locks[0]._desk
        who = self._locks[0]._locks._colour.task()
        wishes = [(lock._wish, lock._reentrant) for lock in self._locks]
        try:
            leases = cast("dict[str, Lease]", await enter.get_all(desk, wishes, self._limit, who, self._holds))
            for lease in leases.values():
                lease._enter(frame)
            return leases
        except BaseException:
            await desk.colour.shield(enter.put_back(desk, self._holds))
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
