"""The same for tasks: what is awaited only as long as the caller waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from math import inf
from typing import TypeVar

from .patience import left

T = TypeVar("T")


async def in_time(asked: Awaitable[T]) -> T:
    """What comes of it. TimeoutError if the caller waits no longer; a future is cancelled then, unless shielded."""
    rest = left(inf)
    if rest == inf:
        return await asked
    async with asyncio.timeout(rest):
        return await asked
