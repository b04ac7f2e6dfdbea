"""The state of one lock: its holders, its queue, and the tickets that may not come back.

Everything is a named tuple: cheap to make, impossible to change by accident, and equal when equal. Times are whole
microseconds of the store's clock; durations are whole microseconds, too.
"""

from typing import NamedTuple

EXCLUSIVE = 2**31 - 1
"""The capacity of a lock. A lock and a writer weigh all of it, a reader weighs 1."""

CONFIRM_WINDOW = 2_000_000
"""How long a grant to a waiter lasts until that waiter confirms it. After that the next one gets a turn."""

CLOSED = "kept closed"
"""Shown to people as the owner of a grant that has no holder any more."""

WAITED_FOR = "waited for"
"""Shown to people as the owner of a lock that has no holder, but waiters."""

ASKED = "asked"
"""The kind of a tombstone that is none yet: the holder with this ticket is asked to release. See step.py."""

FOREVER = 9_000_000_000_000_000
"""The end of what does not end by time."""

# Whether a waiter was passed over (`Entry.passed`).
FRESH = 0  # never passed over
PASSED = 1  # was passed over because its client did not listen
SILENT = 2  # did not confirm its grant in time: passed over until it polls
POLLED = 3  # polled after being passed over: never passed over as unreachable again


class Why(NamedTuple):
    """The reason why a ticket may not come back. `kind` is left, evicted or dead; an eviction has `by`, `reason`.

    Of kind asked, with `by` and `reason`: the ticket holds the lock, and is asked to release it."""

    kind: str
    by: str = ""
    reason: str = ""


class Entry(NamedTuple):
    ticket: str
    weight: int
    lease: int  # how long a grant lasts without a renewal
    poll_ttl: int  # waiter: how long its place lasts without a poll; unconfirmed holder: the rest of that
    block: int  # how many fences a grant reserves, to pass it on inside one process
    listener: str  # where the client listens; '' = it has no process
    owner: str  # '' and no listener: it has no holder any more and only stays closed until it expires
    note: str
    place: int  # running number, a new one for each time in the queue; 0 = never queued
    since: int  # holder: when granted; waiter: when queued
    expires: int  # holder: end of the lease (unconfirmed: of the window); waiter: end of the poll_ttl
    fence: int = 0  # first of the block; 0 while waiting
    confirmed: bool = False  # the holder has sent something since the grant
    passed: int = FRESH


class Tombstone(NamedTuple):
    """A ticket that may not come back, so that one of its own delayed messages cannot acquire the lock again."""

    ticket: str
    until: int
    span: int
    why: Why


class LockState(NamedTuple):
    capacity: int = 0  # 0 = no client has given one
    fixed: bool = False  # set by Resize: counts when idle, too, whatever number an Acquire gives
    fence: int = 0  # the last number given out
    places: int = 0  # the last place number given out
    seen: int = 0  # the time of the last step
    holders: tuple[Entry, ...] = ()
    queue: tuple[Entry, ...] = ()  # in a state that was decoded the waiters are text until something looks at them
    tombstones: tuple[Tombstone, ...] = ()

    def grant(self, ticket: str) -> Entry | None:
        """Return the holder with this ticket, or None."""
        for e in self.holders:
            if e.ticket == ticket:
                return e
        return None

    def is_idle(self, now: int, age: int) -> bool:
        """Return True if it was not used for this long, so that its row may be deleted.

        The next fence comes from the clock, and is greater. A number that was set by Resize is kept.
        """
        unused = not self.holders and not self.queue and not self.fixed
        return unused and max(self.seen, self.fence) < now - age and all(g.until < now for g in self.tombstones)

    def standing(self, ticket: str) -> int | None:
        """Return how many waiters are before this ticket in the queue; None if it is not in the queue."""
        return next((i for i, e in enumerate(self.queue) if e.ticket == ticket), None)


EMPTY = LockState()
