"""How waiters poll at stores without notifications: pause, read, pause again. This only reads; the engine keeps places.

The pause begins with a few milliseconds for the first in the queue and is longer for those behind: as long as the queue
took to move on by as many places. It doubles while nothing changes and begins again when something does. It is never
shorter than a read takes, so a busy store is not made busier. A row that shows the waiter as a holder is better than a
wake-up that names the grant: it was read after the write that made it, and contains its end. Waiters of one client at
the same row share what one of them has read.
"""

from collections.abc import Collection
from functools import partial
from typing import Any, NamedTuple

from ..errors import StoreError
from ..rules.locks import LockState
from .base import OutcomeUnknown, Pushed, RowSnapshot, Runtime, Store
from .jitter import jitter
from .keys import SEPARATOR
from .row_cache import KnownRow
from .wakeups import WakeupInbox

LONGEST = 1.0  # seconds
EARLY = 0.75  # of the time that the queue needs to move on: a waiter that looks too late keeps a slot idle
SLOWEST = 4  # times the shortest pause: a queue that moves more slowly than that is looked at no less often
LONGEST_FOR_ITEMS = 0.15  # for the next in the queue for an item: nothing notifies it that one was given back


class Ahead(NamedTuple):
    """Still in the queue, with `number` ahead. `wants`: the item that it waits for, '' for any; None for a lock. `due`:
    the seconds until there may be something for it: an item is due, a grant ends."""

    number: int
    wants: str | None = None
    due: float = LONGEST


def standing(known: KnownRow, ticket: str) -> Pushed | Ahead:
    """Return the standing of this ticket in a row of a lock, or in the queue of a pool."""
    state = known.state
    if not isinstance(state, LockState):
        if any(watcher.ticket == ticket for watcher in state.watchers):
            return Ahead(0, next(watcher.key for watcher in state.watchers if watcher.ticket == ticket))
        ahead = state.standing(ticket)
        return Pushed(ticket) if ahead is None else Ahead(ahead, "")
    ahead = state.standing(ticket)
    if ahead is not None:
        found = Ahead(ahead)
        if ahead or not known.now or not state.holders:
            return found
        return wait_until_due(ticket, found, (min([e.expires for e in state.holders]) - known.now) / 1e6)
    grant = state.grant(ticket)
    if grant is None:
        return Pushed(ticket)
    until = known.at + (grant.expires - known.now) / 1e6 if known.now else 0.0
    return Pushed(ticket, grant.place, grant.fence, until)


def pool_for_queue(queue_key: str) -> str:
    """Return the pool whose queue is kept under this key; the inverse of keys.queue_key."""
    namespace, _, name = queue_key.rpartition(SEPARATOR)
    return namespace + name


class PollingStore(Store):
    """What stores share whose waiters poll, always or as long as no wake-up can reach them."""

    first_pause = 0.01
    """Seconds: the shortest pause between two reads of the store."""
    longest_pauses = LONGEST, LONGEST
    """Seconds: of the first in the queue, and of all others."""

    def __init__(self, where: str, runtime: Runtime, inbox: WakeupInbox | None = None) -> None:
        self.where = where
        self.runtime = runtime
        self._clock = runtime.clock
        self.inbox = WakeupInbox(runtime.mutex) if inbox is None else inbox
        # A row that shows our grant was read after the write that made it, and who grants a lock sends the wake-up
        # after that write. But such a grant has to be confirmed within a second or two, and an event loop may be
        # blocked for longer: then a thread must be able to do that (`open_blocking`).
        self.pushes_grants = runtime.blocking

    def client_clock(self) -> float:
        return self._clock()

    async def wait_for_wakeup(self, key: str, ticket: str, timeout: float, listeners: Collection[str]) -> Pushed | None:
        return await self.poll(key, ticket, timeout, self.inbox)

    async def poll(self, key: str, ticket: str, timeout: float, inbox: WakeupInbox) -> Pushed | None:
        """Poll until there is a wake-up to return, for at most `timeout` seconds; one in the inbox ends it early.

        A poll that fails is ignored: the next request to the store shows whether it is gone. A row that cannot be
        decoded ends it: the next request raises that."""
        clock = self.runtime.clock
        end = clock() + timeout
        first, (longest, behind) = self.first_pause, self.longest_pauses
        pause, found, took = first, Ahead(0), 0.0
        # Seconds for each place by which the queue moves on; and the last look that showed that it did.
        pace, looked = first, clock()
        while (left := end - clock()) > 0:
            nap = max(pause, took) * (0.75 + jitter() / 2)  # not all at the same instant
            if await inbox.wait(ticket, self.runtime.event(), min(nap, left, found.due)) is not None:
                return Pushed(ticket)
            before, begun = found.number, clock()
            try:
                seen = await self.look_for_grant(key, ticket, pause / 2)
                took = clock() - begun
            except (OutcomeUnknown, StoreError):
                pause, found = min(pause * 2, LONGEST), found._replace(due=LONGEST)
                continue
            except ValueError:
                return Pushed(ticket)
            if seen is None:
                continue
            if isinstance(seen, Pushed):
                return seen
            found = seen
            if found.number != before:
                if found.number < before:
                    pace = min(max((begun - looked) / (before - found.number), first), first * SLOWEST)
                looked = begun
            most = behind if found.number else longest if found.wants is None else min(longest, LONGEST_FOR_ITEMS)
            pause = min(pause * 2 if found.number == before else pace * found.number * EARLY + first, most)
        return None

    async def look_for_grant(self, key: str, ticket: str, age: float) -> Pushed | Ahead | None:
        """Read how this ticket stands, in a row of at most this age; None: another waiter is just reading it."""
        known = await self.row_cache.read(key, age, self._clock, partial(self.read_to_wait, key))
        if known is None:
            return None
        found = standing(known, ticket)
        if isinstance(found, Ahead) and found.wants is not None and not found.number:
            items: Any = self.items
            return wait_until_due(ticket, found, await items.due_in(pool_for_queue(key), found.wants))
        return found

    async def read_to_wait(self, key: str) -> RowSnapshot:
        """Read a row for `look_for_grant`; its time may be 0."""
        return await self.read(key)

    def wake_here(self, tickets: Collection[str]) -> None:
        self.inbox.wake_here(tickets)

    def forked(self) -> None:
        self.row_cache.clear()
        self.inbox.clear()


def wait_until_due(ticket: str, found: Ahead, due: float) -> Pushed | Ahead:
    """Return the state of the first in the queue: it waits for `due` seconds more, or is to ask the store now."""
    return found._replace(due=due) if due > 0 else Pushed(ticket)
