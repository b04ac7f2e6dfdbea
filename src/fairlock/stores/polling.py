"""Waiting at stores without notifications: pause, read, pause again. It only reads; the engine keeps the place.

The pause begins with a few milliseconds for the first in the queue and is longer for those behind. It doubles while
nothing changes and begins again when something does. It is never shorter than a read takes, so a busy store is not made
busier. A row that shows the asker as a holder is better than a wake-up that names the grant: it was read after the
write that made it, and contains its end. Waiters of one client at the same row share what one of them has read.
"""

import os
from collections.abc import Awaitable, Callable, Collection
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

from ..errors import StoreError
from ..rules.locks import codec
from .base import Event, OutcomeUnknown, Pushed, Runtime
from .keys import SEPARATOR

LONGEST = 1.0  # seconds
KEPT = 1000  # early ends that nobody has noticed yet
UNDER_WAY = 1.0  # seconds for which others wait for the one that reads; then they read for themselves
ROWS = 64  # that are kept to be shared
LONGEST_FOR_ITEMS = 0.15  # for the next in the queue for an item: nothing notifies it that one was given back


T = TypeVar("T")


class Shared(Generic[T]):
    """What this client has last read of the rows that it waits at."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._read: dict[str, tuple[float, T]] = {}
        self._reading: dict[str, float] = {}

    async def get(self, key: str, age: float, read: Callable[[], Awaitable[T]]) -> T | None:
        """Return the row, read at most `age` seconds ago; None: another one is just reading it, look again later."""
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
    """Still in the queue, with `number` ahead. `wants`: the item that it waits for, '' for any; None for a lock. `due`:
    the seconds until there may be something for it: an item is due, a grant ends."""

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
        return Pushed(ticket)  # it asks the store, which reports the damage


_decoded = lru_cache(maxsize=8)(codec.decode)  # all of one client that wait at a row look at the same body


def _at_door(body: str, ticket: str, sample: tuple[int, float] | None) -> Pushed | Ahead:
    record = _decoded(body)
    ahead = record.standing(ticket)
    if ahead is not None:
        found = Ahead(ahead)
        if ahead or sample is None or not record.holders:
            return found
        return told(ticket, found, (min([e.expires for e in record.holders]) - sample[0]) / 1e6)
    grant = record.grant(ticket)
    if grant is None:
        return Pushed(ticket)
    return Pushed(ticket, grant.place, grant.fence, sample[1] + (grant.expires - sample[0]) / 1e6 if sample else 0.0)


def _in_pool(body: str, ticket: str) -> Pushed | Ahead:
    from ..rules.pools.codec import decode_queue

    queue = decode_queue(body)
    for watcher in queue.watchers:
        if watcher.ticket == ticket:
            return Ahead(0, watcher.key)
    ahead = queue.standing(ticket)
    return Pushed(ticket) if ahead is None else Ahead(ahead, "")


def pool_of(queue_key: str) -> str:
    """Return the pool whose queue is kept under this key; the inverse of keys.queue_key."""
    namespace, _, name = queue_key.rpartition(SEPARATOR)
    return namespace + name


def told(ticket: str, found: Ahead, due: float) -> Pushed | Ahead:
    """Return the state of the first in the queue: it waits for `due` seconds more, or is to ask the store now."""
    return found._replace(due=due) if due > 0 else Pushed(ticket)


class Naps:
    """The pauses of the waiters of this client, each of which can be ended early."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._events: dict[str, Event] = {}
        self._called: set[str] = set()  # those that were woken and have not noticed yet
        self.clock = runtime.clock

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
        event = self._events[ticket] = self._runtime.event()
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
    """Look until there is a wake-up to return, for at most `timeout` seconds. `look` gets the greatest age of the row
    that it may use. `first`: the shortest pause, `longest`: the longest of the first in the queue, `behind`: that of
    all others. A look that fails is ignored: the next request to the store shows whether it is gone."""
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
        except (OutcomeUnknown, StoreError):
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
