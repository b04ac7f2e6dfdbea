"""Functions that run under a lock."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ..engine.decorator_names import CallNames

if TYPE_CHECKING:
    from .locks import Lock

P = ParamSpec("P")
R = TypeVar("R")


def guarded(function: Callable[P, R], lock_for: Callable[[dict[str, Any]], Lock], skip: bool = False) -> Callable[P, R]:
    """Return the function wrapped so that it holds a lock while it runs. skip: if the lock is taken, return None."""
    naming = CallNames(function, blocking=True)

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        lock = lock_for(naming.arguments(args, kwargs))
        if skip:
            lease = lock.acquire(blocking=False)
            if lease is None:
                return None  # type: ignore[return-value]
            with lease:
                return function(*args, **kwargs)
        with lock.hold():
            return function(*args, **kwargs)

    return wrapper
