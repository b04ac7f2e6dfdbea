"""Wake-ups: one bounded inbox per client, and the waiters at it, of locks and of pools.

A wake-up for a ticket that does not wait yet is kept: it may arrive between the step and the wait, or it is meant for a
holder that was evicted. Nothing depends on a wake-up, so the inbox may drop the oldest.

Where a client reads its wake-ups from a socket, its threads share one *reader*: a waiter that finds no reader reads for
all, delivers each wake-up to the waiter it names, and passes the reading on when it leaves, also if it is cancelled or
interrupted. The others wait for an event of their own. So a client with one waiter, the usual case, needs no thread and
no second wake-up.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from ..errors import StoreError
from ..rules.locks import Wakeup
from .base import Event, OutcomeUnknown, Pushed, Runtime, Store

CAPACITY = 1000  # wake-ups that no waiter has taken yet; a further one removes the oldest


async def send_wakeups(store: Store, woken: Sequence[Wakeup]) -> None:
    """Send them if there are any. A failure is ignored: the waiters read the store before long."""
    if woken:
        try:
            await store.wake(woken)
        except (OutcomeUnknown, StoreError):
            pass


class Waiter:
    """One that waits for a wake-up of its ticket. `woken`: it has one, or must ask the store because some were lost."""

    __slots__ = ("event", "ticket", "woken")

    def __init__(self, ticket: str, event: Event | None = None) -> None:
        self.ticket = ticket
        self.event = event
        self.woken = False

    def wake(self) -> None:
        self.woken = True
        if self.event is not None:
            self.event.set()


class WakeupInbox:
    """Wake-ups by ticket, and their waiters. Everything here may be called from any thread."""

    def __init__(self, mutex: Callable[[], AbstractContextManager[Any]]) -> None:
        self._make_mutex = mutex
        self.clear()

    def clear(self) -> None:
        """Begin again, without a waiter: at the start, and in the child after a fork."""
        self._mutex = self._make_mutex()
        self._wakeups: dict[str, Pushed] = {}
        self._taken: dict[str, int] = {}  # the fences of the last wake-ups taken: some arrive twice
        self._waiters: dict[str, list[Waiter]] = {}

    def deliver(self, pushed: Pushed) -> None:
        """Keep this wake-up for its waiter, also for one that begins to wait later."""
        ticket, _, fence, _ = pushed
        with self._mutex:
            if fence and self._taken.get(ticket) == fence:
                return
            if len(self._wakeups) >= CAPACITY:
                self._wakeups.pop(next(iter(self._wakeups)))
            self._wakeups[ticket] = pushed
            for waiter in self._waiters.get(ticket, ()):
                waiter.wake()

    def start_waiting(self, waiter: Waiter) -> bool:
        """Begin to wait. Return True if a wake-up has already arrived."""
        with self._mutex:
            self._waiters.setdefault(waiter.ticket, []).append(waiter)
            waiter.woken = waiter.ticket in self._wakeups
            return waiter.woken

    def stop_waiting(self, waiter: Waiter) -> None:
        with self._mutex:
            self._remove(waiter)

    def _remove(self, waiter: Waiter) -> None:
        """Call this under the mutex."""
        same = self._waiters.get(waiter.ticket)
        if same is not None and waiter in same:
            same.remove(waiter)
            if not same:
                del self._waiters[waiter.ticket]

    def take(self, waiter: Waiter) -> Pushed | None:
        """Return the wake-up of this waiter; only its ticket if it must ask the store; None if it was not woken."""
        ticket = waiter.ticket
        with self._mutex:
            pushed = self._wakeups.pop(ticket, None)
            if pushed is not None and pushed.fence:
                self._note_taken(ticket, pushed.fence)
        return pushed if pushed is not None else Pushed(ticket) if waiter.woken else None

    def _note_taken(self, ticket: str, fence: int) -> None:
        """Call this under the mutex."""
        if len(self._taken) >= CAPACITY:
            self._taken.clear()
        self._taken[ticket] = fence

    def take_wakeups(self, tickets: Iterable[str]) -> Collection[str]:
        """Remove the wake-ups of these holders. Return the tickets of those that were evicted."""
        if not self._wakeups:
            return ()
        with self._mutex:
            found = [self._wakeups.pop(ticket) for ticket in tickets if ticket in self._wakeups]
        return [pushed.ticket for pushed in found if not pushed.fence]

    def wake_here(self, tickets: Collection[str]) -> None:
        """End the wait of these tickets, now or when it begins."""
        for ticket in tickets:
            self.deliver(Pushed(ticket))

    def wake_all(self) -> None:
        """Wake all waiters: a wake-up may have been missed, so they must ask the store."""
        with self._mutex:
            for waiters in self._waiters.values():
                for waiter in waiters:
                    waiter.wake()

    async def wait(self, ticket: str, event: Event, timeout: float) -> Pushed | None:
        """Wait for a wake-up of this ticket; None when the time is over."""
        me = Waiter(ticket, event)
        try:
            if not self.start_waiting(me):
                await event.wait(timeout)
            return self.take(me)
        finally:
            self.stop_waiting(me)


class SharedReader(WakeupInbox):
    """An inbox of threads or tasks that read its socket themselves: one of them for all."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        super().__init__(runtime.mutex)

    def clear(self) -> None:
        super().clear()
        self._reader: Waiter | None = None

    @abstractmethod
    def interrupt_reader(self) -> None:
        """End the reading of the reader, if there is one."""

    def start_waiting(self, waiter: Waiter) -> bool:
        with self._mutex:
            self._waiters.setdefault(waiter.ticket, []).append(waiter)
            if waiter.ticket in self._wakeups:
                waiter.woken = True
            elif self._reader is None and waiter.event is None:
                self._reader = waiter
            elif waiter.event is None:
                waiter.event = self._runtime.event()
            return waiter.woken

    def stop_waiting(self, waiter: Waiter) -> None:
        with self._mutex:
            self._remove(waiter)
            if self._reader is waiter:
                self._reader = None
                if self._waiters:
                    self._pass_on()

    def _pass_on(self) -> None:
        """Under the mutex: any other waiter becomes the reader."""
        self._reader = next(iter(self._waiters.values()))[0]
        if self._reader.event is not None:
            self._reader.event.set()

    def _become_reader(self, waiter: Waiter) -> None:
        """Become the reader if there is none, or if it has left (Ctrl-C while it left)."""
        with self._mutex:
            reader = self._reader
            if reader is None or reader not in self._waiters.get(reader.ticket, ()):
                self._reader = waiter

    def wake_here(self, tickets: Collection[str]) -> None:
        super().wake_here(tickets)
        self.interrupt_reader()

    def wake_all(self) -> None:
        super().wake_all()
        self.interrupt_reader()


class AwaitedReader(SharedReader):
    """The same where reading is a coroutine."""

    @abstractmethod
    async def read(self, reader: Waiter, timeout: float) -> None:
        """Read and deliver what arrives, until this reader is woken or `timeout` seconds are over. May return early."""

    async def pause(self, waiter: Waiter, timeout: float) -> None:
        """Wait at most this long until this waiter is woken: as the reader, or by its event. May return early."""
        if self._reader is waiter:
            await self.read(waiter, timeout)
            return
        event = waiter.event
        if event is None:
            event = waiter.event = self._runtime.event()
        if not waiter.woken:
            await event.wait(timeout)
            event.clear()
        if self._reader is not waiter:
            self._become_reader(waiter)
