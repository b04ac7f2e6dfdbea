"""Acquire: from a request to a hold, for locks and for items of pools.

    begin_acquire    joins a local queue of this client that waits for the same grant, or leads: then it returns the
                     message to send
    finish_acquire   what the reply means: accepts the grant, or leaves the rest to `acquire`
    begin_wait       notes the place in the queue that the reply names; returns how long to wait for a wake-up
    finish_wait      what the wake-up means: accepts the grant, or leaves the rest to `acquire`
    acquire          everything that has to wait: sends the message until it is granted; between two of them it waits
                     for a wake-up, at most as long as the rules allow

withdraw_request.py undoes what an acquire has done that ends without a grant.

Between the first two there is one exchange with the store: a plain call for a thread, a future for a task. Only where
something has to wait is there a coroutine, because one that never waits costs as much as ten lines of its work.
"""

from __future__ import annotations

import sys
from os import getpid
from typing import Any

from .. import forks
from ..errors import StoreError
from ..rules.locks import Granted, Queued, Revoked
from ..rules.locks.step import sleep_span
from ..stores.base import Event, Pushed
from . import events
from .ask_to_release import note_request
from .boot_clock import jitter
from .events import report_acquired, report_given_up, report_waiting, warn
from .grant import NEVER, NOWHERE, Grant, LeaseBase
from .grant_state import HELD, QUEUED
from .local_queue import POLL_FOR, came_before, give_to_readers, join_local_queue, wants_a_poll
from .request import named
from .session import SOON, Session
from .withdraw_request import called, lead_again, leave_local_queue, move_out, step_down

RETRY_FIRST = 0.05
RETRY_MOST = 1.0
LOOK_AGAIN = 5.0  # seconds after which one that waits in a local queue looks whether it must lead
SPREAD = 0.02

modules = sys.modules


def begin_acquire(session: Session, hold: LeaseBase, trying: bool, soon: bool = False) -> Any:
    """Lead for a new grant, and return the message to send; or join the local queue of one that this client has, or
    asks for already. Once it leads: return the message again, for a poll. soon: return only its fields behind the
    ticket, for `acquire_soon`.

    None: nothing is sent now, and `acquire` goes on. On any exception the caller must `withdraw`.
    """
    if getpid() != forks.process:
        forks.notice()
    request, grant = hold._request, hold._grant
    again = False
    if grant is not NOWHERE:
        again = request.pool and grant.known
    else:
        key = request.key
        if key not in session.grants and not session.closing:
            grant = hold._grant = Grant(request, session.ticket(hold._who), hold)
            if session.grants.setdefault(key or grant.ticket, grant) is not grant:
                grant = hold._grant = NOWHERE  # another thread was faster
        if grant is NOWHERE:
            grant = _join(session, hold, trying)
            if grant is NOWHERE:
                return None
    listener = session.backend.listener or session.backend.open_listener()
    known_listener, known_owner, fields, tried = request.known
    if trying:
        fields = tried
    if known_listener is not listener or known_owner is not session.owner:
        fields = request.fields(trying, listener, session.owner)
    grant.doubtful = True  # from here on the store may know the ticket
    if soon:
        return fields
    message = named(request.message, (grant.ticket, *fields))
    return message._replace(again=True) if again else message


def _join(session: Session, hold: LeaseBase, trying: bool) -> Grant:
    """Join the local queue for the same grant, and return NOWHERE. A try does not wait: either it is no use, because
    this client itself holds the lock, or it gets a grant of its own, which is returned."""
    request = hold._request
    with session.mutex:
        if session.closing:
            return NOWHERE
        key: object = request.key
        grant = session.grants.get(key)
        if grant is not None and trying:
            if grant.fence and session.clock() < grant.deadline:
                return NOWHERE
            grant = key = None
        if grant is None:
            grant = hold._grant = Grant(request, session.ticket(hold._who), hold)
            session.grants[key or grant.ticket] = grant
            return grant
        join_local_queue(grant, hold, session.runtime.event(), session.clock())
        place = len(grant.queue or ()) or 1
    if session.on_event is not None or (events.quiet_levels.get(10, True) and "logging" in modules):
        report_waiting(session, hold, place, "", "behind others of this client")
    else:
        hold._place = hold._place or place
    return NOWHERE


def finish_acquire(session: Session, hold: LeaseBase, answer: tuple[Any, float, bool], doubt: bool = False) -> bool:
    """Return True if the reply grants it, and its time is not over yet; False: `acquire` goes on with this reply.

    doubt: an earlier request may still be under way. On any exception the caller must `withdraw`.
    """
    reply, at, again = answer
    request = hold._request
    if not isinstance(reply, request.granted):
        session.last_reply = at
        if session.down:
            session.answered(at)
        return False
    if request.pool:
        item: Any = hold
        item._text, item._key = reply[2:]
    now = session.clock  # `session.clock()` would take longer: it is not a method
    clock = now()
    if not accept_grant(hold, reply[0], reply[1], at, clock, doubt or again):
        return False
    if session.on_event is not None or (events.quiet_levels.get(10, True) and "logging" in modules):
        measured = request.measured
        if measured is None or hold._place or (events.quiet_levels.get(10, True) and "logging" in modules):
            report_acquired(session, hold, hold._detail)
        else:
            measured.acquired.append(clock - (hold._began or at))
    return True


