"""Waiting at stores that push nothing: pause, look, pause again. Only reads; what keeps a place is the flow's business.

The pause begins with a few milliseconds for the first in line and is longer for those behind, doubles while nothing
changes and begins again when something does. It is never shorter than a look takes, so a busy store is not made busier.
A row that shows the asker inside is better than a push that names the grant: it was read after the write that made it,
and tells for how long it is good. Those of one client that wait at the same row share what one of them has read.
"""

import os
from collections.abc import Awaitable, Callable, Collection
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

from ..doorman import wire
from ..errors import BackendError
from .contract import Colour, Event, Pushed, Unknown
from .names import SEPARATOR

LONGEST = 1.0  # seconds
KEPT = 1000  # early ends that nobody has noticed yet
UNDER_WAY = 1.0  # seconds for which others wait for one who reads; then they read for themselves
ROWS = 64  # that are kept to be shared
LONGEST_FOR_ITEMS = 0.15  # for who would be the next to have an item: nobody tells him that one was given back


T = TypeVar("T")


class Shared(Generic[T]):
    """What this client has last read of the rows that it waits at."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._read: dict[str, tuple[float, T]] = {}
        self._reading: dict[str, float] = {}

    async def get(self, key: str, age: float, read: Callable[[], Awaitable[T]]) -> T | None:
        """The row, read at most so many seconds ago; None: another one is just reading it, look again later."""
        now = self._clock()
        known = self._read.get(key)
        if known is not None and now - known[0] <= age:
            return known[1]
        if now - self._reading.get(key, -UNDER_WAY) < UNDER_WAY:
            return None
        self._reading[key] = now
        try:
            found = await read()
        finally:
            self._reading.pop(key, None)
        if len(self._read) >= ROWS:
            self._read.clear()
        self._read[key] = now, found
        return found

    def clear(self) -> None:
        self._read.clear()
        self._reading.clear()


class Ahead(NamedTuple):
    """Still in line, with so many ahead. `wants`: the item that it waits for, '' for any; None at a door. `due`: in so
    many seconds there may be something for it: an item is due, a seat ends."""

    number: int
    wants: str | None = None
    due: float = LONGEST


def standing(body: str | None, ticket: str, sample: tuple[int, float] | None = None) -> Pushed | Ahead:
    """How this ticket stands, by the body of a row: at a door, or in the line of a pool. `sample`: what time it was
    when the row was read, by the store's clock and, before that, by the client's."""
    if body is None:
        return Pushed(ticket)
    try:
        return _in_pool(body, ticket) if body.startswith('["line') else _at_door(body, ticket, sample)
    except ValueError:
        return Pushed(ticket)  # whoever asks will be told


_decoded = lru_cache(maxsize=8)(wire.decode)  # all of one client that wait at a row look at the same body


def _at_door(body: str, ticket: str, sample: tuple[int, float] | None) -> Pushed | Ahead:
    record = _decoded(body)
    ahead = record.standing(ticket)
    if ahead is not None:
        found = Ahead(ahead)
        if ahead or sample is None or not record.inside:
            return found
        return told(ticket, found, (min([e.expires for e in record.inside]) - sample[0]) / 1e6)
    seat = record.seat(ticket)
    if seat is None:
        return Pushed(ticket)
    return Pushed(ticket, seat.place, seat.fence, sample[1] + (seat.expires - sample[0]) / 1e6 if sample else 0.0)


def _in_pool(body: str, ticket: str) -> Pushed | Ahead:
    from ..pool.wire import decode_line

    line = decode_line(body)
    for watcher in line.watchers:
        if watcher.ticket == ticket:
            return Ahead(0, watcher.key)
    ahead = line.standing(ticket)
    return Pushed(ticket) if ahead is None else Ahead(ahead, "")


def pool_of(line_key: str) -> str:
    """The pool whose line is kept under this key; the other way round than names.line_key."""
    namespace, _, name = line_key.rpartition(SEPARATOR)
    return namespace + name


def told(ticket: str, found: Ahead, due: float) -> Pushed | Ahead:
    """What the next one in line learns if in so many seconds there may be something for it."""
    return found._replace(due=due) if due > 0 else Pushed(ticket)


class Naps:
    """The pauses of those who wait here, each of which can be ended early."""

    def __init__(self, colour: Colour) -> None:
        self._colour = colour
        self._events: dict[str, Event] = {}
        self._called: set[str] = set()  # those that were woken and have not noticed yet
        self.clock = colour.clock

    def wake(self, tickets: Collection[str]) -> None:
        """End the waiting of these, now or when it begins. From any thread."""
        if len(self._called) > KEPT:
            self._called.clear()
        for ticket in tickets:
            self._called.add(ticket)
            event = self._events.get(ticket)
            if event is not None:
                event.set()

    async def nap(self, ticket: str, seconds: float) -> bool:
        """Pause; True if it was ended early."""
        event = self._events[ticket] = self._colour.event()
        try:
            if ticket not in self._called:
                await event.wait(seconds)
        finally:
            self._events.pop(ticket, None)
        if ticket not in self._called:
            return False
        self._called.discard(ticket)
        return True


async def poll(
    naps: Naps,
    ticket: str,
    timeout: float,
    look: Callable[[float], Awaitable[Pushed | Ahead | None]],
    first: float,
    longest: float = LONGEST,
    behind: float = LONGEST,
) -> Pushed | None:
    """Look until there is something to be told, at most so many seconds. `look` is given how old what it shows may be.
    `first`: the shortest pause, `longest`: the longest of who is next, `behind`: that of all others. A look that fails
    tells nothing: whether the store is gone, the next question shows."""
    end = naps.clock() + timeout
    pause, found, took = first, Ahead(0), 0.0
    while (left := end - naps.clock()) > 0:
        nap = max(pause, took) * (0.75 + os.urandom(1)[0] / 512)  # not all at the same instant
        if await naps.nap(ticket, min(nap, left, found.due)):
            return Pushed(ticket)
        before, begun = found.number, naps.clock()
        try:
            seen = await look(pause / 2)
            took = naps.clock() - begun
        except (Unknown, BackendError):
            pause, found = min(pause * 2, LONGEST), found._replace(due=LONGEST)
            continue
        if seen is None:
            continue
        if isinstance(seen, Pushed):
            return seen
        found = seen
        most = behind if found.number else longest if found.wants is None else min(longest, LONGEST_FOR_ITEMS)
        pause = min(pause * 2 if found.number == before else first * (found.number + 1), most)
    return None
