"""The local queue: threads or tasks of one client that want the same lock share one grant.

One of them, the leader, calls the store; the others wait. When the lock is granted and exclusive, each holder passes it
on to the next one, with the next fence of the block, a bounded number of times and for a bounded time, so that other
processes keep their turn. Readers that waited together get the lock together, with one fence; a later reader needs a
grant of its own, or a writer would starve. Later means: it came when the grant may have been made already, although its
client did not know that. Other clients may have got greater fences since then, so it must get a greater one, too.

All of this is plain data under the session's mutex; the waiting is in acquire.py.
"""

from __future__ import annotations

from collections import deque

from ..stores.base import Event
from .grant import Grant, LeaseBase
from .grant_state import HELD, QUEUED

PASSING = 0.1
POLL_FOR = 1.0  # seconds after which a leader polls for a reader that came after its last poll


def join_local_queue(grant: Grant, hold: LeaseBase, event: Event, clock: float) -> None:
    """Add this hold to the local queue of the grant."""
    hold._event = event
    hold._began = clock
    if grant.queue is None:
        grant.queue = deque()
    grant.queue.append(hold)


def lead(grant: Grant, heir: LeaseBase) -> None:
    """Make this hold of the local queue the leader from here on."""
    grant.holds = (heir,)
    _call(grant, heir)


def pass_on(grant: Grant, clock: float) -> bool:
    """Pass the grant on to the next hold of the local queue, with the next fence of the block, without I/O. False: it
    must go back to the store."""
    queue = grant.queue
    may = (
        grant.state is HELD
        and grant.weight == grant.request.weight
        and grant.holds[0].fence + 1 < grant.fence + grant.request.block
        and clock - grant.since < PASSING
        and clock < grant.deadline
    )
    if not may or not queue:
        return False
    heir = queue[0]
    heir._session.passed_on = True
    grant.give(heir, grant.holds[0].fence + 1, clock)
    queue.popleft()
    assert heir._event is not None
    heir._event.set()
    return True


def passed_on(grant: Grant, hold: LeaseBase) -> bool:
    """Return True if a release that a Ctrl-C interrupted has passed this grant on: then the new holder is woken now."""
    if not grant.holds or hold in grant.holds:
        return False
    _call(grant, grant.holds[0])
    return True


def came_before(hold: LeaseBase, queued: float) -> bool:
    """Return True if this reader came before its grant was made.

    queued: when the last request was sent that was answered by Queued. The grant was made after that, and after the
    hold that the ticket was made for had come: that one has never waited in a local queue.
    """
    return hold._event is None or hold._began <= queued


def wants_a_poll(hold: LeaseBase) -> bool:
    """Return True if this reader came after the last poll of its leader, and so cannot share the grant. After a while
    make the leader poll: far back in the queue it does so every ten seconds, and meanwhile others come to the queue."""
    session = hold._session
    with session.mutex:
        grant = session.grants.get(hold._request.key)
        if grant is None or came_before(hold, grant.since):
            return False
        if session.clock() >= hold._began + POLL_FOR and grant.state is QUEUED:
            session.backend.wake_here((grant.ticket,))
        return True


def give_to_readers(grant: Grant, queued: float, clock: float) -> None:
    """Give the grant to all readers that waited together; see `came_before`."""
    while grant.queue and came_before(grant.queue[0], queued):
        other = grant.queue[0]
        other._session.passed_on = True
        grant.give(other, grant.fence, clock, grant.holds)
        _call(grant, other)


def _call(grant: Grant, hold: LeaseBase) -> None:
    if grant.queue and grant.queue[0] is hold:
        grant.queue.popleft()
    if hold._event is not None:
        hold._event.set()
