"""Calls a method of either client, one for threads or one for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any


async def call(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return what it returns. A method that blocks runs in a thread."""
    if iscoroutinefunction(function):
        return await function(*args, **options)
    return await asyncio.to_thread(function, *args, **options)
