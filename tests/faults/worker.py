"""A process of the crowd: threads and tasks that want locks, and report to the referee what they believe.

    python worker.py URL REFEREE SEED THREADS TASKS LONG JOB…

What a worker does is written once for both faces; a Face knows how to enter and how to sleep. Commands come by stdin:
close, cancel, fork, evict NAME, evict_at_once NAME, resize SLOTS, stop. Without threads the loop runs in the main
thread, where a SIGINT ends it, and the next one begins.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import signal
import sys
import threading
import time
from concurrent.futures import CancelledError
from itertools import count
from random import Random
from typing import Any

from faces import TaskFace, ThreadFace
from leftovers import leftovers
from plan import JOBS, LEASE
from reports import Reporter

import fairlock
from fairlock.engine.run_sync import run

WRITER = 100
STALL = 0.4  # a thread that sleeps for a tenth of a second and wakes so late was not let run


class Crew:
    """All workers of one face in this process, and the client that they share until it is closed under them."""

    def __init__(self, face: Any, url: str, report: Reporter, label: str, long: float, jobs: list[str]) -> None:
        self.face, self.url, self.report, self.label = face, url, report, label
        self.long, self.jobs = long, jobs
        self.stopping = False
        self.forks = 0  # how often the next one inside is to fork
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        self.turns = count()
        self.clients = 0
        self.reached: Any = None  # the client that has had a reply
        self.client: Any = self.connect() if face is ThreadFace else None  # tasks make one in each loop

    @property
    def owner(self) -> str:
        """Of the present client."""
        return f"{self.label}-{os.getpid()}-{self.clients}"

    def connect(self) -> Any:
        self.clients += 1
        return self.face.connect(self.url, lease=LEASE, owner=self.owner)

    async def work(self, number: str) -> None:
        worker = Worker(self, number)
        while not self.stopping:
            await worker.turn()

    async def close(self, again: bool = True) -> None:
        """Close the client while workers use it; they go on with another one."""
        old, owner = self.client, self.owner
        if again:
            self.client = self.connect()
        await self.face.call(old.close())
        self.report("gone", owner=owner)


class Worker:
    def __init__(self, crew: Crew, number: str) -> None:
        self.crew, self.face, self.report = crew, crew.face, crew.report
        self.number = number
        self.rng = Random(number)

    async def turn(self) -> None:
        await self.face.sleep(self.rng.uniform(0.002, 0.06))
        client, timeout = self.crew.client, self.rng.choice((0, 1, 4, 4, 4))
        job = self.rng.choice(self.crew.jobs)
        hold = f"{self.crew.owner}/{self.number}/{next(self.crew.turns)}"
        asks = {"hold": hold, "timeout": timeout, "owner": self.crew.owner, "fresh": client is not self.crew.reached}
        context, names = None, JOBS[job]
        try:
            if job == "lock":
                context = client.lock("lock", timeout=timeout, local_handoff=False)
            elif job == "handoff":
                context = client.lock("handoff", timeout=timeout)
            elif job in ("read", "write"):
                context = getattr(client.rwlock("rw", timeout=timeout), job)()
            elif job == "sem":
                context = client.semaphore("sem", 2, timeout=timeout)
            elif job == "both":
                context = client.lock_all(*names, timeout=timeout)
            for name in names:
                weight = WRITER if job == "write" else 1
                self.report("asked", name=name, weight=weight, queued=timeout > 0 and job != "both", **asks)
            if job == "pool":
                pool = client.pool("pool", lease=LEASE)
                await self.face.call(pool.add(hold))
                context = pool.hold(timeout=timeout, back_off=0.1)

            async def stay(entered: Any) -> None:
                self.crew.reached = client
                leases = entered if isinstance(entered, dict) else {names[0]: entered}
                await self.stay(hold, leases)
                if job == "pool":
                    await self.face.call(entered.done())
                    self.report("done", key=entered.key, fence=entered.fence, hold=hold)

            await self.face.hold(context, stay)
            self.report("ended", hold=hold, how="")
        except (KeyboardInterrupt, asyncio.CancelledError):
            self.report("ended", hold=hold, how="interrupted")
            raise
        except BaseException as error:
            closed = client is not self.crew.client
            self.report("ended", hold=hold, how=type(error).__name__, text=str(error)[:300], closed=closed)
            if not isinstance(error, fairlock.LockTimeout):
                await self.face.sleep(0.05)

    async def stay(self, hold: str, leases: dict[str, Any]) -> None:
        """Inside. A write is reported with the time *before* `held` was read, the entry with the time after it: so what
        lies between an entry and a later write with held=True was believed all along."""
        how_long = self.rng.choice((0.01, 0.1, 0.2, 0.4) if "lock" in leases else (0.01, 0.03, 0.1, 0.1, 0.2))
        if self.rng.random() < self.crew.long:
            how_long = LEASE * 1.4
        names = {name: self.place(name, lease) for name, lease in leases.items()}
        for name, lease in leases.items():
            if lease.held:
                self.report("in", hold=hold, name=names[name], fence=lease.fence)
        end = time.monotonic() + how_long
        while True:
            for name, lease in leases.items():
                now = time.monotonic()
                held = lease.held
                self.report("write", hold=hold, name=names[name], fence=lease.fence, held=held, at=now)
                if not held:
                    return
            if now >= end:
                return
            if self.crew.forks:
                self.crew.forks -= 1
                self.fork(leases)
            await self.face.sleep(min(0.05, max(end - now, 0.001)))

    @staticmethod
    def place(name: str, lease: Any) -> str:
        return f"pool/{lease.key}" if name == "pool" else name

    def fork(self, leases: dict[str, Any]) -> None:
        """The child holds nothing. In a thread it also uses its copy of the client."""
        child = os.fork()
        if child:
            self.report("forked", child=child)
            threading.Thread(target=reap, args=(child, self.report), daemon=True).start()
            return
        signal.alarm(15)
        wrong = [f"a forked child believes that it holds {name}" for name, lease in leases.items() if lease.held]
        try:
            if self.face is ThreadFace:
                with self.crew.client.lock("forked").hold(timeout=5):
                    pass
        except fairlock.LockError as error:
            if not isinstance(error, (fairlock.LockTimeout, fairlock.StoreError, fairlock.LeaseLost)):
                wrong.append(f"in a forked child: {error!r}")
        except BaseException as error:
            wrong.append(f"in a forked child: {error!r}")
        for each in wrong:
            self.report("wrong", text=each)
        os._exit(0)


def reap(child: int, report: Reporter) -> None:
    _, status = os.waitpid(child, 0)
    if status:
        report("wrong", text=f"a forked child ended with {os.waitstatus_to_exitcode(status)}: it hung or crashed")


def watch_for_stalls(report: Reporter) -> None:
    """A process that is stopped, or gets no time on a busy machine, is silent through no fault of fairlock."""
    while True:
        before = time.monotonic()
        time.sleep(0.1)
        if time.monotonic() - before > STALL:
            report("stalled", since=before)


async def supervise(crew: Crew, numbers: list[str]) -> None:
    """Detach that many tasks at work: one that was cancelled is replaced."""
    crew.client = crew.connect()
    tasks = {number: asyncio.create_task(crew.work(number)) for number in numbers}
    crew.tasks, crew.loop = tasks, asyncio.get_running_loop()
    while not crew.stopping:
        await asyncio.sleep(0.05)
        for number, task in tasks.items():
            if task.done() and not crew.stopping:
                tasks[number] = asyncio.create_task(crew.work(number))
    await asyncio.gather(*tasks.values(), return_exceptions=True)
    await crew.close(again=False)


class Process:
    def __init__(self, url: str, referee: str, seed: str, threads: int, tasks: int, *habits: Any) -> None:
        self.url, self.report = url, Reporter(referee)
        self.threads = Crew(ThreadFace, url, self.report, "threads", *habits) if threads else None
        self.tasks = Crew(TaskFace, url, self.report, "tasks", *habits) if tasks else None
        self.crews = [crew for crew in (self.threads, self.tasks) if crew]
        self.rng = Random(seed)
        self.thread_numbers = [f"{seed}/{number}" for number in range(threads)]
        self.task_numbers = [f"{seed}/{threads + number}" for number in range(tasks)]

    def main(self) -> None:
        for work in (watch_for_stalls, self.obey):
            args = (self.report,) if work is watch_for_stalls else ()
            threading.Thread(target=work, args=args, daemon=True).start()
        aside = []
        if self.threads:
            aside = [threading.Thread(target=run, args=(self.threads.work(n),)) for n in self.thread_numbers[1:]]
        if self.threads and self.tasks:
            aside.append(threading.Thread(target=self.run_loops))
        for thread in aside:
            thread.start()
        self.report("ready")
        while not all(crew.stopping for crew in self.crews):
            try:
                if self.threads:
                    run(self.threads.work(self.thread_numbers[0]))
                else:
                    self.run_loops()
            except KeyboardInterrupt:
                continue
        for thread in aside:
            thread.join()
        if self.threads:
            run(self.threads.close(again=False))
        if self.url.startswith("memory:"):  # nobody else can look
            self.report("left", left=leftovers(self.url, {crew.owner for crew in self.crews}, {}, 2 * LEASE))
        self.report("bye", owners=[crew.owner for crew in self.crews])

    def run_loops(self) -> None:
        assert self.tasks is not None
        while not self.tasks.stopping:
            try:
                asyncio.run(supervise(self.tasks, self.task_numbers))
            finally:
                self.report("gone", owner=self.tasks.owner)

    def obey(self) -> None:
        for queue in sys.stdin:
            order, _, what = queue.strip().partition(" ")
            try:
                getattr(self, order)(what)
            except (fairlock.LockError, RuntimeError) as error:
                documented = isinstance(error, (fairlock.StoreError, fairlock.LeaseLost))
                self.report("order failed", order=queue.strip(), text=repr(error), documented=documented)
            self.report("obeyed", order=queue.strip())
        os._exit(1)  # the process that ran us is gone

    # -- what it can be told

    def stop(self, _: str) -> None:
        for crew in self.crews:
            crew.stopping = True

    def close(self, _: str) -> None:
        crew = self.rng.choice(self.crews)
        if crew is self.threads:
            run(crew.close())
        elif crew.loop:
            work = crew.close()
            try:
                asyncio.run_coroutine_threadsafe(work, crew.loop).result(10)
            except (CancelledError, TimeoutError, RuntimeError):
                work.close()  # that loop has just ended

    def cancel(self, _: str) -> None:
        if self.tasks and self.tasks.loop:
            task = self.rng.choice(list(self.tasks.tasks.values()))
            self.tasks.loop.call_soon_threadsafe(task.cancel)

    def fork(self, _: str) -> None:
        self.rng.choice(self.crews).forks += 1

    def evict(self, name: str, at_once: bool = False) -> None:
        if self.threads:
            self.report("evicting", name=name, at_once=at_once)
            done = False
            try:
                self.threads.client.evict(name, reason="nemesis", at_once=at_once)
                done = True
            finally:
                self.report("evicted", name=name, done=done)

    def evict_at_once(self, name: str) -> None:
        self.evict(name, at_once=True)

    def resize(self, slots: str) -> None:
        if self.threads:
            self.report("resizing", slots=int(slots))
            self.threads.client.resize("sem", int(slots))
            self.report("resized", slots=int(slots))


if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    url, referee, seed, threads, tasks, long, *jobs = sys.argv[1:]
    Process(url, referee, seed, int(threads), int(tasks), float(long), jobs).main()
