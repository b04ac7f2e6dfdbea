"""Processes that use one recipe while they are killed and stopped. Started as a program: RECIPE FACE URL LOG ARGUMENTS.

Each writes what it does to a file that all share, one line for each event, with the time. The clock is that of the
machine, the same for all processes. A line that says "at time t this was true" has a time from before it was looked at.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

BEAT = 0.004  # seconds between two lines of a leader


class Log:
    """The file that all workers append to."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def __call__(self, *words: object) -> None:
        os.write(self.fd, (" ".join(map(str, words)) + "\n").encode())


# -- what the workers do


def elect(locks: Any, log: Log) -> None:
    def main(term: Any) -> None:
        try:
            while True:
                now = time.monotonic()
                if term.lost:
                    return
                log("leads", term.fence, now, os.getpid())
                time.sleep(BEAT)
        finally:
            log("ends", term.fence, time.monotonic(), os.getpid())

    locks.elect("x").run(main)


async def elect_in_tasks(locks: Any, log: Log) -> None:
    async def main(term: Any) -> None:
        try:
            while True:
                now = time.monotonic()
                term.ensure_held()
                log("leads", term.fence, now, os.getpid())
                await asyncio.sleep(BEAT)
        finally:
            log("ends", term.fence, time.monotonic(), os.getpid())

    await locks.elect("x").run(main)


def once(locks: Any, log: Log, every: str, work: str) -> None:
    while True:
        try:
            with locks.once("x", every=float(every)) as turn:
                if turn:
                    log("begins", turn.body["tick"], turn.body["tries"], os.getpid())
                    time.sleep(float(work))
                    log("ends", turn.body["tick"], turn.body["tries"], os.getpid())
        except Exception as error:
            log("error", type(error).__name__, str(error).replace(" ", "_"))
        time.sleep(0.02)


def idempotent(locks: Any, log: Log, number: str, caller: str) -> None:
    lines = [line.split() for line in Path(sys.argv[4]).read_text().splitlines()]
    done = {words[1] for words in lines if words[0] == "result" and words[3] == caller}
    keys = locks.idempotent("x")

    def work(lease: Any) -> str:
        log("runs", key, lease.fence)
        time.sleep(0.002)
        return uuid.uuid4().hex

    for each in range(int(number)):
        key = f"key-{each}"
        if key not in done:
            log("result", key, keys.run(key, work), caller)
    log("over", caller)


def throttle(locks: Any, log: Log, limit: str, per: str) -> None:
    calls = locks.throttle("x", int(limit), per=float(per))
    while True:
        assert calls.wait()
        log("start", time.monotonic(), os.getpid())


# -- starting and ending them


class Workers:
    """Worker processes of one recipe, and the lines that they have written."""

    def __init__(self, url: str, folder: Path, lease: float) -> None:
        self.url = url
        self.file = folder / "log"
        self.file.touch()
        self.lease = lease
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, recipe: str, face: str = "threads", *arguments: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, __file__, recipe, face, self.url, str(self.file), str(self.lease)]
        path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2] / "src"), os.environ.get("PYTHONPATH", "")]))
        worker = subprocess.Popen([*command, *map(str, arguments)], env={**os.environ, "PYTHONPATH": path})
        self.running.append(worker)
        return worker

    def lines(self, kind: str) -> list[list[str]]:
        return [line.split()[1:] for line in self.file.read_text().splitlines() if line.startswith(f"{kind} ")]

    def last(self, size: int = 400) -> list[list[str]]:
        """Return the last few lines."""
        with open(self.file, "rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - size, 0))
            return [line.split() for line in file.read().decode().splitlines()[1:]]

    def by_pid(self, pid: int) -> subprocess.Popen[bytes]:
        return next(each for each in self.running if each.pid == pid)

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        self.running.remove(worker)

    def end(self) -> None:
        for worker in self.running:
            worker.send_signal(signal.SIGCONT)
            worker.kill()
            worker.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()


def overlaps(terms: dict[int, tuple[float, float]]) -> Iterator[str]:
    """Return the terms that were live at the same time: fence, and the first and last moment of each."""
    ordered = sorted((first, last, fence) for fence, (first, last) in terms.items())
    for (_, last, one), (first, _, other) in pairwise(ordered):
        if first <= last:
            yield f"{one} was live until {last}, and {other} from {first} on"


def program() -> None:
    recipe, face, url, path, lease, *arguments = sys.argv[1:]
    log = Log(path)
    if face == "tasks":
        from fairlock import aio

        async def run() -> None:
            async with aio.connect(url, lease=float(lease)) as locks:
                await elect_in_tasks(locks, log)

        asyncio.run(run())
    else:
        import fairlock

        locks = fairlock.connect(url, lease=float(lease))
        {"elect": elect, "once": once, "idempotent": idempotent, "throttle": throttle}[recipe](locks, log, *arguments)


if __name__ == "__main__":
    program()
