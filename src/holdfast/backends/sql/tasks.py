"""The same hands for tasks. SQLAlchemy runs what is written for blocking drivers over those for asyncio."""

import asyncio
from typing import Any

from sqlalchemy.util import greenlet_spawn

from ..contract import Unknown
from ..patience import left
from .hands import Hands, Told
from .tables import Statement


class TaskHands(Hands):
    async def run(self, statement: Statement, values: dict[str, Any]) -> Told:
        try:
            async with asyncio.timeout(left(self._timeout * 2)):  # drivers that have no limit of their own
                return await greenlet_spawn(self.say, statement, values)
        except TimeoutError:
            raise Unknown("no answer came in time") from None

    def discard(self, lent: Any) -> None:
        """Not here if it can be done elsewhere: the pool would wait for a goodbye, and if the task is cancelled once
        more meanwhile, log that as an error."""
        if self.engine.dialect.has_terminate:
            asyncio.get_running_loop().call_soon(lent.invalidate)
        else:
            lent.invalidate()

    async def close(self) -> None:
        await greenlet_spawn(self.engine.dispose)
        self.abandon()
