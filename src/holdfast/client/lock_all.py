"""Several locks at once, for threads. A class and no generator: a Ctrl-C between any two lines must leave none held."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, cast

from ..backends import patience
from ..flow import enter
from ..flow.run import run
from ..flow.seat import Hold
from .colour import me
from .lease import Lease, surely

if TYPE_CHECKING:
    from .lock import Lock


class HoldingAll:
    """One use of several locks as a context manager: enters with a mapping from name to Lease, or LockTimeout."""

    def __init__(self, locks: Sequence[Lock], limit: float | None) -> None:
        self._locks = locks
        self._limit = limit
        self._holds: list[Hold] | None = None

    def __enter__(self) -> Mapping[str, Lease]:
        if self._holds is not None:
            raise RuntimeError("lock_all() is for one use; call it again for another.")
        self._holds = []
        if not self._locks:
            return {}
        desk = self._locks[0]._desk
        wishes = [(lock._wish, lock._reentrant) for lock in self._locks]
        try:
            leases = run(enter.get_all(desk, wishes, self._limit, me.token, self._holds))
            for lease in leases.values():
                enter.enter(desk, lease, sys._getframe(1))
            return cast("Mapping[str, Lease]", leases)
        except BaseException:
            self._put_back()
            raise

    def _put_back(self) -> None:
        holds = list(self._holds or ())
        surely(lambda: run(enter.put_back(self._locks[0]._desk, holds)))
        patience.end()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            self._leave(error)
        except KeyboardInterrupt:
            self._put_back()
            raise

    def _leave(self, error: BaseException | None) -> None:
        """Leave all of them, the last taken first, whatever happens to one."""
        raised = error
        for hold in reversed(self._holds or ()):
            try:
                run(enter.leave(hold._desk, hold, raised))
            except BaseException as worse:
                raised = worse
        if raised is not None and raised is not error:
            raise raised
