"""Many processes drain a pool while some of them are killed with -9: each item is done once, none is lost or stuck."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fairlock

WORKER = Path(__file__).with_name("drain.py")


def drain(
    url: str, log: Path, items: int, workers: int, kills: int, lease: float, seconds: float
) -> dict[str, float]:
    """Add the items, start the workers, kill some of them at random; return what became of it all."""
    rng = random.Random(items)
    with fairlock.connect(url) as locks:
        jobs = locks.pool("jobs")
        jobs.add_many(f"item {n}" for n in range(items))
        command = [sys.executable, str(WORKER), url, "jobs", str(log), str(lease)]
        running = [subprocess.Popen(command) for _ in range(workers)]
        begun = time.monotonic()
        killed = 0
        free_since: dict[str, float] = {}
        stuck = 0.0
        try:
            while time.monotonic() - begun < seconds:
                counts = jobs.counts()
                if counts.done == items:
                    break
                # What has expired stands behind what was never taken: it is stuck only if there is nothing of that.
                expired = {item.key for item in jobs.items("expired")} if counts.expired and not counts.free else set()
                now = time.monotonic()
                free_since = {key: free_since.get(key, now) for key in expired}
                stuck = max([stuck, *(now - since for since in free_since.values())])
                if killed < kills and counts.done > items * killed / kills:
                    victim = running.pop(rng.randrange(len(running)))
                    victim.send_signal(signal.SIGKILL)
                    victim.wait()
                    killed += 1
                    running.append(subprocess.Popen(command))
                time.sleep(0.02)
            took = time.monotonic() - begun
            for each in running:
                assert each.wait(seconds) == 0, "a worker failed"
        finally:
            for each in running:
                if each.poll() is None:
                    each.kill()
                    each.wait()
        rest = jobs.items()
    done = {item.key: item for item in rest}
    assert len(done) == items, "some are lost"
    assert {item.state for item in rest} == {"done"}, jobs_left(rest)
    takes: dict[str, list[int]] = {}
    for line in log.read_text().splitlines():
        key, _, fence = line.rpartition(" ")
        takes.setdefault(key, []).append(int(fence))
    again = 0
    for key, item in done.items():
        fences = takes[key]
        assert fences == sorted(set(fences)), f"{key}: the fences {fences} do not rise"
        assert item.fence == item.body == fences[-1], f"{key} was finished by {item.body}; it was taken by {fences}"
        again += len(fences) - 1
    assert again <= killed, "only what was killed is done again"
    return {"seconds": took, "killed": killed, "again": again, "stuck": stuck, "per second": items / took}


def jobs_left(items: list[fairlock.PoolItem]) -> str:
    return str([item for item in items if item.state != "done"][:10])


def url_in(folder: Path) -> str:
    return f"sqlite:///{folder}/pool.db"


@pytest.mark.timeout(100)
def test_a_pool_is_drained_although_workers_are_killed(tmp_path: Path) -> None:
    found = drain(url_in(tmp_path), tmp_path / "log", items=300, workers=4, kills=6, lease=1.0, seconds=40)
    print(found)
    assert found["killed"] >= 1
    assert found["stuck"] < 1.0, "nobody took over for longer than a second what had expired"


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_sixteen_processes_drain_five_thousand_items_although_workers_are_killed(tmp_path: Path) -> None:
    assert os.cpu_count()
    found = drain(url_in(tmp_path), tmp_path / "log", items=5_000, workers=16, kills=60, lease=2.0, seconds=150)
    print(found)
    assert found["killed"] >= 20
    assert found["stuck"] < 1.0
