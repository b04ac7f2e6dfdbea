"""The deadline of a caller, as in deadline.py, for tasks: await something only for as long as the caller waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from math import inf
from typing import TypeVar

from .deadline import left

T = TypeVar("T")


async def in_time(asked: Awaitable[T]) -> T:
    """Await this and return its result. TimeoutError if the caller waits no longer; then a future is
    cancelled, unless it is shielded."""
    rest = left(inf)
    if rest == inf:
        return await asked
    async with asyncio.timeout(rest):
        return await asked
