"""A clock that a test advances. Leases and timeouts end exactly when the test wants it, and no test sleeps.

    clock = ManualClock()
    locks = clock.locks()                       # a client in memory that uses this clock
    lease = locks.lock("x", lease=30).acquire()
    clock.advance(3600)                            # an hour in which everything due happens: it is renewed 360 times
    assert lease.held
    clock.jump(3600)                            # an hour in which nothing happens, as when a laptop sleeps
    assert lease.lost

`advance` goes from one due time to the next and lets all threads that it wakes finish before it continues, so a test
is the same every time. For that it must know which threads are busy: the threads that a client starts, and every other
thread once it has waited for a lock. It waits a fifth of a second for a thread that waits for something else.

Time is kept in whole microseconds. The store's clock (`micros`) and the clients' (`time`) count from different starts,
because nothing may ever compare the two.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .. import aio, sync
    from ..stores.memory import Hub

STUCK = 10.0  # real seconds after which a known thread certainly does not wait again
OTHER_THREADS = 0.2  # real seconds for which `settle` waits for threads of the test itself
ROUNDS = 2000  # turns of the event loop after which we no longer wait for it to be quiet
INSTANT = 2e-12  # seconds between two readings at the same time; less could vanish in the float


class Alarm(NamedTuple):
    due: int
    call: Callable[[], object]


class _Sleeper(NamedTuple):
    """A thread that waits for an event, or until a time, or for both."""

    is_set: Callable[[], bool]
    due: int | None


class ManualClock:
    def __init__(self, start: int = 1_700_000_000_000_000) -> None:
        self._now = start
        self._alarms_until = start  # the alarms up to this time have run; less than _now only after a jump
        self._start = start
        self._changed = threading.Condition()
        self._asleep: dict[int, _Sleeper] = {}
        self._ours: set[threading.Thread] = set()
        self._other_threads: set[int] = set()
        self._alarms: dict[int, Alarm] = {}
        self._numbers = count()
        self._readings = count()
        self.advancing_thread: int | None = None
        """The only thread that advances this clock, if there is only one: an endless wait of it raises an error."""

    # -- reading it

    def time(self) -> float:
        """Return the clients' time, in seconds. Never twice the same: clients order by it what they do."""
        return (self._now - self._start) / 1e6 + 5000.0 + next(self._readings) * INSTANT

    def micros(self) -> int:
        """Return the store's time, in whole microseconds."""
        return self._now

    # -- advancing it

    def advance(self, seconds: float) -> None:
        """Let that many seconds pass, and do everything that is due in them. For threads."""
        target = self._now + round(seconds * 1e6)
        self.settle()
        while self._run_next_alarm(target):
            self.settle()
        self._run_alarms(target)
        self.settle()

    async def aio_advance(self, seconds: float) -> None:
        """Do the same for tasks: they all run in between."""
        target = self._now + round(seconds * 1e6)
        await self.aio_settle()
        while self._run_next_alarm(target):
            await self.aio_settle()
        self._run_alarms(target)
        await self.aio_settle()

    def jump(self, seconds: float) -> None:
        """Skip that many seconds in which nothing ran. What was due in them happens at the next `advance`."""
        with self._changed:
            self._now += round(seconds * 1e6)

    def settle(self) -> None:
        """Wait until every thread that is at work waits again, or has ended."""
        begun = time.monotonic()
        with self._changed:
            while True:
                waited = time.monotonic() - begun
                busy = self._busy(waited < OTHER_THREADS)
                if not busy:
                    return
                if waited > STUCK:
                    raise RuntimeError(f"{', '.join(busy)} neither ends nor waits for the manual clock.")
                self._changed.notify_all()  # a thread may sleep although its wait is over: a file descriptor wakes none
                self._changed.wait(0.02)

    async def aio_settle(self) -> None:
        """Let the tasks run until they all wait."""
        ready: Sequence[object] | None = getattr(asyncio.get_running_loop(), "_ready", None)
        quiet = 0
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
            if ready is not None:  # another loop than asyncio's own may not show it; then all the rounds are made
                quiet = quiet + 1 if not ready else 0
                if quiet == 3:  # and not 1: between two rounds the loop checks whether something can be read
                    break
        if self._ours:
            await asyncio.to_thread(self.settle)

    def _busy(self, with_others: bool) -> list[str]:
        me = threading.current_thread()
        self._ours = {t for t in self._ours if t.is_alive() or t.ident is None}
        busy = [t.name for t in self._ours if t is not me and not self._is_asleep(t.ident)]
        if with_others:
            alive = {t.ident for t in threading.enumerate()}
            self._other_threads &= {ident for ident in alive if ident is not None}
            busy += [f"thread {i}" for i in self._other_threads if i != me.ident and not self._is_asleep(i)]
        return busy

    def _is_asleep(self, ident: int | None) -> bool:
        sleeper = self._asleep.get(ident or 0)
        return sleeper is not None and not self._is_over(sleeper)

    def _is_over(self, sleeper: _Sleeper) -> bool:
        return sleeper.is_set() or (sleeper.due is not None and sleeper.due <= self._alarms_until)

    def _run_next_alarm(self, target: int) -> bool:
        """Go to the next due time, if it is not after the target."""
        with self._changed:
            dues = [s.due for s in self._asleep.values() if s.due is not None and s.due > self._alarms_until]
            dues += [a.due for a in self._alarms.values()]
            due = min(dues, default=None)
        if due is None or due > target:
            return False
        self._run_alarms(due)
        return True

    def _run_alarms(self, until: int) -> None:
        with self._changed:
            self._alarms_until = max(self._alarms_until, until)
            self._now = max(self._now, until)
            over = [number for number, alarm in self._alarms.items() if alarm.due <= self._alarms_until]
            calls = [self._alarms.pop(number).call for number in sorted(over)]
            self._changed.notify_all()
        for call in calls:
            call()

    # -- for the runtimes

    def due(self, seconds: float) -> int:
        """Return the time that many seconds from now, in microseconds."""
        return self._now + max(round(seconds * 1e6), 1)

    def at(self, due: int, call: Callable[[], object]) -> Callable[[], object]:
        """Call this at that time. The returned function cancels it."""
        number = next(self._numbers)
        self._alarms[number] = Alarm(due, call)
        return lambda: self._alarms.pop(number, None)

    def block(self, is_set: Callable[[], bool], seconds: float | None) -> None:
        """Block this thread until it is set, or that many seconds of this clock have passed."""
        me = threading.get_ident()
        sleeper = _Sleeper(is_set, None if seconds is None else self.due(seconds))
        with self._changed:
            if threading.current_thread() not in self._ours:
                self._other_threads.add(me)
            self._asleep[me] = sleeper
            self._changed.notify_all()
            try:
                while not self._is_over(sleeper):
                    if me == self.advancing_thread and not self._busy(True) and not self._is_over(sleeper):
                        raise RuntimeError("The thread that advances the clock waits, and so do all others.")
                    self._changed.wait(0.02 if me == self.advancing_thread else None)
            finally:
                del self._asleep[me]

    def wake_sleepers(self) -> None:
        """Let all sleeping threads check whether their wait is over."""
        with self._changed:
            self._changed.notify_all()

    def start(self, work: Callable[[], Any], name: str) -> threading.Thread:
        """Run this in a thread that `settle` waits for."""

        def body() -> None:
            try:
                work()
            finally:
                with self._changed:
                    self._ours.discard(thread)
                    self._changed.notify_all()

        thread = threading.Thread(target=body, name=name, daemon=True)
        with self._changed:
            self._ours.add(thread)
        thread.start()
        return thread

    # -- clients that use it

    def locks(self, hub: Hub | None = None, **options: Any) -> sync.Locks:
        """Return a blocking client in memory. Two clients with the same hub share their locks."""
        from ..sync import Locks
        from .manual_clock_runtime import ManualThreadRuntime, manual_client

        return manual_client(Locks, ManualThreadRuntime(self), hub, **options)

    def aio_locks(self, hub: Hub | None = None, **options: Any) -> aio.Locks:
        """Return a client for tasks: `await clock.aio_advance(…)` advances its clock."""
        from ..aio import Locks
        from .manual_clock_runtime import ManualTaskRuntime, manual_client

        return manual_client(Locks, ManualTaskRuntime(self), hub, **options)

    def hub(self) -> Hub:
        """Return a store in memory, for several clients."""
        from ..stores.memory import Hub

        return Hub(self.micros)
