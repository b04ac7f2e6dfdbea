"""Coroutine functions that run under a lock."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ..errors import ConfigError
from ..flow.naming import Naming

if TYPE_CHECKING:
    from .lock import Lock

P = ParamSpec("P")
R = TypeVar("R")


def guarded(
    function: Callable[P, Coroutine[Any, Any, R]], lock_for: Callable[[dict[str, Any]], Lock], skip: bool = False
) -> Callable[P, Coroutine[Any, Any, R]]:
    """The function, holding a lock while it runs. skip: if the lock is taken, do nothing and give None."""
    naming = Naming(function)
    if not naming.is_async:
        raise ConfigError(f"{naming.name}() is not async; this is the asyncio client. Use holdfast.connect().")

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
