"""Tasks that are run by the callback that completes their future, alone or together, behave as if asyncio had woken
each of them."""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from fairlock.aio.runtime import TaskRuntime
from fairlock.stores.task_futures import TaskFuture, wake

MANY = 5


def complete(futures: list[TaskFuture[bool | None]], loop: asyncio.AbstractEventLoop) -> None:
    """As the reader of the replies does: those that were cancelled are left out."""
    waiting = [future for future in futures if not future.done()]
    for future in waiting:
        future.set_result(True)
    wake(waiting, loop)


def test_one_call_runs_all_tasks_in_their_order_each_in_its_context() -> None:
    number: ContextVar[int] = ContextVar("number")
    seen: list[tuple[int, int, bool | None, asyncio.Task[Any] | None]] = []

    async def one(mine: int, future: TaskFuture[bool | None]) -> None:
        number.set(mine)
        found = await future
        seen.append((mine, number.get(), found, asyncio.current_task()))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        futures = [TaskFuture(loop=loop) for _ in range(MANY)]
        tasks = [asyncio.create_task(one(mine, future)) for mine, future in enumerate(futures)]
        await asyncio.sleep(0)
        complete(futures, loop)
        assert not seen, "they run in the next turn, not inside of the reader"
        await asyncio.sleep(0)
        assert seen == [(mine, mine, True, task) for mine, task in enumerate(tasks)]
        await asyncio.gather(*tasks)

    asyncio.run(main())


@pytest.mark.parametrize("when", ["before", "in the same turn", "after"])
def test_a_cancelled_task_is_cancelled_and_the_others_go_on(when: str) -> None:
    async def one(future: TaskFuture[bool | None]) -> bool | None:
        return await future

    async def main() -> list[Any]:
        loop = asyncio.get_running_loop()
        futures = [TaskFuture(loop=loop) for _ in range(MANY)]
        tasks = [asyncio.create_task(one(future)) for future in futures]
        await asyncio.sleep(0)
        if when != "after":
            tasks[2].cancel()
        if when == "before":
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert tasks[2].cancelled(), "it does not wait for the reply"
        complete(futures, loop)
        if when == "after":
            tasks[2].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = asyncio.run(main())
    assert type(found.pop(2)) is asyncio.CancelledError
    assert found == [True] * (MANY - 1)


def test_a_timeout_ends_the_wait() -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await TaskFuture(loop=asyncio.get_running_loop())

    asyncio.run(main())


def test_an_error_reaches_the_task() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        future: TaskFuture[bool] = TaskFuture(loop=loop)

        def fail() -> None:
            future.set_exception(OSError("lost"))
            wake([future], loop)

        loop.call_soon(fail)
        with pytest.raises(OSError, match="lost"):
            await future

    asyncio.run(main())


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_ctrl_c_in_one_task_does_not_keep_the_others_waiting(error: Callable[[], BaseException]) -> None:
    ended: list[int] = []

    async def one(mine: int, future: TaskFuture[bool | None]) -> None:
        await future
        if mine == 1:
            raise error()
        ended.append(mine)

    loop = asyncio.new_event_loop()
    try:
        futures = [TaskFuture(loop=loop) for _ in range(MANY)]
        tasks = [loop.create_task(one(mine, future)) for mine, future in enumerate(futures)]
        loop.run_until_complete(asyncio.sleep(0))
        complete(futures, loop)
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            loop.run_until_complete(asyncio.sleep(0.01))
        assert ended == [0]
        loop.run_until_complete(asyncio.sleep(0.01))
        assert ended == [0, 2, 3, 4]
        assert isinstance(tasks[1].exception(), (KeyboardInterrupt, SystemExit))
    finally:
        loop.close()


# -- one task


def test_a_callback_runs_the_task_at_once_in_its_context() -> None:
    number: ContextVar[int] = ContextVar("number", default=0)
    seen: list[tuple[int, bool, asyncio.Task[Any] | None]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        future: TaskFuture[bool] = TaskFuture(loop=loop)

        async def one() -> None:
            number.set(1)
            found = await future
            seen.append((number.get(), found, asyncio.current_task()))

        def complete() -> None:
            future.resume(True)
            assert len(seen) == 1, "it has not waited for the next turn"
            future.resume(False)
            future.fail(OSError())

        task = asyncio.create_task(one())
        await asyncio.sleep(0)
        loop.call_soon(complete)
        await task
        assert seen == [(1, True, task)]

    asyncio.run(main())


def test_a_cancelled_task_is_not_run_by_a_reply() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        future: TaskFuture[int] = TaskFuture(loop=loop)

        async def one() -> int:
            return await future

        task = asyncio.create_task(one())
        await asyncio.sleep(0)
        task.cancel()
        loop.call_soon(future.resume, 1)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


# -- shielded work


def test_shielded_work_gives_its_result_or_its_exception() -> None:
    async def work(fails: bool) -> int:
        await asyncio.sleep(0)
        if fails:
            raise OSError("lost")
        return 1

    async def main() -> None:
        runtime = TaskRuntime()
        assert await runtime.shield(work(False)) == 1
        with pytest.raises(OSError, match="lost"):
            await runtime.shield(work(True))
        assert not runtime._tasks

    asyncio.run(main())


@pytest.mark.parametrize("fails", [False, True])
def test_shielded_work_goes_on_if_its_caller_is_cancelled(fails: bool) -> None:
    reported: list[dict[str, Any]] = []
    ended: list[bool] = []

    async def work(go_on: asyncio.Event) -> None:
        await go_on.wait()
        ended.append(True)
        if fails:
            raise OSError("nobody is told")

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, report: reported.append(report))
        runtime, go_on = TaskRuntime(), asyncio.Event()
        caller = asyncio.create_task(runtime.shield(work(go_on)))
        await asyncio.sleep(0.01)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert not ended
        go_on.set()
        await runtime.end_tasks()
        await asyncio.sleep(0)
        assert ended and not runtime._tasks

    asyncio.run(main())
    assert not reported


@pytest.mark.parametrize("begun", [False, True])
def test_shielded_work_that_is_cancelled_itself_cancels_its_caller(begun: bool) -> None:
    async def main() -> None:
        runtime = TaskRuntime()
        caller = asyncio.create_task(runtime.shield(asyncio.sleep(20)))
        while not runtime._tasks:
            await asyncio.sleep(0)
        if begun:
            await asyncio.sleep(0.01)
        for task in runtime._tasks:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(caller, 20)

    asyncio.run(main())
