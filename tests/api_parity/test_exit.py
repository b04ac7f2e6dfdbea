"""The normal end of an interpreter releases what its clients still hold; nobody waits a lease for it."""

import subprocess
import sys
from pathlib import Path

import pytest

import fairlock

ENDS = """
import sys, threading, time, fairlock
locks = fairlock.connect(sys.argv[1], lease=60)
held = locks.lock("held").acquire()
slot = locks.semaphore("slots", 2).acquire()
pool = locks.pool("jobs")
pool.add("one")
item = pool.acquire()
other = fairlock.connect(sys.argv[1], lease=60)
for waits in (other.lock("held").acquire, locks.lock("held").acquire, lambda: other.pool("jobs").acquire(key="one")):
    threading.Thread(target=waits, daemon=True).start()
kept = locks.lock("detached").acquire()
kept.detach(60)
while not other.snapshot("held").resources[0].queue:
    time.sleep(0.01)
time.sleep(0.2)
print("ready", flush=True)
"""
WAYS = {"at the end of the script": "", "by sys.exit": "sys.exit(3)", "by an exception": "raise KeyError(1)"}


LOOP = """
import asyncio, sys, threading, time
from fairlock import aio
loop = asyncio.new_event_loop()

async def main():
    locks, other = (aio.connect(sys.argv[1], lease=60) for _ in range(2))
    await locks.lock("held").acquire()
    waits = asyncio.create_task(other.lock("held").acquire())
    limit = time.monotonic() + 20
    while not (await other.snapshot("held")).resources[0].queue and time.monotonic() < limit:
        await asyncio.sleep(0.01)
    return locks, other, waits

if sys.argv[2] == "in a daemon thread":
    threading.Thread(target=loop.run_forever, daemon=True).start()
    kept = asyncio.run_coroutine_threadsafe(main(), loop).result()
else:
    kept = loop.run_until_complete(main())
print("ready", flush=True)
"""


def printed(source: str, *words: str) -> str:
    """Run a program to its end and return what it printed on stderr."""
    command = [sys.executable, "-W", "always", "-c", source, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.stdout == "ready\n", done.stderr
    return done.stderr


def left(url: str) -> list[str]:
    with fairlock.connect(url) as locks:
        return [r.name for r in locks.snapshot(idle=True).resources if r.holders or r.queue]


def nothing_is_left_by_threads(url: str, way: str = "") -> None:
    said = printed(ENDS + way, url)
    assert "Warning" not in said
    assert "Exception in thread" not in said, "a thread that waits at the end has nothing to report"
    assert left(url) == ["detached"]  # which is meant to outlive its process
    with fairlock.connect(url) as locks:
        assert locks.pool("jobs").counts().free == 1


def nothing_is_left_by_a_loop(url: str, where: str) -> None:
    said = printed(LOOP, url, where)
    assert "Traceback" not in said, said
    assert left(url) == [], said


@pytest.fixture
def url(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if store == "sqlite":
        return f"sqlite:///{tmp_path}/locks.db"
    server = request.getfixturevalue(store)
    return f"{server.url()}&skew=0" if store == "fake_nosql" else str(server.url)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("store", ["sqlite", "redis_alone", "postgresql"])
def test_what_is_held_at_a_normal_exit_is_released(url: str, way: str) -> None:
    nothing_is_left_by_threads(url, WAYS[way])


@pytest.mark.parametrize("store", ["mariadb", "fake_nosql"])
def test_the_same_on_other_stores(url: str) -> None:
    nothing_is_left_by_threads(url)


@pytest.mark.parametrize("where", ["in the main thread", "in a daemon thread"])
@pytest.mark.parametrize("store", ["sqlite", "redis_alone", "postgresql", "mariadb", "fake_nosql"])
def test_what_is_held_in_a_loop_that_was_not_ended_is_released(url: str, where: str) -> None:
    nothing_is_left_by_a_loop(url, where)
