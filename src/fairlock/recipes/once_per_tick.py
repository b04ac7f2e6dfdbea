"""Once per tick, for threads: one execution per hour (or day, or minute) over all machines
(once_per_tick_base.py)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from ..engine.decorator_names import CallNames
from ..engine.run_sync import run
from ..sync import Locks
from ..sync.pool import Item
from .once_per_tick_base import OnceBase

P = ParamSpec("P")
R = TypeVar("R")


class Once(OnceBase[Locks]):
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

    def __enter__(self) -> Item | None:
        item: Item | None = run(self._enter())
        return item

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        run(self._leave(error))


once = Once
