"""Acquire: from a request to a hold.

    acquire   joins a local queue of this client that waits for the same grant, or starts one and leads it
    _lead     sends Acquire until it is granted; between two of them it waits for a wake-up, at most as long as the
              rules allow
    withdraw  undoes what a cancelled or interrupted acquire has done so far

fast_acquire.py acquires a lock that is free, without waiting and so without coroutines; release.py gives a hold back.

A request that ends early, for any reason (time, cancellation, Ctrl-C, an error), leaves nothing behind: its Release is
recorded as a pending release first and then tried, so that the keeper sends it if this attempt is interrupted, too.
"""

from __future__ import annotations

from ..errors import StoreError
from ..rules.locks import EXCLUSIVE, Acquire, Granted, Queued, Refused, Revoked
from ..rules.locks.state import CONFIRM_WINDOW
from ..rules.locks.step import sleep_span
from ..stores.base import Event
from .boot_clock import jitter
from .events import heeded, outcome_of, tell_acquired, tell_given_up, tell_waiting, warn
from .grant import NEVER, Grant, LeaseBase
from .local_queue import lead, let_in, stand_by
from .refusals import refusal
from .release import flush_release, release
from .session import FORGET, SOON, PendingRelease, Session

RETRY_FIRST = 0.05
RETRY_MOST = 1.0
LOOK_AGAIN = 5.0
SPREAD = 0.02
QUICKLY = 0.2  # a request that gives up waits no longer than this for a silent store: the keeper sends its Release

named = tuple.__new__  # makes a named tuple in half the time of its own constructor


async def acquire(session: Session, hold: LeaseBase, until: float | None) -> bool:
    """Return True if acquired, False if the time is over. `until` is the client's clock: None = forever, 0 = only try.

    On any exception the caller must `withdraw(session, hold)`.
    """
    trying = until == 0
    if hold._grant.leader is not hold and hold._event is None:  # else fast_acquire has done this much
        if not _join(session, hold, trying):
            return False
    if hold._event is not None:
        await _stand_by(session, hold, hold._event, until)
        if hold in hold._grant.holds:
            session.occupied(hold._grant)
            tell_acquired(session, hold)
            return True
        if hold._grant.leader is not hold:
            if session.closing:
                raise session.over()
            return False
    return await _lead(session, hold, hold._grant, until, trying)


def _join(session: Session, hold: LeaseBase, trying: bool) -> bool:
    """Join the local queue for the same grant, or lead. False: no use trying, because this client itself holds it."""
    request = hold._request
    with session.mutex:
        key: object = request.key
        grant = session.grants.get(key)
        if grant is not None and trying:
            if grant.fence and session.clock() < grant.deadline:
                return False
            grant = key = None
        if grant is None:
            hold._grant = grant = Grant(request, session.ticket(hold._who), session.backend.skew, key)
            grant.leader = hold
            session.grants[grant.filed] = grant
        else:
            stand_by(grant, hold, session.runtime.event())
    if hold._event is not None:
        tell_waiting(session, hold, len(grant.queue or ()) or 1, "", "behind others of this client")
    return True


async def _stand_by(session: Session, hold: LeaseBase, event: Event, until: float | None) -> None:
    """Wait until the leader has the grant, or until this one must lead. The event only wakes."""
    while True:
        with session.mutex:
            over = session.closing or hold in session.called_off or (until is not None and session.clock() >= until)
            if called(session, hold) or over:
                _stand_aside(session, hold)
                return
        rest = LOOK_AGAIN if until is None else min(until - session.clock(), LOOK_AGAIN)
        if hold._warn_at is not None:
            rest = min(rest, _warn(session, hold))
        if await event.wait(max(rest, 0)):
            event.clear()


def called(session: Session, hold: LeaseBase) -> bool:
    """Under the mutex: return True if this one has the grant that it waited for, or must now ask for it."""
    if hold in hold._grant.holds:
        return True
    grant = session.grants.get(hold._request.key)
    if grant is None or grant.leader is not hold:
        return False
    hold._grant = grant
    return True


def _stand_aside(session: Session, hold: LeaseBase) -> None:
    """Under the mutex: leave the local queue, also if a caller was interrupted before it could."""
    grant = session.grants.get(hold._request.key)
    if grant is not None and grant.queue and hold in grant.queue:
        grant.queue.remove(hold)


def _warn(session: Session, hold: LeaseBase) -> float:
    """Warn if this one waits for what it holds itself, which may take forever; or return how long until the warning."""
    assert hold._warn_at is not None
    rest = hold._warn_at - session.clock()
    if rest > 0:
        return rest
    hold._warn_at = None
    kind = "thread" if session.runtime.blocking else "task"
    warn(f"A {kind} waits for {hold.name!r}, which it holds itself. Unless another one releases it, it waits forever.")
    return NEVER


