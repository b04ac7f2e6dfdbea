"""The executor for tasks. SQLAlchemy runs what is written for blocking drivers over those for asyncio.

There may be thousands of tasks, and there are few connections. The tasks wait for one in the order in which they came,
as long as replies arrive: a crowd is no sign of a server that hangs. (The pool of SQLAlchemy fails each of them after
the same time, however busy the server is.) A statement that may wait for a locked row leaves the last free connection
to one that does not, and is passed by it.
"""

import asyncio
from collections import deque
from typing import Any

import sqlalchemy as sa
from sqlalchemy.util import greenlet_spawn

from ..base import OutcomeUnknown
from ..deadline import left, over
from . import errors
from .executor import Executor, Result
from .schema import Statement
from .url import CONNECTIONS, RESERVED, Address


class AsyncExecutor(Executor):
    _kept: Any = None

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._free = CONNECTIONS
        self._queue: deque[tuple[asyncio.Future[None], int]] = deque()  # with how many connections it leaves to others
        self._replies = 0

    async def run(self, statement: Statement, values: dict[str, Any]) -> Result:
        spared = RESERVED if statement.may_wait else 0
        if self._free > spared:
            self._free -= 1
        else:
            await self._wait_for_a_connection(spared)
        try:
            result = await self._run(statement, values)
            self._replies += 1
            return result
        except (errors.Conflict, errors.Exists, errors.NoTable):
            self._replies += 1
            raise
        finally:
            self._next()

    async def _wait_for_a_connection(self, spared: int) -> None:
        """Wait until it is this task's turn. StoreError if no task got a reply for as long as a reply may take."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((mine, spared))
        try:
            while not mine.done():
                before = self._replies
                await asyncio.wait((mine,), timeout=max(left(self._timeout), 0))
                if not mine.done() and (over() or self._replies == before):
                    raise errors.cannot_connect(self.dialect, self.where, sa.exc.TimeoutError())
        except BaseException:
            if mine.done():
                self._next()
            else:
                mine.cancel()
            raise

    def _next(self) -> None:
        """A connection is free: it is the turn of the next task that waits and may use it."""
        self._free += 1
        passed: list[tuple[asyncio.Future[None], int]] = []
        while self._queue and self._free:
            heir, spared = self._queue.popleft()
            if heir.done():
                continue
            if self._free > spared:
                self._free -= 1
                heir.set_result(None)
                break
            passed.append((heir, spared))
        self._queue.extendleft(reversed(passed))

    async def _run(self, statement: Statement, values: dict[str, Any]) -> Result:
        if self._uses_libpq and self._parked and values:
            found = await self._by_parked(statement, values)
            if found is not None:
                return found
        try:
            async with asyncio.timeout(left(self._timeout * 2)):  # drivers that have no limit of their own
                return await greenlet_spawn(self._execute, statement, values)
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

    def forked(self) -> None:
        self._free = CONNECTIONS
        self._queue.clear()
        super().forked()

    async def close(self) -> None:
        await greenlet_spawn(self.drop_idle)
        self.abandon()
