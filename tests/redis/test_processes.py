"""Processes that are killed, stopped or forked while they hold or want something, as the server sees them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fairlock
from tests.machine_load import within
from tests.servers.server import Server, until

Start = Callable[..., "subprocess.Popen[str]"]

ONE = """
import sys, time, fairlock
locks = fairlock.connect(sys.argv[1], lease=float(sys.argv[2]))
lock = locks.lock("x", timeout=30)
print("going", flush=True)
lease = lock.acquire()
print("holders", lease.fence, flush=True)
for line in sys.stdin:
    print(lease.lost, lease.reason, flush=True)
"""


@pytest.fixture
def start(redis_alone: Server) -> Iterator[Start]:
    """A process of its own that wants the lock, and holds it until it is ended."""
    started: list[subprocess.Popen[str]] = []

    def begin(lease: float = 2.0) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", ONE, redis_alone.url, str(lease)]
        one = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
        started.append(one)
        assert said(one) == "going"
        return one

    yield begin
    for one in started:
        one.kill()
        one.communicate()


def said(one: "subprocess.Popen[str]") -> str:
    assert one.stdout is not None
    return one.stdout.readline().strip()


def line(locks: fairlock.Locks) -> int:
    return sum(len(r.queue) for r in locks.snapshot("x").resources)


def soon_empty(url: str) -> None:
    """Check that the next client removes what the dead left: grants after the lease, waiters after poll_ttl."""
    with fairlock.connect(url) as locks:

        def empty() -> bool:
            with locks.lock("x", timeout=10):
                pass
            return not any(r.holders or r.queue for r in locks.snapshot(idle=True).resources)

        until(empty, "nothing is left", 40)  # far back in the queue patience lasts for 30 s


def test_a_killed_holder_is_passed_over_when_its_lease_ends(redis_alone: Server, start: Start) -> None:
    holder = start(2.0)
    assert said(holder).startswith("holders")
    holder.kill()
    began = time.monotonic()
    with fairlock.connect(redis_alone.url) as locks, locks.lock("x", timeout=20):
        assert 0.5 < time.monotonic() - began < within(3.5, below=15)


def test_a_killed_waiter_is_passed_over_at_once(redis_alone: Server, start: Start) -> None:
    with fairlock.connect(redis_alone.url) as locks:
        with locks.lock("x"):
            dead = [start() for _ in range(5)]
            until(lambda: line(locks) == 5, "five stand in the queue", 60)
            living = start()
            until(lambda: line(locks) == 6, "and one more", 60)
            for one in dead:
                one.kill()
                one.wait()
            time.sleep(0.1)
            began = time.monotonic()
        assert said(living).startswith("holders")
        assert time.monotonic() - began < within(1, below=8)  # five times two seconds of patience
    living.kill()


def test_a_holder_stopped_past_its_lease_is_passed_over_and_learns_of_it(redis_alone: Server, start: Start) -> None:
    holder = start(1.0)
    _, fence = said(holder).split()
    os.kill(holder.pid, signal.SIGSTOP)
    with fairlock.connect(redis_alone.url) as locks, locks.lock("x", timeout=20) as lease:
        assert lease.fence > int(fence)
        os.kill(holder.pid, signal.SIGCONT)
        assert holder.stdin is not None
        holder.stdin.write("\n")
        holder.stdin.flush()
        assert said(holder).startswith("True")


def test_a_waiter_stopped_at_its_turn_costs_two_seconds(redis_alone: Server, start: Start) -> None:
    with fairlock.connect(redis_alone.url) as locks:
        with locks.lock("x"):
            stopped = start(20.0)
            until(lambda: line(locks) == 1, "it stands in the queue")
            living = start()
            until(lambda: line(locks) == 2, "and one more")
            os.kill(stopped.pid, signal.SIGSTOP)
            began = time.monotonic()
        assert said(living).startswith("holders")
        assert time.monotonic() - began < within(4, below=15)  # a lease would be 20


FORKS = """
import os, sys, fairlock
locks = fairlock.connect(sys.argv[1], lease=30)
lease = locks.lock("x").acquire()
with locks.lock("y") as inner:
    child = os.fork()
    if child == 0:
        assert lease.lost and lease.reason == "forked", lease.reason
        assert locks.lock("x").acquire(False) is None
        with locks.lock("z"):
            pass
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    inner.ensure_held()
    assert locks.lock("x").locked()