def accept_grant(hold: LeaseBase, fence: int, left: int, at: float, clock: float, doubt: bool = False) -> bool:
    """Do the part of `finish_acquire` for a reply that grants it: with this fence, for `left` microseconds, to a
    request sent at `at`. The reader of the replies to tasks calls it for each of them; the event is left to the
    caller."""
    grant, request, session = hold._grant, hold._request, hold._session
    backend = session.backend
    session.last_reply = at
    if session.down:
        session.answered(at)
    grant.fence = fence  # from here on the store knows it, whatever comes
    grant.doubtful = doubt or backend.may_duplicate
    if left == request.lease_us and request.renews and not backend.skew:  # as `confirm` does, in fewer steps
        grant.asked, grant.deadline, grant.renew_at = at, at + request.usable, at + request.third
    elif left == request.window and not grant.deadline and not backend.skew:
        grant.asked, grant.deadline = at, at + request.window_usable
    else:
        grant.confirm(at, left, backend.skew)
    if clock >= grant.deadline or session.closing:
        return False
    queued = grant.since
    if request.together and not came_before(hold, queued):
        return False
    if left < request.lease_us:  # it is not confirmed yet, and most are released before that is due
        grant.renew_at = clock + min((grant.deadline - clock) / 3, SOON)
        session.hurried = clock
    if request.max_hold is not None:
        grant.cap = clock + request.max_hold
    grant.since = hold._since = clock
    hold.fence = fence
    grant.state = HELD
    if request.together:
        with session.mutex:
            give_to_readers(grant, queued, clock)
            session.set_apart(grant)
    if grant.renew_at < session.wake_at or hold._watched or grant.cap < session.wake_at:
        session.hand_to_keeper(grant)
    return True


async def acquire(
    session: Session,
    hold: LeaseBase,
    until: float | None,
    trying: bool = False,
    answer: tuple[Any, float, bool] | None = None,
) -> bool:
    """Go on after `begin_acquire`, and after `finish_acquire` if there was a reply: wait as long as it takes.

    Return True if acquired, False if the time is over. `until` is the client's clock: None = forever; trying: no wait.
    AlreadyHeld instead of waiting forever for what this thread or task holds. On any exception the caller must
    `withdraw`.
    """
    if until is None and not trying and hold._who in session.entered:
        from .with_block import refuse_own  # here, because that is built on this

        await refuse_own(session, hold)
    hold._began = hold._began or (session.clock() if answer is None else answer[1])
    if hold._event is not None:
        await _wait_in_local_queue(session, hold, hold._event, until)
        if hold._has:
            accept_pass(session, hold)
            return True
    grant, request = hold._grant, hold._request
    if not hold._leads:
        if session.closing:
            raise session.over()
        return _given_up(session, hold)
    target: Any = session.pools() if request.pool else session.backend
    retry = RETRY_FIRST
    doubt = False
    while True:
        if session.called_off and hold in session.called_off:
            await step_down(session, hold)
            return _given_up(session, hold)
        if answer is None:
            doubt = grant.doubtful
            message = begin_acquire(session, hold, trying)
            try:
                answer = await session.call(request.name, message, until, target if request.pool else None)
            except StoreError as error:
                left = NEVER if until is None else until - session.clock()
                if grant.state is not QUEUED or error.refused or left <= 0:
                    raise
                await session.runtime.sleep(min(retry, left))
                retry = min(retry * 2, RETRY_MOST)
                continue
            retry = RETRY_FIRST
            if finish_acquire(session, hold, answer, doubt):
                if isinstance(answer[0], Granted):
                    note_request(session, grant, answer[0].asked)
                return True
        reply, at, again = answer
        answer = None
        doubt = doubt or again or session.backend.may_duplicate
        clock = session.clock()
        over = trying or (until is not None and clock >= until)
        if isinstance(reply, request.granted):
            if over:
                await step_down(session, hold)
                return _given_up(session, hold)
            if request.together and not came_before(hold, grant.since):
                await lead_again(session, hold)
                grant = hold._grant
            continue  # the reply took longer than the lease: ask if the grant is still ours; or the client closes
        if type(reply) is not Queued and not request.waits_after(reply, trying):
            grant.doubtful = doubt  # an earlier message may still arrive
            if isinstance(reply, Revoked):
                await move_out(session, grant)
            else:
                await step_down(session, hold)
            error_for_reply = request.refusal(reply)
            if error_for_reply is None:
                return _given_up(session, hold)
            raise error_for_reply
        nap = begin_wait(session, hold, reply, at, doubt)
        if over:
            await step_down(session, hold)
            return _given_up(session, hold)
        if hold._warn_at is not None:
            nap = min(nap, _warn(session, hold))
        nap = max(min(nap, until - clock) if until is not None else nap, 0.0005)
        try:
            pushed = await target.wait_for_wakeup(request.name, grant.ticket, nap)
        except StoreError:  # it cannot listen; the next message shows if the store can be reached
            pushed = None
            await session.runtime.sleep(min(nap, RETRY_MOST))
        if pushed is not None and finish_wait(session, hold, pushed, at, doubt):
            return True


