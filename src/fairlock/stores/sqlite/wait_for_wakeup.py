"""Waiting for a wake-up: all waiters of a client share one socket, and one of them reads it for all.

A waiter that finds no reader becomes the *reader*: it waits for the socket (and for the end of the processes that any
waiter here depends on), gives each wake-up to the waiter it names, and passes the reading on when it leaves, also when
it is cancelled or interrupted. The others wait for an event of their own. So a client with one waiter, the usual case,
needs no thread and no second wake-up.

A wake-up for a ticket that does not wait yet is kept for a few seconds: it may arrive between the step and the wait.
After a quarter of a second without a wake-up each waiter reads the row, because wake-ups may get lost.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable

from ..base import Event, Pushed, Runtime
from ..polling import Naps
from .listener_sockets import MANY, WakeupSockets

LOOK = 0.25  # seconds between two reads of the row where wake-ups arrive
QUICK = 0.005  # seconds between probes of a listener whose process has ended while a copy of it is still held
QUICK_FOR = 2.0
REMEMBERED = 5.0  # seconds
MOST_REMEMBERED = 1024

Look = Callable[[], Awaitable[int]]
"""Reads the row. Returns -1 if the waiter must send its request again, else how many are ahead."""


class Waiter:
    __slots__ = ("event", "listeners", "pushed", "suspects", "suspicion", "ticket")

    def __init__(self, ticket: str, listeners: Collection[str]) -> None:
        self.ticket = ticket
        self.listeners = listeners
        self.pushed: Pushed | None = None
        self.event: Event | None = None
        self.suspects: set[str] = set()
        self.suspicion = 0.0  # when the last of them was added


class WakeupWaiters:
    def __init__(self, listeners: WakeupSockets, runtime: Runtime) -> None:
        self._listeners = listeners
        self._runtime = runtime
        self.reset()

    def reset(self) -> None:
        self._mutex = self._runtime.mutex()
        self._naps = Naps(self._runtime)
        self._waiters: dict[str, list[Waiter]] = {}
        self._reader: Waiter | None = None
        self._notified: dict[str, tuple[Pushed, float]] = {}
        self._watched: dict[int, str] = {}  # what the reader waits for besides the socket: a process's end, by listener
        self._stale = False  # whether that must be rebuilt

    async def wait(self, ticket: str, timeout: float, listeners: Collection[str], look: Look) -> Pushed | None:
        """Return the wake-up; on a death or a change only the ticket; None when the time is over."""
        clock = self._runtime.clock
        now = clock()
        end = now + timeout
        me = Waiter(ticket, listeners)
        try:
            if (pushed := self._start_waiting(me)) is not None:
                return pushed
            look_at = now + LOOK
            while True:
                until = min(end, look_at, now + QUICK if me.suspects else end)
                if self._reader is me:
                    await self._read(until - now)
                elif me.event is not None:
                    await me.event.wait(max(until - now, 0))
                    me.event.clear()
                if me.pushed is not None:
                    return me.pushed
                now = clock()
                if me.suspects and self._are_dead(me, now):
                    return Pushed(ticket)
                if now >= end:
                    return None
                if now >= look_at:
                    if any(self._listeners.is_dead(e) for e in listeners) or await look() < 0:
                        return Pushed(ticket)
                    now = clock()
                    look_at = now + LOOK
                self._stand_in(me)
        finally:
            self._stop_waiting(me)

    async def poll(self, ticket: str, timeout: float, look: Look) -> Pushed | None:
        """Wait without a listener: read the row, more often near the head, less often while nothing changes."""
        clock = self._runtime.clock
        end = clock() + timeout
        pause, ahead = 0.01, -1
        while True:
            now = clock()
            if now >= end:
                return None
            if await self._naps.nap(ticket, min(pause, end - now)):
                return Pushed(ticket)
            found = await look()
            if found < 0:
                return Pushed(ticket)
            pause = min(pause * 2 if found == ahead else 0.01 * (found + 1), 1.0)
            ahead = found

    def _start_waiting(self, me: Waiter) -> Pushed | None:
        """Begin to wait. Return the wake-up that has already arrived, if there is one."""
        kick = False
        with self._mutex:
            if self._notified and (found := self._notified.pop(me.ticket, None)) is not None:
                return found[0]
            for listener in me.listeners:
                fd, fresh = self._listeners.watch(listener)
                kick = kick or (fd >= 0 and fd not in self._watched)
                # Only now that the watch has begun: a death before it would go unnoticed.
                if fresh and self._listeners.is_dead(listener):
                    return Pushed(me.ticket)
            self._waiters.setdefault(me.ticket, []).append(me)
            self._stale = self._stale or kick
            if self._reader is None:
                self._reader = me
                kick = False
            else:
                me.event = self._runtime.event()
        if kick:
            self.kick()  # the reader waits only for the processes that it knew of
        return None

    def _stop_waiting(self, me: Waiter) -> None:
        with self._mutex:
            same = self._waiters.get(me.ticket)
            if same is not None and me in same:
                same.remove(me)
                if not same:
                    del self._waiters[me.ticket]
            if self._reader is me:
                self._reader = next((w for ws in self._waiters.values() for w in ws), None)
                if self._reader is not None and self._reader.event is not None:
                    self._reader.event.set()
            if me.listeners:
                self._stale = True
                if self._listeners.watches_many():
                    self._listeners.forget_unwatched(self._needed())

    def _stand_in(self, me: Waiter) -> None:
        """Become the reader if there is none, or if it has left (Ctrl-C while it left)."""
        with self._mutex:
            reader = self._reader
            if reader is None or reader not in self._waiters.get(reader.ticket, ()):
                self._reader = me

    def _needed(self) -> set[str]:
        return {listener for waiters in self._waiters.values() for w in waiters for listener in w.listeners}

    # -- the reader

    async def _read(self, timeout: float) -> None:
        listener = self._listeners.socket
        fd = listener.fileno() if listener is not None else -1
        if fd < 0:
            await self._runtime.sleep(max(timeout, 0))
            return
        with self._mutex:
            if self._stale:
                self._stale = False
                self._watched = self._listeners.watched(self._needed())
            fds = [fd, *self._watched]
        ready = await self._runtime.readable(fds, max(timeout, 0))
        if not ready:
            return
        with self._mutex:
            for one in ready:
                if one == fd:
                    self._receive()
                else:
                    self._died(one)

    def _receive(self) -> None:
        texts = self._listeners.receive()
        for text in texts:
            if text:  # an empty one only makes the reader return
                self._deliver(_read(text))
        if len(texts) >= MANY:  # the socket's buffer was full, so some wake-ups may have been refused
            self._notify_all()

    def _deliver(self, pushed: Pushed) -> None:
        waiters = self._waiters.get(pushed.ticket)
        if waiters is None:
            self._remember(pushed)
        else:
            for waiter in waiters:
                _notify(waiter, pushed)

    def take_wakeups(self, tickets: Iterable[str]) -> list[str]:
        """Return those tickets for which a wake-up has arrived that no waiter has taken."""
        with self._mutex:
            if self._reader is None:
                self._receive()
            return [t for t in tickets if self._notified.pop(t, None) is not None] if self._notified else []

    def _remember(self, pushed: Pushed) -> None:
        now = self._runtime.clock()
        if len(self._notified) >= MOST_REMEMBERED:
            young = {t: each for t, each in self._notified.items() if now - each[1] < REMEMBERED}
            self._notified = young if len(young) < MOST_REMEMBERED else {}
        self._notified[pushed.ticket] = pushed, now

    def _died(self, fd: int) -> None:
        """A process has ended. If its listener still answers, another process holds a copy and will soon close it."""
        listener = self._watched.pop(fd, None)
        if listener is None:
            return
        self._listeners.unwatch(listener)
        dead = self._listeners.is_dead(listener)
        for waiters in self._waiters.values():
            for waiter in waiters:
                if listener in waiter.listeners:
                    if dead:
                        waiter.pushed = waiter.pushed or Pushed(waiter.ticket)
                    else:
                        waiter.suspects.add(listener)
                        waiter.suspicion = self._runtime.clock()
                    if waiter.event is not None:
                        waiter.event.set()

    def _are_dead(self, me: Waiter, now: float) -> bool:
        if now - me.suspicion > QUICK_FOR:
            me.suspects.clear()
        return any(self._listeners.is_dead(e) for e in me.suspects)

    # -- from outside

    def _notify_all(self) -> None:
        for waiters in self._waiters.values():
            for waiter in waiters:
                _notify(waiter, Pushed(waiter.ticket))

    def wake_here(self, tickets: Collection[str]) -> None:
        """End the wait of these tickets, now or when it begins."""
        self._naps.wake(tickets)
        with self._mutex:
            for ticket in tickets:
                self._deliver(Pushed(ticket))
        self.kick()

    def wake_all(self) -> None:
        with self._mutex:
            self._notify_all()
        self.kick()

    def kick(self) -> None:
        """Make the reader return from its wait."""
        self._listeners.send(self._listeners.name, "")


def _read(text: str) -> Pushed:
    """Read a wake-up: a ticket, and after it, if it names a grant, the place and the fence."""
    ticket, _, grant = text.partition(" ")
    try:
        place, fence = grant.split(" ")
        return Pushed(ticket, int(place), int(fence))
    except ValueError:
        return Pushed(ticket)


def _notify(waiter: Waiter, pushed: Pushed) -> None:
    if waiter.pushed is None or pushed.fence > waiter.pushed.fence:
        waiter.pushed = pushed
    if waiter.event is not None:
        waiter.event.set()
