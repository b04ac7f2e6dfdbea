"""What a task holds."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from types import FrameType, TracebackType
from typing import Any, Self

from ..backends.contract import Unknown
from ..flow import change, check, enter, soon
from ..flow.check import Seconds
from ..flow.release import release
from ..flow.seat import Hold


class Held(Hold):
    """What Lease and Item share: a loss cancels the task that is inside, as asyncio.timeout does."""

    __slots__ = ("_cancelled", "_cancelling", "_task")  # known when it is watched, and not before

    def _watch(self, task: asyncio.Task[Any] | None = None) -> None:
        """From here on a loss cancels this task."""
        task = self._task = asyncio.current_task() if task is None else task
        self._cancelling = task.cancelling() if task is not None else 0
        self._cancelled = False
        seat, desk = self._seat, self._desk
        seat.watched = True
        if not desk.watching or seat.deadline < desk.watch_at or seat.cap < desk.watch_at:
            with desk.mutex:
                desk.watch(seat.end())

    def _told_lost(self) -> None:
        task: asyncio.Task[Any] | None = getattr(self, "_task", None)
        if task is not None and not self._released:
            try:
                task.get_loop().call_soon_threadsafe(self._cancel, task)
            except RuntimeError:
                pass  # the loop is closed: there is no task left to cancel

    def _cancel(self, task: asyncio.Task[Any]) -> None:
        if self._task is task:
            self._cancelled = True
            task.cancel()

    async def _leave(self, error: BaseException | None) -> None:
        ours = False
        try:
            task, self._task = self._task, None
            if self._cancelled and task is not None:
                # Whatever the body has made of it: who has cancelled takes it back, or a later TaskGroup or timeout of
                # this task takes it for a cancellation from outside.
                ours = task.uncancel() <= self._cancelling and isinstance(error, asyncio.CancelledError)
        except AttributeError:
            pass  # it was left without having been entered: an exit stack was given an acquired one
        desk = self._desk
        going = self._going()
        if going is not None:
            try:
                if soon.gone(desk, self, await going):
                    return
            except Unknown:
                self._seat.leaving = False  # it is going all the same: `release` knows that it is not the first
            except BaseException:
                self._seat.leaving = False
                await desk.colour.shield(self._let_go(None if ours else error))
                raise
        elif self._released and not self._reason:
            return  # passed on
        await desk.colour.shield(self._let_go(None if ours else error))

    def _going(self) -> Awaitable[Any] | None:
        """To let go, if that takes one message, which is said now: its answer is to be awaited."""
        return None

    async def _let_go(self, error: BaseException | None) -> None:
        raise NotImplementedError


class Lease(Held):
    """A hold on a lock, for as long as it is renewed. Any task may use it; another process may, by its ticket.

    Leaving an `async with` block releases it. If it is lost inside the block, the task that entered is cancelled there
    and LeaseLost is raised in place of the cancellation. It renews itself by default.
    """

    __slots__ = ()

    async def renew(self) -> None:
        """Renew now instead of when the keeper would. LeaseLost if it is gone, BackendError if nobody answers."""
        await change.renew(self._desk, self)

    async def release(self) -> None:
        """Give it back; a second time does nothing.

        LeaseLost if it had been lost. BackendError if the store cannot be told: it may be called again, and the
        keeper goes on trying until the lease ends.
        """
        desk = self._desk
        going = soon.go(desk, self)
        if going is not None:
            try:
                if soon.gone(desk, self, await going):
                    return
            except Unknown:
                self._seat.leaving = False
            except BaseException:
                self._seat.leaving = False
                await desk.colour.shield(release(desk, self, quiet=True))
                raise
        await desk.colour.shield(release(desk, self))

    async def extend(self, seconds: Seconds) -> None:
        """Let it last for at least so many seconds from now, even if this process never renews it again: its lease
        becomes that long, and a max_hold ends no sooner. LeaseLost if it is gone, BackendError if nobody answers."""
        await change.extend(self._desk, self, check.lease(seconds))

    async def downgrade(self) -> None:
        """From writer to reader, without letting anybody write in between."""
        await change.downgrade(self._desk, self)

    async def detach(self, lease: Seconds) -> str:
        """Let it live on without this process for so long. The ticket for `attach`, here or elsewhere."""
        return await change.detach(self._desk, self, check.lease(lease))

    def _enter(self, frame: FrameType) -> None:
        enter.enter(self._desk, self, frame)
        self._watch()

    def _going(self) -> Awaitable[Any] | None:
        enter.no_longer_entered(self._desk, self)
        return soon.go(self._desk, self)

    async def _let_go(self, error: BaseException | None) -> None:
        await enter.leave(self._desk, self, error)

    async def __aenter__(self) -> Self:
        self.ensure_held()
        self._enter(sys._getframe(1))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self._leave(error)
