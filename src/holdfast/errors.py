"""Every exception that holdfast raises on purpose. Each takes one string, a sentence, and can be pickled."""

from typing import Literal

LossReason = Literal["expired", "evicted", "unreachable", "max_hold", "forked", "store_reset"]


class LockError(Exception):
    """The base of them all."""


class LockTimeout(LockError, TimeoutError):
    """The wait was over before it was your turn."""

    name: str = ""
    holders: tuple[str, ...] = ()
    """Who was inside when the wait ended."""
    place: int | None = None
    """How many stood before you in line, plus one; None if you did not stand in line."""
    waited: float = 0.0


class LeaseLost(LockError):
    """You no longer hold it, and somebody else may."""

    reason: LossReason = "expired"


class NotHeld(LockError, RuntimeError):
    """Released what is not held here."""


class AlreadyHeld(LockError, RuntimeError):
    """Waiting would never end: this thread or task holds it itself."""


class BackendError(LockError, ConnectionError):
    """The store did not answer, or refused."""

    refused: bool = False
    """True if the store answered and said no (rights), so that trying again is of no use."""


class RecordDamaged(BackendError):
    """What the store keeps under one name cannot be read. Other names are not affected.

    Nobody can acquire this one until an operator resets it: `holdfast doctor --repair NAME`, or `Locks.repair(name)`.
    """

    refused = True
    name: str = ""


class ConfigError(LockError, ValueError):
    """What was asked for makes no sense, or does not fit what is stored."""

    _in_a_shell = ""  # the sentence with the cure for a user of the command-line tool, where that is another one
