"""A world in virtual time: one clock, one source of random numbers, and processes whose tasks run until they wait.

The engine imports neither asyncio nor threading; it waits only through the `Runtime` that it is given. `SimRuntime` is
one more runtime, so the very code that users run is run here: several clients at once, an hour in a second, and the
same seed always gives the same history.

A process has its own clock (offset and rate), can be frozen and thawed (SIGSTOP, a suspended laptop: everything that
arrives meanwhile is found on waking up) and can crash (nothing of it ever runs again; what it sent is still under way).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Coroutine, Generator, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")


class Violation(AssertionError):
    """Something that must never happen has happened."""


class Cancelled(BaseException):
    """What asyncio.CancelledError is to a task."""


PROGRAM_ERRORS = (ArithmeticError, AttributeError, ImportError, LookupError, NameError, RuntimeError, TypeError)
"""Errors that no correct engine raises. They are not turned into a Violation: a mutant with a typo is not caught."""


class World:
    def __init__(self, seed: int = 0, ties: bool = True) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.steps = 0
        self.history: list[tuple[float, str, str, tuple[Any, ...]]] = []
        self.watchers: list[Callable[[], None]] = []  # called after every step
        self._ties = ties
        self._heap: list[tuple[float, float, int, Callable[..., object], tuple[Any, ...]]] = []
        self._number = 0

    def note(self, who: str, text: str, *things: Any) -> None:
        """Write into the history. It is put into words only if somebody wants to read it."""
        self.history.append((self.now, who, text, things))

    def tell(self, last: int = 150) -> str:
        """The end of the history, for people."""
        return "\n".join(
            f"{when:10.4f}  {who:<6} {text.format(*map(brief, things)) if things else text}"
            for when, who, text, things in self.history[-last:]
        )

    def after(self, seconds: float, call: Callable[..., object], *args: Any) -> None:
        self._number += 1
        tie = self.random.random() if self._ties else 0.0  # what happens at the same instant happens in any order
        heapq.heappush(self._heap, (self.now + seconds, tie, self._number, call, args))

    def run(self, until: float, done: Callable[[], bool] | None = None) -> bool:
        """Let time pass until then, or until `done`; True if done."""
        heap = self._heap
        since, count = self.now, 0
        while not (done is not None and done()):
            if not heap or heap[0][0] > until:
                self.now = max(self.now, until)
                return done is not None and done()
            self.now, _, _, call, args = heapq.heappop(heap)
            self.steps += 1
            count = count + 1 if self.now == since else 0
            since = self.now
            if count > 50_000:
                raise Violation("somebody spins: time does not pass any more")
            call(*args)
            for watch in self.watchers:
                watch()
        return True


def brief(thing: Any) -> str:
    """A command, a reply or anything else in a few characters."""
    if not hasattr(thing, "_asdict"):
        return f"{thing:.3f}" if isinstance(thing, float) else str(thing)
    parts = [type(thing).__name__]
    for field, value in thing._asdict().items():
        if field == "ticket" and value is not None:
            parts.append(value[-6:])
        elif field == "weight" and value is not None:
            parts.append(f"weight={'all' if value == 2**31 - 1 else value}")
        elif field == "wait" and not value:
            parts.append("wait=False")
        elif field in {"fence", "left", "ahead", "place", "retry_in", "held", "why", "leave_tombstone"} and value:
            parts.append(f"{field}={brief(value)}")
    return " ".join(parts)


class Park:
    """A place where a task waits. Woken once, with a value or an error."""

    __slots__ = ("task",)

    def __init__(self) -> None:
        self.task: Task | None = None

    def __await__(self) -> Generator[Park, Any, Any]:
        return (yield self)

    def wake(self, value: Any = None, error: BaseException | None = None) -> None:
        task = self.task
        if task is not None and task.parked is self:
            task.parked = None
            task.process.soon(task.step, value, error)


class Task:
    def __init__(self, process: Process, work: Coroutine[Any, Any, Any], name: str) -> None:
        self.process = process
        self.work = work
        self.name = name
        self.parked: Park | None = None
        self.done = False
        self.awaits = 0  # how often it has waited
        self.cancel_at: int | None = None  # cancel it at this wait
        self.when_cancelled: Callable[[], object] | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.when_done: list[Callable[[], object]] = []

    def step(self, value: Any = None, error: BaseException | None = None) -> None:
        if self.done or self.process.crashed:
            return
        self.process.current = self
        try:
            park = self.work.throw(error) if error is not None else self.work.send(value)
        except StopIteration as stop:
            self._finish(stop.value, None)
        except BaseException as failed:
            self._finish(None, failed)
        else:
            self.awaits += 1
            park.task, self.parked = self, park
            if self.awaits == self.cancel_at:
                self.cancel()
                if self.when_cancelled is not None:
                    self.when_cancelled()
        finally:
            self.process.current = None

    def cancel(self) -> None:
        """Throw Cancelled into it where it waits; nothing if it does not wait."""
        park = self.parked
        if park is not None:
            self.parked = None
            self.process.world.note(self.process.name, f"{self.name} is cancelled")
            self.process.soon(self.step, None, Cancelled())

    def _finish(self, result: Any, error: BaseException | None) -> None:
        self.done, self.result, self.error = True, result, error
        self.process.tasks.pop(self, None)
        if isinstance(error, Violation) or (isinstance(error, PROGRAM_ERRORS) and not self.when_done):
            raise error
        if error is not None and not self.when_done and not isinstance(error, Cancelled | GeneratorExit):
            raise Violation(f"{self.name} of {self.process.name} ended with {error!r}") from error
        for call in self.when_done:
            call()


class Process:
    """One client's process: its clock, its tasks, and whether it runs."""

    def __init__(self, world: World, name: str, rate: float = 1.0, offset: float = 0.0) -> None:
        self.world = world
        self.name = name
        self.rate = rate
        self.offset = offset
        self.frozen = False
        self.crashed = False
        self.thawed = -1.0  # when it was continued last
        self.listener = (
            "alive"  # what a store can find out: alive, unreachable (nobody listens) or dead (the process is gone)
        )
        self.tasks: dict[Task, None] = {}  # in order
        self.current: Task | None = None
        self._backlog: list[tuple[Callable[..., object], tuple[Any, ...]]] = []

    @property
    def runs(self) -> bool:
        return not (self.frozen or self.crashed)

    def clock(self) -> float:
        return self.offset + self.world.now * self.rate

    def do(self, call: Callable[..., object], *args: Any) -> None:
        """Run this in the process: now, when it is thawed, or never."""
        if self.frozen:
            self._backlog.append((call, args))
        elif not self.crashed:
            call(*args)

    def soon(self, call: Callable[..., object], *args: Any) -> None:
        self.world.after(0.0, self.do, call, *args)

    def later(self, seconds: float, call: Callable[..., object], *args: Any) -> None:
        """Call it after this many seconds of the process's own clock."""
        self.world.after(max(seconds, 0.0) / self.rate, self.do, call, *args)

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> Task:
        task = Task(self, work, name)
        if self.crashed:
            work.close()
            return task
        self.tasks[task] = None
        self.soon(task.step)
        return task

    def freeze(self, seconds: float) -> None:
        if self.runs:
            self.world.note(self.name, f"is stopped for {seconds:.2f} s")
            self.frozen = True
            self.world.after(seconds, self.thaw)

    def thaw(self) -> None:
        if self.frozen and not self.crashed:
            self.world.note(self.name, "is continued")
            self.frozen = False
            self.thawed = self.world.now
            backlog, self._backlog = self._backlog, []
            for call, args in backlog:
                call(*args)

    def crash(self, listener: str = "alive") -> None:
        """Revoked, this instant. `listener`: what the store can know about it afterwards."""
        if not self.crashed:
            self.world.note(self.name, f"crashes (its listener: {listener})")
            self.crashed, self.listener = True, listener
            for task in list(self.tasks):
                task.done = True
                task.work.close()
            self.tasks.clear()


