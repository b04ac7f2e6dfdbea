"""One coroutine for both faces: a method of a client for threads returns its value, one for tasks an awaitable."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from ..errors import LockError


async def await_if_needed(result: Any) -> Any:
    """Return the value of what a method of either face has returned."""
    return await result if hasattr(result, "__await__") else result


async def release_quietly(leases: Sequence[Any]) -> None:
    """Release these, the last taken first. What is lost or cannot be reached now is not an error: its lease ends."""
    for lease in reversed(leases):
        try:
            await await_if_needed(lease.release())
        except LockError:
            pass


class EitherBlock:
    """A context manager of either face, to be entered by `async with` in a coroutine that both faces run."""

    def __init__(self, block: Any) -> None:
        self._block = block

    async def __aenter__(self) -> Any:
        block = self._block
        return block.__enter__() if hasattr(block, "__enter__") else await block.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        block = self._block
        if hasattr(block, "__exit__"):
            block.__exit__(kind, error, at)
        else:
            await block.__aexit__(kind, error, at)
