"""Statements to PostgreSQL for tasks, by libpq: as `libpq_executor`, but it waits by suspending."""

import asyncio
from typing import Any

from sqlalchemy.util import await_only

from ..deadline import left
from ..task_futures import TaskFuture
from .libpq_executor import LibpqExecutor, Rows
from .schema import Statement


class AsyncLibpqExecutor(LibpqExecutor):
    """The same for tasks. It is called as a cursor is, under SQLAlchemy's bridge."""

    def execute(self, statement: Statement, values: dict[str, Any]) -> Rows:
        return await_only(self.exchange(statement, values))

    async def exchange(self, statement: Statement, values: dict[str, Any]) -> Rows:
        steps = self._steps(statement, values)
        loop = asyncio.get_running_loop()
        socket = self._pgconn.socket
        end = loop.time() + left(self._timeout)
        try:
            while True:
                room = next(steps)
                ready: TaskFuture[bool] = TaskFuture(loop=loop)
                alarm = loop.call_at(end, ready.resume, False)
                loop.add_reader(socket, ready.resume, True)
                if room:
                    loop.add_writer(socket, ready.resume, True)
                try:
                    if not await ready:
                        raise TimeoutError("no reply in time")
                finally:
                    alarm.cancel()
                    loop.remove_reader(socket)
                    if room:
                        loop.remove_writer(socket)
        except StopIteration as done:
            rows: Rows = done.value
            return rows
