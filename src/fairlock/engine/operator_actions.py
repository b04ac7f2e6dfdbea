"""Ask, evict, resize, repair: what operators do to a name. Each of them leaves an audit line."""

from collections.abc import Sequence

from ..errors import ConfigError
from ..rules.locks import Ask, Done, Entry, Evict, Resize
from ..rules.locks.audit_lines import AuditKind
from . import validate
from .events import short
from .operator_audit import record as record_audit
from .session import Session
from .snapshots import holders


async def ask(session: Session, name: str, reason: str, ticket: str | None) -> tuple[str, ...]:
    """Ask the current holders, or the one with this ticket (shortened or whole), to release. Returns the tickets of
    those that were asked; they hold it as before."""
    reason = _reason(reason, "ask")
    if ticket is not None:
        validate.ticket(ticket)
    record, _ = await session.backend.look(validate.name(name))
    asked: tuple[str, ...] = ()
    for e in record.holders:
        if ticket is None or ticket in (e.ticket, short(e.ticket)):
            answer = await session.call(name, Ask(e.ticket, session.owner, reason))
            assert isinstance(answer.reply, Done)
            if answer.reply.tickets:
                asked += answer.reply.tickets
                await record_audit(session, name, "asked", reason, e)
    return asked


def _reason(reason: str, command: str) -> str:
    reason = validate.label(reason, "A reason")
    if not reason:
        raise ConfigError(f"{command}() needs a reason; the holder reads it.")
    return reason


async def evict(
    session: Session, name: str, reason: str, ticket: str | None, at_once: bool, pattern: bool
) -> tuple[str, ...]:
    """Stop renewing the leases of the current holders, or of this ticket (shortened or whole), or end them at once.
    Returns the tickets of the evicted. With `pattern` the name is a pattern: the holders of every match are meant."""
    reason = _reason(reason, "evict")
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
    return await evict_tickets(session, name, tickets, reason, at_once, (*record.holders, *record.queue))


async def evict_tickets(
    session: Session,
    name: str,
    tickets: Sequence[str],
    reason: str,
    at_once: bool,
    known: Sequence[Entry] | None = None,
    kind: AuditKind = "evicted",
) -> tuple[str, ...]:
    """Evict the holders at the time of reading, by their tickets: repeated after an unknown outcome, `Evict(None)`
    would evict a client that was granted the lock in the meantime. kind: of the audit line."""
    evicted: tuple[str, ...] = ()
    if known is None:
        record, _ = await session.backend.look(name)
        known = record.holders
    for each in tickets:
        answer = await session.call(name, Evict(each, session.owner, reason, at_once))
        assert isinstance(answer.reply, Done)
        evicted += answer.reply.tickets
        if answer.reply.tickets:
            about = next((e for e in known if e.ticket == each), None)
            text = f"{reason} (at once)" if at_once and kind == "evicted" else reason
            await record_audit(session, name, kind, text, about)
    return evicted


async def resize(session: Session, name: str, capacity: int | None) -> None:
    await session.call(name, Resize(capacity))
    size = "to what programs ask for" if capacity is None else f"to {capacity} slots"
    await record_audit(session, name, "resized", size)


async def repair(session: Session, name: str) -> tuple[str, ...]:
    done = tuple(await session.backend.repair(name))
    if done:
        await record_audit(session, name, "repaired", " ".join(done)[:200])
    return done
