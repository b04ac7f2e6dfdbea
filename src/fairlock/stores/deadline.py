"""How long the caller still waits. A store that does not reply must not make it wait for longer.

The faces set it around every call that has a timeout; what waits for a server reads it: the connections to Redis, and
the code that decides whether a request is sent once more. It belongs to the thread or task that waits, so it is no
argument of any call.

A reply that comes a moment after the timeout is still used: with it nothing is in doubt.
"""

from __future__ import annotations

from contextvars import ContextVar
from math import inf
from time import monotonic

GRACE = 0.7  # seconds by which a reply may be later than the timeout
_until: ContextVar[float] = ContextVar("fairlock_until", default=inf)


def begin(limit: float, grace: float = GRACE) -> float:
    """Limit all that this thread or task asks for, until `end`, to this many seconds.

    Return what applied before, for an `end` inside of something longer.
    """
    before = _until.get()
    _until.set(monotonic() + limit + grace)
    return before


def end(before: float = inf) -> None:
    _until.set(before)


def without_end() -> None:
    """Remove the limit in a new task, which inherits that of the task that started it."""
    _until.set(inf)


def left(most: float) -> float:
    """Return the seconds for which a reply may be waited for, at most this many. Zero or less: none."""
    return min(most, _until.get() - monotonic())


def limit(most: float) -> float:
    """Return the same for a driver: never zero, which would mean no limit."""
    return max(left(most), 0.001)


def over() -> bool:
    return monotonic() >= _until.get()
