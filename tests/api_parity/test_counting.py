"""Counting with the lock as the only protection: clients read, wait a moment and write back, and no count is lost."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

import fairlock
from fairlock import aio

STORES = ("memory", "sqlite")


def url(store: str, folder: Path) -> str:
    return "memory://" if store == "memory" else f"sqlite:///{folder}/locks.db"


@pytest.mark.parametrize("store", STORES)
def test_64_threads_count_without_losing_one_and_every_hold_has_a_greater_fence(store: str, tmp_path: Path) -> None:
    count = 0
    fences: list[int] = []

    def work(lock: fairlock.Lock) -> None:
        nonlocal count
        for _ in range(25):
            with lock as lease:
                seen = count
                time.sleep(0)  # let another thread run, if it can
                count = seen + 1
                fences.append(lease.fence)

    with fairlock.connect(url(store, tmp_path)) as locks:
        threads = [threading.Thread(target=work, args=(locks.lock("x", lease=60),)) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert count == 64 * 25
        assert fences == sorted(set(fences))


@pytest.mark.parametrize("store", STORES)
def test_200_tasks_count_without_losing_one_and_every_hold_has_a_greater_fence(store: str, tmp_path: Path) -> None:
    count = 0
    fences: list[int] = []

    async def work(lock: aio.Lock) -> None:
        nonlocal count
        for _ in range(5):
            async with lock as lease:
                seen = count
                await asyncio.sleep(0)
                count = seen + 1
                fences.append(lease.fence)

    async def main() -> None:
        async with aio.connect(url(store, tmp_path)) as locks:
            await asyncio.gather(*[work(locks.lock("x", lease=60)) for _ in range(200)])

    asyncio.run(main())
    assert count == 200 * 5
    assert fences == sorted(set(fences))


def test_threads_and_tasks_of_one_process_count_together(tmp_path: Path) -> None:
    """Two clients of both runtimes on one file: they meet in the store, not in memory."""
    count = 0

    def threads() -> None:
        nonlocal count
        with fairlock.connect(f"sqlite:///{tmp_path}/locks.db") as locks:
            for _ in range(100):
                with locks.lock("x", lease=60):
                    seen = count
                    time.sleep(0)
                    count = seen + 1

    async def tasks() -> None:
        nonlocal count
        async with aio.connect(f"sqlite:///{tmp_path}/locks.db") as locks:
            for _ in range(100):
                async with locks.lock("x", lease=60):
                    seen = count
                    await asyncio.sleep(0)
                    count = seen + 1

    thread = threading.Thread(target=threads)
    thread.start()
    asyncio.run(tasks())
    thread.join(60)
    assert count == 200
