"""The runtime of tasks: waiting suspends. Events may be set from any thread."""

from __future__ import annotations

import asyncio
from _thread import allocate_lock, get_ident
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Hashable, Sequence
from contextlib import AbstractContextManager
from contextvars import Context, copy_context
from functools import partial
from typing import Any, TypeVar

from ..engine.boot_clock import boot_clock
from ..errors import ConfigError, LockError
from ..stores.deadline import without_end
from ..stores.task_futures import TaskFuture

T = TypeVar("T")
FINISH = 5.0  # seconds that a loop has at the end of the interpreter


class TaskEvent:
    """Set from any thread, waited for in the loop. Half the cost of an asyncio.Event within an asyncio.timeout."""

    __slots__ = ("_is_set", "_runtime", "_waiters")

    def __init__(self, runtime: TaskRuntime) -> None:
        self._runtime = runtime
        self._is_set = False
        self._waiters: list[asyncio.Future[bool]] = []

    def set(self) -> None:
        self._runtime.soon(self._set)

    def _set(self) -> None:
        self._is_set = True
        for waiter in self._waiters:
            _settle(waiter, True)

    def clear(self) -> None:
        self._is_set = False

    async def wait(self, timeout: float | None) -> bool:
        if self._is_set:
            return True
        loop = self._runtime.loop()  # known from here on: a thread that sets the event wakes this loop
        if timeout is not None and timeout <= 0:
            return False
        waiter: asyncio.Future[bool] = loop.create_future()
        alarm = self._runtime.call_later(timeout, _settle, waiter, False) if timeout is not None else None
        self._waiters.append(waiter)
        try:
            return await waiter or self._is_set
        finally:
            self._waiters.remove(waiter)
            if alarm is not None:
                alarm.cancel()


def _settle(future: asyncio.Future[bool], value: bool) -> None:
    if not future.done():
        future.set_result(value)


