"""Which task may send its statement, and on how many connections. No server is needed for that."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from fairlock.errors import StoreError
from fairlock.stores.sql.async_executor import PATIENCE, AsyncExecutor
from fairlock.stores.sql.executor import Result
from fairlock.stores.sql.schema import Statement
from fairlock.stores.sql.url import CONNECTIONS, read

READ, WRITE = Statement("SELECT 1", None, True, True, False), Statement("UPDATE", None, False)


class Slow(AsyncExecutor):
    """Each statement is answered when the test says so."""

    def __init__(self, timeout: float = 5.0) -> None:
        super().__init__(read("postgresql://user@host/database", False, {"timeout": timeout}))
        self.sent: list[str] = []
        self.replies: list[asyncio.Future[None]] = []

    async def _run(self, statement: Statement, values: dict[str, Any]) -> Result:
        self.sent.append(values["who"])
        reply: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.replies.append(reply)
        await reply
        return Result([], 1, 0)

    def send(self, who: str, statement: Statement = READ) -> asyncio.Task[Result]:
        return asyncio.create_task(self.run(statement, {"who": who}))

    def answer(self, number: int) -> None:
        self.replies[number].set_result(None)

    async def sent_after(self, seconds: float = 0.0) -> str:
        await asyncio.sleep(seconds)
        for _ in range(5):
            await asyncio.sleep(0)
        return "".join(self.sent)


def play(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scene)


def test_two_connections_are_used_and_the_third_task_gets_the_first_that_is_free() -> None:
    async def scene() -> None:
        executor = Slow()
        tasks = [executor.send(who) for who in "abcd"]
        assert await executor.sent_after() == "ab"
        executor.answer(1)
        assert await executor.sent_after() == "abc"
        executor.answer(0)
        assert await executor.sent_after() == "abcd"
        executor.answer(2)
        executor.answer(3)
        await asyncio.gather(*tasks)
        assert executor._free == CONNECTIONS

    play(scene())


def test_a_task_that_has_waited_uses_one_more() -> None:
    async def scene() -> None:
        executor = Slow()
        tasks = [executor.send(who) for who in "abc"]
        assert await executor.sent_after(PATIENCE * 2) == "abc"
        for number in range(3):
            executor.answer(number)
        await asyncio.gather(*tasks)
        tasks = [executor.send(who) for who in "xyz"]
        assert await executor.sent_after() == "abcxyz", "it is open now"
        for number in range(3, 6):
            executor.answer(number)
        await asyncio.gather(*tasks)

    play(scene())


def test_writes_that_wait_for_a_row_leave_one_connection_to_reads() -> None:
    async def scene() -> None:
        executor = Slow()
        tasks = [executor.send("w", WRITE) for _ in range(CONNECTIONS + 3)]
        assert await executor.sent_after(PATIENCE * (CONNECTIONS + 3)) == "w" * (CONNECTIONS - 1)
        tasks.append(executor.send("r"))
        assert await executor.sent_after() == "w" * (CONNECTIONS - 1) + "r"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert executor._free == CONNECTIONS
        assert not executor._queue

    play(scene())


def test_one_that_is_cancelled_as_its_turn_comes_leaves_it_to_the_next() -> None:
    async def scene() -> None:
        executor = Slow()
        first = [executor.send(who) for who in "ab"]
        third, fourth = executor.send("c"), executor.send("d")
        await executor.sent_after()
        executor.answer(0)
        while executor._queue and len(executor._queue) == 2:
            await asyncio.sleep(0)
        third.cancel()
        assert await executor.sent_after() == "abd"
        executor.answer(1)
        executor.answer(2)
        await asyncio.gather(*first, fourth)
        assert executor._free == CONNECTIONS

    play(scene())


def test_without_any_reply_those_that_wait_get_an_error() -> None:
    async def scene() -> None:
        executor = Slow(timeout=0.2)
        tasks = [executor.send("w", WRITE) for _ in range(CONNECTIONS)]
        done, _ = await asyncio.wait(tasks, timeout=5, return_when=asyncio.FIRST_COMPLETED)
        (late,) = done
        with pytest.raises(StoreError):
            late.result()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    play(scene())
