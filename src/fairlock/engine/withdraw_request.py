"""Withdraw: undo what an acquire has done that ends without a grant.

A request that ends early, for any reason (time, cancellation, Ctrl-C, an error), leaves nothing behind: its Release is
recorded as a pending release first and then tried, so that the keeper sends it if this attempt is interrupted, too.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Coroutine
from typing import Any

from .events import Outcome, outcome_for, report_given_up
from .grant import Grant, LeaseBase
from .grant_state import RELEASED, RELEASING
from .local_queue import lead
from .release import flush_release, release
from .session import Session

QUICKLY = 0.2  # a request that gives up waits no longer than this for a silent store: the keeper sends its Release


def called(session: Session, hold: LeaseBase) -> bool:
    """Under the mutex: return True if this one has the grant that it waited for, or must now ask for it."""
    if hold in hold._grant.holds:
        return True
    grant = session.grants.get(hold._request.key)
    if grant is None or hold not in grant.holds:
        return False
    hold._grant = grant
    return True


def leave_local_queue(session: Session, hold: LeaseBase) -> None:
    """Under the mutex: leave the local queue, also if a caller was interrupted before it could."""
    grant = session.grants.get(hold._request.key)
    if grant is not None and grant.queue and hold in grant.queue:
        grant.queue.remove(hold)


async def move_out(session: Session, grant: Grant) -> None:
    """This ticket will never be granted again: the next leader needs another one. A grant that it had is released."""
    with session.mutex:
        session.give_up(grant, session.clock() + 1.0, leave_tombstone=False)
        grant.state = RELEASING
    session.drop_grant(grant)
    grant.holds = ()
    if await flush_release(session, grant.ticket, session.clock() + QUICKLY):
        grant.state = RELEASED


async def lead_again(session: Session, hold: LeaseBase) -> None:
    """The leader has inherited a ticket that may have been granted before it came, so the fence may be too low for it.
    That grant is released, and it leads for a new one, ahead of all that came after it."""
    grant = hold._grant
    with session.mutex:
        grant.queue = deque((hold, *(grant.queue or ())))
    await move_out(session, grant)
    with session.mutex:
        called(session, hold)


async def step_down(session: Session, hold: LeaseBase) -> None:
    """The leader gives up: another one of its local queue leads with the same ticket, or the ticket is released."""
    grant = hold._grant
    with session.mutex:
        if not hold._leads:
            return
        if grant.queue:
            lead(grant, grant.queue[0])
            return
        known = grant.known
        if known:
            session.give_up(grant, session.clock() + 1.0)
        session.hand_down(grant)
        session.grants.pop(grant.ticket, None)
        grant.state = RELEASING if known else RELEASED
        grant.holds = ()
    if known and await flush_release(session, grant.ticket, session.clock() + QUICKLY):
        grant.state = RELEASED


def withdraw(session: Session, hold: LeaseBase) -> Coroutine[Any, Any, None]:
    """Undo what an acquire that ends with an exception has done so far. Never raises an error of the store.

    Call it where the exception is handled; what it returns may run in another task.
    """
    return _withdraw(session, hold, outcome_for(sys.exception()))


async def _withdraw(session: Session, hold: LeaseBase, outcome: Outcome) -> None:
    with session.mutex:
        leave_local_queue(session, hold)
        called(session, hold)
    if hold._has:
        await release(session, hold, quiet=True)
    else:
        await step_down(session, hold)
        report_given_up(session, hold, outcome)
    if session.ended is not None:
        session.ended.set()
