"""Snapshots: holders, waiters and pools, as they are shown to people. A snapshot never changes the state of a lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..errors import LockError, RecordDamaged
from ..rules.locks import ASKED, EXCLUSIVE, Acquire, Entry, LockState, Refused, apply
from .ask_to_release import ReleaseRequest
from .busy_name_index import list_all
from .events import short, thread_in
from .pool_counts import PoolCounts
from .request import LockRequest
from .session import Session

if TYPE_CHECKING:
    from ..stores.base import Pools

ResourceKind = Literal["lock", "rwlock", "semaphore", "pool", "damaged"]


class Holder(NamedTuple):
    """A holder of a lock, or of an item of a pool. Times are seconds; the ticket is shortened."""

    owner: str
    """'' if it has no holder any more and only stays closed for a while (at_least)."""
    note: str
    ticket: str
    fence: int
    weight: int
    held_for: float
    expires_in: float
    """Seconds until the lease ends; 0 or less: it has ended, and no other client has wanted the lock since."""
    thread: str = ""
    """A number for the thread or task that asked for it, unique for its owner; '' if it is not known."""
    item: str = ""
    """The key of the item, of a pool."""
    asked: ReleaseRequest | None = None
    """Which client asks it to release, and why; None if none does."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as a plain dict, ready for JSON."""
        return {**self._asdict(), "asked": self.asked._asdict() if self.asked is not None else None}


class Waiter(NamedTuple):
    """A waiter in the queue. Times are seconds; the ticket is shortened."""

    owner: str
    note: str
    ticket: str
    weight: int
    waited: float
    expires_in: float
    """Seconds until the place is lost without a poll."""
    thread: str = ""
    """As of a Holder."""


