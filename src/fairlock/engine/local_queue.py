"""The local queue: threads or tasks of one client that want the same lock share one grant.

One of them, the leader, calls the store; the others wait. When the lock is granted and exclusive, each holder passes it
on to the next one, with the next fence of the block, a bounded number of times and for a bounded time, so that other
processes keep their turn. Readers that waited together get the lock together; a later reader needs a grant of its own,
or a writer would starve.

All of this is plain data under the session's mutex; the waiting is in acquire.py.
"""

from __future__ import annotations

from collections import deque

from ..stores.base import Event
from .grant import Grant, LeaseBase
from .grant_state import HELD

PASSING = 0.1


def stand_by(grant: Grant, hold: LeaseBase, event: Event) -> None:
    """Add this hold to the local queue of the grant."""
    hold._event = event
    if grant.queue is None:
        grant.queue = deque()
    grant.queue.append(hold)


def lead(grant: Grant, heir: LeaseBase) -> None:
    """Make this hold of the local queue the leader from here on."""
    grant.holds = [heir]
    _call(grant, heir)


def may_pass_on(grant: Grant, clock: float) -> bool:
    return (
        bool(grant.queue)
        and grant.state is HELD
        and grant.weight == grant.request.weight
        and grant.holds[0].fence + 1 < grant.fence + grant.request.block
        and clock - grant.since < PASSING
        and clock < grant.deadline
    )


def pass_on(grant: Grant, clock: float) -> None:
    """Pass the grant on to the next hold of the local queue, with the next fence of the block, without I/O."""
    queue = grant.queue
    assert queue
    heir = queue[0]
    heir._session.passed_on = True
    grant.give(heir, grant.holds[0].fence + 1, clock)
    queue.popleft()
    assert heir._event is not None
    heir._event.set()


def passed_on(grant: Grant, hold: LeaseBase) -> bool:
    """Return True if a release that a Ctrl-C interrupted has passed this grant on: then the new holder is woken now."""
    if not grant.holds or hold in grant.holds:
        return False
    _call(grant, grant.holds[0])
    return True


def let_in(grant: Grant, clock: float) -> None:
    """Give the grant to all readers that waited together."""
    while grant.queue:
        other = grant.queue[0]
        other._session.passed_on = True
        grant.give(other, grant.fence, clock, grant.holds)
        _call(grant, other)


def _call(grant: Grant, hold: LeaseBase) -> None:
    if grant.queue and grant.queue[0] is hold:
        grant.queue.popleft()
    if hold._event is not None:
        hold._event.set()
