"""Renew an item of a pool: by the keeper or by a call, with another body, or for longer than its lease."""

from __future__ import annotations

from ..errors import ConfigError, StoreError
from ..rules.pools import On, Touch, Touched
from .grant import NEVER, Grant, LeaseBase
from .pool_acquire import ItemGrant
from .session import Session


async def touch(session: Session, hold: LeaseBase, body: str | None = None) -> None:
    """Renew the item now, with its new body. LeaseLost if it is lost, StoreError if the store cannot be reached."""
    hold.ensure_held()
    await _touch(session, hold._grant, body)
    hold.ensure_held()
    if body is not None:
        hold._text = body  # type: ignore[attr-defined]


async def extend(session: Session, hold: LeaseBase, seconds: float) -> None:
    """Let the item last at least this long from now, even if it is not renewed any more. Errors as of `touch`."""
    hold.ensure_held()
    grant = hold._grant
    await _touch(session, grant, lease=int(seconds * 1e6) if seconds > grant.lease else None)
    hold.ensure_held()


async def renew(session: Session, grant: Grant) -> None:
    """Renew the item. The keeper calls this."""
    assert isinstance(grant, ItemGrant)
    if grant.renews:
        await _touch(session, grant)
    else:
        grant.renew_at = NEVER


async def _touch(session: Session, grant: Grant, body: str | None = None, lease: int | None = None) -> None:
    assert isinstance(grant, ItemGrant)
    in_time = session.clock() < grant.deadline
    try:
        answer = await session.call_pool(grant.name, On(grant.key, Touch(grant.ticket, grant.fence, body, lease)))
    except (StoreError, ConfigError):
        grant.failed = session.clock()
        if grant.failed >= grant.deadline:
            session.lose(grant)
        raise
    if grant.leaving or grant.reason:
        return
    if isinstance(answer.reply, Touched):
        with session.mutex:
            if grant.longer(answer.reply.left):
                grant.lengthen(answer.at, answer.reply.left)
            grant.confirm(answer.at, answer.reply.left)
        session.tell("renewed", grant.name, grant.ticket, grant.fence, grant.key)
    elif in_time:
        session.lose(
            grant, "store_reset", "the store no longer knows it, or it was removed. Someone else may have it now"
        )
    else:
        session.lose(grant)
