"""A throttle for tasks: at most that many starts in any window of time, over all machines (throttle_base.py)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from ...aio import Locks
from ...engine.decorator_names import CallNames
from ...engine.validate import OWN, Seconds
from ..throttle_base import ThrottleBase

P = ParamSpec("P")
R = TypeVar("R")


class Throttle(ThrottleBase[Locks]):
    """At most `limit` starts in any window of `per` seconds, first come, first served. Also a decorator.

        calls = locks.throttle("partner-api", 10, per=1)
        await calls.wait()
        ...

    The same as `fairlock.recipes.Throttle`, with a client of fairlock.aio.
    """

    async def wait(self, weight: int = 1, *, timeout: Seconds | None = OWN) -> bool:
        """Wait until the caller may start. Return False if that is not within the timeout; 0 = only try.

        weight: this start counts as that many. StoreError if the store cannot be reached: do not start.
        """
        return await self._wait(weight, timeout)

    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
        """Decorate a function: each call waits until it may start. LockTimeout if that is not within the timeout."""
        CallNames(function, blocking=False)  # or ConfigError

        @functools.wraps(function)
        async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            await self._wait_or_raise(1)
            return await function(*args, **kwargs)

        return wrapper


throttle = Throttle
