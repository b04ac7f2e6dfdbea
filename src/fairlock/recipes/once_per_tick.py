"""Once per tick, for threads: one execution per hour (or day, or minute) over all machines
(once_per_tick_base.py)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ..engine.decorator_names import CallNames
from ..sync import Locks
from ..sync.pool import Item
from .await_if_needed import WithBlock
from .once_per_tick_base import OnceBase

P = ParamSpec("P")
R = TypeVar("R")


class Once(OnceBase[Locks], WithBlock[Item | None]):
    """One execution per tick of the store's clock. A decorator and a context manager.

        @locks.once("report", every=3600)
        def report(): ...

        with locks.once("report", every=3600) as run:
            if run:
                ...

    """

    def __call__(self, function: Callable[P, R]) -> Callable[P, R | None]:
        """Decorate a function: a call executes it if this tick was not executed, else it returns None."""
        CallNames(function, blocking=True)  # or ConfigError

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R | None:
            with self as turn:
                return function(*args, **kwargs) if turn else None

        return wrapper


once = Once
