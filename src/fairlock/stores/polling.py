"""Waiting at stores without notifications: pause, read, pause again. It only reads; the engine keeps the place.

The pause begins with a few milliseconds for the first in the queue and is longer for those behind: as long as the queue
took to move on by as many places. It doubles while nothing changes and begins again when something does. It is never
shorter than a read takes, so a busy store is not made busier. A row that shows the waiter as a holder is better than a
wake-up that names the grant: it was read after the write that made it, and contains its end. Waiters of one client at
the same row share what one of them has read.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from ..errors import StoreError
from ..rules.locks import LockState
from .base import OutcomeUnknown, Pushed, Runtime
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


def wait_until_due(ticket: str, found: Ahead, due: float) -> Pushed | Ahead:
    """Return the state of the first in the queue: it waits for `due` seconds more, or is to ask the store now."""
    return found._replace(due=due) if due > 0 else Pushed(ticket)


async def poll(
    inbox: WakeupInbox,
    runtime: Runtime,
    ticket: str,
    timeout: float,
    look: Callable[[float], Awaitable[Pushed | Ahead | None]],
    first: float,
    longest: float = LONGEST,
    behind: float = LONGEST,
) -> Pushed | None:
    """Poll until there is a wake-up to return, for at most `timeout` seconds; one in the inbox ends it early.

    `look` gets the greatest age of the row that it may use. `first`: the shortest pause, `longest`: the longest of the
    first in the queue, `behind`: that of all others. A poll that fails is ignored: the next request to the store shows
    whether it is gone. A row that cannot be decoded ends it: the next request raises that."""
    clock = runtime.clock
    end = clock() + timeout
    pause, found, took = first, Ahead(0), 0.0
    pace, looked = first, clock()  # seconds for each place by which the queue moves on; the last look that showed that
    while (left := end - clock()) > 0:
        nap = max(pause, took) * (0.75 + jitter() / 2)  # not all at the same instant
        if await inbox.wait(ticket, runtime.event(), min(nap, left, found.due)) is not None:
            return Pushed(ticket)
        before, begun = found.number, clock()
        try:
            seen = await look(pause / 2)
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
