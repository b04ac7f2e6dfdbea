"""A lease that another process may release or extend: by a secret of the caller's own choice, its handle.

A ticket is made by the client and known only after the lock was acquired. A handle is chosen before, written down
somewhere; a client that knows it may end the lease or extend it, and nothing else: nobody enters by it. What the
store keeps is a digest of it, as the end of the ticket, so every store can do that, and a look at the store does not
tell the secret.

Rejected alternatives: a ticket of the caller's own choice (an Enter by a ticket that is inside is answered "admitted",
so two processes would believe that they hold it), and the note (everybody reads it).
"""

from __future__ import annotations

from ..doorman import Admitted, Entrant, Evict, Renew
from ..errors import NotHeld
from .desk import Desk

NOTICED = 1000  # microseconds


def mark(name: str, handle: str) -> str:
    """What a ticket with this handle ends with."""
    from hashlib import sha256

    return "-" + sha256(f"{name}\0{handle}".encode()).hexdigest()[:32]


async def release(desk: Desk, name: str, handle: str) -> bool:
    """End the leases with this handle now; whether there were any. A process that holds one learns of it."""
    found = await _inside(desk, name, handle)
    for one in found:
        await desk.ask(name, Evict(one.ticket, desk.owner, "released by its handle", at_once=True))
    return bool(found)


async def extend(desk: Desk, name: str, handle: str, seconds: float) -> None:
    """Let the leases with this handle last for at least so long from now. NotHeld if there are none."""
    if not any([await extend_entrant(desk, name, one, seconds) for one in await _inside(desk, name, handle)]):
        raise NotHeld(f"Nobody holds {name!r} with this handle: released, expired, or never there.")


async def extend_entrant(desk: Desk, name: str, one: Entrant, seconds: float) -> bool:
    """Let what another client holds last for at least so long from now; False if it is gone.

    Its lease becomes longer in any case, by which its holder notices it: a max_hold then ends no sooner.
    """
    longer = max(int(seconds * 1e6), one.lease + NOTICED)
    return isinstance((await desk.ask(name, Renew(one.ticket, one.fence, None, longer))).reply, Admitted)


async def _inside(desk: Desk, name: str, handle: str) -> list[Entrant]:
    record, now = await desk.backend.look(name)
    end = mark(name, handle)
    return [one for one in record.inside if one.ticket.endswith(end) and one.expires > now]
