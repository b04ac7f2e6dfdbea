"""What can be said to a doorman, and what it answers. Spans are in whole microseconds.

Replies carry durations, never points in time of somebody else's clock.
"""

from typing import NamedTuple

from .record import Record, Why


class Enter(NamedTuple):
    """Let me in. Sent again it is a poll, a heartbeat and a confirmation: the ticket says that it is the same wish."""

    ticket: str
    capacity: int  # 0 = as stored
    weight: int
    lease: int
    wait: bool = True
    fair: bool = True
    block: int = 1
    ear: str = ""
    owner: str = ""
    note: str = ""


class Renew(NamedTuple):
    """I am still here. With a weight: and I need only that much of it from now on. With a lease: and it is at least so
    long from now on; it never becomes shorter, so a late one cuts nothing."""

    ticket: str
    fence: int | None = None
    weight: int | None = None
    lease: int | None = None


class Leave(NamedTuple):
    """I am going, or no longer want to come. `bury`: one of my Enters may still be under way; let it find a grave.
    With a lease: unless the lease is longer than that, because another client has extended it in the meantime."""

    ticket: str
    bury: bool = False
    fence: int | None = None
    lease: int | None = None


class Keep(NamedTuple):
    """Keep my seat for this long without a process behind it. `closed`: nobody has it, it only stays closed."""

    ticket: str
    fence: int | None
    lease: int
    closed: bool = False


class Evict(NamedTuple):
    """No more renewals for this one (None: for all inside); at_once: out now."""

    ticket: str | None
    by: str
    reason: str
    at_once: bool = False


class Resize(NamedTuple):
    """This capacity from now on, whatever number an Enter brings. None: the programs' own number counts again."""

    capacity: int | None


class Look(NamedTuple):
    pass


Command = Enter | Renew | Leave | Keep | Evict | Resize | Look


class Admitted(NamedTuple):
    fence: int  # the first of the block
    left: int


class Waiting(NamedTuple):
    ahead: int
    place: int
    retry_in: int  # until those directly ahead expire; never 0


class Refused(NamedTuple):
    pass


class Left(NamedTuple):
    held: bool


class NotInside(NamedTuple):
    why: Why | None


class Gone(NamedTuple):
    why: Why


class Mismatch(NamedTuple):
    capacity: int  # the one that counts: the record's, or the comer's if nobody is there; 0 = neither says any


class Done(NamedTuple):
    tickets: tuple[str, ...]


class Looked(NamedTuple):
    record: Record


Reply = Admitted | Waiting | Refused | Left | NotInside | Gone | Mismatch | Done | Looked
