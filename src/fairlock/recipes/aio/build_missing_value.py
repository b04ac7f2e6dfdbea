"""build for tasks: one process rebuilds a value that is missing, the others wait and then read it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ...aio import Locks
from ...engine.validate import Seconds
from ..build_missing_value import build_once

T = TypeVar("T")


async def build(
    locks: Locks,
    name: str,
    *,
    get: Callable[[], Awaitable[T | None]],
    make: Callable[[], Awaitable[T]],
    put: Callable[[T], Awaitable[object]],
    timeout: Seconds | None = None,
    lease: Seconds | None = None,
) -> T:
    """Return await get(); if that is None, one process awaits put(make()), and the others wait and call get() again.

    The same as `fairlock.recipes.build`, with a client of fairlock.aio. A loss cancels `make`.
    """
    value: T = await build_once(locks, name, get, make, put, timeout, lease)
    return value
