"""A loop that ends without close(): what its tasks hold and wait for is given up; nothing stays open or pending."""

import asyncio
import gc
import subprocess
import sys
from pathlib import Path

import pytest

import fairlock
from fairlock import aio

HELD_TO_THE_END = """
import asyncio, gc, random, sys
from fairlock import aio

async def main():
    locks = aio.connect(sys.argv[1], lease=60)  # and nobody closes it
    pool = locks.pool("jobs")
    await pool.add("one")
    holders = asyncio.Event()

    async def work():
        async with locks.lock("x"):
            holders.set()
            await asyncio.sleep(60)

    async def keep():
        await locks.lock("kept").acquire()  # without `async with`

    async def fight(name):
        while True:
            async with locks.lock(name):
                await asyncio.sleep(random.random() * 0.002)

    tasks = [asyncio.create_task(work()), asyncio.create_task(keep())]
    tasks += [asyncio.create_task(locks.lock("x").acquire()) for _ in range(2)]
    tasks += [asyncio.create_task(pool.acquire()) for _ in range(2)]
    tasks += [asyncio.create_task(fight(f"f{n % 4}")) for n in range(12)]
    await holders.wait()
    await asyncio.sleep(0.1 + random.random() * 0.05)

asyncio.run(main())
gc.collect()
with_another = aio.connect(sys.argv[1])

async def look():  # in the same process: no death has freed anything
    left = [r for r in (await with_another.snapshot(idle=True)).resources if r.holders or r.queue]
    print("left", left, (await with_another.pool("jobs").counts()).free)
    await with_another.close()

asyncio.run(look())
"""


def played(url: str) -> None:
    command = [sys.executable, "-W", "always", "-c", HELD_TO_THE_END, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    # On a busy machine a server may reply late, and the client logs that; nothing else may be printed.
    printed = [line for line in done.stderr.splitlines() if not line.startswith("store_down: ")]
    assert (done.returncode, printed, done.stdout) == (0, [], "left [] 1\n")
    with fairlock.connect(url) as locks:
        assert not locks.lock("x").locked()


def test_memory() -> None:
    played("memory://shared")


def test_sqlite(tmp_path: Path) -> None:
    for turn in range(3):
        played(f"sqlite:///{tmp_path}/locks{turn}.db")


@pytest.mark.parametrize("name", ["redis_alone", "redis_sentinel", "redis_cluster", "postgresql", "mariadb"])
def test_a_server(name: str, request: pytest.FixtureRequest) -> None:
    played(str(request.getfixturevalue(name).url))


def test_a_task_that_the_client_starts_at_the_end_of_the_loop_comes_to_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As a keeper does that a release under way has just started. Or asyncio logs "Task was destroyed"."""
    ended: list[bool] = []

    async def main() -> None:
        locks = aio.connect("memory://")
        await locks.lock("x").acquire()
        backend = locks.session.backend
        tidy = backend.tidy

        async def start_one() -> None:
            locks.session.runtime.spawn(linger(), "fairlock-late")
            await tidy()

        backend.tidy = start_one  # type: ignore[method-assign]

    async def linger() -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        ended.append(True)

    asyncio.run(main())
    gc.collect()
    assert ended == [True]
    assert caplog.text == ""
