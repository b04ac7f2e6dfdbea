"""Renew an item of a pool: by the keeper or by a call, with another body, or for longer than its lease. Seal it."""

from __future__ import annotations

from ..errors import ConfigError, StoreError
from ..rules.pools import On, Touch, Touched
from .events import report_renewed
from .grant import NEVER, Grant, LeaseBase
from .grant_state import HELD
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


async def seal(session: Session, hold: LeaseBase, transaction: object) -> None:
    """Let this transaction of the user be committed only if the item is still held, and let no other worker take it
    before that has ended. LeaseLost if it is not held, StoreError if the transaction fails. Prolongs nothing."""
    hold.ensure_held()
    grant = hold._grant
    answer = await session.backend.seal_item(grant.name, renewal(grant), transaction, grant.lease)
    if not isinstance(answer.reply, Touched) and grant.state is HELD:
        judge(session, grant, answer.reply, answer.at, session.clock() < grant.deadline)
    hold.ensure_held()


def is_renewed(grant: Grant) -> bool:
    """Return True if the keeper renews this item."""
    if not grant.request.renews:
        grant.renew_at = NEVER
    return grant.request.renews


def renewal(grant: Grant, body: str | None = None, lease: int | None = None) -> On:
    """Return the message that renews this item."""
    return On(grant.holds[0]._detail, Touch(grant.ticket, grant.fence, body, lease))


async def _touch(session: Session, grant: Grant, body: str | None = None, lease: int | None = None) -> None:
    in_time = session.clock() < grant.deadline
    try:
        answer = await session.call_pool(grant.name, renewal(grant, body, lease))
    except (StoreError, ConfigError):
        grant.failed = session.clock()
        if grant.failed >= grant.deadline:
            session.lose(grant)
        raise
    if grant.state is HELD:
        judge(session, grant, answer.reply, answer.at, in_time)


def judge(session: Session, grant: Grant, reply: object, at: float, in_time: bool) -> None:
    """Handle the reply to the renewal of an item: it lasts longer, or it is lost."""
    if isinstance(reply, Touched):
        deadline = grant.deadline
        with session.mutex:
            if grant.longer(reply.left):
                grant.lengthen(at, reply.left)
            grant.confirm(at, reply.left, session.backend.skew)
        report_renewed(session, grant, at, deadline, grant.holds[0]._detail)
    elif in_time:
        session.lose(
            grant, "store_reset", "the store no longer knows it, or it was removed. Someone else may have it now"
        )
    else:
        session.lose(grant)