def running_loop() -> asyncio.AbstractEventLoop:
    """Return the loop that runs here; ConfigError if there is none."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise ConfigError(
            "fairlock.aio works in an event loop of asyncio, and none runs here. Under trio use fairlock.connect() in "
            "a thread (trio.to_thread.run_sync); outside of any loop use it as it is."
        ) from None


class TaskRuntime:
    blocking = False
    quiet_end: type[BaseException] = asyncio.CancelledError
    clock = staticmethod(boot_clock)
    # Always free, because tasks change plain data only between two awaits; cheaper than a context without a lock.
    mutex: Callable[[], AbstractContextManager[Any]] = staticmethod(allocate_lock)

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._guard: AsyncGenerator[None, None] | None = None
        self.call_later: Any = None  # of the loop, once that is known, or of a manual clock
        self.at_end: Callable[[], Awaitable[None]] | None = None
        """What is done when the loop ends: its tasks have been cancelled, and may have left something."""

    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop of this client: the one in which it was used first."""
        if self._loop is None:
            self._loop = running_loop()
            self.call_later = self.call_later or self._loop.call_later
            self._thread = get_ident()
            if self.at_end is not None:
                self._guard = _guard_end(self.at_end)
                _step(self._guard.__anext__())
        return self._loop

    def drop_guard(self) -> None:
        """There is nothing left to be done when the loop ends."""
        guard, self._guard, self.at_end = self._guard, None, None
        if guard is not None and self.is_in_own_loop():
            _step(guard.aclose())

    def check_loop(self) -> None:
        if self.loop() is not running_loop():
            raise ConfigError("This client belongs to another event loop. Make one with aio.connect() in each loop.")

    def task(self) -> asyncio.Task[Any] | None:
        """Which task this is; ConfigError in a loop that is not the one of this client.

        Its loop runs in one thread, and runs here if it is in the middle of a task: that is known without asking the
        system which process this is, as it takes to ask for the running loop.
        """
        if self._thread == get_ident():
            task = asyncio.current_task(self._loop)
            if task is not None:
                return task
        self.check_loop()
        return asyncio.current_task()

    def is_in_own_loop(self) -> bool:
        """Return whether this is the loop of this client, or it has none yet."""
        try:
            return self._loop in (None, asyncio.get_running_loop())
        except RuntimeError:
            return self._loop is None

    def soon(self, call: Callable[[], object]) -> None:
        """Call it in the loop: now if this is the loop's own thread, else as soon as it can."""
        loop = self._loop
        if loop is None or loop.is_closed():
            call()
            return
        try:
            here = asyncio.get_running_loop() is loop
        except RuntimeError:
            here = False
        if here:
            call()
        else:
            loop.call_soon_threadsafe(call)

    def event(self) -> TaskEvent:
        return TaskEvent(self)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def call(self, fn: Callable[..., T], *args: Any) -> T:
        loop = running_loop()
        try:
            reply = loop.run_in_executor(None, partial(copy_context().run, fn, *args))
        except RuntimeError as error:
            if "shutdown" in str(error):
                return fn(*args)  # the interpreter ends: nothing is started any more, and a wait does no harm
            raise LockError(f"The client needs a worker thread, and it cannot be started: {error}.") from None
        return await reply

    async def readable(self, fds: Sequence[int], timeout: float | None) -> list[int]:
        loop = self.loop()
        ready: list[int] = []
        event = self.event()

        def note(fd: int) -> None:
            ready.append(fd)
            loop.remove_reader(fd)
            event.set()

        for fd in fds:
            loop.add_reader(fd, note, fd)
        try:
            await event.wait(timeout)
        finally:
            for fd in fds:
                loop.remove_reader(fd)
        return ready

    async def shield(self, work: Coroutine[Any, Any, T]) -> T:
        task = self._task(work, "fairlock-shield", copy_context())
        outcome: TaskFuture[T] = TaskFuture(loop=self.loop())
        task.add_done_callback(partial(_pass_on, outcome))
        return await outcome

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        context = copy_context()
        context.run(without_end)
        self.soon(lambda: self._task(work, name, context).add_done_callback(_fetch))

    def _task(self, work: Coroutine[Any, Any, T], name: str, context: Context) -> asyncio.Task[T]:
        try:
            loop = self.loop()
        except ConfigError:
            work.close()
            raise
        task = loop.create_task(work, name=name, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def current(self) -> Hashable:
        return asyncio.current_task()

    def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Run this in the loop of this client, which has not ended: it runs in another thread, or was abandoned.

        Nothing can be done in a loop that is closed.
        """
        if self._loop is None or self._loop.is_closed():
            work.close()
        elif self._loop.is_running():
            asyncio.run_coroutine_threadsafe(work, self._loop).result(FINISH)
        else:
            self._loop.run_until_complete(self._finish_with_tasks(work))

    async def _finish_with_tasks(self, work: Coroutine[Any, Any, None]) -> None:
        await work
        await self.end_tasks()

    async def end_tasks(self) -> None:
        """Wait until the tasks of a client that is closed have ended. They do so by themselves."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=FINISH)


async def _guard_end(at_end: Callable[[], Awaitable[None]]) -> AsyncGenerator[None, None]:
    """Finish the client when its loop ends: the loop closes its generators last, after its tasks, and waits for
    that."""
    try:
        yield
    finally:
        await at_end()


def _step(asked: Awaitable[None]) -> None:
    """Run one step of a generator that does not have to wait in it. Nothing if it is in the middle of one: it ends
    then."""
    try:
        asked.__await__().send(None)
    except (StopIteration, RuntimeError):
        pass


def _pass_on(outcome: TaskFuture[Any], task: asyncio.Task[Any]) -> None:
    """Give the caller the outcome of its shielded work. One that was cancelled does not receive what that raises: then
    asyncio must not log it as an error that was never retrieved. What could not be done is written down as a pending
    release, and the keeper sends it."""
    if task.cancelled():
        outcome.cancel()
    elif (error := task.exception()) is None:
        outcome.resume(task.result())
    else:
        outcome.fail(error)


def _fetch(task: asyncio.Task[Any]) -> None:
    """Log what a task of the client itself has raised. No caller waits for it, so it is logged here and not when it is
    collected."""
    if not task.cancelled() and (error := task.exception()) is not None:
        import logging

        logging.getLogger("fairlock").error("%s ended", task.get_name(), exc_info=error)
