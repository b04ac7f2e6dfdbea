"""What a doorman keeps about one resource: who is inside, who stands in line, who may not come back.

Everything is a named tuple: cheap to make, impossible to change by accident, and equal when equal. Times are whole
microseconds of the store's clock, spans are whole microseconds too.
"""

from typing import NamedTuple

ALL = 2**31 - 1
"""The capacity of a lock. A lock and a writer weigh all of it, a reader weighs 1."""

WINDOW = 2_000_000
"""How long somebody admitted from the line may stay unseen before the next one gets a turn."""

CLOSED = "kept closed"
"""For people, in the place of the owner of a seat that nobody has any more."""

# How somebody in line stands with regard to being passed over (`Entrant.passed`).
FRESH = 0  # never passed over
PASSED = 1  # was passed over because nobody listened for it
SILENT = 2  # had its turn and let it run out: passed over until it polls
HEARD = 3  # polled after being passed over: never passed over as deaf again


class Why(NamedTuple):
    """Why a ticket may not come back: kind is `left`, `evicted` or `dead`; by and reason come from the evictor."""

    kind: str
    by: str = ""
    reason: str = ""


class Entrant(NamedTuple):
    ticket: str
    weight: int
    lease: int  # how long a seat lasts without a word from its holder
    patience: int  # in line: how long a place lasts without a poll; inside and unsure: what was left of that
    block: int  # how many fences a grant reserves, for passing on inside one process
    ear: str  # where the client listens; '' = no process behind it
    owner: str  # '' without an ear: nobody has it any more, it only stays closed until it expires
    note: str
    place: int  # running number, new with every time of joining the line; 0 = never stood in it
    since: int  # inside: when admitted; in line: when joined
    expires: int  # inside: end of the lease (or of the window while unsure); in line: end of the patience
    fence: int = 0  # first of the block; 0 while in line
    sure: bool = False  # the holder has been heard since it was admitted
    passed: int = FRESH


class Grave(NamedTuple):
    """A ticket that may not come back, so that a delayed message of its own cannot put a ghost inside."""

    ticket: str
    until: int
    span: int
    why: Why


class Record(NamedTuple):
    capacity: int = 0  # 0 = never said
    fixed: bool = False  # set by Resize: holds when idle, too, and against any number in an Enter
    fence: int = 0  # the last number given out
    places: int = 0  # the last place number given out
    seen: int = 0  # the time of the last step
    inside: tuple[Entrant, ...] = ()
    line: tuple[Entrant, ...] = ()
    graves: tuple[Grave, ...] = ()

    def seat(self, ticket: str) -> Entrant | None:
        """Who is inside under this ticket."""
        return next((e for e in self.inside if e.ticket == ticket), None)

    def standing(self, ticket: str) -> int | None:
        """How many stand in line before this ticket; None if it is not in line."""
        return next((i for i, e in enumerate(self.line) if e.ticket == ticket), None)


class Wake(NamedTuple):
    """A hint for somebody to look again. One with a fence names a grant made in this very step."""

    ear: str
    ticket: str
    place: int = 0
    fence: int = 0


EMPTY = Record()
