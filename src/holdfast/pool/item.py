"""What a pool keeps: its items, each for itself, and one line of workers who wait for any of them.

An item's *score* is when it is due: in whole microseconds of the store's clock. So one index tells everything: what can
be had now (0 to now, lowest first), what comes next, what is done (below zero). Named tuples, as for the doorman.
"""

from typing import NamedTuple

WINDOW = 2_000_000
"""How long an item stays with somebody from the line to whom it was handed, before he is heard."""

DONE = -1
"""The score of an item that is finished: no search for something due ever finds it."""

AGO = 10**15
"""New items are due since 32 years ago, in the order of their coming: before everything that was ever taken."""

FREE, RESTING, TAKEN, EXPIRED, FINISHED = STATES = ("free", "resting", "taken", "expired", "done")


DAMAGED = "damaged"
"""The state of an item that cannot be read, and so is neither given to anybody nor counted."""
BROKEN = -(2**62)
"""Its score, when a pool is listed."""


class Item(NamedTuple):
    key: str
    score: int  # when it is due; DONE
    fence: int = 0  # of the last take; 0 = never taken
    ticket: str = ""  # whose it is; '' = nobody's
    lease: int = 0  # taken: how long it lasts without a word; resting: how long it was to rest
    owner: str = ""
    note: str = ""
    body: str = "null"  # JSON

    def state(self, now: int) -> str:
        """One of STATES."""
        if self.score < 0:
            return FINISHED if self.score != BROKEN else DAMAGED
        if self.score > now:
            return TAKEN if self.ticket else RESTING
        return EXPIRED if self.ticket else FREE


class Worker(NamedTuple):
    """One who waits for any item; or, with a key, for that one, and then he stands beside the line."""

    ticket: str
    lease: int
    ear: str  # where his client listens; '' = he has to look
    owner: str
    note: str
    place: int  # running number, in the order of coming
    since: int
    patience: int  # how long his place lasts without a word from him
    expires: int
    key: str = ""


class Line(NamedTuple):
    places: int = 0  # the last number given out
    seen: int = 0  # the time of the last step
    workers: tuple[Worker, ...] = ()  # who wait for any item, first come first
    watchers: tuple[Worker, ...] = ()  # who wait for a named one

    def standing(self, ticket: str) -> int | None:
        """How many stand before this ticket; None if it is not in the line."""
        return next((i for i, w in enumerate(self.workers) if w.ticket == ticket), None)


class Hint(NamedTuple):
    """For somebody who waits: look again. Names no grant, so it may be lost, late or forged."""

    ear: str
    ticket: str


NOBODY = Line()
