"""Leases that another process may release or extend, by a secret of the caller's own choice: the handle.

The client makes a ticket, which is known only after the lock was acquired. A handle is chosen before and can be stored
elsewhere; a client that knows it may end the lease or extend it, and nothing else: it cannot acquire with it. The store
keeps a digest of the handle, as the end of the ticket, so this works with every store, and reading the store does not
reveal the secret.

Rejected alternatives: a ticket of the caller's own choice (an Acquire with the ticket of a holder is granted, so two
processes would believe that they hold it), and the note (everyone can read it).
"""

from __future__ import annotations

from ..errors import NotHeld
from ..rules.locks import Entry, Granted, Renew
from .operator_actions import evict_tickets
from .session import Session

NOTICED = 1000  # microseconds
BY_HANDLE = "released by its handle"


def mark(name: str, handle: str) -> str:
    """Return the end of a ticket with this handle."""
    from hashlib import sha256

    return "-" + sha256(f"{name}\0{handle}".encode()).hexdigest()[:32]


async def release(session: Session, name: str, handle: str) -> bool:
    """End the leases with this handle now. Returns True if there were any. A process that holds one is notified, and
    an audit line names the client that did it: for the holder it is an eviction."""
    found = await _inside(session, name, handle)
    await evict_tickets(session, name, [one.ticket for one in found], BY_HANDLE, True, found, "released")
    return bool(found)


async def extend(session: Session, name: str, handle: str, seconds: float) -> None:
    """Extend the leases with this handle to at least this long from now. NotHeld if there are none."""
    if not any([await extend_entry(session, name, one, seconds) for one in await _inside(session, name, handle)]):
        raise NotHeld(f"No client holds {name!r} with this handle: released, expired, or never there.")


async def extend_entry(session: Session, name: str, one: Entry, seconds: float) -> bool:
    """Extend the lease of another client to at least this long from now; False if it has ended.

    Its lease becomes longer in any case, by which its holder notices it: a max_hold then ends no sooner.
    """
    longer = max(int(seconds * 1e6), one.lease + NOTICED)
    return isinstance((await session.call(name, Renew(one.ticket, one.fence, None, longer))).reply, Granted)


async def _inside(session: Session, name: str, handle: str) -> list[Entry]:
    record, now = await session.backend.look(name)
    end = mark(name, handle)
    return [one for one in record.holders if one.ticket.endswith(end) and one.expires > now]
