"""Several locks at once, for threads. A class and no generator: a Ctrl-C between any two lines must leave none held."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, cast

from ..engine import with_block
from ..engine.grant import LeaseBase
from ..engine.run_sync import run
from ..stores import deadline
from .lease import Lease, surely
from .runtime import me

if TYPE_CHECKING:
    from .locks import Lock


class HoldingAll:
    """One use of several locks as a context manager. It enters with a mapping from name to Lease; else LockTimeout."""

    def __init__(self, locks: Sequence[Lock], limit: float | None) -> None:
        self._locks = locks
        self._limit = limit
        self._holds: list[LeaseBase] | None = None

    def __enter__(self) -> Mapping[str, Lease]:
        if self._holds is not None:
            raise RuntimeError("lock_all() is for one use; call it again for another.")
        self._holds = []
        if not self._locks:
            return {}
        session = self._locks[0]._session
        requests = [(lock._request, lock._reentrant) for lock in self._locks]
        try:
            leases = run(with_block.get_all(session, requests, self._limit, me.token, self._holds))
            for lease in leases.values():
                with_block.enter(session, lease, sys._getframe(1))
            return cast("Mapping[str, Lease]", leases)
        except BaseException:
            self._put_back()
            raise

    def _put_back(self) -> None:
        holds = list(self._holds or ())
        surely(lambda: run(with_block.put_back(self._locks[0]._session, holds)))
        deadline.end()

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
                run(with_block.leave(hold._session, hold, raised))
            except BaseException as worse:
                raised = worse
        if raised is not None and raised is not error:
            raise raised
