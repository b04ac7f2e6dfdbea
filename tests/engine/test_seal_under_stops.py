"""Processes that are stopped and evicted at any moment: with a seal none of them commits after it has lost the lock."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

import fairlock
from fairlock.errors import LockError
from tests.engine.seal_place import STORES, Place, make_place

WORKERS = 4
STOPPED = 1.1  # seconds: longer than the lease
DAILY, LONG = 100, 1000


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return make_place(request, tmp_path)


def play(at: Place, sealed: bool, turns: int, stops: int, seed: int) -> tuple[int, Counter[str]]:
    """Let workers count this often while they are stopped and evicted; return how many stale commits there were, and
    how the turns ended."""
    with contextlib.closing(at.driver()) as db:
        cursor = db.cursor()
        for text in (
            "DROP TABLE IF EXISTS counter", "CREATE TABLE counter (value BIGINT)", "INSERT INTO counter VALUES (0)",
            "DELETE FROM journal",
        ):  # fmt: skip
            cursor.execute(text)
        db.commit()
    random, outcomes, left, mutex = Random(seed), Counter[str](), [turns], threading.Lock()
    command = [sys.executable, "-m", "tests.engine.seal_worker", at.kind, at.url, str(at.path)]
    pipe = subprocess.PIPE
    workers = [
        subprocess.Popen([*command, "seal" if sealed else "plain"], stdin=pipe, stdout=pipe, text=True)
        for _ in range(WORKERS)
    ]

    def drive(worker: subprocess.Popen[str]) -> None:
        assert worker.stdin is not None and worker.stdout is not None
        while True:
            with mutex:
                if left[0] <= 0:
                    return
                left[0] -= 1
            worker.stdin.write("\n")
            worker.stdin.flush()
            outcomes[worker.stdout.readline().strip()] += 1

    threads = [threading.Thread(target=drive, args=(worker,)) for worker in workers]
    try:
        for thread in threads:
            thread.start()
        with fairlock.connect(at.url) as operator:
            while any(thread.is_alive() for thread in threads):
                time.sleep(random.uniform(0.02, 0.15 if sealed else 0.04))
                with contextlib.suppress(LockError):
                    operator.evict("counter", reason="a test", at_once=True)
                if random.random() < stops / turns * 3:
                    worker = random.choice(workers)
                    worker.send_signal(signal.SIGSTOP)
                    time.sleep(STOPPED)
                    worker.send_signal(signal.SIGCONT)
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.close()
            assert worker.wait(30) == 0
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            for stream in (worker.stdin, worker.stdout):
                if stream is not None:
                    stream.close()
    with contextlib.closing(at.driver()) as db:
        cursor = db.cursor()
        cursor.execute("SELECT value, (SELECT count(*) FROM journal) FROM counter")
        value, committed = cursor.fetchone()
    return committed - value, outcomes


def test_no_stale_commit_with_a_seal(place: Place) -> None:
    met: Counter[str] = Counter()
    for seed in range(1, 6):  # an eviction meets a turn by chance, and on a busy machine seldom
        stale, outcomes = play(place, True, DAILY, 1, seed)
        assert stale == 0, outcomes
        assert outcomes["done"] > 10 and sum(outcomes.values()) == DAILY, outcomes
        met += outcomes
        if met["LeaseLost"]:
            return
    raise AssertionError(f"no lease was lost: {met}")


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_stale_commits_without_it(place: Place) -> None:
    assert any(play(place, False, DAILY // 2, 0, seed)[0] > 0 for seed in range(10))


@pytest.mark.soak
def test_no_stale_commit_in_a_thousand_transactions(place: Place) -> None:
    stale, outcomes = play(place, True, LONG, 40, seed=3)
    assert stale == 0, outcomes
    assert outcomes["LeaseLost"] > 10 and sum(outcomes.values()) == LONG, outcomes
    assert play(place, False, LONG, 40, seed=4)[0] > 0
