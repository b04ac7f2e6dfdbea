"""A throttle for threads: at most that many starts in any window of time, over all machines (throttle_base.py)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ..engine.decorator_names import CallNames
from ..engine.run_sync import run
from ..engine.validate import OWN, Seconds
from ..sync import Locks
from .throttle_base import ThrottleBase

P = ParamSpec("P")
R = TypeVar("R")


class Throttle(ThrottleBase[Locks]):
    """At most `limit` starts in any window of `per` seconds, first come, first served. Also a decorator.

        calls = locks.throttle("partner-api", 10, per=1)
        calls.wait()
        ...

    """

    def wait(self, weight: int = 1, *, timeout: Seconds | None = OWN) -> bool:
        """Wait until the caller may start. Return False if that is not within the timeout; 0 = only try.

        weight: this start counts as that many. StoreError if the store cannot be reached: do not start.
        """
        return run(self._wait(weight, timeout))

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function: each call waits until it may start. LockTimeout if that is not within the timeout."""
        CallNames(function, blocking=True)  # or ConfigError

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            run(self._wait_or_raise(1))
            return function(*args, **kwargs)

        return wrapper


throttle = Throttle
