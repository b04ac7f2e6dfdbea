"""The same hands for tasks. SQLAlchemy runs what is written for blocking drivers over those for asyncio."""

import asyncio
from typing import Any

from sqlalchemy.util import greenlet_spawn

from ..contract import Unknown
from ..patience import left
from .hands import Hands, Told
from .tables import Statement


class TaskHands(Hands):
    _kept: Any = None

    async def run(self, statement: Statement, values: dict[str, Any]) -> Told:
        if self._quick and self._parked and values:
            found = await self._by_the_last(statement, values)
            if found is not None:
                return found
        try:
            async with asyncio.timeout(left(self._timeout * 2)):  # drivers that have no limit of their own
                return await greenlet_spawn(self.say, statement, values)
        except TimeoutError:
            raise Unknown("no answer came in time") from None

    async def _by_the_last(self, statement: Statement, values: dict[str, Any]) -> Told | None:
        """By the connection that was used last, without SQLAlchemy's bridge. None: it was an old one, try another."""
        lent, quick = self._parked.pop()
        try:
            self.statements += 1
            rows = await quick.exchange(statement, values)
        except BaseException as error:
            await greenlet_spawn(self._failed, lent, quick, error, statement.reads)
            return None
        self._put_back(lent, quick)
        return Told(rows, quick.rowcount, 0)

    def _make_quick(self) -> Any:
        from .task_quick import TaskQuick

        return TaskQuick

    def _put_back(self, lent: Any, cursor: Any) -> None:
        """One is kept for good, beside the pool: a client that is forgotten could not give back what it was lent, and
        SQLAlchemy would log an error."""
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
        """Not here if it can be done elsewhere: the pool would wait for a goodbye, and if the task is cancelled once
        more meanwhile, log that as an error."""
        if lent is self._kept:
            self._kept = None
        if self.engine.dialect.has_terminate:
            asyncio.get_running_loop().call_soon(lent.invalidate)
        else:
            lent.invalidate()

    async def close(self) -> None:
        await greenlet_spawn(self.drop_idle)
        self.abandon()
