"""The normal end of an interpreter releases what its clients still hold; nobody waits a lease for it."""

import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

ENDS = """
import sys, threading, time, holdfast
locks = holdfast.connect(sys.argv[1], lease=60)
held = locks.lock("held").acquire()
slot = locks.semaphore("slots", 2).acquire()
pool = locks.pool("jobs")
pool.add("one")
item = pool.acquire()
other = holdfast.connect(sys.argv[1], lease=60)
for waits in (other.lock("held").acquire, locks.lock("held").acquire, lambda: other.pool("jobs").acquire(key="one")):
    threading.Thread(target=waits, daemon=True).start()
kept = locks.lock("detached").acquire()
kept.detach(60)
while not other.snapshot("held").resources[0].line:
    time.sleep(0.01)
time.sleep(0.2)
print("ready", flush=True)
"""
WAYS = {"at the end of the script": "", "by sys.exit": "sys.exit(3)", "by an exception": "raise KeyError(1)"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("store", ["sqlite", "redis_alone", "postgresql"])
def test_what_is_held_at_a_normal_exit_is_released(
    store: str, way: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/locks.db" if store == "sqlite" else str(request.getfixturevalue(store).url)
    command = [sys.executable, "-W", "always", "-c", ENDS + WAYS[way], url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.stdout == "ready\n", done.stderr
    assert "Warning" not in done.stderr
    assert "Exception in thread" not in done.stderr, "a thread that waits at the end has nothing to report"
    with holdfast.connect(url) as locks:
        left = [r.name for r in locks.snapshot().resources if r.inside or r.line]
        assert left == ["detached"]  # which is meant to outlive its process
        assert locks.pool("jobs").counts().free == 1
