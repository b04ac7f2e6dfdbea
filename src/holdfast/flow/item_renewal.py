"""Keeping an item of a pool: renewed by the keeper or by hand, with another body, or for longer than its lease."""

from __future__ import annotations

from ..errors import BackendError, ConfigError
from ..pool import On, Touch, Touched
from .desk import Desk
from .orders import order as say
from .pool import ItemSeat
from .seat import NEVER, Hold, Seat


async def touch(desk: Desk, hold: Hold, body: str | None = None) -> None:
    """Keep it, now, and its new body with it. LeaseLost if it is gone, BackendError if the store cannot be asked."""
    hold.ensure_held()
    await _touch(desk, hold._seat, body)
    hold.ensure_held()
    if body is not None:
        hold._text = body  # type: ignore[attr-defined]


async def extend(desk: Desk, hold: Hold, seconds: float) -> None:
    """Let it last for at least so long from now, even if nobody renews it any more. Errors as of `touch`."""
    hold.ensure_held()
    seat = hold._seat
    await _touch(desk, seat, lease=int(seconds * 1e6) if seconds > seat.lease else None)
    hold.ensure_held()


async def renew(desk: Desk, seat: Seat) -> None:
    """What the keeper does."""
    assert isinstance(seat, ItemSeat)
    if seat.renews:
        await _touch(desk, seat)
    else:
        seat.renew_at = NEVER


async def _touch(desk: Desk, seat: Seat, body: str | None = None, lease: int | None = None) -> None:
    assert isinstance(seat, ItemSeat)
    in_time = desk.clock() < seat.deadline
    try:
        answer = await say(desk, seat.name, On(seat.key, Touch(seat.ticket, seat.fence, body, lease)))
    except (BackendError, ConfigError):
        seat.failed = desk.clock()
        if seat.failed >= seat.deadline:
            desk.lose(seat)
        raise
    if seat.leaving or seat.reason:
        return
    if isinstance(answer.reply, Touched):
        with desk.mutex:
            if seat.longer(answer.reply.left):
                seat.lengthen(answer.at, answer.reply.left)
            seat.confirm(answer.at, answer.reply.left)
        desk.tell("renewed", seat.name, seat.ticket, seat.fence, seat.key)
    elif in_time:
        desk.lose(seat, "store_reset", "the store no longer knows it, or it was removed. Someone else may have it now")
    else:
        desk.lose(seat)
