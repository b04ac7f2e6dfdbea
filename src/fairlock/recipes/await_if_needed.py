"""One coroutine for both faces: a method of a client for threads returns its value, one for tasks an awaitable."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..engine import validate
from ..engine.release import INTERRUPTED
from ..engine.run_sync import run
from ..errors import ConfigError, LockError
from ..stores import deadline

if TYPE_CHECKING:
    from .. import aio, sync

Client = TypeVar("Client", bound="sync.Locks | aio.Locks")
Entered = TypeVar("Entered")


async def await_if_needed(result: Any) -> Any:
    """Return the value of what a method of either face has returned."""
    return await result if hasattr(result, "__await__") else result


def times_cancelled() -> int:
    """Return how often the running task was cancelled; 0 in a thread without one."""
    asyncio = sys.modules.get("asyncio")  # a program of threads does not import it for this
    try:
        task = None if asyncio is None else asyncio.current_task()
    except RuntimeError:  # no loop runs
        return 0
    return 0 if task is None else task.cancelling()


def raise_if_cancelled(before: int) -> None:
    """Raise CancelledError if the task was cancelled since, and a driver has not passed it on: redis.asyncio drops a
    cancellation that arrives while it reads a reply."""
    if times_cancelled() > before:
        from asyncio import CancelledError

        raise CancelledError


def checked_function(function: Any, what: str, locks: Any) -> None:
    """Raise ConfigError if this is no function, or one of asyncio for a client that blocks."""
    if not callable(function):
        raise ConfigError(f"{what} is a function, not {validate.shown(function)}.")
    if locks.session.runtime.blocking:
        from inspect import iscoroutinefunction

        if iscoroutinefunction(function):
            raise ConfigError(f"{what} is async; this is the blocking client. Use fairlock.aio.connect().")


async def release_quietly(leases: Sequence[Any]) -> None:
    """Release these, the last taken first. A loss is not an error, nor is a store that does not reply: what it has not
    released in half a second is a pending release of the client."""
    before = deadline.begin(INTERRUPTED, 0.0)
    try:
        for lease in reversed(leases):
            try:
                await _in_time(lease.release())
            except (LockError, TimeoutError):
                pass
    finally:
        deadline.end(before)


async def _in_time(result: Any) -> None:
    if hasattr(result, "__await__"):
        from ..stores.async_deadline import in_time  # here, because it imports asyncio

        await in_time(result)


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


class BlockCoroutines(Generic[Entered]):
    """What enters and leaves the block of a recipe, written once: `_leave` gets the exception of the body, or None."""

    _enter: Callable[[], Coroutine[Any, Any, Entered]]
    _leave: Callable[[BaseException | None], Coroutine[Any, Any, None]]


class WithBlock(BlockCoroutines[Entered]):
    """`with`, made of these coroutines."""

    def __enter__(self) -> Entered:
        return run(self._enter())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        run(self._leave(error))


class AsyncWithBlock(BlockCoroutines[Entered]):
    """`async with`, made of these coroutines."""

    async def __aenter__(self) -> Entered:
        return await self._enter()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self._leave(error)
