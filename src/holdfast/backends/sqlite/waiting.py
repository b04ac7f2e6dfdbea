"""Waiting for a hint: all waiters of a client share one socket, and one of them reads it for all.

Whoever waits while nobody reads becomes the *reader*: it waits for the socket (and for the death of processes that
anybody here waits for), gives each hint to the waiter it names, and passes the reading on when it leaves, also when it
is cancelled or interrupted. The others wait for an event of their own. So a client with one waiter, the usual case,
needs no thread and no second wake-up.

A hint for a ticket that nobody waits for yet is remembered for a few seconds: it may come between the step and the
waiting. After a quarter of a second without a word everybody looks for himself, reading only, for hints may get lost.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable

from ..contract import Colour, Event, Pushed
from ..polling import Naps
from .ears import MANY, Ears

LOOK = 0.25  # seconds between looks where hints arrive
QUICK = 0.005  # seconds between probes of an ear whose process has ended while a copy of it is still held
QUICK_FOR = 2.0
REMEMBERED = 5.0  # seconds
MOST_REMEMBERED = 1024

Look = Callable[[], Awaitable[int]]
"""Reads the row: -1 if it is time to ask again, else how many stand ahead."""


class Waiter:
    __slots__ = ("ears", "event", "sign", "suspects", "suspicion", "ticket")

    def __init__(self, ticket: str, ears: Collection[str]) -> None:
        self.ticket = ticket
        self.ears = ears
        self.sign: Pushed | None = None
        self.event: Event | None = None
        self.suspects: set[str] = set()
        self.suspicion = 0.0  # when the last of them came under it


class WaitingRoom:
    def __init__(self, ears: Ears, colour: Colour) -> None:
        self._ears = ears
        self._colour = colour
        self.reset()

    def reset(self) -> None:
        self._mutex = self._colour.mutex()
        self._naps = Naps(self._colour)
        self._waiters: dict[str, list[Waiter]] = {}
        self._reader: Waiter | None = None
        self._heard: dict[str, tuple[Pushed, float]] = {}
        self._watched: dict[int, str] = {}  # what the reader waits for besides the socket: a process's end, by ear
        self._stale = False  # whether that has to be made anew

    async def wait(self, ticket: str, timeout: float, ears: Collection[str], look: Look) -> Pushed | None:
        """What was heard; at a death or a change just the ticket; None when the time is over."""
        clock = self._colour.clock
        now = clock()
        end = now + timeout
        me = Waiter(ticket, ears)
        try:
            if (told := self._enter(me)) is not None:
                return told
            look_at = now + LOOK
            while True:
                until = min(end, look_at, now + QUICK if me.suspects else end)
                if self._reader is me:
                    await self._read(until - now)
                elif me.event is not None:
                    await me.event.wait(max(until - now, 0))
                    me.event.clear()
                if me.sign is not None:
                    return me.sign
                now = clock()
                if me.suspects and self._are_dead(me, now):
                    return Pushed(ticket)
                if now >= end:
                    return None
                if now >= look_at:
                    if any(self._ears.is_dead(e) for e in ears) or await look() < 0:
                        return Pushed(ticket)
                    now = clock()
                    look_at = now + LOOK
                self._stand_in(me)
        finally:
            self._leave(me)

    async def poll(self, ticket: str, timeout: float, look: Look) -> Pushed | None:
        """Without an ear: plain reads, more often near the head of the line, less often while nothing happens."""
        clock = self._colour.clock
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

    def _enter(self, me: Waiter) -> Pushed | None:
        """Begin to wait. What there is to be told already, if there is anything."""
        kick = False
        with self._mutex:
            if self._heard and (heard := self._heard.pop(me.ticket, None)) is not None:
                return heard[0]
            for ear in me.ears:
                fd, fresh = self._ears.watch(ear)
                kick = kick or (fd >= 0 and fd not in self._watched)
                # Only now that the watch has begun: had it died before, nobody would tell.
                if fresh and self._ears.is_dead(ear):
                    return Pushed(me.ticket)
            self._waiters.setdefault(me.ticket, []).append(me)
            self._stale = self._stale or kick
            if self._reader is None:
                self._reader = me
                kick = False
            else:
                me.event = self._colour.event()
        if kick:
            self.kick()  # the reader waits for the deaths it knew of
        return None

    def _leave(self, me: Waiter) -> None:
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
            if me.ears:
                self._stale = True
                if self._ears.watches_many():
                    self._ears.forget_unwatched(self._needed())

    def _stand_in(self, me: Waiter) -> None:
        """If nobody reads, or one who has left (Ctrl-C in the middle of leaving), it is me from now on."""
        with self._mutex:
            reader = self._reader
            if reader is None or reader not in self._waiters.get(reader.ticket, ()):
                self._reader = me

    def _needed(self) -> set[str]:
        return {ear for waiters in self._waiters.values() for w in waiters for ear in w.ears}

    # -- the reader

    async def _read(self, timeout: float) -> None:
        ear = self._ears.socket
        fd = ear.fileno() if ear is not None else -1
        if fd < 0:
            await self._colour.sleep(max(timeout, 0))
            return
        with self._mutex:
            if self._stale:
                self._stale = False
                self._watched = self._ears.watched(self._needed())
            fds = [fd, *self._watched]
        ready = await self._colour.readable(fds, max(timeout, 0))
        if not ready:
            return
        with self._mutex:
            for one in ready:
                if one == fd:
                    self._hear()
                else:
                    self._died(one)

    def _hear(self) -> None:
        hints = self._ears.receive()
        for hint in hints:
            if hint:  # else somebody only wants the reader to look up
                self._take_in(_read(hint))
        if len(hints) >= MANY:  # the queue was full, so some hints may have been refused
            self._tell_all()

    def _take_in(self, told: Pushed) -> None:
        waiters = self._waiters.get(told.ticket)
        if waiters is None:
            self._remember(told)
        else:
            for waiter in waiters:
                _tell(waiter, told)

    def hinted(self, tickets: Iterable[str]) -> list[str]:
        """For whom of these a hint has come that nobody waits for."""
        with self._mutex:
            if self._reader is None:
                self._hear()
            return [t for t in tickets if self._heard.pop(t, None) is not None] if self._heard else []

    def _remember(self, told: Pushed) -> None:
        now = self._colour.clock()
        if len(self._heard) >= MOST_REMEMBERED:
            young = {t: each for t, each in self._heard.items() if now - each[1] < REMEMBERED}
            self._heard = young if len(young) < MOST_REMEMBERED else {}
        self._heard[told.ticket] = told, now

    def _died(self, fd: int) -> None:
        """A process has ended. If its ear still answers, somebody holds a copy and will not hold it for long."""
        ear = self._watched.pop(fd, None)
        if ear is None:
            return
        self._ears.unwatch(ear)
        dead = self._ears.is_dead(ear)
        for waiters in self._waiters.values():
            for waiter in waiters:
                if ear in waiter.ears:
                    if dead:
                        waiter.sign = waiter.sign or Pushed(waiter.ticket)
                    else:
                        waiter.suspects.add(ear)
                        waiter.suspicion = self._colour.clock()
                    if waiter.event is not None:
                        waiter.event.set()

    def _are_dead(self, me: Waiter, now: float) -> bool:
        if now - me.suspicion > QUICK_FOR:
            me.suspects.clear()
        return any(self._ears.is_dead(e) for e in me.suspects)

    # -- from outside

    def _tell_all(self) -> None:
        for waiters in self._waiters.values():
            for waiter in waiters:
                _tell(waiter, Pushed(waiter.ticket))

    def wake_here(self, tickets: Collection[str]) -> None:
        """End the waiting of these, now or when it begins."""
        self._naps.wake(tickets)
        with self._mutex:
            for ticket in tickets:
                self._take_in(Pushed(ticket))
        self.kick()

    def wake_all(self) -> None:
        with self._mutex:
            self._tell_all()
        self.kick()

    def kick(self) -> None:
        """Make the reader look up."""
        self._ears.send(self._ears.name, "")


def _read(hint: str) -> Pushed:
    """A hint is a ticket, and after it, if it names a grant, the place and the fence."""
    ticket, _, grant = hint.partition(" ")
    try:
        place, fence = grant.split(" ")
        return Pushed(ticket, int(place), int(fence))
    except ValueError:
        return Pushed(ticket)


def _tell(waiter: Waiter, told: Pushed) -> None:
    if waiter.sign is None or told.fence > waiter.sign.fence:
        waiter.sign = told
    if waiter.event is not None:
        waiter.event.set()
