"""A timeout is a promise: how late is it kept on servers that hang?

They are stopped, so they accept connections and never reply. Everybody asks at the same time, with a client of its own
and with the timeouts that a client has by default.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import pytest

import fairlock
from fairlock import LockError, aio

Verb = Callable[[Any, float], Any]


class Stoppable(Protocol):
    def stop(self) -> None: ...

    def cont(self) -> None: ...


LATE = 1.0
ALL, SOME = slice(None), slice(2, 4)


def by_with(locks: fairlock.Locks, timeout: float) -> None:
    with locks.lock("x", timeout=timeout):
        pass


def all_of_them(locks: fairlock.Locks, timeout: float) -> None:
    with locks.lock_all("x", "y", timeout=timeout):
        pass


async def task_by_with(locks: aio.Locks, timeout: float) -> None:
    async with locks.lock("x", timeout=timeout):
        pass


async def task_all_of_them(locks: aio.Locks, timeout: float) -> None:
    async with locks.lock_all("x", "y", timeout=timeout):
        pass


THREADS: list[Verb] = [
    lambda locks, timeout: locks.lock("x").acquire(timeout=timeout),
    lambda locks, timeout: locks.lock("x", reentrant=True).acquire(timeout=timeout),
    lambda locks, timeout: locks.semaphore("s", 3).acquire(timeout=timeout),
    lambda locks, timeout: locks.pool("jobs").acquire(timeout=timeout),
    by_with,
    all_of_them,
]
TASKS: list[Callable[[Any, float], Awaitable[Any]]] = [*THREADS[:4], task_by_with, task_all_of_them]


def thread(locks: fairlock.Locks, verb: Verb, timeout: float, warm: bool, stopped: Callable[[], None]) -> float:
    """Return how much later than its timeout it comes back; the whole way out of the client is another matter."""
    if warm:
        with locks.lock("x", timeout=60), locks.lock("y", timeout=60), locks.semaphore("s", 3):
            pass
    stopped()
    began = time.monotonic()
    with pytest.raises(LockError):
        verb(locks, timeout)
    return time.monotonic() - began - timeout


async def task(locks: aio.Locks, verb: Verb, timeout: float, warm: bool, stopped: Callable[[], None]) -> float:
    if warm:
        for _ in range(2):  # from the second time on by the short way
            async with locks.lock("x", timeout=60), locks.lock("y", timeout=60), locks.semaphore("s", 3):
                pass
    await asyncio.to_thread(stopped)
    began = time.monotonic()
    with pytest.raises(LockError):
        await verb(locks, timeout)
    return time.monotonic() - began - timeout


def how_late(url: str, servers: Sequence[Stoppable], timeouts: tuple[float, ...], verbs: slice = ALL) -> list[float]:
    """Of everybody, each beside all others, while these servers are stopped."""
    thread_cases = [(verb, limit, warm) for verb in THREADS[verbs] for limit in timeouts for warm in (True, False)]
    task_cases = [(verb, limit, warm) for verb in TASKS[verbs] for limit in timeouts for warm in (True, False)]
    barrier = threading.Barrier(len(thread_cases) + len(task_cases), lambda: [one.stop() for one in servers])
    measured = threading.Barrier(2, lambda: [one.cont() for one in servers])

    def wait() -> None:
        barrier.wait(60)

    async def tasks() -> list[float]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(len(task_cases)))
        clients = [aio.connect(url) for _ in task_cases]
        try:
            found = await asyncio.gather(
                *[task(locks, verb, t, warm, wait) for locks, (verb, t, warm) in zip(clients, task_cases, strict=True)]
            )
            await asyncio.to_thread(measured.wait, 60)
        finally:
            await asyncio.gather(*[locks.close() for locks in clients])
        return found

    clients = [fairlock.connect(url) for _ in thread_cases]
    with ThreadPoolExecutor(len(thread_cases) + 1) as threads:
        try:
            beside = threads.submit(asyncio.run, tasks())
            found = [
                threads.submit(thread, locks, verb, t, warm, wait)
                for locks, (verb, t, warm) in zip(clients, thread_cases, strict=True)
            ]
            late = [each.result() for each in found]
            measured.wait(60)
            late += beside.result()
        finally:  # after a failure, too: the next test finds a server that runs, and nobody else's clients
            for one in servers:
                one.cont()
            list(threads.map(fairlock.Locks.close, clients))
    names = [*thread_cases, *task_cases]
    print(*[f"{seconds:6.3f} {case}" for seconds, case in zip(late, names, strict=True)], sep="\n")
    return late
