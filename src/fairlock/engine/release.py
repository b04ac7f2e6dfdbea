"""Release: from a hold to nothing.

    release         passes the grant on to the next of the local queue, or sends Release
    flush_release   sends a pending release

fast_acquire.py releases a lock that no other waits for, without waiting and so without coroutines.
"""

from __future__ import annotations

from ..errors import ConfigError, RecordDamaged, StoreError
from ..rules.locks import Detach, Granted, Release, Released
from ..stores import deadline
from .events import tell_lost, tell_released, warn
from .grant import Grant, LeaseBase
from .local_queue import may_pass_on, pass_on, passed_on
from .session import FORGET, PendingRelease, Session


async def release(session: Session, hold: LeaseBase, quiet: bool = False) -> None:
    """Give the hold back: to the next of the local queue, or to the store. A second time does nothing.

    Raises LeaseLost if it was lost, StoreError if the store cannot be reached (the keeper goes on trying, and this may
    be called again). quiet: neither; it is reported and kept as a pending release.
    """
    with session.mutex:
        if hold._released:
            return
        grant, lost = hold._grant, bool(hold._reason)
        if not lost and not grant.leaving:
            if _leave_to_others(session, grant, hold):
                over(hold)
            else:
                grant.leaving = True
    if hold._released:
        tell_released(session, hold)
        return
    if lost:
        over(hold)
        session.leave_soon(grant)
        if not quiet and hold._reason != "forked":
            raise hold._loss()
        return
    await _leave(session, grant, hold, quiet)


def _leave_to_others(session: Session, grant: Grant, hold: LeaseBase) -> bool:
    """Under the mutex: return True if the grant stays with others of this client, so that nothing is sent."""
    if passed_on(grant, hold):
        return True
    if len(grant.holds) > 1:
        grant.holds.remove(hold)  # readers that share a grant: the last one releases it
        return True
    clock = session.clock()
    if not session.closing and may_pass_on(grant, clock):
        pass_on(grant, clock)
        return True
    return False


def over(hold: LeaseBase) -> None:
    """Mark the hold as over."""
    hold._released = True
    grant = hold._grant
    if hold._home is not None:
        try:
            hold._home.remove(hold)
        except ValueError:
            pass  # a second time
    nested = hold._session.nested
    if nested:
        key = hold._request.name, hold._who
        if nested.get(key) is hold:
            rest = [h for h in grant.holds if h._who == hold._who and not h._released]
            if rest:  # released in another order than acquired: the rest still counts
                nested[key] = rest[0]
            else:
                nested.pop(key, None)
    if grant.left:
        grant.holds = []  # or the two would keep each other alive until a garbage collection


async def _leave(session: Session, grant: Grant, hold: LeaseBase, quiet: bool) -> None:
    clock = session.clock()
    request = hold._request
    stay = 0.0
    if request.at_least is not None:
        stay = request.at_least - (clock - hold._since)
    first = not grant.going
    grant.going = grant.going or clock
    leave_tombstone = grant.doubtful or session.backend.may_duplicate
    command: Release | Detach = Release(grant.ticket, leave_tombstone, hold.fence)
    if stay > 0:
        command = Detach(grant.ticket, grant.fence, max(int(stay * 1e6), 1), closed=True)
    try:
        answer = await session.call(grant.name, command)
    except (StoreError, ConfigError) as error:
        if hold._released:  # by close() of this client
            return
        with session.mutex:
            until = clock + max(grant.lease, FORGET)
            session.schedule_release(
                PendingRelease(grant.name, grant.ticket, leave_tombstone, clock + max(stay, 0.1), until)
            )
        session.drop_grant(grant)
        if not quiet:
            raise
        over(hold)
        tell_released(session, hold, "it did not reach the store and is tried again")
        warn(
            f"The release of {grant.name!r} did not reach the store ({error}); it is tried again until the lease ends."
        )
        return
    except BaseException:
        with session.mutex:
            session.schedule_release(
                PendingRelease(grant.name, grant.ticket, True, clock, clock + max(grant.lease, FORGET))
            )
        session.drop_grant(grant)
        raise
    grant.left = True
    with session.mutex:
        session.pending_releases.pop(grant.ticket, None)
    session.drop_grant(grant)
    kept = isinstance(answer.reply, Granted) or (isinstance(answer.reply, Released) and answer.reply.held)
    if (answer.again or not first or session.backend.may_duplicate) and grant.going < grant.deadline:
        kept = True  # an earlier try has done it, or the keeper, or another thread that released it, too
    if session.closing:
        kept = True  # close() also releases what other threads are releasing: a missing grant proves nothing
    if grant.going < grant.deadline <= session.clock():
        kept = True  # it ended while the request was under way
    over(hold)
    if kept:
        tell_released(session, hold)
        return
    if not grant.reason:  # else the loss was reported while the request was under way
        grant.reason = hold._reason = "expired"
        grant.story = "it had ended before it was released. Someone else may have held it meanwhile"
        tell_lost(session, hold, "expired", grant.story)
    if not quiet:
        raise hold._loss()


async def flush_release(session: Session, ticket: str, until: float | None = None) -> bool:
    """Try to send one pending release now. False: the keeper tries again."""
    pending = session.pending_releases.get(ticket)
    if pending is None or session.closed or deadline.over():
        return False
    before = None if until is None else deadline.begin(until - session.clock(), 0.0)
    try:
        if pending.order is not None:
            await session.call_pool(pending.name, pending.order, until)
        else:
            await session.call(pending.name, Release(ticket, pending.leave_tombstone, None, pending.lease), until)
    except RecordDamaged:
        pass  # there is nothing to release: its repair empties it
    except (StoreError, ConfigError):
        return False
    finally:
        if before is not None:
            deadline.end(before)
    with session.mutex:
        session.pending_releases.pop(ticket, None)
    return True
