"""What can be said to a pool, and what it answers. Spans are in whole microseconds; bodies are JSON.

The first group is about one item and answered by `rules.apply`; the second is about the pool and answered by a backend,
each in one step (`counter.step` is how). Replies carry durations, never points in time of somebody else's clock.
A reply without anything to tell says its own name, for two empty tuples would be equal.
"""

from typing import NamedTuple

from .item import Item

# -- about one item


class Add(NamedTuple):
    body: str = "null"
    nth: int = 0  # of those added in one step: they are due in their order


class Take(NamedTuple):
    """It is mine from now on. Said again with the same ticket: it still is, and that is how a lost answer is cured."""

    ticket: str
    lease: int
    owner: str = ""
    note: str = ""
    window: int = 0  # handed to somebody who waits: only for so long, until he says Take himself


class Touch(NamedTuple):
    """I am still at it; with a body: and this is how far I am. With a lease: and it is at least so long from now on; it
    never becomes shorter, so a late one cuts nothing."""

    ticket: str
    fence: int
    body: str | None = None
    lease: int | None = None


class Give(NamedTuple):
    """I am not going to finish it. `after`: nobody is to have it before that."""

    ticket: str
    fence: int
    after: int = 0
    body: str | None = None


class Finish(NamedTuple):
    ticket: str
    fence: int
    body: str | None = None


class Remove(NamedTuple):
    """Away with it. An item that is taken: only by him who has it, or by force."""

    ticket: str = ""
    fence: int = 0
    force: bool = False


class Look(NamedTuple):
    pass


Command = Add | Take | Touch | Give | Finish | Remove | Look


class Added(NamedTuple):
    new: int = 1  # how many of them are new


class Exists(NamedTuple):
    said: str = "exists"


class Taken(NamedTuple):
    fence: int
    left: int
    body: str
    key: str = ""  # named only to somebody who asked for any


class Busy(NamedTuple):
    due_in: int  # never 0


class Finished(NamedTuple):
    said: str = "finished"


class Absent(NamedTuple):
    said: str = "absent"


class Touched(NamedTuple):
    left: int


class Given(NamedTuple):
    said: str = "given"


class Lost(NamedTuple):
    said: str = "lost"


class Removed(NamedTuple):
    there: bool  # whether there was something to remove


class Looked(NamedTuple):
    item: Item | None


Reply = Added | Exists | Taken | Busy | Finished | Absent | Touched | Given | Lost | Removed | Looked


# -- about the pool


class Put(NamedTuple):
    """Add these, in this order: (key, body)."""

    rows: tuple[tuple[str, str], ...]
    first: int = 0  # so many were added just before, by the same hand: these are due after them


class On(NamedTuple):
    """A command for the item with this key."""

    key: str
    command: Touch | Give | Finish | Remove | Look


class Seek(NamedTuple):
    """An item for me: any that is due, or the one with this key. Said again it is a poll, a heartbeat and a
    confirmation."""

    ticket: str
    lease: int
    wait: bool = True
    ear: str = ""
    owner: str = ""
    note: str = ""
    key: str = ""
    again: bool = False  # this was said before, so there may be something with this ticket already


class Quit(NamedTuple):
    """I no longer seek: out of the line, and what was given to me meanwhile goes back."""

    ticket: str
    lease: int  # as it was in Seek: what was taken so lately is found by it
    key: str = ""


Order = Put | On | Seek | Quit


class Waiting(NamedTuple):
    ahead: int
    place: int
    retry_in: int  # until something is due; never 0


class Nothing(NamedTuple):
    """Nothing is due, or somebody was here first."""

    said: str = "nothing"


class Gone(NamedTuple):
    said: str = "gone"


Answered = Reply | Waiting | Nothing | Gone
