"""Looking and intervening: who holds what, who waits, evict, resize. Nothing here changes a record by looking at it."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ..doorman import ALL, Done, Enter, Entrant, Evict, Record, Refused, Resize, apply
from ..errors import ConfigError, RecordDamaged
from . import check
from .desk import Desk
from .events import short
from .wish import Wish

ResourceKind = Literal["lock", "rwlock", "semaphore", "damaged"]


class Insider(NamedTuple):
    """One who is inside. Times are seconds; the ticket is shortened."""

    owner: str
    """'' if nobody has it any more and it only stays closed for a while (at_least)."""
    note: str
    ticket: str
    fence: int
    weight: int
    held_for: float
    left: float
    """Seconds until the lease ends; 0 or less: it has run out, and nobody has wanted it since."""


class Waiter(NamedTuple):
    """One who stands in line. Times are seconds; the ticket is shortened."""

    owner: str
    note: str
    ticket: str
    weight: int
    waited: float
    left: float
    """Seconds until the place is lost, if nothing is heard."""


class Resource(NamedTuple):
    """One name, who is inside and who waits, first come first."""

    name: str
    kind: ResourceKind
    """lock, rwlock or semaphore; damaged: it cannot be read, and the other fields say nothing."""
    capacity: int
    fence: int
    inside: tuple[Insider, ...]
    line: tuple[Waiter, ...]
    expired: tuple[Insider, ...] = ()
    """Those whose lease has run out: they hold nothing. A holder that was only late may renew it if nobody comes."""


class Snapshot(NamedTuple):
    """What a store showed at one moment of its clock."""

    store: str
    now: float
    """The store's clock, in seconds."""
    resources: tuple[Resource, ...]


async def snapshot(desk: Desk, pattern: str) -> Snapshot:
    records, now = await desk.backend.looks(pattern)
    return Snapshot(desk.backend.where, now / 1e6, tuple(resource(name, record, now) for name, record in records))


def resource(name: str, record: Record | RecordDamaged, now: int) -> Resource:
    if isinstance(record, RecordDamaged):
        return Resource(name, "damaged", 0, 0, (), ())
    return Resource(
        name,
        _kind(record),
        record.capacity,
        record.fence,
        tuple(_insider(e, now) for e in record.inside if e.expires > now),
        tuple(_waiter(e, now) for e in record.line if e.expires > now),
        tuple(_insider(e, now) for e in record.inside if e.expires <= now),
    )


def in_the_way(inside: Sequence[Insider]) -> str:
    """What keeps others out: 'is held by web-3:4117 (ship order) for 41 s', 'is kept closed for another 3 s', both, or
    '' if nothing does."""
    holders = [one for one in inside if one.owner]
    closed = [one.left for one in inside if not one.owner]
    said = []
    if holders:
        labels = [f"{one.owner}{f' ({one.note})' if one.note else ''}" for one in holders[:3]]
        if len(holders) > 3:
            labels.append(f"{len(holders) - 3} others")
        said.append(f"is held by {' and '.join(labels)} for {duration(holders[0].held_for)}")
    if closed:
        said.append(f"is kept closed for another {duration(min(closed))}")
    return " and ".join(said)


def duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 9.95 and round(seconds, 1) % 1 else f"{max(seconds, 0):.0f} s"


def _kind(record: Record) -> ResourceKind:
    if record.capacity != ALL:
        return "semaphore"
    return "rwlock" if any(e.weight != ALL for e in (*record.inside, *record.line)) else "lock"


def _insider(e: Entrant, now: int) -> Insider:
    return Insider(
        e.owner, e.note, short(e.ticket), e.fence, e.weight, (now - e.since) / 1e6, (e.expires - now) / 1e6
    )


def _waiter(e: Entrant, now: int) -> Waiter:
    return Waiter(e.owner, e.note, short(e.ticket), e.weight, (now - e.since) / 1e6, (e.expires - now) / 1e6)


async def refused_now(desk: Desk, wish: Wish) -> bool:
    """Would somebody who only tries be refused at this moment? Asks the store, changes nothing."""
    record, now = await desk.backend.look(wish.name)
    enter = Enter("?", wish.capacity, wish.weight, wish.span, wait=False, fair=wish.fair)
    _, reply, _ = apply(record, enter, now)
    return isinstance(reply, Refused)


async def evict(
    desk: Desk, name: str, reason: str, ticket: str | None, at_once: bool, pattern: bool
) -> tuple[str, ...]:
    """No more renewals for all inside, or for this ticket (a shortened one will do), or out at once. Returns the
    tickets that it met. With `pattern` the name is one, and all inside every name that matches are meant."""
    reason = check.label(reason, "A reason")
    if not reason:
        raise ConfigError("evict() needs a reason; the holder reads it.")
    if pattern:
        if ticket is not None:
            raise ConfigError("evict() takes a ticket or pattern=True, not both: a ticket belongs to one name.")
        held = await holders(desk, check.pattern(name))
        return tuple([each for r, t in held for each in await evict_tickets(desk, r.name, t, reason, at_once)])
    if ticket is not None:
        check.ticket(ticket)
    record, _ = await desk.backend.look(check.name(name))
    if ticket is None:
        tickets = [e.ticket for e in record.inside]
    else:
        tickets = [e.ticket for e in (*record.inside, *record.line) if short(e.ticket) == ticket][:1] or [ticket]
    return await evict_tickets(desk, name, tickets, reason, at_once)


async def evict_tickets(
    desk: Desk, name: str, tickets: Sequence[str], reason: str, at_once: bool
) -> tuple[str, ...]:
    """Evict those who were there when the record was read, by their tickets: sent again after an unknown outcome,
    `Evict(None)` would meet any client that was let in meanwhile."""
    met: tuple[str, ...] = ()
    for each in tickets:
        answer = await desk.ask(name, Evict(each, desk.owner, reason, at_once))
        assert isinstance(answer.reply, Done)
        met += answer.reply.tickets
    return met


async def holders(desk: Desk, pattern: str) -> list[tuple[Resource, list[str]]]:
    """The names that match and are held now, with the whole tickets of those inside. What is damaged is left out."""
    records, now = await desk.backend.looks(pattern)
    return [
        (resource(name, record, now), tickets)
        for name, record in records
        if not isinstance(record, RecordDamaged) and (tickets := [e.ticket for e in record.inside if e.expires > now])
    ]


async def resize(desk: Desk, name: str, capacity: int | None) -> None:
    await desk.ask(name, Resize(capacity))


async def repair(desk: Desk, name: str) -> tuple[str, ...]:
    return tuple(await desk.backend.repair(name))


async def ping(desk: Desk) -> float:
    begun = desk.clock()
    await desk.backend.ping()
    return desk.clock() - begun
