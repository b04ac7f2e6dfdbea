"""Once per tick, for tasks: one execution per hour (or day, or minute) over all machines
(once_per_tick_base.py)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from ...aio import Item, Locks
from ...engine.decorator_names import CallNames
from ..await_if_needed import AsyncWithBlock
from ..once_per_tick_base import OnceBase

P = ParamSpec("P")
R = TypeVar("R")


class Once(OnceBase[Locks], AsyncWithBlock[Item | None]):
    """One execution per tick of the store's clock. A decorator and a context manager.

        @locks.once("report", every=3600)
        async def report(): ...

        async with locks.once("report", every=3600) as run:
            if run:
                ...

    The same as `fairlock.recipes.Once`, with a client of fairlock.aio. A loss cancels the body.
    """

    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]]
    ) -> Callable[P, Coroutine[Any, Any, R | None]]:
        """Decorate a function: a call executes it if this tick was not executed, else it returns None."""
        CallNames(function, blocking=False)  # or ConfigError

        @functools.wraps(function)
        async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R | None:
            async with self as turn:
                return await function(*args, **kwargs) if turn else None

        return wrapper


once = Once
