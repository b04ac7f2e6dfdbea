"""An acquire that is cancelled or interrupted at any moment leaves nothing inside and nothing in the queue.

About a hundred of each here, a thousand in the long runs. The moments are random, from a seed.
"""

import asyncio
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import fairlock
from fairlock import aio

MANY = [100, pytest.param(1000, marks=[pytest.mark.soak, pytest.mark.timeout(600)])]


def nothing_is_left(url: str, within: float) -> None:
    """Check that there are no holders and no waiters; pending releases are sent within this many seconds."""
    with fairlock.connect(url) as locks:
        until = time.monotonic() + within
        while True:
            left = [r for r in locks.snapshot(idle=True).resources if r.holders or r.queue]
            if not left:
                return
            assert time.monotonic() < until, left
            time.sleep(0.05)


@pytest.fixture
def url(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if store == "memory":
        return "memory://cancelled"
    if store == "sqlite":
        return f"sqlite:///{tmp_path}/locks.db"
    return str(request.getfixturevalue(store).url)


@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize("store", ["memory", "sqlite", "redis_alone"])
def test_cancelled_acquires_leave_nothing_behind(url: str, many: int) -> None:
    rng = random.Random(many)
    got = 0

    async def one(lock: aio.Lock) -> None:
        nonlocal got
        async with lock:
            got += 1
            await asyncio.sleep(rng.random() * 0.002)

    async def main() -> None:
        async with aio.connect(url, lease=60) as first, aio.connect(url, lease=60) as second:
            for _ in range(many // 4):
                tasks = [asyncio.create_task(one(locks.lock("x"))) for locks in (first, second, first, second)]
                await asyncio.sleep(rng.random() * 0.004)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            async with first.lock("x", timeout=10):
                pass

    asyncio.run(main())
    assert got  # the rng did not cancel every one of them before it began
    nothing_is_left(url, 5)


@pytest.mark.parametrize("store", ["memory", "sqlite", "redis_alone", "postgresql"])
def test_threads_that_acquire_leave_nothing_when_the_client_is_closed(url: str) -> None:
    rng = random.Random(7)
    wrong: list[BaseException] = []

    def work(locks: fairlock.Locks, names: list[str]) -> None:
        try:
            for name in names * 1000:
                lease = locks.lock(name).acquire()
                time.sleep(0.001)
                lease.release()  # type: ignore[union-attr]
        except BaseException as error:
            if not (isinstance(error, fairlock.ConfigError) and "closed" in str(error)):
                wrong.append(error)

    for turn in range(5):
        locks = fairlock.connect(url, lease=60)
        names = [[f"{turn}-{rng.randrange(8)}", f"{turn}-{rng.randrange(8)}"] for _ in range(12)]
        threads = [threading.Thread(target=work, args=(locks, mine), daemon=True) for mine in names]
        for thread in threads:
            thread.start()
        time.sleep(0.05 + rng.random() * 0.1)
        locks.close()
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()
        nothing_is_left(url, 0)
    assert wrong == []


@pytest.mark.parametrize("store", ["memory", "sqlite", "redis_alone", "postgresql"])
def test_tasks_that_acquire_leave_nothing_when_the_client_is_closed(url: str) -> None:
    rng = random.Random(7)

    async def work(locks: aio.Locks, name: str) -> None:
        while True:
            lease = await locks.lock(name).acquire()
            await asyncio.sleep(0.001)
            await lease.release()  # type: ignore[union-attr]

    async def main() -> None:
        for turn in range(5):
            locks = aio.connect(url, lease=60)
            names = [f"{turn}-{rng.randrange(8)}" for _ in range(20)]
            tasks = [asyncio.create_task(work(locks, name)) for name in names]
            await asyncio.sleep(0.03 + rng.random() * 0.1)
            await locks.close()
            ends = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
            assert {type(end) for end in ends} == {fairlock.ConfigError}, ends
            await asyncio.to_thread(nothing_is_left, url, 0)

    asyncio.run(main())


INTERRUPTED = """
import signal, sys, fairlock
locks = fairlock.connect(sys.argv[1], lease=60)
many, done, caught = int(sys.argv[2]), 0, 0
signal.signal(signal.SIGINT, signal.default_int_handler)
while True:
    try:
        print("go", flush=True)
        while True:
            # Python may interrupt just before the first line of __exit__: then the next round of this `with` leaves it.
            with locks.lock("x"):
                done += 1
            if caught >= many:
                break
        break
    except KeyboardInterrupt:
        caught += 1
signal.signal(signal.SIGINT, signal.SIG_IGN)  # one that was sent again on a busy machine may come late
left = [r for r in locks.snapshot(idle=True).resources if r.holders or r.queue]
print("left", left, "done", done > 0, "grants", len(locks._session.grants), flush=True)
"""


@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize("store", ["sqlite", "redis_alone"])
def test_ctrl_c_at_any_moment_leaves_nothing_behind(url: str, many: int) -> None:
    command = [sys.executable, "-c", INTERRUPTED, url, str(many)]
    rng = random.Random(many)
    rival = fairlock.connect(url, lease=60).lock("x", timeout=30)
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=dict(os.environ)) as victim:
        try:
            for _ in range(many):
                if (last := next_word(victim)) != "go":
                    break
                with rival:  # now and then it has to wait, so some are interrupted in the queue
                    time.sleep(rng.random() * 0.003)
                time.sleep(rng.random() * 0.003)
                victim.send_signal(signal.SIGINT)
            while last == "go":
                last = next_word(victim)
            assert last == "left [] done True grants 0"
        finally:
            victim.kill()
    nothing_is_left(url, 5)


def next_word(victim: "subprocess.Popen[bytes]") -> str:
    """Return the next line it prints. Python swallows a Ctrl-C that arrives in a finalizer: then it is sent again."""
    assert victim.stdout is not None
    for _ in range(4):
        if select.select([victim.stdout], [], [], 12)[0]:  # a second one too early would kill it
            return read_line(victim.stdout.fileno())
        victim.send_signal(signal.SIGINT)
    raise AssertionError("it cannot be interrupted any more")


def read_line(fd: int) -> str:
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(fd, 1)
        assert piece, f"it ended after {line!r}"
        line += piece
    return line.decode().rstrip("\n")
