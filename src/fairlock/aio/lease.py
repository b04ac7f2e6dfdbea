"""What a task holds."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

from ..engine import events, lease_ops, validate, with_block
from ..engine.accept_batch import accept_releases
from ..engine.ask_to_release import ReleaseRequest
from ..engine.events import report_released
from ..engine.grant import LeaseBase
from ..engine.grant_state import HELD, RELEASING
from ..engine.release import begin_release, briefly, plain_release, release
from ..engine.validate import Seconds
from ..engine.with_block import raise_loss
from ..errors import StoreError
from ..stores.base import OutcomeUnknown

modules = sys.modules


class Held(LeaseBase):
    """What Lease and Item share: a loss cancels the task that is inside, as asyncio.timeout does."""

    __slots__ = ("_cancelled", "_cancelling", "_task")  # known when it is watched, and not before

    def _watch(self, task: asyncio.Task[Any] | None = None) -> None:
        """From here on a loss cancels this task."""
        task = self._task = asyncio.current_task() if task is None else task
        self._cancelling = task.cancelling() if task is not None else 0
        self._cancelled = False
        grant, session = self._grant, self._session
        self._watched = True
        if not session.watching or grant.deadline < session.watch_at or grant.cap < session.watch_at:
            with session.mutex:
                session.watch(grant.end())

    def _notice_loss(self) -> None:
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

    def _leave(self, error: BaseException | None) -> Coroutine[Any, Any, None]:
        """Leave `async with`. A loss is raised only if the body was clean, else noted on its exception."""
        session, grant = self._session, self._grant
        try:
            task, self._task = self._task, None
            if self._cancelled and task is not None:
                # Whatever the body has made of it: our own cancellation is taken back, or a later TaskGroup or timeout
                # of this task mistakes it for a cancellation from outside.
                if task.uncancel() <= self._cancelling and isinstance(error, asyncio.CancelledError):
                    error = None
        except AttributeError:
            pass  # it was left without having been entered: an exit stack was given an acquired one
        if self._entered is not None:
            if self._outer is None and session.entered.get(self._who) is self:  # as `no_longer_entered` does
                del session.entered[self._who]
                self._entered = None
            else:
                with_block.no_longer_entered(session, self)
        elif self._request.pool:
            self._ends(error)
        now = session.clock  # `session.clock()` would take longer: it is not a method
        clock = now()
        if (clock >= grant.deadline or clock >= grant.cap) and not self._released:
            self.lost  # noqa: B018  # the body went on after its end: that is a loss even if no other client came
        return self._give_back(True, error)

    def _ends(self, error: BaseException | None) -> None:
        """The block of an item has ended, by this exception."""

    async def _give_back(self, leaving: bool, error: BaseException | None = None) -> None:
        """Release it: begin, one exchange with the store, finish. It waits in another task, which no cancellation
        reaches, if that is not possible. leaving: an `async with` block, so a store that is down raises nothing."""
        session, grant = self._session, self._grant
        message: Any = None
        repeated = False
        if grant.state is HELD:
            holds, doubt = grant.holds, grant.doubtful or session.backend.may_duplicate
            if self._request.plain and not (grant.queue or doubt) and len(holds) == 1 and holds[0] is self:
                grant.since, grant.state, message = session.clock(), RELEASING, True  # as `begin_release` does
            else:
                message = begin_release(session, self, leaving, True)
            if message is True:
                release_soon = session.backend.release_soon
                asked = release_soon(self._request.name, grant.ticket, self.fence, self, accept_releases)
                try:
                    if asked is not None and await asked:
                        message = None
                except (OutcomeUnknown, StoreError):
                    repeated = True
                except BaseException:
                    await session.runtime.shield(briefly(release(session, self, True, plain_release(self), True)))
                    raise
                if message is None:
                    if session.on_event is not None or (events.quiet_levels.get(10, True) and "logging" in modules):
                        report_released(session, self)
                else:
                    message = plain_release(self)
        if not self._released:
            await session.runtime.shield(release(session, self, leaving, message, repeated))
        if leaving and self._reason:
            raise_loss(self, error)

    async def renew(self) -> None:
        """Renew now, before the keeper does. LeaseLost if it was lost, StoreError if the store does not reply."""
        await lease_ops.renew(self._session, self)

    async def extend(self, seconds: Seconds) -> None:
        """Let it last for at least this many seconds from now, even if this client never renews it again: its lease
        becomes that long, never shorter, and a max_hold ends no sooner. On SQLite a lock still ends with its process;
        `detach` does not. LeaseLost if it was lost, StoreError without a reply."""
        await lease_ops.extend(self._session, self, validate.lease(seconds))

    async def seal(self, transaction: object) -> None:
        """Seal a transaction, as its last call before COMMIT: a holder that has lost it cannot commit, and no other
        client acquires it before the transaction has ended.

        It is a connection (or Session) of SQLAlchemy, or a connection of psycopg, PyMySQL or sqlite3, in the database
        of the lock or pool. LeaseLost if the lease is not held, StoreError if the statement fails: then roll back.
        ConfigError if it is another database, or if the store has no transactions. See docs/seal.md.
        """
        await lease_ops.seal(self._session, self, transaction)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self._leave(error)


class Lease(Held):
    """A held lock, for as long as it is renewed. Any task may use it; another process may, by its ticket.

    Leaving an `async with` block releases it. If it is lost inside the block, the task that entered is cancelled there
    and LeaseLost is raised in place of the cancellation. It renews itself by default.
    """

    __slots__ = ()

    @property
    def asked_to_release(self) -> ReleaseRequest | None:
        """Which client asks this holder to release it, and why; None if none does. It stays held. See `on_asked`."""
        return self._session.release_requests.get(self._grant.ticket)

    async def release(self) -> None:
        """Release it; a second call does nothing.

        LeaseLost if it had been lost. StoreError if the store cannot be reached: it may be called again, and the
        keeper keeps trying until the lease ends.
        """
        await self._give_back(False)

    async def downgrade(self) -> None:
        """Change from writer to reader, without a writer in between."""
        await lease_ops.downgrade(self._session, self)

    async def detach(self, lease: Seconds) -> str:
        """Let it last for this long without this process. Return the ticket for `attach`, here or elsewhere."""
        return await lease_ops.detach(self._session, self, validate.lease(lease))

    async def __aenter__(self) -> Self:
        self.ensure_held()
        with_block.enter(self._session, self, sys._getframe(1))
        self._watch()
        return self
