"""The commands to a lock, and its replies. Durations are in whole microseconds.

Replies carry durations, never times of another machine's clock.
"""

from typing import NamedTuple

from .state import Why


class Acquire(NamedTuple):
    """Ask for the lock. Repeated it is a poll, a heartbeat and a confirmation: the ticket shows that it is the same."""

    ticket: str
    capacity: int  # 0 = as stored
    weight: int
    lease: int
    wait: bool = True
    fair: bool = True
    block: int = 1
    listener: str = ""
    owner: str = ""
    note: str = ""


class Renew(NamedTuple):
    """Keep the grant. With a weight: from now on only this much of it. With a lease: from now on at least this long; it
    never becomes shorter, so a late renewal cuts nothing."""

    ticket: str
    fence: int | None = None
    weight: int | None = None
    lease: int | None = None


class Release(NamedTuple):
    """Give up the grant or the place in the queue. `leave_tombstone`: an Acquire with this ticket may be under way and
    must find a tombstone. With a lease: only if the lease is not longer than this, because another client has
    extended it."""

    ticket: str
    leave_tombstone: bool = False
    fence: int | None = None
    lease: int | None = None


class Detach(NamedTuple):
    """Keep the grant for this long without a process. `closed`: it has no holder and the lock only stays closed, for
    this long since it was granted."""

    ticket: str
    fence: int | None
    lease: int
    closed: bool = False


class Evict(NamedTuple):
    """Renew this ticket no more (None: no holder). `at_once`: end the grant now."""

    ticket: str | None
    by: str
    reason: str
    at_once: bool = False


class Ask(NamedTuple):
    """Ask the holder with this ticket to release. Its grant stays; every Granted to it names the operator and the
    reason."""

    ticket: str
    by: str
    reason: str


class Resize(NamedTuple):
    """Set the capacity, whatever number an Acquire gives. None: the number in Acquire counts again."""

    capacity: int | None


Command = Acquire | Renew | Release | Detach | Evict | Ask | Resize


class Granted(NamedTuple):
    fence: int  # the first of the block
    left: int
    asked: Why | None = None  # its holder is asked to release it


class Queued(NamedTuple):
    ahead: int
    place: int
    retry_in: int  # the time until those directly ahead expire; never 0


class Refused(NamedTuple):
    pass


class Released(NamedTuple):
    held: bool


class NotHolder(NamedTuple):
    why: Why | None


class Revoked(NamedTuple):
    why: Why


class Mismatch(NamedTuple):
    capacity: int  # the one that counts: of the state, or of the newcomer if the lock is idle; 0 = neither gives one


class Done(NamedTuple):
    tickets: tuple[str, ...]


Reply = Granted | Queued | Refused | Released | NotHolder | Revoked | Mismatch | Done
