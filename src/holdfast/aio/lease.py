"""What a task holds."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self

from ..flow import change, check, enter
from ..flow.check import Seconds
from ..flow.release import release
from ..flow.seat import Hold


class Held(Hold):
    """What Lease and Item share: a loss cancels the task that is inside, as asyncio.timeout does."""

    _task: asyncio.Task[Any] | None = None
    _cancelled = False
    _cancelling = 0

    def _watch(self) -> None:
        """From here on a loss cancels this task."""
        self._task = asyncio.current_task()
        self._cancelling = self._task.cancelling() if self._task is not None else 0
        self._seat.watched = True
        with self._desk.mutex:
            self._desk.watch(self._seat.end())

    def _told_lost(self) -> None:
        task = self._task
        if task is not None and not self._released:
            self._cancelled = True
            task.get_loop().call_soon_threadsafe(self._cancel, task)

    def _cancel(self, task: asyncio.Task[Any]) -> None:
        if self._task is task:
            task.cancel()

    async def _leave(self, error: BaseException | None) -> None:
        task, self._task = self._task, None
        ours = False
        if self._cancelled and task is not None and isinstance(error, asyncio.CancelledError):
            ours = task.uncancel() <= self._cancelling
        try:
            if await self._let_go_soon():
                return
        except asyncio.CancelledError:
            await self._desk.colour.shield(self._let_go(None if ours else error))
            raise
        await self._desk.colour.shield(self._let_go(None if ours else error))

    async def _let_go_soon(self) -> bool:
        """Let go, if that takes one message and its answer."""
        return False

    async def _let_go(self, error: BaseException | None) -> None:
        raise NotImplementedError


class Lease(Held):
    """A hold on a lock, for as long as it is renewed. Any task may use it; another process may, by its ticket.

    Leaving an `async with` block releases it. If it is lost inside the block, the task that entered is cancelled there
    and LeaseLost is raised in place of the cancellation. It renews itself by default.
    """

    async def renew(self) -> None:
        """Renew now instead of when the keeper would. LeaseLost if it is gone, BackendError if nobody answers."""
        await change.renew(self._desk, self)

    async def release(self) -> None:
        """Give it back; a second time does nothing.

        LeaseLost if it had been lost. BackendError if the store cannot be told: it may be called again, and the
        keeper goes on trying until the lease ends.
        """
        await self._desk.colour.shield(release(self._desk, self))

    async def downgrade(self) -> None:
        """From writer to reader, without letting anybody write in between."""
        await change.downgrade(self._desk, self)

    async def detach(self, lease: Seconds) -> str:
        """Let it live on without this process for so long. The ticket for `attach`, here or elsewhere."""
        return await change.detach(self._desk, self, check.lease(lease))

    def _enter(self, depth: int) -> None:
        enter.enter(self._desk, self, depth)
        self._watch()

    async def _let_go_soon(self) -> bool:
        return await enter.leave_soon(self._desk, self)

    async def _let_go(self, error: BaseException | None) -> None:
        await enter.leave(self._desk, self, error)

    async def __aenter__(self) -> Self:
        self.ensure_held()
        self._enter(3)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self._leave(error)
