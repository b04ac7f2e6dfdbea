"""The stage for behaviours that are written once and played by threads and by tasks.

A behaviour is a coroutine over a `World`. In a world of tasks it is an ordinary one; in a world of threads it never
suspends, because everything it awaits blocks instead: the way the library itself is written. There its clients are
blocking ones, dressed so that what does I/O can be awaited. So a behaviour reads as a user of `holdfast.aio` would
write it, is type-checked as such, and holds for both.

Some worlds live by a clock that is turned by hand, others by real time; `pass_time` is right in both.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar, cast

import holdfast

from .. import aio, client
from ..aio.colour import TaskColour
from ..client.colour import ThreadColour
from ..flow import check
from ..flow.run import run
from .colour import HandTaskColour, HandThreadColour
from .dress import dress, undress
from .faults import Faults, install
from .pool_world import PoolWorld
from .sites import Site

T = TypeVar("T")

FACES = ("threads", "tasks")
SOON = 20.0  # real seconds within which something must happen that nobody holds up; a busy machine is slow


class World(PoolWorld):
    face = ""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.hand = site.clock
        self._clients: list[Any] = []
        self._eye: aio.Locks | None = None

    # -- clients

    def connect(self, *, faults: Faults | None = None, **options: Any) -> aio.Locks:
        """One more client of the store, with these faults in between. It is closed when the test is over."""
        made = self._connect(**options)
        if faults is not None:
            install(faults, made)
        self._clients.append(made)
        return self._dress(made)

    def _connect(self, **options: Any) -> Any:
        raise NotImplementedError

    def _dress(self, made: Any) -> aio.Locks:
        raise NotImplementedError

    def undressed(self, client: aio.Locks) -> Any:
        return client

    @property
    def eye(self) -> aio.Locks:
        """A client that only looks."""
        if self._eye is None:
            self._eye = self.connect(owner="eye")
        return self._eye

    async def resource(self, name: str) -> holdfast.Resource:
        """Who is inside and who waits, as anybody sees it."""
        found = await self.eye.snapshot(name)
        return found.resources[0] if found.resources else holdfast.Resource(name, "lock", 0, 0, (), ())

    # -- time and others

    def time(self) -> float:
        return self.hand.time() if self.hand is not None else time.monotonic()

    async def pass_time(self, seconds: float) -> None:
        """So much time passes, and everybody does what is due."""
        raise NotImplementedError

    def go(self, work: Awaitable[T], name: str = "other") -> Running[T]:
        """Do this beside the test: in another thread or task."""
        raise NotImplementedError

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        raise NotImplementedError

    async def until(self, check: Callable[[], Awaitable[object]], what: str) -> None:
        """Wait until this is so. By hand nobody has to: everybody is done with what he can do before time passes."""
        limit = time.monotonic() + SOON
        while True:
            if self.hand is not None:
                await self.pass_time(0)
            if await check():
                return
            if self.hand is not None or time.monotonic() > limit:
                raise AssertionError(f"it never came to this: {what}; there is: {await self.eye.snapshot()}")
            await self.pass_time(0.005)

    async def in_line(self, name: str, number: int) -> None:
        """Wait until so many stand in line."""

        async def check() -> bool:
            return len((await self.resource(name)).line) == number

        await self.until(check, f"{number} in line for {name!r}")

    async def rest(self) -> None:
        """Give others the chance to do something wrong."""
        raise NotImplementedError

    async def empty(self, name: str) -> None:
        """Wait until nobody is inside and nobody in line."""

        async def check() -> bool:
            now = await self.resource(name)
            return not now.inside and not now.line and not now.expired

        await self.until(check, f"nobody inside or in line for {name!r}")

    async def forget(self, name: str) -> None:
        """The store loses what it knows about this name, as after a restore from an old copy."""
        if hasattr(self.site, "forget"):
            return self.site.forget(name)  # type: ignore[no-any-return]
        backend: Any = self.undressed(self.eye)._desk.backend
        if hasattr(backend, "store"):
            seen = await backend.store.read(backend.prefix + name)
            assert await backend.store.delete(backend.prefix + name, seen.version)
        else:
            del backend.hub.records[backend.prefix + name]

    async def close(self) -> None:
        for each in reversed(self._clients):
            await self.go(self._dress(each).close()).result(within=3.0)  # it may wait for acquires that sleep

    async def _to_the_end(self, work: Awaitable[T]) -> T:
        try:
            return await work
        finally:
            await self.close()


class Running(Generic[T]):
    """Something that goes on beside the test."""

    async def result(self, within: float = 0.0) -> T:
        """Wait for its end: what it returned, or raise what it raised. By hand so many seconds pass, no more."""
        raise NotImplementedError

    @property
    def done(self) -> bool:
        raise NotImplementedError

    def cancel(self) -> None:
        raise NotImplementedError


# -- threads


class RunningThread(Running[T]):
    def __init__(self, world: ThreadWorld, work: Awaitable[T], name: str) -> None:
        self._world = world
        self._outcome: list[Any] = []
        self._error: BaseException | None = None

        def body() -> None:
            try:
                self._outcome.append(run(_awaiting(work)))
            except BaseException as error:
                self._error = error

        if world.hand is not None:
            self._thread = world.hand.start(body, name)
        else:
            self._thread = threading.Thread(target=body, name=name, daemon=True)
            self._thread.start()

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    async def result(self, within: float = 0.0) -> T:
        if self._world.hand is not None:
            await self._world.pass_time(within)
        self._thread.join(0.5 if self._world.hand is not None else SOON)
        assert self.done, f"{self._thread.name} still waits"
        if self._error is not None:
            raise self._error
        return cast(T, self._outcome[0])


async def _awaiting(work: Awaitable[T]) -> T:
    return await work


class ThreadWorld(World):
    face = "threads"

    def _connect(self, **options: Any) -> client.Locks:
        if self.site.url:
            return holdfast.connect(self.site.url, **options)
        colour = HandThreadColour(self.hand) if self.hand is not None else ThreadColour()
        backend = self.site.backend(colour, options.pop("namespace", ""))
        return client.Locks(backend, colour, **_defaults(options))

    def _dress(self, made: Any) -> aio.Locks:
        return cast(aio.Locks, dress(made))

    def undressed(self, client: aio.Locks) -> Any:
        return undress(client)

    async def pass_time(self, seconds: float) -> None:
        if self.hand is not None:
            self.hand.turn(seconds)
        else:
            time.sleep(seconds)

    async def rest(self) -> None:
        time.sleep(0.0005)

    def go(self, work: Awaitable[T], name: str = "other") -> Running[T]:
        return RunningThread(self, work, name)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        if self.hand is not None:
            self.hand.turner = threading.get_ident()
        return run(self._to_the_end(work))


def _defaults(options: dict[str, Any]) -> dict[str, Any]:
    options = {"owner": "somebody", "lease": 30.0, **options}
    options["lease"] = check.lease(options["lease"])
    return options


# -- tasks


class RunningTask(Running[T]):
    def __init__(self, world: TaskWorld, work: Awaitable[T], name: str) -> None:
        self._world = world
        self._task = asyncio.ensure_future(_awaiting(work))

    @property
    def done(self) -> bool:
        return self._task.done()

    async def result(self, within: float = 0.0) -> T:
        if self._world.hand is not None:
            await self._world.pass_time(within)
            assert self.done, "it still waits"
        return await asyncio.wait_for(self._task, SOON)

    def cancel(self) -> None:
        self._task.cancel()


class TaskWorld(World):
    face = "tasks"

    def _connect(self, **options: Any) -> aio.Locks:
        if self.site.url:
            return aio.connect(self.site.url, **options)
        colour = HandTaskColour(self.hand) if self.hand is not None else TaskColour()
        backend = self.site.backend(colour, options.pop("namespace", ""))
        return aio.Locks(backend, colour, **_defaults(options))

    def _dress(self, made: Any) -> aio.Locks:
        return cast(aio.Locks, made)

    async def pass_time(self, seconds: float) -> None:
        if self.hand is not None:
            await self.hand.aio_turn(seconds)
        else:
            await asyncio.sleep(seconds)

    async def rest(self) -> None:
        await asyncio.sleep(0)

    def go(self, work: Awaitable[T], name: str = "other") -> Running[T]:
        return RunningTask(self, work, name)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run(self._to_the_end(work))


WORLDS: dict[str, type[World]] = {"threads": ThreadWorld, "tasks": TaskWorld}
