"""The public session of a client, `locks.session`: what code needs that is built on a client and not on its locks.

Recipes, the command line and the testing kit use it instead of the client's internals. It is the same class for threads
and for asyncio: in a thread, run its coroutines with `fairlock.engine.run_sync.run`; in a task, await them.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from ..rules.locks import Command, Entry, LockState, Release, Reply
from ..stores.base import Backend, Runtime
from . import lease_ops, validate
from .busy_name_index import list_all
from .grant import LeaseBase
from .release import flush_release
from .session import FORGET, PendingRelease, Session

if TYPE_CHECKING:
    from ..rules.pools import ItemState
    from .snapshots import Resource, Snapshot


class ClientSession:
    """Sends single messages for a client, and reads what the client knows. Made by `locks.session`."""

    __slots__ = ("_session", "default_lease")

    def __init__(self, session: Session, default_lease: float) -> None:
        self._session = session
        self.default_lease = default_lease
        """Seconds: the lease of a lock that is made without one."""

    # -- the client

    @property
    def backend(self) -> Backend:
        """The backend of the store. A test may replace it, to inject faults."""
        return self._session.backend

    @backend.setter
    def backend(self, backend: Backend) -> None:
        self._session.backend = backend

    @property
    def runtime(self) -> Runtime:
        """Makes mutexes and events for this client's face, sleeps, and has its clock."""
        return self._session.runtime

    @property
    def owner(self) -> str:
        """The label that others see of this client."""
        return self._session.owner

    @property
    def closed(self) -> bool:
        """True after the client was closed."""
        return self._session.closed

    @property
    def idle(self) -> bool:
        """True if the client holds nothing, waits for nothing and has no release left to send."""
        return not self._session.grants and not self._session.pending_releases

    @property
    def ends_with_process(self) -> bool:
        """True if the locks that are held at the normal end of the interpreter are released then. May be set."""
        return self._session.ends_with_process

    @ends_with_process.setter
    def ends_with_process(self, value: bool) -> None:
        self._session.ends_with_process = value

    def clock(self) -> float:
        """Return the seconds of this client's monotonic clock."""
        return self._session.clock()

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run this coroutine in a thread or task of its own. LockError if none can be started."""
        self._session.start(work, name)

    # -- tickets and messages

    def new_ticket(self) -> str:
        """Return a ticket that was never used before and cannot be guessed."""
        return self._session.ticket()

    def use_ticket(self, ticket: str) -> None:
        """Use this ticket for what the client acquires from now on, so that a repeated acquire is the same acquire."""
        self._session.ticket = lambda who=None: ticket  # type: ignore[method-assign]

    async def call(self, name: str, command: Command) -> Reply:
        """Send one command and return the reply. It is repeated while its outcome is unknown; then StoreError."""
        return (await self._session.call(name, command)).reply

    async def read(self, name: str) -> tuple[LockState, int]:
        """Return the state of this name and the store's clock in microseconds. Changes nothing."""
        return await self._session.backend.look(name)

    async def read_item(self, pool: str, key: str) -> ItemState | None:
        """Return one item of a pool, or None. Changes nothing."""
        from ..rules.pools import Look, Looked, On  # here, because most programs use no pool

        reply = (await self._session.call_pool(pool, On(key, Look()))).reply
        return reply.item if isinstance(reply, Looked) else None

    async def prune(self, pattern: str, age: float, delete: bool) -> tuple[int, int] | None:
        """Find, and delete if asked to, the names that were not used for this many seconds. Return how many were found
        and deleted; None: the store deletes idle names by itself."""
        return await self._session.backend.prune(validate.pattern(pattern), int(age * 1e6), delete)

    async def prune_audit(self, pattern: str, age: float, delete: bool) -> tuple[int, int] | None:
        """Prune the audit lines of names: those whose newest line is older than that and than 30 days."""
        return await self._session.backend.prune_audit(validate.pattern(pattern), int(age * 1e6), delete)

    async def release_ticket(self, name: str, ticket: str) -> None:
        """Release or withdraw this ticket. If the store cannot be reached now, the client sends it later."""
        session = self._session
        clock = session.clock()
        with session.mutex:
            until = clock + max(self.default_lease, FORGET)
            session.schedule_release(PendingRelease(name, ticket, Release(ticket, True), clock, until))
        await flush_release(session, ticket)

    # -- leases

    async def extend_entry(self, name: str, entry: Entry, seconds: float) -> bool:
        """Let the lease of another client last for at least this long from now. Return False if it is gone."""
        from . import lease_handles

        return await lease_handles.extend_entry(self._session, name, entry, seconds)

    def lose(self, lease: LeaseBase, detail: str) -> None:
        """Count a lease of this client as lost, for a reason outside of the store; its grant is given up."""
        self._session.lose(lease._grant, "store_reset", detail)

    async def set_end(self, lease: LeaseBase, seconds: float, more: bool = False) -> None:
        """Move the end of a lease of this client to this many seconds from now, or (more) after its present end."""
        await lease_ops.prolong(self._session, lease, seconds, more)

    def ends_by_max_hold(self, lease: LeaseBase) -> bool:
        """Return True if max_hold ends this lease before a missing renewal would."""
        return lease._grant.cap < lease._grant.deadline

    async def look(self, name: str) -> Snapshot:
        """Return a snapshot of this one name, even if it is idle. In it * and ? are ordinary characters."""
        from .snapshots import look

        return await look(self._session, validate.name(name))

    async def find_pool_resource(self, name: str) -> Resource | None:
        """Return a pool as a snapshot shows it, even if it is idle; None if it has no items and no worker waits."""
        from .snapshots import find_pool_resource

        session = self._session
        found = await find_pool_resource(session.pools(), session.backend.namespace, validate.name(name))
        return found if found is None or found.busy or any(found.items or ()) else None

    async def find_pools(self, namespaces: bool = False) -> list[Resource]:
        """Return all pools of this namespace, or of all, as a snapshot shows them, also idle ones."""
        from .snapshots import find_pools

        return await find_pools(self._session, "*", True, namespaces)

    async def list_names(self) -> None:
        """Let the snapshots of other clients show at once what this one holds: see `Backend.list_names`."""
        await list_all(self._session)

    async def holders(self, pattern: str) -> list[tuple[Resource, list[str]]]:
        """Return the names that match and are held, each with the full tickets of its holders."""
        from .snapshots import holders

        return await holders(self._session, validate.pattern(pattern))

    async def evict_tickets(self, name: str, tickets: Sequence[str], reason: str, at_once: bool) -> tuple[str, ...]:
        """Evict exactly these tickets. Return those that were still there."""
        from . import operator_actions

        reason = validate.label(reason, "A reason")
        return await operator_actions.evict_tickets(self._session, name, tickets, reason, at_once)

    async def release_held(self, name: str, ticket: str, reason: str) -> bool:
        """End this lease, which another process renews: it is notified of the reason as by an eviction. Return False
        if it had ended."""
        from . import operator_actions

        evicted = await operator_actions.evict_tickets(self._session, name, [ticket], reason, True, kind="released")
        return bool(evicted)