class SimEvent:
    def __init__(self, process: Process) -> None:
        self.process = process
        self.is_set = False
        self.parks: list[Park] = []

    def set(self) -> None:
        self.is_set = True
        parks, self.parks = self.parks, []
        for park in parks:
            park.wake(True)

    def clear(self) -> None:
        self.is_set = False

    async def wait(self, timeout: float | None) -> bool:
        if self.is_set:
            return True
        if timeout is not None and timeout <= 0:
            return False
        park = Park()
        self.parks.append(park)
        if timeout is not None:
            self.process.later(timeout, park.wake, False)
        await park
        return self.is_set


class SimRuntime:
    """The runtime of virtual time, with a task's way of being cancelled."""

    blocking = False

    def __init__(self, process: Process) -> None:
        self.process = process
        self.clock = process.clock

    def mutex(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def event(self) -> SimEvent:
        return SimEvent(self.process)

    async def sleep(self, seconds: float) -> None:
        park = Park()
        self.process.later(seconds, park.wake)
        await park

    async def call(self, fn: Callable[..., T], *args: Any) -> T:
        await self.sleep(0)
        return fn(*args)

    async def readable(self, fds: Sequence[int], timeout: float | None) -> list[int]:
        raise NotImplementedError("there are no file descriptors in this world")

    async def shield(self, work: Coroutine[Any, Any, T]) -> T:
        task = self.process.start(work, "shielded")
        park = Park()
        task.when_done.append(park.wake)
        if not task.done:
            await park
        if task.error is not None:
            raise task.error
        return task.result  # type: ignore[no-any-return]

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self.process.start(work, name)

    def current(self) -> Hashable:
        return self.process.current
