"""The executor for tasks. SQLAlchemy runs what is written for blocking drivers over those for asyncio.

There may be thousands of tasks, and there are few connections. The tasks wait for one in the order in which they came,
as long as replies arrive: a crowd is no sign of a server that hangs. (The pool of SQLAlchemy fails each of them after
the same time, however busy the server is.) A statement that may wait for a locked row leaves the last free connection
to one that does not, and is passed by it.

A further connection is opened only if a task has waited for PATIENCE: most statements are answered much sooner, and a
connection costs as much as fifty of them. Those that are open are kept beside the pool of SQLAlchemy: to take one from
there is a third of the cost of a statement, and a forgotten client could not give back a lent one.
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
from .url import CONNECTIONS, RESERVED

PATIENCE = 0.03  # seconds


class _Turn:
    """A task that waits for a connection."""

    __slots__ = ("come", "spared")

    def __init__(self, spared: int) -> None:
        self.spared = spared  # how many connections it leaves to others
        self.come: asyncio.Future[bool]  # True: it may go on. False: it has waited for some time


class AsyncExecutor(Executor):
    def _start(self) -> None:
        super()._start()
        self._replies = 0
        self._free = CONNECTIONS
        self._most = 2  # connections that are used at the same time
        self._queue: deque[_Turn] = deque()

    async def run(self, statement: Statement, values: dict[str, Any]) -> Result:
        spared = RESERVED if statement.may_wait else 0
        if self._has_room(spared):
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
            self._free += 1
            if self._queue:
                self._next()

    def _has_room(self, spared: int) -> bool:
        return self._free > spared and CONNECTIONS - self._free < self._most

    async def _wait_for_a_connection(self, spared: int) -> None:
        """Wait until it is this task's turn. StoreError if no task got a reply for as long as a reply may take."""
        loop = asyncio.get_running_loop()
        me = _Turn(spared)
        self._queue.append(me)
        before, seconds, waited = self._replies, PATIENCE, False
        try:
            while True:
                me.come = loop.create_future()
                self._next()
                alarm = loop.call_later(max(min(seconds, left(self._timeout)), 0), settle, me.come, False)
                try:
                    if await me.come:
                        return
                finally:
                    alarm.cancel()
                if over() or (waited and self._replies == before):
                    raise errors.cannot_connect(self.dialect, self.where, sa.exc.TimeoutError())
                self._most = min(self._most + 1, CONNECTIONS)
                before, seconds, waited = self._replies, self._timeout, True
        except BaseException:
            if me in self._queue:
                self._queue.remove(me)
            else:
                self._free += 1  # its turn came in the same moment
                self._next()
            raise

    def _next(self) -> None:
        """A connection may be free: it is the turn of the next task that waits and may use it."""
        if not self._has_room(0):
            return
        for turn in self._queue:
            if not turn.come.done() and self._has_room(turn.spared):
                self._free -= 1
                self._queue.remove(turn)
                turn.come.set_result(True)
                return

    async def _run(self, statement: Statement, values: dict[str, Any]) -> Result:
        if self._uses_libpq and self._parked:
            found = await self._by_parked(statement, values)
            if found is not None:
                return found
        try:
            async with asyncio.timeout(left(self._timeout * 2)):  # drivers that have no limit of their own
                return await greenlet_spawn(self._execute, statement, values)
        except TimeoutError:
            raise OutcomeUnknown("no reply came in time") from None

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
        if not lent.is_detached:
            lent.detach()
        self._parked.append((lent, cursor))

    def discard(self, lent: Any) -> None:
        """Discard it later if that is possible: the pool would wait for a goodbye here, and log an error if the task is
        cancelled once more meanwhile."""
        if self.engine.dialect.has_terminate:
            asyncio.get_running_loop().call_soon(lent.invalidate)
        else:
            lent.invalidate()

    async def close(self) -> None:
        await greenlet_spawn(self.drop_idle)
        self.abandon()


def settle(future: "asyncio.Future[bool]", value: bool) -> None:
    """Give it this result, unless it has one."""
    if not future.done():
        future.set_result(value)
