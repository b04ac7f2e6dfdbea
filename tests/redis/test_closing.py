"""Closing a client of a server that accepts connections and never replies."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import pytest

import fairlock
from fairlock import aio


@pytest.fixture
def mute() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}"


def test_closing_takes_no_longer_than_one_reply_may(mute: str) -> None:
    """However many requests are still to be repeated, and however many servers each of them could be sent to."""
    url = mute.replace("redis://", "redis+cluster://")
    threads = fairlock.connect(url)
    took: list[float] = []

    async def by_task() -> None:
        tasks = aio.connect(url)
        for name in "abc":
            with pytest.raises(fairlock.StoreError):
                await tasks.lock(name).acquire(timeout=0)
        began = time.monotonic()
        await tasks.close()
        took.append(time.monotonic() - began)

    def by_thread() -> None:
        for name in "abc":
            with pytest.raises(fairlock.StoreError):
                threads.lock(name).acquire(timeout=0)
        began = time.monotonic()
        threads.close()
        took.append(time.monotonic() - began)

    beside = threading.Thread(target=by_thread)
    beside.start()
    asyncio.run(by_task())
    beside.join(30)
    assert len(took) == 2 and max(took) < 4.5, took


def test_closing_cancels_no_task_that_waits_for_the_connection(mute: str) -> None:
    async def main() -> None:
        locks = aio.connect(mute)
        tasks = [asyncio.create_task(locks.lock(f"x{n}").acquire()) for n in range(5)]
        await asyncio.sleep(0.05)
        begun = time.monotonic()
        await locks.close()
        ends = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
        assert time.monotonic() - begun < 8
        assert all(isinstance(end, fairlock.StoreError | fairlock.ConfigError) for end in ends), ends

    asyncio.run(main())


def test_a_cancelled_task_stays_cancelled_when_the_client_closes(mute: str) -> None:
    async def main() -> None:
        locks = aio.connect(mute)
        task = asyncio.create_task(locks.lock("x").acquire())
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(locks.close(), return_exceptions=True)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 10)

    asyncio.run(main())
