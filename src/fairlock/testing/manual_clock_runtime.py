"""The two runtimes with a manual clock: a wait ends when the clock reaches its end, and not before."""

from __future__ import annotations

import asyncio
import select
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..aio.runtime import TaskRuntime
from ..engine import validate
from ..engine.run_sync import run
from ..sync.runtime import ThreadRuntime

if TYPE_CHECKING:
    from ..engine.events import Event as ClientEvent
    from ..engine.validate import Seconds
    from ..stores.memory import Hub
    from .clock import ManualClock

T = TypeVar("T")

BACK_OFF = 0.002  # a pause as short as this takes no time: a client only yields to another


class ManualEvent:
    """For threads."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._is_set = False

    def set(self) -> None:
        self._is_set = True
        self._clock.wake_sleepers()

    def clear(self) -> None:
        self._is_set = False

    def block(self, timeout: float | None) -> bool:
        if not self._is_set and (timeout is None or timeout > 0):
            self._clock.block(lambda: self._is_set, timeout)
        return self._is_set

    async def wait(self, timeout: float | None) -> bool:
        return self.block(timeout)


class ManualThreadRuntime(ThreadRuntime):
    def __init__(self, clock: ManualClock) -> None:
        self.manual_clock = clock
        self.clock = clock.time
        self.event = cast(Any, lambda: ManualEvent(clock))

    async def sleep(self, seconds: float) -> None:
        if seconds <= BACK_OFF:
            time.sleep(seconds)
        else:
            await ManualEvent(self.manual_clock).wait(seconds)

    async def readable(self, fds: Sequence[int], timeout: float | None) -> list[int]:
        poll = select.poll()
        for fd in fds:
            poll.register(fd, select.POLLIN)
        if timeout is None or timeout > 0:
            self.manual_clock.block(lambda: bool(poll.poll(0)), timeout)
        return [fd for fd, _ in poll.poll(0)]

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self.manual_clock.start(lambda: run(work), name)


class ManualTaskRuntime(TaskRuntime):
    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self.manual_clock = clock
        self.clock = clock.time
        self.call_later = self._call_later

    def _call_later(self, seconds: float, call: Callable[..., object], *args: Any) -> SimpleNamespace:
        return SimpleNamespace(cancel=self.manual_clock.at(self.manual_clock.due(seconds), partial(call, *args)))

    async def sleep(self, seconds: float) -> None:
        await (asyncio.sleep(seconds) if seconds <= BACK_OFF else self.event().wait(seconds))

    async def call(self, fn: Callable[..., T], *args: Any) -> T:
        return fn(*args)  # in a thread it would take real time


def manual_client(
    face: Callable[..., T],
    runtime: ManualThreadRuntime | ManualTaskRuntime,
    hub: Hub | None = None,
    *,
    owner: str = "client",
    lease: Seconds = 30,
    namespace: str = "",
    on_event: Callable[[ClientEvent], object] | None = None,
) -> T:
    """Return a client in memory, of the class `face` of its runtime. It uses the clock of the runtime."""
    from ..stores.memory import MemoryBackend

    backend = MemoryBackend(hub or runtime.manual_clock.hub(), runtime, namespace)
    return face(backend, runtime, owner=owner, lease=validate.lease(lease), on_event=on_event)
