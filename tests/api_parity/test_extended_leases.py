"""An extended lease outlives a client that cannot reach its store. Not everywhere does it outlive its process."""

import subprocess
import sys
from pathlib import Path

import pytest

import fairlock

HOLDER = """
import sys, fairlock
locks = fairlock.connect(sys.argv[1], lease=1)
lease = locks.lock("x").acquire()
lease.extend(60)
pool = locks.pool("jobs", lease=1)
pool.add("a")
item = pool.acquire()
item.extend(60)
print("extended", flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=["sqlite", "redis_alone", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/locks.db"
    return str(request.getfixturevalue(request.param).url)


@pytest.mark.parametrize("end", ["killed", "exits"])
def test_what_is_left_of_it_when_its_process_ends(url: str, end: str) -> None:
    """A normal end releases it. A death is noticed by SQLite only, and there for locks only: an item has its lease."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "extended\n"
    if end == "killed":
        holder.kill()
    holder.communicate()
    with fairlock.connect(url) as locks:
        lock_is_free, item_is_free = locks.lock("x").acquire(timeout=3), locks.pool("jobs").acquire(timeout=0.1)
    assert bool(lock_is_free) == (end == "exits" or url.startswith("sqlite"))
    assert bool(item_is_free) == (end == "exits")
