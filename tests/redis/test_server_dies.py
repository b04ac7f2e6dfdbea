"""The server dies with -9 in the middle of everything and comes back, with what it had written to disk.

A hundred workers in ten processes count together, in a plain file that checks the fence. A worker that finds another
holder, or a fence that did not rise, writes it down. So do the tests with failovers and clusters.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.api_parity.test_nothing_left import nothing_is_left
from tests.servers.server import Server, until

WORKER = r"""
import json, os, sys, threading, time
import fairlock

url, folder = sys.argv[1:3]
number, threads, options = map(json.loads, sys.argv[3:6])
names = options.pop("names", ["x"])
handoff = number % 2 == 0
stop = threading.Event()
wrong, doubts = [], {}
turns = [[] for _ in range(threads)]

def cycle(lock, name, mine):
    with lock as lease:
        mark = os.path.join(folder, f"holders-{name}")
        count = os.path.join(folder, f"count-{name}")
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            if not lease.lost:
                wrong.append(f"{name}: two were holders at {time.time()}")
            return
        try:
            with open(count) as file:
                fence, total = map(int, file.read().split())
            if lease.fence <= fence:
                wrong.append(f"{name}: fence {lease.fence} after {fence}")
            with open(count + f".{number}", "w") as file:
                file.write(f"{lease.fence} {total + 1}")
            os.replace(count + f".{number}", count)
            mine.append((name, time.time()))
        finally:
            os.unlink(mark)

def work(index):
    name = names[(number * threads + index) % len(names)]
    lock = locks.lock(name, timeout=60, local_handoff=handoff)
    while not stop.is_set():
        try:
            cycle(lock, name, turns[index])
        except fairlock.LockError as error:
            kind = getattr(error, "reason", "") or type(error).__name__
            doubts[kind] = doubts.get(kind, 0) + 1
            time.sleep(0.05)

with fairlock.connect(url, **options) as locks:
    crowd = [threading.Thread(target=work, args=[index]) for index in range(threads)]
    for one in crowd:
        one.start()
    sys.stdin.readline()
    stop.set()
    for one in crowd:
        one.join()
print(json.dumps({"wrong": wrong, "doubts": doubts, "turns": turns}))
"""


class Workers:
    """Processes with threads that all want the same few locks, and the witness."""

    def __init__(self, url: str, folder: Path, processes: int = 10, threads: int = 10, **options: object) -> None:
        self.folder = folder
        self.names: list[str] = list(options.get("names", ["x"]))  # type: ignore[call-overload]
        for name in self.names:
            (folder / f"count-{name}").write_text("0 0")
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-c", WORKER, url, str(folder), str(number), str(threads), json.dumps(options)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ),
            )
            for number in range(processes)
        ]  # fmt: skip

    def total(self) -> int:
        return sum(int((self.folder / f"count-{name}").read_text().split()[1]) for name in self.names)

    def go_on(self, turns: int, within: float) -> float:
        """Wait until they have done this number of turns more. Return the seconds that the first of them took."""
        began, before = time.monotonic(), self.total()
        until(lambda: self.total() > before, "somebody gets in", within)
        first = time.monotonic() - began
        until(lambda: self.total() >= before + turns, f"{turns} more turns", within)
        return first

    def end(self) -> tuple[list[str], dict[str, int], list[list[tuple[str, float]]]]:
        wrong: list[str] = []
        doubts: dict[str, int] = {}
        turns: list[list[tuple[str, float]]] = []
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        for process in self.processes:
            out, err = process.communicate(timeout=90)
            assert process.returncode == 0, err[-2000:]
            found = json.loads(out)
            wrong += found["wrong"]
            turns += found["turns"]
            for kind, count in found["doubts"].items():
                doubts[kind] = doubts.get(kind, 0) + count
        return wrong, doubts, turns

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
            for end in (process.stdin, process.stdout, process.stderr):
                if end is not None:
                    end.close()


@pytest.mark.parametrize("times", [2, pytest.param(20, marks=[pytest.mark.soak, pytest.mark.timeout(600)])])
def test_killed_and_restarted_among_a_hundred_workers(redis_durable: Server, tmp_path: Path, times: int) -> None:
    workers = Workers(redis_durable.url, tmp_path, lease=20)
    try:
        workers.go_on(100, 40)
        for _ in range(times):
            redis_durable.kill()
            time.sleep(0.3)
            redis_durable.restart()
            back = time.time()
            assert workers.go_on(100, 40) < 5
        time.sleep(3)
        wrong, doubts, turns = workers.end()
    finally:
        workers.kill()
    assert wrong == []
    assert workers.total() == sum(map(len, turns))
    assert sum(any(when > back for _, when in mine) for mine in turns) == len(turns), "somebody did not go on"
    # A waiter that was granted the lock just before the end has two seconds to confirm it, and may fail to do so.
    assert set(doubts) <= {"StoreError", "LockTimeout", "expired", "unreachable"}, doubts
    assert doubts.get("expired", 0) + doubts.get("unreachable", 0) <= 3 * times, doubts
    nothing_is_left(redis_durable.url, 5)
