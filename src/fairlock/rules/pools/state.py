"""The state of a pool: its items, each for itself, and one queue of workers that wait for any of them.

The *score* of an item is the time at which it is due, in whole microseconds of the store's clock. So one index finds
everything: the free items (0 to now, lowest first), the next one, the finished ones (below zero). Named tuples, as for
locks.
"""

from collections.abc import Iterable
from typing import NamedTuple

CONFIRM_WINDOW = 2_000_000
"""How long an item that was granted to a waiting worker stays with it until the worker confirms it."""

DONE = -1
"""The score of a finished item: no search for due items finds it."""

AGO = 10**15
"""New items have been due for 32 years, in the order of adding: before all items that were ever taken."""

FREE, RESTING, TAKEN, EXPIRED, FINISHED = STATES = ("free", "resting", "taken", "expired", "done")


DAMAGED = "damaged"
"""The state of an item that cannot be read. It is neither granted nor counted."""
BROKEN = -(2**62)
"""The score of a damaged item in the list of a pool."""


class ItemState(NamedTuple):
    key: str
    score: int  # when it is due; DONE
    fence: int = 0  # of the last take; 0 = never taken
    ticket: str = ""  # of its holder; '' = none
    lease: int = 0  # taken: its lease; resting: the length of the rest
    owner: str = ""
    note: str = ""
    body: str = "null"  # JSON

    def state(self, now: int) -> str:
        """Return one of STATES."""
        if self.score < 0:
            return FINISHED if self.score != BROKEN else DAMAGED
        if self.score > now:
            return TAKEN if self.ticket else RESTING
        return EXPIRED if self.ticket else FREE


def count_states(items: Iterable[ItemState], now: int) -> dict[str, int]:
    """Return how many of these items are in each state, without the damaged ones."""
    states = [item.state(now) for item in items]
    return {state: states.count(state) for state in STATES}


class Worker(NamedTuple):
    """A worker that waits for any item; with a key: for that item, as a watcher beside the queue."""

    ticket: str
    lease: int
    listener: str  # where its client listens; '' = it has to poll
    owner: str
    note: str
    place: int  # running number, in the order of arrival
    since: int
    poll_ttl: int  # how long its place lasts without a poll
    expires: int
    key: str = ""


class WorkerQueue(NamedTuple):
    places: int = 0  # the last number given out
    seen: int = 0  # the time of the last step
    workers: tuple[Worker, ...] = ()  # waiting for any item, in the order of arrival
    watchers: tuple[Worker, ...] = ()  # waiting for a named item

    def standing(self, ticket: str) -> int | None:
        """Return how many workers are before this ticket; None if it is not in the queue."""
        return next((i for i, w in enumerate(self.workers) if w.ticket == ticket), None)


NOBODY = WorkerQueue()
