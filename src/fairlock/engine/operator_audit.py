"""The audit lines of a name: every intervention of an operator leaves one.

The line is written after the command. If that fails, the command has still been carried out, and a warning in the log
is all that is left of the line.
"""

from ..errors import LockError
from ..rules.locks import Entry
from ..rules.locks.audit_lines import AuditKind
from ..rules.locks.audit_lines import AuditLine as AuditLine
from ..stores.base import OutcomeUnknown
from .events import short, warn
from .session import Session


async def audit(session: Session, name: str) -> tuple[AuditLine, ...]:
    """Return what operators did to this name, the newest first."""
    return tuple(await session.backend.audit(name))


async def record(session: Session, name: str, kind: AuditKind, reason: str, about: Entry | None = None) -> None:
    """Write an audit line about this holder or waiter, or about the name."""
    owner, ticket = (about.owner, short(about.ticket)) if about is not None else ("", "")
    try:
        await session.backend.add_audit(name, AuditLine(0.0, kind, session.owner, reason, owner, ticket))
    except (OutcomeUnknown, LockError) as error:
        warn(f"{name!r} was {kind}, but the audit line about it may not have been written: {error}")
