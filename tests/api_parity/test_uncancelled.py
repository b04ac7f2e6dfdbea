"""A lost lease cancels the task that is inside, and takes that back on every way out: as asyncio.timeout does.

What is not taken back looks like a cancellation from outside to the next TaskGroup of the same task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fairlock import LeaseLost, aio
from fairlock.aio import Locks

SHORT = 0.05


async def sleeps() -> None:
    await asyncio.sleep(30)


async def raises_another() -> None:
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        raise ValueError("the body's own") from None


async def swallows() -> None:
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        pass


BODIES = {sleeps: LeaseLost, raises_another: ValueError, swallows: LeaseLost}
Body = Callable[[], Awaitable[None]]


async def by_with(locks: Locks, body: Body) -> None:
    async with locks.lock("x", max_hold=SHORT):
        await body()


async def by_hold(locks: Locks, body: Body) -> None:
    async with locks.lock("x", max_hold=SHORT).hold():
        await body()


async def by_lease(locks: Locks, body: Body) -> None:
    lease = await locks.lock("x", max_hold=SHORT).acquire()
    assert lease
    async with lease:
        await body()


async def by_guard(locks: Locks, body: Body) -> None:
    await locks.guard("x", max_hold=SHORT)(body)()  # type: ignore[arg-type]


async def by_lock_all(locks: Locks, body: Body) -> None:
    async with locks.lock_all(locks.lock("x", max_hold=SHORT), "y"):
        await body()


async def by_item(locks: Locks, body: Body) -> None:
    pool = locks.pool("jobs", lease=0.5)
    await pool.add("j")
    async with pool.hold(renew=False):
        await body()


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("way", [by_with, by_hold, by_lease, by_guard, by_lock_all, by_item])
def test_a_task_is_as_it_was_before(way: Callable[[Locks, Body], Awaitable[None]], body: Body) -> None:
    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        async with aio.connect("memory://") as locks:
            with pytest.raises(BODIES[body]):
                await way(locks, body)
        assert task.cancelling() == 0
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
        async with asyncio.timeout(5):
            await asyncio.sleep(0)

    asyncio.run(main())


def test_a_cancellation_from_outside_stays_one() -> None:
    """Also if the lease is lost in the same turn of the loop, before the task has left."""

    async def holders(locks: Locks, entered: asyncio.Event) -> None:
        async with locks.lock("x", max_hold=10) as lease:
            entered.set()
            try:
                await asyncio.sleep(30)
            finally:
                lease._session.lose(lease._grant, "evicted", "a test")  # its cancel comes too late

    async def main() -> None:
        async with aio.connect("memory://") as locks:
            entered = asyncio.Event()
            task: asyncio.Task[Any] = asyncio.create_task(holders(locks, entered))
            await entered.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert task.cancelled()
            assert task.cancelling() == 1

    asyncio.run(main())