lease.release()
for turn in range(20):
    if os.fork() == 0:
        with locks.lock("x", timeout=20):
            os._exit(0) if turn % 2 else None
        locks.close()
        os._exit(0)
    with locks.lock("y"):
        pass
for turn in range(20):
    assert os.wait()[1] == 0
print("fine")
"""


def test_a_forked_child_holds_nothing_and_does_no_harm(redis_alone: Server) -> None:
    command = [sys.executable, "-c", FORKS.replace("lease=30", "lease=1"), redis_alone.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=dict(os.environ))
    assert (done.stdout, done.returncode) == ("fine\n", 0), done.stderr
    soon_empty(redis_alone.url)


COUNTS = """
import os, sys, fairlock
url, folder = sys.argv[1:]
with fairlock.connect(url, lease=1) as locks:
    while True:
        with locks.lock("x", timeout=60) as lease:
            try:
                mark = os.open(f"{folder}/holders", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            except FileExistsError:
                text = open(f"{folder}/holders").read()
                if text and os.path.exists(f"/proc/{text}/fd/1") and not lease.lost:
                    print("two are holders", flush=True)
                os.unlink(f"{folder}/holders")
                continue
            os.write(mark, str(os.getpid()).encode())
            os.close(mark)
            with open(f"{folder}/count", "r+") as file:
                fence, count = map(int, file.read().split())
                if lease.fence <= fence:
                    print("a fence fell", flush=True)
                file.seek(0)
                file.write(f"{lease.fence} {count + 1}")
            os.unlink(f"{folder}/holders")
"""


def test_processes_killed_in_the_middle_of_anything(redis_alone: Server, tmp_path: Path) -> None:
    """Four count; every now and then one is killed with -9 and another takes its place."""
    import random

    dice = random.Random(4)
    (tmp_path / "count").write_text("0 0                                        ")
    command = [sys.executable, "-c", COUNTS, redis_alone.url, str(tmp_path)]

    def begin() -> "subprocess.Popen[str]":
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))

    crowd = [begin() for _ in range(4)]
    wrong = ""
    try:
        for _ in range(12):
            before = (tmp_path / "count").read_text()
            until(lambda b=before: (tmp_path / "count").read_text() != b, "they go on", 60)  # type: ignore[misc]
            time.sleep(0.2 + dice.random() / 5)
            victim = crowd.pop(0)
            victim.kill()
            wrong += victim.communicate()[0]
            crowd.append(begin())
    finally:
        for one in crowd:
            one.kill()
            wrong += one.communicate()[0]
    assert wrong == ""
    assert int((tmp_path / "count").read_text().split()[1]) > 100
    soon_empty(redis_alone.url)


FORKED = """
import asyncio, gc, os, sys
from fairlock import aio

async def main():
    async with aio.connect(sys.argv[1]) as locks, aio.connect(sys.argv[1]) as other:
        async with locks.lock("x"):
            waiting = asyncio.create_task(other.lock("x").acquire())
            while not (await locks.snapshot("x")).resources[0].queue:
                await asyncio.sleep(0.01)
            child = os.fork()
            if not child:
                gc.collect()
                sys.stderr.flush()
                os._exit(0)
            os.waitpid(child, 0)
            await locks.ping()
        await (await waiting).release()
        print("both went on")

asyncio.run(main())
"""


def test_the_child_of_a_loop_does_not_finalize_its_parents_connections(redis_alone: Server) -> None:
    command = [sys.executable, "-W", "always", "-c", FORKED, redis_alone.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "both went on\n", "")
