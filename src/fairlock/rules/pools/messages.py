"""The commands to a pool, and its replies. Durations are in whole microseconds; bodies are JSON.

The first group is about one item (`step.apply`); the second is about the whole pool, and a backend carries out each in
one step (`step.step`). Replies carry durations, never times of another machine's clock. A reply without any other field
contains its own name, because two empty tuples would be equal.
"""

from typing import NamedTuple

from .state import ItemState

# -- about one item


class Add(NamedTuple):
    body: str = "null"
    nth: int = 0  # the number of the item among those added in one step: they are due in this order


class Take(NamedTuple):
    """Take the item. Repeated with the same ticket it is the same take: that is the cure for a lost reply."""

    ticket: str
    lease: int
    owner: str = ""
    note: str = ""
    window: int = 0  # granted to a waiting worker: only this long, until the worker itself sends Take


class Touch(NamedTuple):
    """Keep the item. With a body: and store it. With a lease: from now on at least this long; it never becomes shorter,
    so a late message cuts nothing."""

    ticket: str
    fence: int
    body: str | None = None
    lease: int | None = None


class Give(NamedTuple):
    """Give the item back unfinished. `after`: no worker gets it before that."""

    ticket: str
    fence: int
    after: int = 0
    body: str | None = None


class Finish(NamedTuple):
    ticket: str
    fence: int
    body: str | None = None


class Remove(NamedTuple):
    """Remove the item. A taken item: only by its holder, or by force."""

    ticket: str = ""
    fence: int = 0
    force: bool = False


class Look(NamedTuple):
    pass


Command = Add | Take | Touch | Give | Finish | Remove | Look


class Added(NamedTuple):
    new: int = 1  # how many of the items are new


class Exists(NamedTuple):
    name: str = "exists"


class Taken(NamedTuple):
    fence: int
    left: int
    body: str
    key: str = ""  # only in the reply to a request for any item


class Busy(NamedTuple):
    due_in: int  # never 0


class Finished(NamedTuple):
    name: str = "finished"


class Absent(NamedTuple):
    name: str = "absent"


class Touched(NamedTuple):
    left: int


class Given(NamedTuple):
    name: str = "given"


class Lost(NamedTuple):
    name: str = "lost"


class Removed(NamedTuple):
    there: bool  # whether the item existed


class Looked(NamedTuple):
    item: ItemState | None


Reply = Added | Exists | Taken | Busy | Finished | Absent | Touched | Given | Lost | Removed | Looked


# -- about the pool


class Put(NamedTuple):
    """Add these, in this order: (key, body)."""

    rows: tuple[tuple[str, str], ...]
    first: int = 0  # how many the same call has added before: these are due after them


class On(NamedTuple):
    """A command for the item with this key."""

    key: str
    command: Touch | Give | Finish | Remove | Look


class Seek(NamedTuple):
    """Ask for an item: any that is due, or the one with this key. Repeated it is a poll and a confirmation."""

    ticket: str
    lease: int
    wait: bool = True
    listener: str = ""
    owner: str = ""
    note: str = ""
    key: str = ""
    again: bool = False  # repeated: there may be an item with this ticket already


class Quit(NamedTuple):
    """Leave the queue, and give back an item that was granted in the meantime."""

    ticket: str
    lease: int  # the same as in Seek: an item that was just taken is found by it
    key: str = ""


Order = Put | On | Seek | Quit


class Queued(NamedTuple):
    ahead: int
    place: int
    retry_in: int  # the time until an item is due; never 0


class Nothing(NamedTuple):
    """No item is due, or another worker is before this one."""

    name: str = "nothing"


class Revoked(NamedTuple):
    name: str = "gone"


Answered = Reply | Queued | Nothing | Revoked
