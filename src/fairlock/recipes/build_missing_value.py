"""build: one process rebuilds a value that is missing (a cache entry, a file), the others wait and then read it.

It is a lock around "read again, then make": a process that was waiting finds the value when it is its turn. If the
builder dies, its lease ends and the next one builds. `get` returns None if the value is missing.

Rejected alternatives: to answer with an old value while another builds (only the program knows whether that is right:
its `get` may return it); to keep the value here (a cache does that).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..engine.run_sync import run
from ..engine.validate import Seconds
from ..errors import LockTimeout
from ..sync import Locks
from .await_if_needed import EitherBlock, await_if_needed, checked_function

T = TypeVar("T")


async def build_once(
    locks: Any,
    name: str,
    get: Callable[[], Any],
    make: Callable[[], Any],
    put: Callable[[Any], Any],
    timeout: Seconds | None,
    lease: Seconds | None,
) -> Any:
    """Return what get returns; if that is None, what make returns, after put has stored it. For both faces."""
    for what, function in (("get", get), ("make", make), ("put", put)):
        checked_function(function, what, locks)
    value = await await_if_needed(get())
    if value is not None:
        return value
    held = None
    try:
        async with EitherBlock(locks.lock(name, lease=lease).hold(timeout=timeout)) as held:
            value = await await_if_needed(get())
            if value is None:
                value = await await_if_needed(make())
                held.ensure_held()
                await await_if_needed(put(value))
            return value
    except LockTimeout:
        value = None if held is not None else await await_if_needed(get())
        if value is None:
            raise
        return value  # it was built meanwhile, and those that wait read it one by one


def build(
    locks: Locks,
    name: str,
    *,
    get: Callable[[], T | None],
    make: Callable[[], T],
    put: Callable[[T], object],
    timeout: Seconds | None = None,
    lease: Seconds | None = None,
) -> T:
    """Return get(); if that is None, one process calls put(make()), and the others wait and call get() again.

    LockTimeout if it is not built within `timeout`; LeaseLost if the lease was lost before `put`, which is then not
    called; what get, make and put raise is raised, and the next one that waits builds.
    """
    value: T = run(build_once(locks, name, get, make, put, timeout, lease))
    return value
