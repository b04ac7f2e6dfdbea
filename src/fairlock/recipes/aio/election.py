"""Election for tasks: of several processes one leads, and another takes over when it ends, dies or hangs."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import Self, TypeVar

from ...aio import Lease, Lock, Locks
from ...engine.validate import Seconds
from ..election import ENDED_BY_SIGTERM, Leader, find_leader, wait_and_lead

R = TypeVar("R")


async def leader(locks: Locks, name: str) -> Leader | None:
    """Return the leader of this election, or None if there is none at this moment."""
    return await find_leader(locks, name)


class CancelAtSigterm:
    """While main runs, SIGTERM cancels its task. Only in the main thread, and if the program has no handler."""

    def __init__(self) -> None:
        self.received = False

    def __enter__(self) -> Self:
        import threading

        self._loop = None
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            task = asyncio.current_task()
            assert task is not None, "run() is awaited in a task"
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGTERM, self._end, task)
            self._loop = loop
        return self

    def _end(self, task: asyncio.Task[object]) -> None:
        if not self.received:
            self.received = True
            task.cancel()

    def __exit__(self, *error: object) -> None:
        if self._loop is not None:
            self._loop.remove_signal_handler(signal.SIGTERM)


class Election(Lock[Lease]):
    """One of several processes leads. Waiting for that, and leading, is an `async with` block, or `run`.

        async with locks.elect("scheduler") as term:
            ...

    The body is cancelled when the term is lost. The same as `fairlock.recipes.Election`, with a client of fairlock.aio.
    """

    def __init__(self, locks: Locks, name: str, *, lease: Seconds | None = None, note: str = "") -> None:
        chosen = locks.lock(name, lease=lease, note=note, local_handoff=False)
        super().__init__(locks, chosen._request, timeout=None, reentrant=False)

    async def run(self, main: Callable[[Lease], Awaitable[R]]) -> R:
        """Wait for leadership, await main(term), resign. A loss cancels main; then wait again and call it again.

        Returns what main returns while it leads, and raises what it raises. SIGTERM cancels main, the leader resigns,
        and SystemExit(143) is raised; only in the main thread, and if SIGTERM has no handler. StoreError if the store
        cannot be reached at first; later it tries again every second.
        """
        with CancelAtSigterm() as sigterm:
            try:
                result: R = await wait_and_lead(self, main)
                return result
            except asyncio.CancelledError:
                if not sigterm.received:
                    raise
        raise SystemExit(ENDED_BY_SIGTERM)


elect = Election