def _given_up(session: Session, hold: LeaseBase) -> bool:
    """Report that this one was not acquired in time. Return False."""
    report_given_up(session, hold, "cancelled" if hold in session.called_off else "timeout")
    return False


def accept_pass(session: Session, hold: LeaseBase) -> None:
    """Handle that another thread or task of this client has passed the lock on to this one, which waited for it."""
    grant = hold._grant
    if grant.renew_at < session.wake_at or grant.cap < session.wake_at or hold._watched:
        session.hand_to_keeper(grant)
    if session.on_event is not None or (events.quiet_levels.get(10, True) and "logging" in modules):
        report_acquired(session, hold, hold._detail)


def begin_wait(session: Session, hold: LeaseBase, reply: Any, at: float, doubt: bool) -> float:
    """Note the place in this reply to a request sent at `at`. Return for how many seconds to wait for a wake-up, at
    most. doubt: an earlier request may still be under way."""
    grant = hold._grant
    grant.state = QUEUED
    grant.since = at
    grant.doubtful = doubt
    if type(reply) is not Queued and not hasattr(reply, "ahead"):  # it waits for a named item, beside the queue
        return min(float(getattr(reply, "due_in", NEVER)), sleep_span(0)) / 1e6
    ahead, number, due = reply
    before, grant.place = grant.place, (ahead, number)
    if before is None:
        if session.on_event is not None or (events.quiet_levels.get(10, True) and "logging" in modules):
            report_waiting(session, hold, ahead + 1, grant.ticket, f"{ahead} ahead in the queue")
        else:
            hold._place = hold._place or ahead + 1
    elif number != before[1] and ahead > before[0]:
        detail = f"silent for too long: {before[0]} were ahead before, {ahead} now"
        events.emit(session, "place_lost", grant.name, grant.ticket, detail=detail)
    nap: float = min(due, sleep_span(ahead)) / 1e6
    if ahead > 1:  # all waiters poll at the same expiry: not at the same instant, or they collide
        nap += jitter() * min(SPREAD * ahead, 0.2)
    return nap


def finish_wait(session: Session, hold: LeaseBase, pushed: Pushed, at: float, doubt: bool) -> bool:
    """Return True if this wake-up grants it: it names the place that the reply to the request of `at` gave us. So it
    was sent after the grant was made. False: it is only a hint, and `acquire` goes on. On any exception the caller must
    `withdraw`."""
    _, place, fence, until = pushed
    own = hold._grant.place
    if not fence or own is None or place != own[1] or not session.backend.pushes_grants:
        return False
    window = hold._request.window
    if until:
        at = until - window / 1e6  # the grant was made then, or later
    now = session.clock
    clock = now()
    # If little of it may be left, or nothing might confirm it in time: send Acquire, which confirms it. A keeper of
    # tasks may be late, so for these it is sooner: it took long to get here, so the machine is overloaded.
    watch = session.watch_young
    late = clock >= at + window / (4e6 if watch is None else 10e6)
    if late or (watch is not None and not watch(hold._grant)):
        return False
    if not accept_grant(hold, fence, window, at, clock, doubt):
        return False
    if session.on_event is not None or (events.quiet_levels.get(10, True) and "logging" in modules):
        report_acquired(session, hold, hold._detail)
    return True


async def _wait_in_local_queue(session: Session, hold: LeaseBase, event: Event, until: float | None) -> None:
    """Wait until the leader has the grant, or until this one must lead. The event only wakes."""
    while True:
        rest = LOOK_AGAIN if until is None else min(until - session.clock(), LOOK_AGAIN)
        if hold._warn_at is not None:
            rest = min(rest, _warn(session, hold))
        if hold._request.together and wants_a_poll(hold):
            rest = min(rest, POLL_FOR)
        if await event.wait(max(rest, 0)):
            if hold._has:
                return  # it was passed on
            event.clear()
        with session.mutex:
            over = session.closing or hold in session.called_off or (until is not None and session.clock() >= until)
            if called(session, hold) or over:
                leave_local_queue(session, hold)
                return


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
