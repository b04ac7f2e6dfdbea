"""The exceptions that fairlock raises. Each takes one string, a sentence, and can be pickled."""

from typing import Literal

LossReason = Literal["expired", "evicted", "unreachable", "max_hold", "forked", "store_reset"]


class LockError(Exception):
    """The base class of all errors of fairlock."""


class LockTimeout(LockError, TimeoutError):
    """The lock was not acquired within the timeout."""

    name: str = ""
    holders: tuple[str, ...] = ()
    """The owners of the holders when the wait ended."""
    place: int | None = None
    """The position in the queue, from 1; None if the request was not in the queue."""
    waited: float = 0.0
    deadlock: str = ""
    """The holders that waited for each other, this one among them, as a sentence; '' if none was found."""


class LeaseLost(LockError):
    """The lease has ended; another client may hold the lock."""

    reason: LossReason = "expired"


class NotHeld(LockError, RuntimeError):
    """A release or another call for a lock that is not held."""


class AlreadyHeld(LockError, RuntimeError):
    """The wait would never end: this thread or task holds the lock itself."""


class StoreError(LockError, ConnectionError):
    """The store did not reply, or it refused the request."""

    refused: bool = False
    """True if the store refused the request (missing rights): a retry does not help."""


def refused(sentence: str) -> StoreError:
    """Return the error for a request that the store refuses, so that a retry does not help."""
    error = StoreError(sentence)
    error.refused = True
    return error


class RecordDamaged(StoreError):
    """The stored state of one name cannot be read. Other names are not affected.

    This name cannot be acquired until an operator resets it: `fairlock doctor --repair NAME`, or `Locks.repair(name)`.
    """

    refused = True
    name: str = ""


class ConfigError(LockError, ValueError):
    """The arguments are invalid, or do not fit the stored state."""

    _in_a_shell = ""  # the sentence with the cure for a user of the command-line tool, where that is another one
