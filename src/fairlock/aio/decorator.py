"""Coroutine functions that run under a lock."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ..engine.decorator_names import CallNames

if TYPE_CHECKING:
    from .locks import Lock

P = ParamSpec("P")
R = TypeVar("R")


def guarded(
    function: Callable[P, Coroutine[Any, Any, R]], lock_for: Callable[[dict[str, Any]], Lock], skip: bool = False
) -> Callable[P, Coroutine[Any, Any, R]]:
    """Return the function wrapped so that it holds a lock while it runs. skip: if the lock is taken, return None."""
    naming = CallNames(function, blocking=False)

    @functools.wraps(function)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        lock = lock_for(naming.arguments(args, kwargs))
        if skip:
            lease = await lock.acquire(blocking=False)
            if lease is None:
                return None  # type: ignore[return-value]
            async with lease:
                return await function(*args, **kwargs)
        async with lock.hold():
            return await function(*args, **kwargs)

    return wrapper
