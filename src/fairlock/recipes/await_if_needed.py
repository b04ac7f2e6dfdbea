"""One coroutine for both faces: a method of a client for threads returns its value, one for tasks an awaitable."""

from __future__ import annotations

from typing import Any


async def await_if_needed(result: Any) -> Any:
    """Return the value of what a method of either face has returned."""
    return await result if hasattr(result, "__await__") else result
