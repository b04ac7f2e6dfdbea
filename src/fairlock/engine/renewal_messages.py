"""Renew grants: many by one message, or one by a call of the user.

One message renews up to `batch_size` leases, of locks or of items. The reply to each is judged by itself: a damaged
record, a refusal or an unknown outcome costs the other leases of that message nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..errors import ConfigError, LockError, RecordDamaged, StoreError
from ..rules.locks import EXCLUSIVE, Granted, NotHolder, Renew
from ..stores.base import Answer, OutcomeUnknown, RowLocked
from .ask_to_release import note_request
from .events import report_renewed
from .grant import Grant
from .grant_state import HELD
from .recheck_leases import look_up, suspect
from .session import Session

if TYPE_CHECKING:
    from ..stores.base import PoolAnswer


def pause_after_failure(lease: float) -> float:
    """Return for how many seconds a lease waits that could not be renewed."""
    return min(lease / 10, 1.0)


class _Message(NamedTuple):
    """The grants that one message renews: of locks, or of items."""

    grants: Sequence[Grant]
    turn: int = 0  # how often its outcome was unknown
    began: float = 0.0
    doubt: OutcomeUnknown | None = None


async def renew_all(session: Session, grants: Sequence[Grant]) -> None:
    """Renew these grants, or find which of them are lost. Where the outcome is unknown, repeat it after all others.

    StoreError if a whole message fails: then the others would most likely fail, too.
    """
    locks = [s for s in grants if not s.request.pool]
    items = [s for s in grants if s.request.pool] if len(locks) < len(grants) else []
    messages = deque(_messages(locks, session.backend.batch_size))
    if items:
        messages += _messages(items, session.pools().batch_size)
    while messages:
        repeated = await _send(session, messages.popleft())
        if repeated is not None:
            messages.append(repeated)


def _messages(grants: Sequence[Grant], size: int) -> list[_Message]:
    return [_Message(grants[n : n + size]) for n in range(0, len(grants), size)]


async def _send(session: Session, message: _Message) -> _Message | None:
    """Renew these grants by one message. Return the message that repeats the renewals whose outcome is unknown."""
    clock = session.clock()
    grants = [grant for grant in message.grants if _is_renewed(session, grant, clock)]
    if not grants:
        return None
    if message.doubt is not None:
        try:
            await session.doubted(message.doubt, message.turn, message.began, None)
        except StoreError as error:
            for grant in grants:
                _failed(session, grant, error)
            raise
    if session.closed:
        raise session.over()
    clock = session.clock()
    in_time = [clock < grant.deadline for grant in grants]
    outcomes = await _call_many(session, grants)
    doubtful: list[Grant] = []
    doubt: OutcomeUnknown | None = None
    failure: LockError | None = None
    answers = 0
    for grant, outcome, timely in zip(grants, outcomes, in_time, strict=True):
        if not isinstance(outcome, Exception):
            if not answers:
                session.answered(outcome.at)
            answers += 1
            judge(session, grant, outcome, timely)
        elif isinstance(outcome, OutcomeUnknown):
            doubtful.append(grant)
            doubt = outcome
        elif isinstance(outcome, RowLocked):
            answers += 1
            _failed(session, grant, outcome)
            grant.renew_at = clock + pause_after_failure(grant.lease)
        else:
            if _failed(session, grant, outcome):
                answers += 1
                continue
            failure = outcome
            grant.renew_at = clock + pause_after_failure(grant.lease)
    if doubt is not None:
        look_up(session)  # the backend may know more than this one request shows
        return _Message(doubtful, message.turn + 1, message.began or clock, doubt)
    if failure is not None and not answers:
        if isinstance(failure, StoreError):
            session.failed(failure)
        raise failure
    return None


def _is_renewed(session: Session, grant: Grant, clock: float) -> bool:
    """Return True if this grant is still to be renewed. A grant whose time is over is lost."""
    if grant.state is not HELD:
        return False
    if clock >= grant.cap:
        session.lose(grant)
        return False
    if not grant.request.pool:
        return True
    from .pool_renewal import is_renewed

    return is_renewed(grant)


async def _call_many(
    session: Session, grants: Sequence[Grant]
) -> Sequence[Answer | PoolAnswer | OutcomeUnknown | LockError]:
    if not grants[0].request.pool:
        return await session.backend.call_many([(grant.name, lock_renewal(grant)) for grant in grants])
    from .pool_renewal import renewal

    return await session.pools().call_many([(grant.name, renewal(grant)) for grant in grants])


def lock_renewal(grant: Grant, lease: float | None = None) -> Renew:
    weight = grant.weight if grant.weight != grant.request.weight else None
    span = None if lease is None else int(lease * 1e6)
    return Renew(grant.ticket, grant.fence, weight, span)


def _failed(session: Session, grant: Grant, error: LockError) -> bool:
    """Note that this grant could not be renewed. Return True if that is a reply about this grant and no failure."""
    if isinstance(error, RecordDamaged) and not grant.request.pool:
        lose_damaged(session, grant, error)
        return True
    grant.failed = session.clock()
    if grant.failed >= grant.deadline:
        session.lose(grant)
    return False


async def renew(session: Session, grant: Grant, lease: float | None = None) -> None:
    """Renew one grant, with a longer lease if one is given, or find that it is lost. StoreError if the store cannot be
    reached."""
    if session.clock() >= grant.cap:
        session.lose(grant)
        return
    in_time = session.clock() < grant.deadline
    try:
        answer = await session.call(grant.name, lock_renewal(grant, lease))
    except (StoreError, ConfigError) as error:
        if not _failed(session, grant, error):
            raise
        return
    judge(session, grant, answer, in_time)


def judge(session: Session, grant: Grant, answer: Answer | PoolAnswer, in_time: bool) -> None:
    """Handle the reply to a renewal: it lasts longer, or it is lost. `in_time`: it was held when that was sent."""
    if grant.state is not HELD:
        return
    reply = answer.reply
    if grant.request.pool:
        from .pool_renewal import judge as judge_item

        judge_item(session, grant, reply, answer.at, in_time)
        return
    if isinstance(reply, Granted) and reply.fence == grant.fence:
        deadline = grant.deadline
        with session.mutex:  # another thread may be shortening or releasing it: then it must not be filed again
            if grant.longer(reply.left) and grant.state is HELD:
                if grant.weight == EXCLUSIVE:
                    session.set_apart(grant)  # the passing on ends: the waiters did not ask for such a lease
                grant.lengthen(answer.at, reply.left)
            grant.confirm(answer.at, reply.left, session.backend.skew)
        report_renewed(session, grant, answer.at, deadline)
        note_request(session, grant, reply.asked)
        return
    why = reply.why if isinstance(reply, NotHolder) else None
    if why is not None and why.kind == "evicted":
        reason = f" ({why.reason})" if why.reason else ""
        session.lose(grant, "evicted", f"{why.by or 'an operator'} evicted its holder{reason}")
    elif in_time:
        session.lose(grant, "store_reset", "the store no longer knows it. Someone else may hold it now")
        suspect(session)  # the others may be lost with it
    else:
        session.lose(grant)


def lose_damaged(session: Session, grant: Grant, damage: RecordDamaged) -> None:
    """Lose a grant whose state is damaged: it cannot be renewed, and after a repair another client may get the lock."""
    session.lose(grant, "store_reset", str(damage).rstrip("."))
