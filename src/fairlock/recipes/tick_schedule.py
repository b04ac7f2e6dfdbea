"""Ticks of the store's clock: a number of seconds each, counted from 1970, or by a cron expression in UTC. Pure."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from ..engine import validate
from ..engine.validate import Seconds
from ..errors import ConfigError


class Tick(NamedTuple):
    """One tick, in microseconds of the store's clock."""

    start: int
    end: int
    """The start of the next one."""


class Ticks:
    """Which tick a time belongs to. ConfigError if there is neither `every` nor `cron`, or both."""

    def __init__(self, every: Seconds | None, cron: Any) -> None:
        if (every is None) == (cron is None):
            raise ConfigError("once() needs every=3600 (seconds or a timedelta), or cron='0 3 * * *'; one of them.")
        self._every = 0 if every is None else round(validate.seconds(every, "every") * 1e6)
        self._cron = cron
        if cron is not None:
            if not isinstance(cron, str) or not _croniter().is_valid(cron):
                raise ConfigError(f"cron is an expression such as '0 3 * * *', not {validate.shown(cron)}.")
            if any(field[0] in "rR" for field in cron.split()):  # croniter draws it again in each process
                raise ConfigError(f"cron={cron!r} has a random field, and all processes need the same ticks.")
            self.at(int(time.time() * 1e6))  # so that one without a tick is refused here
        elif self._every < 1:
            raise ConfigError("every is at least a millionth of a second.")

    def at(self, now: int) -> Tick:
        """Return the tick of this time."""
        if self._cron is None:
            start = now // self._every * self._every
            return Tick(start, start + self._every)
        second = now // 1_000_000
        croniter = _croniter()
        try:
            start = int(croniter(self._cron, second + 1).get_prev(float))  # a number of seconds is read as UTC
            end = int(croniter(self._cron, second).get_next(float))
        except ValueError:  # the 30th of February, a year that is over
            raise ConfigError(f"cron={self._cron!r} names no time, or none that comes again.") from None
        return Tick(start * 1_000_000, end * 1_000_000)


def _croniter() -> Any:
    try:
        from croniter import croniter
    except ImportError:
        raise ConfigError("cron= needs croniter: pip install 'fairlock[cron]'.") from None
    return croniter
