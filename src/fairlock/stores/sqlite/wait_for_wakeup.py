"""Waiting for a wake-up: all waiters of a client share one socket, and one of them reads it for all (`AwaitedReader`).

A waiter that is not woken within a moment also waits for the end of the processes that it depends on; the reader does
that for all. After a quarter of a second without a wake-up each waiter reads the row, because wake-ups may get lost.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable

from ..base import Pushed, Runtime
from ..polling import Ahead
from ..wakeups import AwaitedReader, Waiter, WakeupInbox
from .listener_sockets import MANY, WakeupSockets

WATCH = 0.03  # seconds after which a waiter watches the processes that it depends on: most hand-offs are quicker
LOOK = 0.25  # seconds between two reads of the row where wake-ups arrive
QUICK = 0.005  # seconds between probes of a listener whose process has ended while a copy of it is still held
QUICK_FOR = 2.0

_new = tuple.__new__  # makes a named tuple in half the time of its own constructor; every field must be given
Look = Callable[[float], Awaitable[Pushed | Ahead | None]]
"""Reads the row: a `Pushed` if the waiter must send its request again."""


class ProcessWaiter(Waiter):
    """A waiter that also depends on the processes behind these listeners."""

    __slots__ = ("listeners", "suspects", "suspicion")

    def __init__(self, ticket: str) -> None:
        super().__init__(ticket)
        self.listeners: Collection[str] = ()
        self.suspects: set[str] = set()
        self.suspicion = 0.0  # when the last of them was added


class WakeupWaiters(AwaitedReader):
    def __init__(self, listeners: WakeupSockets, runtime: Runtime) -> None:
        self._listeners = listeners
        super().__init__(runtime)

    def clear(self) -> None:
        super().clear()
        self._watched: dict[int, str] = {}  # what the reader waits for besides the socket: a process's end, by listener
        self._stale = False  # whether that must be rebuilt

    async def wait_at(self, ticket: str, timeout: float, listeners: Collection[str], look: Look) -> Pushed | None:
        """Return the wake-up; on a death or a change only the ticket; None when the time is over."""
        clock = self._runtime.clock
        now = clock()
        end = now + timeout
        me = ProcessWaiter(ticket)
        try:
            if self.start_waiting(me):
                return self.take(me)
            look_at = now + LOOK
            watch_at = now + WATCH if listeners else end
            while True:
                until = min(end, look_at, watch_at)
                if me.suspects:
                    until = min(until, now + QUICK)
                await self.pause(me, max(until - now, 0))
                if me.woken:
                    return self.take(me)
                now = clock()
                if now >= watch_at and listeners:
                    watch_at = end
                    me.listeners, listeners = listeners, ()
                    if self._watch(me):
                        return Pushed(ticket)
                if me.suspects and self._are_dead(me, now):
                    return Pushed(ticket)
                if now >= end:
                    return None
                if now >= look_at:
                    if any(self._listeners.is_dead(e) for e in me.listeners) or isinstance(await look(0.0), Pushed):
                        return Pushed(ticket)
                    now = clock()
                    look_at = now + LOOK
        finally:
            self.stop_waiting(me)

    def _watch(self, me: ProcessWaiter) -> bool:
        """Make the reader wait for the end of these processes, too. Return True if one has ended already."""
        kick = False
        with self._mutex:
            for listener in me.listeners:
                fd, fresh = self._listeners.watch(listener)
                kick = kick or (fd >= 0 and fd not in self._watched)
                # Only now that the watch has begun: a death before it would go unnoticed.
                if fresh and self._listeners.is_dead(listener):
                    return True
            self._stale = self._stale or kick
            kick = kick and self._reader is not me
        if kick:
            self.interrupt_reader()  # it waits only for the processes that it knew of
        return False

    def stop_waiting(self, waiter: Waiter) -> None:
        super().stop_waiting(waiter)
        if isinstance(waiter, ProcessWaiter) and waiter.listeners:
            with self._mutex:
                self._stale = True
                if self._listeners.watches_many():
                    self._listeners.forget_unwatched(self._needed())

    def _process_waiters(self) -> list[ProcessWaiter]:
        return [w for waiters in self._waiters.values() for w in waiters if isinstance(w, ProcessWaiter)]

    def _needed(self) -> set[str]:
        return {listener for waiter in self._process_waiters() for listener in waiter.listeners}

    # -- the reader

    async def read(self, reader: Waiter, timeout: float) -> None:
        listener = self._listeners.socket
        fd = listener.fileno() if listener is not None else -1
        if fd < 0:
            await self._runtime.sleep(timeout)
            return
        with self._mutex:
            if self._stale:
                self._stale = False
                self._watched = self._listeners.watched(self._needed())
            fds = [fd, *self._watched]
        for one in await self._runtime.readable(fds, timeout):
            if one == fd:
                self._receive()
            else:
                self._died(one)

    def _receive(self) -> None:
        texts = self._listeners.receive()
        for text in texts:
            if text:  # an empty one only makes the reader return
                self.deliver(_read(text))
        if len(texts) >= MANY:  # the socket's buffer was full, so some wake-ups may have been refused
            WakeupInbox.wake_all(self)

    def take_wakeups(self, tickets: Iterable[str]) -> Collection[str]:
        if self._reader is None:
            self._receive()
        return super().take_wakeups(tickets)

    def _died(self, fd: int) -> None:
        """A process has ended. If its listener still answers, another process holds a copy and will soon close it."""
        with self._mutex:
            listener = self._watched.pop(fd, None)
            if listener is None:
                return
            self._listeners.unwatch(listener)
            dead = self._listeners.is_dead(listener)
            for waiter in self._process_waiters():
                if listener in waiter.listeners:
                    if dead:
                        waiter.wake()
                        continue
                    waiter.suspects.add(listener)
                    waiter.suspicion = self._runtime.clock()
                    if waiter.event is not None:
                        waiter.event.set()

    def _are_dead(self, me: ProcessWaiter, now: float) -> bool:
        if now - me.suspicion > QUICK_FOR:
            me.suspects.clear()
        return any(self._listeners.is_dead(e) for e in me.suspects)

    def interrupt_reader(self) -> None:
        self._listeners.send(self._listeners.name, "")


def _read(text: str) -> Pushed:
    """Read a wake-up: a ticket, and after it, if it names a grant, the place and the fence."""
    ticket, _, grant = text.partition(" ")
    try:
        place, fence = grant.split(" ")
        return _new(Pushed, (ticket, int(place), int(fence), 0.0))
    except ValueError:
        return Pushed(ticket)
