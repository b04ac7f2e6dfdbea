"""A process of a large crowd that waits for one lock, thread beside task, each in a place of its own in the queue.

    python crowd.py URL THREADS TASKS SECONDS

It prints a queue when it is ready and begins when it reads one. Everybody asks again as soon as it has released. At the
end it prints what it saw as JSON: of each wait when it was asked for, when it was granted, and its ticket; and the
tickets that lost their place.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from itertools import count
from typing import Any

from faces import TaskFace, ThreadFace

import fairlock
from fairlock.engine.events import short
from fairlock.engine.run_sync import run

LEASE = 10.0
HOLD = 0.005  # seconds


class Crowd:
    def __init__(self, url: str, seconds: float) -> None:
        self.url, self.end = url, time.monotonic() + seconds
        self.waits: list[tuple[float, float, str]] = []
        self.lost: list[str] = []
        self.numbers = count()

    def connect(self, face: Any) -> Any:
        return face.connect(self.url, lease=LEASE, on_event=self.note)

    def note(self, event: fairlock.Event) -> None:
        if event.kind == "place_lost":
            self.lost.append(event.ticket)

    async def work(self, face: Any, locks: Any) -> None:
        await face.sleep(next(self.numbers) * HOLD)
        while (asked := time.monotonic()) < self.end:
            lease = None
            try:
                lease = await face.call(locks.lock("crowd", local_handoff=False).acquire())
                self.waits.append((asked, time.monotonic(), short(lease.ticket)))
                await face.sleep(HOLD)
                await face.call(lease.release())
            except (fairlock.StoreError, fairlock.LeaseLost):  # its server was cut off just then
                await face.sleep(HOLD)

    async def tasks(self, number: int) -> None:
        async with self.connect(TaskFace) as locks:
            await asyncio.gather(*(self.work(TaskFace, locks) for _ in range(number)))

    def main(self, threads: int, tasks: int) -> None:
        with self.connect(ThreadFace) as locks:
            crowd = [threading.Thread(target=lambda: run(self.work(ThreadFace, locks))) for _ in range(threads)]
            crowd.append(threading.Thread(target=lambda: asyncio.run(self.tasks(tasks))))
            for one in crowd:
                one.start()
            for one in crowd:
                one.join()


if __name__ == "__main__":
    url, threads, tasks, seconds = sys.argv[1:]
    for face in (ThreadFace, TaskFace):  # drivers are imported by the first use, which takes a while
        face.connect(url)
    print("ready", flush=True)
    sys.stdin.readline()
    crowd = Crowd(url, float(seconds))
    crowd.main(int(threads), int(tasks))
    print(json.dumps([crowd.waits, crowd.lost]))
