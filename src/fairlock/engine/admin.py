"""Snapshot, evict, resize: show holders and waiters, and intervene. A snapshot never changes the state of a lock."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from ..errors import ConfigError, RecordDamaged
from ..rules.locks import EXCLUSIVE, Acquire, Done, Entry, Evict, LockState, Refused, Resize, apply
from . import validate
from .events import short, thread_in
from .request import LockRequest
from .session import Session

ResourceKind = Literal["lock", "rwlock", "semaphore", "damaged"]


class Holder(NamedTuple):
    """A holder of a lock. Times are seconds; the ticket is shortened."""

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
    """lock, rwlock or semaphore; damaged: it cannot be read, and the other fields mean nothing."""
    capacity: int
    fence: int
    holders: tuple[Holder, ...]
    queue: tuple[Waiter, ...]
    expired: tuple[Holder, ...] = ()
    """Holders whose lease has ended: they hold nothing. One that is only late may renew it if no other client comes."""

    @property
    def busy(self) -> bool:
        """True if it is held, waited for, damaged, or kept by a lease that has ended and was not taken by another."""
        return bool(self.holders or self.queue or self.expired) or self.kind == "damaged"

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain dicts and lists, ready for JSON."""
        return {
            **self._asdict(),
            "holders": [one._asdict() for one in self.holders],
            "queue": [one._asdict() for one in self.queue],
            "expired": [one._asdict() for one in self.expired],
        }


class Snapshot(NamedTuple):
    """The state of a store at one moment of its clock."""

    store: str
    now: float
    """The store's clock, in seconds."""
    resources: tuple[Resource, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain dicts and lists, ready for JSON."""
        return {"store": self.store, "now": self.now, "resources": [r.as_dict() for r in self.resources]}


async def snapshot(session: Session, pattern: str) -> Snapshot:
    records, now = await session.backend.looks(pattern)
    return Snapshot(session.backend.where, now / 1e6, tuple(resource(name, record, now) for name, record in records))


def resource(name: str, record: LockState | RecordDamaged, now: int) -> Resource:
    if isinstance(record, RecordDamaged):
        return Resource(name, "damaged", 0, 0, (), ())
    return Resource(
        name,
        _kind(record),
        record.capacity,
        record.fence,
        tuple(_holder(e, now) for e in record.holders if e.expires > now),
        tuple(_waiter(e, now) for e in record.queue if e.expires > now),
        tuple(_holder(e, now) for e in record.holders if e.expires <= now),
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


def _holder(e: Entry, now: int) -> Holder:
    since, left, thread = (now - e.since) / 1e6, (e.expires - now) / 1e6, thread_in(e.ticket)
    return Holder(e.owner, e.note, short(e.ticket), e.fence, e.weight, since, left, thread)


def _waiter(e: Entry, now: int) -> Waiter:
    since, left, thread = (now - e.since) / 1e6, (e.expires - now) / 1e6, thread_in(e.ticket)
    return Waiter(e.owner, e.note, short(e.ticket), e.weight, since, left, thread)


async def refused_now(session: Session, request: LockRequest) -> bool:
    """Return True if a try would be refused at this moment. Reads from the store, changes nothing."""
    record, now = await session.backend.look(request.name)
    enter = Acquire("?", request.capacity, request.weight, request.lease_us, wait=False, fair=request.fair)
    _, reply, _ = apply(record, enter, now)
    return isinstance(reply, Refused)


async def evict(
    session: Session, name: str, reason: str, ticket: str | None, at_once: bool, pattern: bool
) -> tuple[str, ...]:
    """Stop renewing the leases of the current holders, or of this ticket (shortened or whole), or end them at once.
    Returns the tickets of the evicted. With `pattern` the name is a pattern: the holders of every match are meant."""
    reason = validate.label(reason, "A reason")
    if not reason:
        raise ConfigError("evict() needs a reason; the holder reads it.")
    if pattern:
        if ticket is not None:
            raise ConfigError("evict() takes a ticket or pattern=True, not both: a ticket belongs to one name.")
        held = await holders(session, validate.pattern(name))
        return tuple([each for r, t in held for each in await evict_tickets(session, r.name, t, reason, at_once)])
    if ticket is not None:
        validate.ticket(ticket)
    record, _ = await session.backend.look(validate.name(name))
    if ticket is None:
        tickets = [e.ticket for e in record.holders]
    else:
        tickets = [e.ticket for e in (*record.holders, *record.queue) if short(e.ticket) == ticket][:1] or [ticket]
    return await evict_tickets(session, name, tickets, reason, at_once)


async def evict_tickets(
    session: Session, name: str, tickets: Sequence[str], reason: str, at_once: bool
) -> tuple[str, ...]:
    """Evict the holders at the time of reading, by their tickets: repeated after an unknown outcome, `Evict(None)`
    would evict a client that was granted the lock in the meantime."""
    met: tuple[str, ...] = ()
    for each in tickets:
        answer = await session.call(name, Evict(each, session.owner, reason, at_once))
        assert isinstance(answer.reply, Done)
        met += answer.reply.tickets
    return met


async def holders(session: Session, pattern: str) -> list[tuple[Resource, list[str]]]:
    """Return the held names that match, with the whole tickets of their holders. Damaged names are left out."""
    records, now = await session.backend.looks(pattern)
    return [
        (resource(name, record, now), tickets)
        for name, record in records
        if not isinstance(record, RecordDamaged) and (tickets := [e.ticket for e in record.holders if e.expires > now])
    ]


async def resize(session: Session, name: str, capacity: int | None) -> None:
    await session.call(name, Resize(capacity))


async def repair(session: Session, name: str) -> tuple[str, ...]:
    return tuple(await session.backend.repair(name))


async def ping(session: Session) -> float:
    begun = session.clock()
    await session.backend.ping()
    return session.clock() - begun