class Resource(NamedTuple):
    """One name with its holders and its queue, in the order of arrival."""

    name: str
    kind: ResourceKind
    """lock, rwlock, semaphore or pool; damaged: it cannot be read, and the other fields mean nothing."""
    capacity: int
    """Of a pool: how many items it has, without those that are done."""
    fence: int
    holders: tuple[Holder, ...]
    queue: tuple[Waiter, ...]
    expired: tuple[Holder, ...] = ()
    """Holders whose lease has ended: they hold nothing. One that is only late may renew it if no other client comes."""
    namespace: str = ""
    items: PoolCounts | None = None
    """Of a pool: how many of its items are in each state."""

    @property
    def busy(self) -> bool:
        """True if it is held, waited for, damaged, or kept by a lease that has ended and was not taken by another."""
        return bool(self.holders or self.queue or self.expired) or self.kind == "damaged"

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain dicts and lists, ready for JSON."""
        return {
            **self._asdict(),
            "holders": [one.as_dict() for one in self.holders],
            "queue": [one._asdict() for one in self.queue],
            "expired": [one.as_dict() for one in self.expired],
            "items": self.items._asdict() if self.items is not None else None,
        }


def unique_names(snapshot: Snapshot, namespaces: bool) -> Snapshot:
    """Return it with names that differ, for views that go by the name: with namespaces as 'namespace/name' (a / in
    the namespace is written as %2F), and a pool that has the name of a lock as 'name (pool)'."""
    found: dict[str, Resource] = {}
    for one in sorted(snapshot.resources, key=lambda one: one.kind == "pool"):
        space = one.namespace.replace("%", "%25").replace("/", "%2F")
        name = f"{space}/{one.name}" if namespaces else one.name
        while name in found:
            name += " (pool)"
        found[name] = one._replace(name=name)
    return snapshot._replace(resources=tuple(sorted(found.values(), key=lambda one: one.name)))


def describe_failure(error: Exception) -> str:
    """Return the sentence that `top` and the page show after a snapshot that failed."""
    if isinstance(error, LockError):
        return str(error) or type(error).__name__
    return f"The last snapshot failed ({type(error).__name__}: {error}). It is tried again."


class Snapshot(NamedTuple):
    """The state of a store at one moment of its clock."""

    store: str
    now: float
    """The store's clock, in seconds."""
    resources: tuple[Resource, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain dicts and lists, ready for JSON."""
        return {"store": self.store, "now": self.now, "resources": [r.as_dict() for r in self.resources]}


async def snapshot(session: Session, pattern: str, idle: bool = False, namespaces: bool = False) -> Snapshot:
    """Look at the names that match. A pattern without * and ? is a name, and is shown even if it is idle."""
    if not (namespaces or idle or "*" in pattern or "?" in pattern):
        lock, pool = await look(session, pattern), await find_pool(session, pattern)
        return lock if pool is None else lock._replace(resources=(*lock.resources, pool))
    await list_all(session)
    seen, micros = await session.backend.looks(pattern, idle, namespaces)
    resources = [resource(one.name, one.state, micros, one.namespace) for one in seen]
    resources += await find_pools(session, pattern, idle, namespaces)
    shown = [one for one in resources if idle or one.busy]
    shown.sort(key=lambda one: (one.namespace, one.name))
    return Snapshot(session.backend.where, micros / 1e6, tuple(shown))


async def find_pools(session: Session, pattern: str, idle: bool, namespaces: bool) -> list[Resource]:
    """Return the pools whose names match. Without `idle`: those of which items are taken, or for which workers wait."""
    pools = session.backend.pools
    if pools is None:
        return []
    own = session.backend.namespace
    found = []
    for namespace, name in await pools.names(pattern, idle):
        if not namespaces and namespace != own:
            continue
        there = pools if namespace == own else pools.in_namespace(namespace)
        found.append(await find_pool_resource(there, namespace, name, idle))
    return [one for one in found if one is not None]


async def find_pool(session: Session, name: str) -> Resource | None:
    """Return the pool of this name, even if it is idle; None if it has no items and no worker waits."""
    if (pools := session.backend.pools) is None:
        return None
    found = await find_pool_resource(pools, session.backend.namespace, name)
    return found if found is None or found.busy or any(found.items or ()) else None


async def find_pool_resource(pools: Pools, namespace: str, name: str, idle: bool = True) -> Resource | None:
    """Return a pool with the owners of its items and its waiters. None if it is not busy and `idle` is False."""
    try:
        (taken, now), queue = await pools.taken(name), await pools.queue(name)
        if not (idle or taken or queue.workers or queue.watchers):
            return None
        counts = PoolCounts(**await pools.count(name))
    except RecordDamaged:
        return Resource(name, "damaged", 0, 0, (), (), (), namespace)
    now = now or queue.seen
    holders = tuple(
        Holder(
            one.owner, one.note, short(one.ticket), one.fence, 1, max(now - one.fence, 0) / 1e6,
            (one.score - now) / 1e6, thread_in(one.ticket), one.key,
        )
        for one in sorted(taken, key=lambda one: one.fence)
    )  # fmt: skip
    waiting = [one for one in (*queue.workers, *queue.watchers) if one.expires > now]
    waiters = tuple(
        Waiter(
            one.owner, one.note, short(one.ticket), 1, max(now - one.since, 0) / 1e6, (one.expires - now) / 1e6,
            thread_in(one.ticket),
        )
        for one in waiting
    )  # fmt: skip
    fence = max((one.fence for one in taken), default=0)
    return Resource(name, "pool", sum(counts) - counts.done, fence, holders, waiters, (), namespace, counts)


async def look(session: Session, name: str) -> Snapshot:
    """Look at one name, which may contain * and ?. A name that was never used has no resource."""
    backend = session.backend
    try:
        state, now = await backend.look(name)
    except RecordDamaged as damage:
        return Snapshot(backend.where, 0.0, (resource(name, damage, 0, backend.namespace),))
    known = state.fence or state.fixed or state.holders or state.queue
    return Snapshot(backend.where, now / 1e6, (resource(name, state, now, backend.namespace),) if known else ())


def resource(name: str, record: LockState | RecordDamaged, now: int, namespace: str = "") -> Resource:
    if isinstance(record, RecordDamaged):
        return Resource(name, "damaged", 0, 0, (), (), (), namespace)
    asked = {g.ticket: ReleaseRequest(*g.why[1:]) for g in record.tombstones if g.why.kind == ASKED}
    return Resource(
        name,
        _kind(record),
        record.capacity,
        record.fence,
        tuple(_holder(e, now, asked.get(e.ticket)) for e in record.holders if e.expires > now),
        tuple(_waiter(e, now) for e in record.queue if e.expires > now),
        # Not what has only been kept closed (at_least): when that is over, nothing is left of it.
        tuple(_holder(e, now, asked.get(e.ticket)) for e in record.holders if e.expires <= now and e.owner),
        namespace,
    )


def in_the_way(holders: Sequence[Holder]) -> str:
    """Return what blocks others: 'is held by web-3:4117 (ship order) for 41 s', 'is kept closed for another 3 s', both,
    or '' if nothing does."""
    closed = [one.expires_in for one in holders if not one.owner]
    holders = [one for one in holders if one.owner]
    parts = []
    if holders:
        labels = [f"{one.owner}{f' ({one.note})' if one.note else ''}" for one in holders[:3]]
        if len(holders) > 3:
            labels.append(f"{len(holders) - 3} others")
        parts.append(f"is held by {' and '.join(labels)} for {duration(holders[0].held_for)}")
    if closed:
        parts.append(f"is kept closed for another {duration(min(closed))}")
    return " and ".join(parts)


def duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 9.95 and round(seconds, 1) % 1 else f"{max(seconds, 0):.0f} s"


def _kind(record: LockState) -> ResourceKind:
    if record.capacity != EXCLUSIVE:
        return "semaphore"
    return "rwlock" if any(e.weight != EXCLUSIVE for e in (*record.holders, *record.queue)) else "lock"


def _holder(e: Entry, now: int, asked: ReleaseRequest | None) -> Holder:
    since, left, thread = (now - e.since) / 1e6, (e.expires - now) / 1e6, thread_in(e.ticket)
    return Holder(e.owner, e.note, short(e.ticket), e.fence, e.weight, since, left, thread, "", asked)


def _waiter(e: Entry, now: int) -> Waiter:
    since, left, thread = (now - e.since) / 1e6, (e.expires - now) / 1e6, thread_in(e.ticket)
    return Waiter(e.owner, e.note, short(e.ticket), e.weight, since, left, thread)


async def refused_now(session: Session, request: LockRequest) -> bool:
    """Return True if a try would be refused at this moment. Reads from the store, changes nothing."""
    record, now = await session.backend.look(request.name)
    enter = Acquire("?", request.capacity, request.weight, request.lease_us, wait=False, fair=request.fair)
    _, reply, _ = apply(record, enter, now)
    return isinstance(reply, Refused)


async def holders(session: Session, pattern: str) -> list[tuple[Resource, list[str]]]:
    """Return the held names that match, with the whole tickets of their holders. Damaged names are left out.

    All names are read, also those that are not in an index of busy names yet: an eviction must not miss a holder.
    """
    seen, now = await session.backend.looks(pattern, idle=True)
    return [
        (resource(one.name, one.state, now, one.namespace), tickets)
        for one in seen
        if isinstance(one.state, LockState) and (tickets := [e.ticket for e in one.state.holders if e.expires > now])
    ]


async def ping(session: Session) -> float:
    begun = session.clock()
    await session.backend.ping()
    return session.clock() - begun
