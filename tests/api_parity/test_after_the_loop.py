"""What a lease of a task says when its loop is gone, and what becomes of an error in a task of the client itself."""

import asyncio
import gc
import time
from typing import Any

import pytest

from fairlock import StoreError, aio


def test_a_lease_still_works_after_its_loop_was_closed() -> None:
    async def main() -> aio.Lease:
        locks = aio.connect("memory://", lease=0.5)
        return await locks.lock("x").hold().__aenter__()

    loop = asyncio.new_event_loop()
    lease = loop.run_until_complete(main())
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()  # without closing its generators first, as asyncio.run() would
    time.sleep(0.6)
    assert lease.lost
    assert lease.reason == "expired"


def test_an_error_in_the_keeper_is_logged_once_and_is_no_noise(caplog: pytest.LogCaptureFixture) -> None:
    told: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        async with aio.connect("memory://") as locks:

            async def fails() -> None:
                raise RuntimeError("a test wants it so")

            locks._session.runtime.spawn(fails(), "fairlock-keeper")
            await asyncio.sleep(0.01)
        gc.collect()

    asyncio.run(main())
    assert told == []
    said = [record.getMessage() for record in caplog.records]  # clients of earlier tests may log, too
    assert said.count("fairlock-keeper ended") == 1, said


def test_a_release_that_fails_after_its_task_was_cancelled_is_no_noise() -> None:
    """It goes on without its task, and nobody is left to receive what it raises."""
    told: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        async with aio.connect("memory://") as locks:
            asked, answer = asyncio.Event(), asyncio.Event()

            async def fails(*_: object) -> None:
                asked.set()
                await answer.wait()
                raise StoreError("a test wants it so")

            async with locks.lock("x") as lease:
                call, locks._session.call = locks._session.call, fails  # type: ignore[method-assign,assignment]
                releasing = asyncio.create_task(lease.release())
                await asked.wait()
                releasing.cancel()
                await asyncio.wait([releasing])
                answer.set()
                await asyncio.sleep(0.01)
                locks._session.call = call  # type: ignore[method-assign]
            assert releasing.cancelled()
        gc.collect()

    asyncio.run(main())
    assert told == []
