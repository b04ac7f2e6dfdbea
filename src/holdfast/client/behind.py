"""How a thread waits behind others of its own client: on a raw lock, until somebody passes on what he has.

It is the beginning of what `acquire` does, without coroutines: hundreds of threads that want the same thing pass it on
to each other by tens of thousands a second, and then every call between two of them counts. Whatever is not as plain as
that (its time is over, it was woken for nothing, it is to lead and has to wait) is left to `acquire`, which looks for
itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..flow.acquire import called
from ..flow.desk import Desk
from ..flow.events import heeded
from ..flow.party import stand_by
from ..flow.short import enter
from .lease import Lease

if TYPE_CHECKING:
    from .colour import ThreadEvent

LONGEST = 0.5  # seconds; who waits longer is in no hurry, and `acquire` may have something to say to him


def behind(desk: Desk, lease: Lease, limit: float | None) -> bool:
    """Whether this one has it; False: go on with `get`. On any exception: undo."""
    event: ThreadEvent = desk.colour.event()  # type: ignore[assignment]
    with desk.mutex:
        seat = desk.seats.get(lease._wish.key)
        if seat is None:
            return False
        stand_by(seat, lease, event)
    if desk.on_event is not None or heeded("waiting"):
        desk.tell("waiting", lease._wish.name, detail="behind others of this client")
    if not event.block(LONGEST if limit is None or limit > LONGEST else limit):
        return False
    seat = lease._seat
    if lease not in seat.holds:
        with desk.mutex:
            leads = called(desk, lease)
        return leads and enter(desk, lease, False)
    if seat.renew_at < desk.wake_at or seat.watched or seat.cap < desk.wake_at:
        desk.seated(seat)
    if desk.on_event is not None or heeded("acquired"):
        desk.tell("acquired", lease._wish.name, seat.ticket, lease.fence)
    return True
