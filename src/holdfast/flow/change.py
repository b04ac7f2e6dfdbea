"""What can be done with a hold while it is held: renew it, make it lighter, let it live on without a process."""

from __future__ import annotations

from ..doorman import ALL, Admitted, Keep, NotInside, Renew
from ..errors import LeaseLost, NotHeld
from .desk import Desk
from .keep import renew as renew_seat
from .release import over
from .seat import NEVER, Attached, Hold
from .wish import Wish


async def renew(desk: Desk, hold: Hold) -> None:
    """Renew now. LeaseLost if it is gone, BackendError if the store cannot be asked."""
    hold.ensure_held()
    await renew_seat(desk, hold._seat)
    hold.ensure_held()


async def prolong(desk: Desk, hold: Hold, seconds: float, more: bool = False) -> None:
    """Let the hold last so many seconds from now at most, or so many more, whatever its max_hold was; renew it now.

    LeaseLost if it is gone, BackendError if the store cannot be asked.
    """
    hold.ensure_held()
    seat = hold._seat
    with desk.mutex:
        seat.cap = (seat.cap if more else desk.clock()) + seconds
        desk.ring(seat.cap)
    await renew(desk, hold)


async def extend(desk: Desk, hold: Hold, seconds: float) -> None:
    """Let the hold last for at least so long from now, even if nobody renews it any more; a max_hold ends no sooner.

    LeaseLost if it is gone, BackendError if the store cannot be asked.
    """
    hold.ensure_held()
    seat = hold._seat
    with desk.mutex:
        if seat.cap != NEVER:
            seat.cap = max(seat.cap, desk.clock() + seconds)
        longer = seconds if seconds > seat.lease else None
        if longer is not None and seat.weight == ALL:
            desk.set_apart(seat)  # the passing on ends: those who wait did not ask for such a lease
    await renew_seat(desk, seat, longer)
    hold.ensure_held()


async def downgrade(desk: Desk, hold: Hold) -> None:
    """From writer to reader, without letting a writer in between.

    From the first sending on this client counts as a reader, whatever the answer: the message may have arrived.
    """
    hold.ensure_held()
    seat = hold._seat
    with desk.mutex:
        seat.weight = 1
        seat.lowered = True
        desk.set_apart(seat)  # the passing on ends: those who wait need a seat of their own
    await renew_seat(desk, seat)
    hold.ensure_held()


async def detach(desk: Desk, hold: Hold, lease: float) -> str:
    """Let the hold live on for so long without this client. The ticket that releases or attaches it.

    From the first sending on its lease counts as no longer than that, whatever the answer: it may have arrived.
    """
    hold.ensure_held()
    seat = hold._seat
    if len(seat.holds) > 1:
        raise NotHeld(f"Other readers of this client share this place in {seat.name!r}; detach needs one of its own.")
    with desk.mutex:
        if lease < seat.lease:
            seat.shorten(desk.clock(), lease)
            desk.ring(seat.renew_at)
    answer = await desk.ask(seat.name, Keep(seat.ticket, seat.fence, int(lease * 1e6)))
    if not isinstance(answer.reply, Admitted):
        desk.lose(seat)
    if seat.reason:  # a loss is final, and its Leave is on the way: the ticket would be worth nothing
        raise hold._loss()
    seat.left = True
    desk.unseat(seat)
    over(hold)
    return seat.ticket


async def attach(desk: Desk, name: str, ticket: str) -> Hold:
    """Take over what was detached, here or elsewhere, by its ticket. It is renewed from now on."""
    answer = await desk.ask(name, Renew(ticket))
    reply = answer.reply
    if isinstance(reply, NotInside):
        if reply.why is not None and reply.why.kind == "evicted":
            error = LeaseLost(f"The lease on {name!r} was lost: {reply.why.by or 'somebody'} evicted its holder.")
            error.reason = "evicted"
            raise error
        raise NotHeld(f"Nobody is inside {name!r} with this ticket: released, expired, or never there.")
    assert isinstance(reply, Admitted)
    wish = Wish(name, 0, 1, reply.left / 1e6)
    hold = desk.hold(desk, wish)
    seat = Attached(wish, ticket, desk.backend.skew)
    seat.doubtful = True  # what may still be under way of its first holder's messages is not known here
    seat.fence = reply.fence
    seat.confirm(answer.at, reply.left)
    seat.give(hold, reply.fence, desk.clock())
    desk.seats[ticket] = seat
    desk.seated(seat)
    return hold
