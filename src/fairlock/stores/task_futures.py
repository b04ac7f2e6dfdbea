"""Futures whose task is run by the callback that completes them, and not a turn of the loop later.

asyncio schedules each task that it wakes by itself: seven calls of Python functions in Python's own loop, and one more
turn of it, with a system call. The replies of a store are completed by a callback of the loop, which runs the task at
once (`resume`). Tasks whose replies came in one message are run together, by one scheduled call, in the same turn in
which asyncio would run them (`wake`): a third of all calls of an uncontended cycle on Redis goes away.

Not for an event that a task sets: there it must be scheduled, and asyncio's own future does that in fewer steps.
"""

from __future__ import annotations

import asyncio
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class TaskFuture(asyncio.Future[T], Generic[T]):
    """The reply to one task, which alone awaits it."""

    __slots__ = ("_context", "_wake")

    def add_done_callback(self, wake: Any, *, context: Any = None) -> None:
        self._wake, self._context = wake, context

    def cancel(self, msg: Any = None) -> bool:
        return super().cancel(msg) and self._schedule()

    def resume(self, result: T) -> None:
        """Give it this result, unless it is done, and run its task. Only to be called by the loop, never in a task."""
        if not self.done():
            self.set_result(result)
            self._context.run(self._wake, self)

    def fail(self, error: BaseException) -> None:
        """Give it this exception, unless it is done; its task runs in the next turn."""
        if not self.done():
            self.set_exception(error)
            self._schedule()

    def _schedule(self) -> bool:
        try:
            wake, context = self._wake, self._context
        except AttributeError:
            return True  # the task does not await it yet, and will not have to wait
        del self._wake, self._context  # or the traceback of an exception would keep the task alive, and that this
        self.get_loop().call_soon(wake, self, context=context)
        return True


def wake(futures: list[Any], loop: asyncio.AbstractEventLoop) -> None:
    """Run the tasks that await these in the next turn of the loop, in their order. Each of these is done, and was not
    cancelled. The list is used up."""
    futures.append(None)
    futures.reverse()
    loop.call_soon(_run, futures, loop)


def _run(futures: list[Any], loop: asyncio.AbstractEventLoop) -> None:
    """Run the tasks as asyncio does, each in its context. If one raises (a Ctrl-C, for example), the rest run later.

    Each future is dropped before the next task runs: how many objects live at once decides how often Python collects
    garbage.
    """
    try:
        for future in iter(futures.pop, None):
            future._context.run(future._wake, future)
    finally:
        if futures:
            loop.call_soon(_run, futures, loop)
