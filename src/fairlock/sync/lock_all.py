"""Several locks at once, for threads. A class and no generator: a Ctrl-C between any two lines must leave none held."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import cast

from ..engine import with_block
from ..engine.lock_base import HoldingAllBase
from ..engine.run_sync import run
from ..stores import deadline
from .acquire_release import surely
from .lease import Lease
from .runtime import me


class HoldingAll(HoldingAllBase):
    """One use of several locks as a context manager. It enters with a mapping from name to Lease; else LockTimeout."""

    def __enter__(self) -> Mapping[str, Lease]:
        requests = self._begin()
        if not self._locks:
            return {}
        session = self._locks[0]._session
        try:
            leases = run(with_block.get_all(session, requests, self._limit, me.token, self._holds))
            for lease in leases.values():
                with_block.enter(session, lease, sys._getframe(1))
            return cast("Mapping[str, Lease]", leases)
        except BaseException:
            self._put_back()
            raise

    def _put_back(self) -> None:
        surely(with_block.put_back, self._locks[0]._session, list(self._holds or ()))
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
            except KeyboardInterrupt:
                raise  # all that are left are put back together
            except BaseException as worse:
                raised = worse
        if raised is not None and raised is not error:
            raise raised
