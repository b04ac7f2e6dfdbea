"""Operations on a lease: renew, extend, downgrade, seal, detach, attach."""

from __future__ import annotations

from ..errors import LeaseLost, NotHeld
from ..rules.locks import EXCLUSIVE, Detach, Granted, NotHolder, Renew
from .ask_to_release import note_request
from .events import emit, report_released
from .grant import NEVER, Attached, LeaseBase
from .grant_state import HELD, LOST, RELEASED
from .release import over
from .renewal_messages import judge
from .renewal_messages import renew as renew_grant
from .request import LockRequest
from .session import Session


async def renew(session: Session, hold: LeaseBase) -> None:
    """Renew now. LeaseLost if it is lost, StoreError if the store cannot be reached."""
    hold.ensure_held()
    await renew_grant(session, hold._grant)
    hold.ensure_held()


async def prolong(session: Session, hold: LeaseBase, seconds: float, more: bool = False) -> None:
    """Let the hold last at most this many seconds from now, or this many more, whatever its max_hold was; renew it now.

    LeaseLost if it is gone, StoreError if the store cannot be asked.
    """
    hold.ensure_held()
    grant = hold._grant
    with session.mutex:
        grant.cap = (grant.cap if more else session.clock()) + seconds
        session.wake_keeper(grant.cap)
    await renew(session, hold)


async def extend(session: Session, hold: LeaseBase, seconds: float) -> None:
    """Let the hold last at least this long from now, even if it is not renewed any more; a max_hold ends no sooner.

    LeaseLost if it is gone, StoreError if the store cannot be asked.
    """
    hold.ensure_held()
    grant = hold._grant
    with session.mutex:
        if grant.cap != NEVER:
            grant.cap = max(grant.cap, session.clock() + seconds)
        longer = seconds if seconds > grant.lease else None
        if longer is not None and grant.weight == EXCLUSIVE:
            session.set_apart(grant)  # the passing on ends: the waiters did not ask for such a lease
    await renew_grant(session, grant, longer)
    hold.ensure_held()


async def downgrade(session: Session, hold: LeaseBase) -> None:
    """Turn a writer into a reader, without another writer in between.

    From the first sending on this client counts as a reader, whatever the answer: the message may have arrived.
    """
    hold.ensure_held()
    grant = hold._grant
    with session.mutex:
        grant.weight = 1
        session.set_apart(grant)  # the passing on ends: the waiters need a grant of their own
    await renew_grant(session, grant)
    hold.ensure_held()


async def seal(session: Session, hold: LeaseBase, transaction: object) -> None:
    """Let this transaction of the user be committed only if the hold is still the current one, and let no other client
    acquire it before that has ended. LeaseLost if it is not held, StoreError if the transaction fails.

    What the store replies is not written, so it prolongs nothing. The passing on inside this process ends: it needs no
    step of the store, so the next holder would not wait for the end of the transaction.
    """
    hold.ensure_held()
    grant = hold._grant
    with session.mutex:
        session.set_apart(grant)
    answer = await session.backend.seal(grant.name, Renew(grant.ticket, grant.fence), transaction, grant.lease)
    if not isinstance(answer.reply, Granted):
        judge(session, grant, answer, session.clock() < grant.deadline)
    hold.ensure_held()


async def detach(session: Session, hold: LeaseBase, lease: float) -> str:
    """Let the hold last this long without this client. Returns the ticket that releases or attaches it.

    From the first sending on its lease counts as no longer than that, whatever the answer: it may have arrived.
    """
    hold.ensure_held()
    grant = hold._grant
    if len(grant.holds) > 1:
        raise NotHeld(f"Other readers of this client share this place in {grant.name!r}; detach needs one of its own.")
    with session.mutex:
        if lease < grant.lease:
            grant.shorten(session.clock(), lease, session.backend.skew)
            session.wake_keeper(grant.renew_at)
    answer = await session.call(grant.name, Detach(grant.ticket, grant.fence, int(lease * 1e6)))
    if not isinstance(answer.reply, Granted):
        session.lose(grant)
    if grant.state is LOST:  # a loss is final, and its Release is on the way: the ticket would be useless
        raise hold._loss()
    grant.state = RELEASED
    session.drop_grant(grant)
    over(hold)
    report_released(session, hold, kind="detached")
    grant.holds = ()
    return grant.ticket


async def attach(session: Session, name: str, ticket: str) -> LeaseBase:
    """Attach a lease that was detached, here or elsewhere, by its ticket. It is renewed from now on."""
    answer = await session.call(name, Renew(ticket))
    reply = answer.reply
    if isinstance(reply, NotHolder):
        if reply.why is not None and reply.why.kind == "evicted":
            error = LeaseLost(f"The lease on {name!r} was lost: {reply.why.by or 'an operator'} evicted its holder.")
            error.reason = "evicted"
            raise error
        raise NotHeld(f"No client holds {name!r} with this ticket: released, expired, or never acquired.")
    assert isinstance(reply, Granted)
    request = LockRequest(name, 0, 1, reply.left / 1e6)
    hold = session.hold(session, request)
    grant = Attached(request, ticket)
    grant.doubtful = True  # messages of its first holder may still be under way
    grant.fence = reply.fence
    grant.confirm(answer.at, reply.left, session.backend.skew)
    grant.since = session.clock()
    grant.give(hold, reply.fence, grant.since)
    grant.state = HELD
    session.grants[ticket] = grant
    session.hand_to_keeper(grant)
    emit(session, "attached", name, ticket, reply.fence)
    note_request(session, grant, reply.asked)
    return hold