async def _lead(session: Session, hold: LeaseBase, grant: Grant, until: float | None, trying: bool) -> bool:
    name = grant.name
    backend = session.backend
    retry = RETRY_FIRST
    while True:
        if session.called_off and hold in session.called_off:
            await _step_down(session, hold)
            return False
        doubt = grant.doubtful
        answer, grant.answer = grant.answer, None
        try:
            if answer is None:
                answer = await session.call(name, acquire_message(session, grant, trying), until or None)
        except StoreError as error:
            left = NEVER if until is None else until - session.clock()
            if not grant.waited or error.refused or left <= 0:
                raise
            await session.runtime.sleep(min(retry, left))
            retry = min(retry * 2, RETRY_MOST)
            continue
        grant.doubtful = doubt or answer.again
        retry = RETRY_FIRST
        reply = answer.reply
        if isinstance(reply, Granted):
            if accept_grant(session, hold, grant, reply.fence, answer.at, reply.left):
                return True
            if until is None or session.clock() < until:
                continue  # the reply took longer than the lease: ask if the grant is still ours; or the client closes
            await _step_down(session, hold)
            return False
        if isinstance(reply, Queued):
            _note_place(session, hold, grant, reply)
            clock = session.clock()
            if until is not None and clock >= until:
                await _step_down(session, hold)
                return False
            nap = min(reply.retry_in, sleep_span(reply.ahead)) / 1e6
            if reply.ahead > 1:  # all waiters poll at the same expiry: not at the same instant, or they collide
                nap += jitter() * min(SPREAD * reply.ahead, 0.2)
            if hold._warn_at is not None:
                nap = min(nap, _warn(session, hold))
            nap = max(min(nap, until - clock) if until is not None else nap, 0.0005)
            try:
                pushed = await backend.wait_for_wakeup(name, grant.ticket, nap)
            except StoreError:  # it cannot listen; the next Acquire shows if the store can be reached
                pushed = None
                await session.runtime.sleep(min(nap, RETRY_MOST))
            if pushed is not None and pushed.fence and pushed.place == grant.place and backend.pushes_grants:
                # Sent after the grant was made, and for the place we hold since our last answered poll.
                window = min(grant.request.lease_us, CONFIRM_WINDOW)
                at = pushed.until - window / 1e6 if pushed.until else answer.at  # the grant was made then, or later
                if session.clock() < at + window / 4e6:  # else little of it may be left: send Acquire
                    if accept_grant(session, hold, grant, pushed.fence, at, window):
                        return True
            continue
        if isinstance(reply, Revoked):
            await _move_out(session, grant)
            raise refusal(hold._request, reply)
        grant.sent = grant.waited or grant.doubtful or backend.may_duplicate  # an earlier Acquire may still arrive
        await _step_down(session, hold)
        if isinstance(reply, Refused):
            return False
        raise refusal(hold._request, reply)


def acquire_message(session: Session, grant: Grant, trying: bool) -> Acquire:
    """Return the message that the leader sends for its local queue. From here on the store may know the ticket."""
    request = grant.request
    grant.sent = grant.doubtful = True
    return named(Acquire, (
        grant.ticket, request.capacity, request.weight, request.lease_us, not trying, request.fair, request.block,
        session.backend.open_listener(), session.owner, request.note,
    ))  # fmt: skip


def accept_grant(session: Session, hold: LeaseBase, grant: Grant, fence: int, at: float, left: int) -> bool:
    """Accept the grant, unless its time is over already."""
    request = hold._request
    grant.confirm(at, left)
    clock = session.clock()
    if clock >= grant.deadline or session.closing:
        return False
    if left < request.lease_us:  # it is not confirmed yet, and most are released before that is due
        grant.renew_at = clock + min((grant.deadline - clock) / 3, SOON)
        session.hurried = clock
    grant.admitted = clock
    grant.fence = fence
    grant.give(hold, fence, clock)
    grant.leader = None
    if request.weight != EXCLUSIVE:
        with session.mutex:
            let_in(grant, clock)
            session.set_apart(grant)
    if grant.renew_at < session.wake_at or grant.watched or grant.cap < session.wake_at:
        session.occupied(grant)
    if session.on_event is not None or heeded("acquired"):
        tell_acquired(session, hold)
    return True


def _note_place(session: Session, hold: LeaseBase, grant: Grant, reply: Queued) -> None:
    if not grant.waited:
        grant.waited = True
        tell_waiting(session, hold, reply.ahead + 1, grant.ticket, f"{reply.ahead} ahead in the queue")
    elif reply.place != grant.place and reply.ahead > grant.ahead:
        detail = f"silent for too long: {grant.ahead} stood ahead before, {reply.ahead} now"
        session.tell("place_lost", grant.name, grant.ticket, detail=detail)
    grant.place, grant.ahead = reply.place, reply.ahead


async def _move_out(session: Session, grant: Grant) -> None:
    """This ticket will never be granted again: the next leader needs another one. A grant that it had is released."""
    with session.mutex:
        clock = session.clock()
        session.schedule_release(
            PendingRelease(grant.name, grant.ticket, False, clock + 1.0, clock + max(grant.lease, FORGET))
        )
        grant.leader = None
    session.drop_grant(grant)
    await flush_release(session, grant.ticket, session.clock() + QUICKLY)


async def _step_down(session: Session, hold: LeaseBase) -> None:
    """The leader gives up: another one of its local queue leads with the same ticket, or the ticket is released."""
    grant = hold._grant
    with session.mutex:
        if grant.leader is not hold:
            return
        if grant.queue:
            lead(grant, grant.queue[0])
            return
        if grant.sent:
            clock = session.clock()
            leave_tombstone = grant.doubtful or session.backend.may_duplicate
            session.schedule_release(
                PendingRelease(grant.name, grant.ticket, leave_tombstone, clock + 1.0, clock + max(grant.lease, FORGET))
            )
        grant.leader = None
        if session.grants.get(grant.filed) is grant:
            del session.grants[grant.filed]
    if grant.sent:
        await flush_release(session, grant.ticket, session.clock() + QUICKLY)


async def withdraw(session: Session, hold: LeaseBase, error: BaseException | None = None) -> None:
    """Undo what an acquire that ends with this exception has done so far. Never raises an error of the store."""
    with session.mutex:
        _stand_aside(session, hold)
        called(session, hold)
    if hold in hold._grant.holds:
        hold._grant.leader = None
        await release(session, hold, quiet=True)
    else:
        await _step_down(session, hold)
        tell_given_up(session, hold, outcome_of(error))
    if session.ended is not None:
        session.ended.set()
