"""The executor for tasks. SQLAlchemy runs what is written for blocking drivers over those for asyncio."""

import asyncio
from typing import Any

from sqlalchemy.util import greenlet_spawn

from ..base import OutcomeUnknown
from ..deadline import left
from .executor import Executor, Result
from .schema import Statement


class AsyncExecutor(Executor):
    _kept: Any = None

    async def run(self, statement: Statement, values: dict[str, Any]) -> Result:
        if self._uses_libpq and self._parked and values:
            found = await self._by_parked(statement, values)
            if found is not None:
                return found
        try:
            async with asyncio.timeout(left(self._timeout * 2)):  # drivers that have no limit of their own
                return await greenlet_spawn(self.execute, statement, values)
        except TimeoutError:
            raise OutcomeUnknown("no answer came in time") from None

    async def _by_parked(self, statement: Statement, values: dict[str, Any]) -> Result | None:
        """Use the parked connection, without SQLAlchemy's bridge. None means that it was broken: try another."""
        lent, libpq = self._parked.pop()
        try:
            self.statements += 1
            rows = await libpq.exchange(statement, values)
        except BaseException as error:
            await greenlet_spawn(self._failed, lent, libpq, error, statement.reads)
            return None
        self._put_back(lent, libpq)
        return Result(rows, libpq.rowcount, 0)

    def _libpq_class(self) -> Any:
        from .async_libpq_executor import AsyncLibpqExecutor

        return AsyncLibpqExecutor

    def _put_back(self, lent: Any, cursor: Any) -> None:
        """Keep one connection beside the pool: a forgotten client could not give back a lent one, and SQLAlchemy would
        log an error."""
        if self._kept is None:
            lent.detach()
            self._kept = lent
        if lent is self._kept:
            self._parked.append((lent, cursor))
        else:
            cursor.close()
            lent.close()

    def drop_idle(self) -> None:
        if self._parked:
            self._kept = None
        super().drop_idle()

    def discard(self, lent: Any) -> None:
        """Discard it later if that is possible: the pool would wait for a goodbye here, and log an error if the task is
        cancelled once more meanwhile."""
        if lent is self._kept:
            self._kept = None
        if self.engine.dialect.has_terminate:
            asyncio.get_running_loop().call_soon(lent.invalidate)
        else:
            lent.invalidate()

    async def close(self) -> None:
        await greenlet_spawn(self.drop_idle)
        self.abandon()
