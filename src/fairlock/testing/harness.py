"""What a behaviour of the suite needs: clients, time, and work beside it. Behaviours run with threads and with tasks.

A behaviour is a coroutine over a `Harness`. With tasks it is an ordinary one; with threads it never suspends, because
everything it awaits blocks instead: the library itself is written this way. There its clients are blocking ones,
wrapped so that their I/O can be awaited. So a behaviour reads as a user of `fairlock.aio` would write it, is
type-checked as such, and holds for both.

Some stores use a manual clock, others real time; `pass_time` works for both.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from functools import cached_property
from typing import Any, Generic, TypeVar

import fairlock

from .. import aio
from ..aio.runtime import TaskRuntime
from ..engine import validate
from ..engine.run_sync import run
from ..stores.base import Backend
from ..stores.cas import CasBackend
from ..stores.memory import MemoryBackend
from ..sync.runtime import ThreadRuntime
from .blocking_as_async import unwrap, wrap
from .clock import ManualClock
from .faults import Faults, install
from .manual_clock_runtime import ManualTaskRuntime, ManualThreadRuntime
from .store_factories import Site

T = TypeVar("T")

SOON = 20.0  # real seconds within which something unhindered must happen; a busy machine is slow


class Harness:
    face = ""
    _library: Any
    """The package of this face: `fairlock`, or `fairlock.aio`."""
    _runtimes: tuple[Callable[[], Any], Callable[[ManualClock], Any]]
    """In real time, and with a manual clock."""
    _running: Callable[[Any, Awaitable[Any], str], Running[Any]]

    def __init__(self, site: Site) -> None:
        self.site = site
        self.manual_clock = site.clock
        # The shortest lease that is kept: on a busy machine a keeper may be late by half a second.
        self.short_lease = 0.5 if site.clock is not None else 1.5
        self._clients: list[aio.Locks] = []
        self._faults: list[Faults] = []

    # -- clients

    def connect(self, *, faults: Faults | None = None, **options: Any) -> aio.Locks:
        """Return a new client of the store, with these faults in between. It is closed when the test is over."""
        if self.site.url:
            made = self._library.connect(self.site.url, **options)
        else:
            in_real_time, by_hand = self._runtimes
            runtime = by_hand(self.manual_clock) if self.manual_clock is not None else in_real_time()
            backend = self.site.backend(runtime, options.pop("namespace", ""))
            lease = validate.lease(options.pop("lease", 30))
            made = self._library.Locks(backend, runtime, lease=lease, **{"owner": "client", **options})
        if faults is not None:
            self._faults.append(install(faults, made))
        client: aio.Locks = wrap(made)
        self._clients.append(client)
        return client

    def unwrapped(self, client: aio.Locks) -> Any:
        return unwrap(client)

    @cached_property
    def observer(self) -> aio.Locks:
        """Return a client that only reads."""
        return self.connect(owner="observer")

    # -- what any client sees

    async def resource(self, name: str) -> fairlock.Resource:
        """Return the holders and waiters of this name."""
        found = await self.observer.snapshot(name)
        return found.resources[0] if found.resources else fairlock.Resource(name, "lock", 0, 0, (), ())

    async def snapshot(self, pattern: str = "*", **options: bool) -> fairlock.Snapshot:
        """Return a snapshot without the delay that an index of busy names may have."""
        for each in self._clients:
            if not each.session.closed:
                await each.session.list_names()
        return await self.observer.snapshot(pattern, **options)

    def keeps_pools(self) -> bool:
        """Return True if this store keeps pools."""
        return self.unwrapped(self.observer)._session.backend.pools is not None

    # -- time and others

    def time(self) -> float:
        return self.manual_clock.time() if self.manual_clock is not None else time.monotonic()

    async def pass_time(self, seconds: float) -> None:
        """Let that much time pass, in which everything due happens."""
        raise NotImplementedError

    def go(self, work: Awaitable[T], name: str = "other") -> Running[T]:
        """Start this beside the test, in another thread or task."""
        return self._running(self, work, name)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        raise NotImplementedError

    async def until(self, check: Callable[[], Awaitable[object] | bool], what: str, within: float = 0.0) -> None:
        """Wait until this is true. A manual clock advances by `within` seconds, and no further."""
        limit = time.monotonic() + SOON
        while True:
            if self.manual_clock is not None:
                await self.pass_time(within)
            found = check()
            if found if isinstance(found, bool) else await found:
                return
            if self.manual_clock is not None or time.monotonic() > limit:
                raise AssertionError(f"this never became true: {what}; the store has: {await self.observer.snapshot()}")
            await self.pass_time(0.005)

    async def in_queue(self, name: str, number: int) -> None:
        """Wait until that many waiters are in the queue."""

        async def check() -> bool:
            return len((await self.resource(name)).queue) == number

        await self.until(check, f"{number} in the queue for {name!r}")

    async def workers(self, pool: str, number: int, named: bool = False) -> None:
        """Wait until that many workers are in the queue of this pool, or (named) wait for named items of it."""

        async def check() -> bool:
            queue = await self.unwrapped(self.observer)._session.backend.pools.queue(pool)
            return len(queue.watchers if named else queue.workers) == number

        await self.until(check, f"{number} in the queue for {'named items of ' * named}the pool {pool!r}")

    async def queue_up(self, work: Awaitable[T], number: int = 1) -> Running[T]:
        """Start this beside the test, and wait until that many waiters are in the queue for 'x'."""
        running = self.go(work)
        await self.in_queue("x", number)
        return running

    async def queue_up_for_item(self, work: Awaitable[T], number: int = 1, named: bool = False) -> Running[T]:
        """Start this beside the test, and wait until that many workers are in the queue of the pool 'jobs'."""
        running = self.go(work)
        await self.workers("jobs", number, named)
        return running

    async def rest(self) -> None:
        """Give other threads or tasks the chance to do something wrong."""
        raise NotImplementedError

    async def empty(self, name: str) -> None:
        """Wait until there is no holder and no waiter."""

        async def check() -> bool:
            now = await self.resource(name)
            return not now.holders and not now.queue and not now.expired

        await self.until(check, f"no holder and no waiter of {name!r}")

    async def forget(self, name: str) -> None:
        """Let the store lose the record of this name, as after a restore from an old copy."""
        if self.site.forget(name):
            return
        backend: Backend = self.unwrapped(self.observer)._session.backend
        if isinstance(backend, CasBackend):
            seen = await backend.store.read(backend.prefix + name)
            assert seen.version is not None
            assert await backend.store.delete(backend.prefix + name, seen.version)
        else:
            assert isinstance(backend, MemoryBackend)
            del backend.hub.records[backend.prefix + name]

    async def close(self) -> None:
        for faults in self._faults:
            faults.over()  # a test may have left one: to close would hang
        for each in reversed(self._clients):
            await self.go(each.close()).result(within=3.0)  # it may wait for acquires that sleep

    async def _to_the_end(self, work: Awaitable[T]) -> T:
        try:
            return await work
        finally:
            await self.close()


class Running(Generic[T]):
    """Work that runs beside the test."""

    _outcome: Future[T] | asyncio.Future[T]

    async def result(self, within: float = 0.0) -> T:
        """Wait for its end; return its result, or raise its exception. A manual clock advances by `within` seconds."""
        raise NotImplementedError

    @property
    def done(self) -> bool:
        # Not whether its thread is alive: it is for a moment longer, in which `settle` no longer waits for it.
        return self._outcome.done()

    def cancel(self) -> None:
        """Cancel a task; threads are not cancelled."""
        self._outcome.cancel()


class RunningThread(Running[T]):
    def __init__(self, harness: ThreadHarness, work: Awaitable[T], name: str) -> None:
        self._harness = harness
        outcome = self._outcome = Future[T]()

        def body() -> None:
            try:
                outcome.set_result(run(_awaiting(work)))
            except BaseException as error:
                outcome.set_exception(error)

        if harness.manual_clock is not None:
            self._thread = harness.manual_clock.start(body, name)
        else:
            self._thread = threading.Thread(target=body, name=name, daemon=True)
            self._thread.start()

    async def result(self, within: float = 0.0) -> T:
        if self._harness.manual_clock is not None:
            await self._harness.pass_time(within)
        self._thread.join(0.5 if self._harness.manual_clock is not None else SOON)
        assert self.done, f"{self._thread.name} still waits"
        return self._outcome.result()


async def _awaiting(work: Awaitable[T]) -> T:
    return await work


class ThreadHarness(Harness):
    face = "threads"
    _library = fairlock
    _runtimes = ThreadRuntime, ManualThreadRuntime
    _running = RunningThread

    async def pass_time(self, seconds: float) -> None:
        if self.manual_clock is not None:
            self.manual_clock.advance(seconds)
        else:
            time.sleep(seconds)

    async def rest(self) -> None:
        time.sleep(0.0005)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        if self.manual_clock is not None:
            self.manual_clock.advancing_thread = threading.get_ident()
        return run(self._to_the_end(work))


class RunningTask(Running[T]):
    def __init__(self, harness: TaskHarness, work: Awaitable[T], name: str) -> None:
        self._harness = harness
        self._outcome = self._task = asyncio.ensure_future(_awaiting(work))

    async def result(self, within: float = 0.0) -> T:
        if self._harness.manual_clock is not None:
            await self._harness.pass_time(within)
            assert self.done, "it still waits"
        return await asyncio.wait_for(self._task, SOON)


class TaskHarness(Harness):
    face = "tasks"
    _library = aio
    _runtimes = TaskRuntime, ManualTaskRuntime
    _running = RunningTask

    async def pass_time(self, seconds: float) -> None:
        if self.manual_clock is not None:
            await self.manual_clock.aio_advance(seconds)
        else:
            await asyncio.sleep(seconds)

    async def rest(self) -> None:
        await asyncio.sleep(0)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run(self._to_the_end(work))


HARNESSES: dict[str, type[Harness]] = {"threads": ThreadHarness, "tasks": TaskHarness}
