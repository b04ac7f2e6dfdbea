"""What a task holds."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from types import FrameType, TracebackType
from typing import Any, Self

from ..engine import async_fast_acquire, lease_ops, validate, with_block
from ..engine.grant import LeaseBase
from ..engine.release import release
from ..engine.validate import Seconds
from ..stores.base import OutcomeUnknown


class Held(LeaseBase):
    """What Lease and Item share: a loss cancels the task that is inside, as asyncio.timeout does."""

    __slots__ = ("_cancelled", "_cancelling", "_task")  # known when it is watched, and not before

    def _watch(self, task: asyncio.Task[Any] | None = None) -> None:
        """From here on a loss cancels this task."""
        task = self._task = asyncio.current_task() if task is None else task
        self._cancelling = task.cancelling() if task is not None else 0
        self._cancelled = False
        grant, session = self._grant, self._session
        grant.watched = True
        if not session.watching or grant.deadline < session.watch_at or grant.cap < session.watch_at:
            with session.mutex:
                session.watch(grant.end())

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
                # Whatever the body has made of it: our own cancellation is taken back, or a later TaskGroup or timeout
                # of this task mistakes it for a cancellation from outside.
                ours = task.uncancel() <= self._cancelling and isinstance(error, asyncio.CancelledError)
        except AttributeError:
            pass  # it was left without having been entered: an exit stack was given an acquired one
        session = self._session
        going = self._going()
        if going is not None:
            try:
                if async_fast_acquire.gone(session, self, await going):
                    return
            except OutcomeUnknown:
                self._grant.leaving = False  # it is going all the same: `release` knows that it is not the first
            except BaseException:
                self._grant.leaving = False
                await session.runtime.shield(self._let_go(None if ours else error))
                raise
        elif self._released and not self._reason:
            return  # passed on
        await session.runtime.shield(self._let_go(None if ours else error))

    def _going(self) -> Awaitable[Any] | None:
        """Send the release now if it is one message, and return its reply to be awaited."""
        return None

    async def _let_go(self, error: BaseException | None) -> None:
        raise NotImplementedError


class Lease(Held):
    """A held lock, for as long as it is renewed. Any task may use it; another process may, by its ticket.

    Leaving an `async with` block releases it. If it is lost inside the block, the task that entered is cancelled there
    and LeaseLost is raised in place of the cancellation. It renews itself by default.
    """

    __slots__ = ()

    async def renew(self) -> None:
        """Renew now, before the keeper does. LeaseLost if it was lost, StoreError if the store does not reply."""
        await lease_ops.renew(self._session, self)

    async def release(self) -> None:
        """Release it; a second call does nothing.

        LeaseLost if it had been lost. StoreError if the store cannot be reached: it may be called again, and the
        keeper keeps trying until the lease ends.
        """
        session = self._session
        going = async_fast_acquire.go(session, self)
        if going is not None:
            try:
                if async_fast_acquire.gone(session, self, await going):
                    return
            except OutcomeUnknown:
                self._grant.leaving = False
            except BaseException:
                self._grant.leaving = False
                await session.runtime.shield(release(session, self, quiet=True))
                raise
        await session.runtime.shield(release(session, self))

    async def extend(self, seconds: Seconds) -> None:
        """Let it last for at least this many seconds from now, even if this process never renews it again: its lease
        becomes that long, and a max_hold ends no sooner. LeaseLost if it was lost, StoreError without a reply."""
        await lease_ops.extend(self._session, self, validate.lease(seconds))

    async def downgrade(self) -> None:
        """Change from writer to reader, without a writer in between."""
        await lease_ops.downgrade(self._session, self)

    async def detach(self, lease: Seconds) -> str:
        """Let it live on for this long without this process. Return the ticket for `attach`, here or elsewhere."""
        return await lease_ops.detach(self._session, self, validate.lease(lease))

    def _enter(self, frame: FrameType) -> None:
        with_block.enter(self._session, self, frame)
        self._watch()

    def _going(self) -> Awaitable[Any] | None:
        with_block.no_longer_entered(self._session, self)
        return async_fast_acquire.go(self._session, self)

    async def _let_go(self, error: BaseException | None) -> None:
        await with_block.leave(self._session, self, error)

    async def __aenter__(self) -> Self:
        self.ensure_held()
        self._enter(sys._getframe(1))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self._leave(error)
