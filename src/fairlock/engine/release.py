"""Release: from a hold to nothing, for locks and for items of pools.

    begin_release    passes the grant on to the next of the local queue, or returns the message to send
    finish_release   what the reply means: it was held until then, or it had been lost
    release          both, with everything that has to wait in between: repetitions, a store that is down
    briefly          the same after an interrupt: a store that hangs must not keep its caller
    flush_release    sends a pending release

Between the first two there is one exchange with the store, as in acquire.py.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable
from os import getpid
from typing import Any

from .. import forks
from ..errors import ConfigError, RecordDamaged, StoreError
from ..rules.locks import Granted, Release, Released
from ..stores import deadline
from ..stores.base import Answer, PoolAnswer, RowLocked
from . import events
from .events import MEASURED_TOGETHER, report_lost, report_released, warn
from .grant import Grant, LeaseBase, Loss
from .grant_state import HELD, LOST, RELEASED, RELEASING
from .local_queue import pass_on, passed_on
from .request import named
from .session import PendingRelease, Session

RELEASED_NOW = Released(True)
INTERRUPTED = 0.5  # seconds that a caller who was interrupted waits for a release: from then on the keeper sends it
SEALED = 0.25  # seconds after which a release is tried again that found the row sealed by a transaction
modules = sys.modules


def begin_release(session: Session, hold: LeaseBase, quiet: bool = False, soon: bool = False) -> Any:
    """Give the hold back to the next of the local queue, or return the message to send: from here on it is not held.

    None: it is over. Raises LeaseLost if it was lost (quiet: not even then). On any other exception, and if the message
    cannot be sent, the caller must `release`. soon: True instead of a plain Release, for `release_soon`.
    """
    if getpid() != forks.process:
        forks.notice()
    grant = hold._grant
    with session.mutex:
        if hold._released:
            return None
        if not hold._reason:
            now, held = session.clock, grant.state is HELD
            clock = now()
            alone = not grant.queue and len(grant.holds) == 1 and grant.holds[0] is hold
            if held and not alone and _leave_to_others(session, grant, hold, clock):
                over(hold)
            else:
                if held:
                    grant.since = clock
                    grant.state = RELEASING
                request = hold._request
                if request.pool or request.at_least is not None:
                    return getattr(hold, "_end", None) or request.release_message(session, grant, hold)
                doubt = grant.doubtful or session.backend.may_duplicate
                return named(Release, (grant.ticket, doubt, hold.fence, None)) if doubt or not soon else True
    if not hold._reason:
        if session.on_event is not None or (events.quiet_levels.get(10, True) and "logging" in modules):
            report_released(session, hold, hold._detail)
        return None
    over(hold)
    session.leave_soon(grant)
    if not quiet and hold._reason != "forked":
        raise hold._loss()
    return None


def plain_release(hold: LeaseBase) -> Release:
    """Return the message for which `begin_release` has returned True."""
    return Release(hold._grant.ticket, False, hold.fence)


def _leave_to_others(session: Session, grant: Grant, hold: LeaseBase, clock: float) -> bool:
    """Under the mutex: return True if the grant stays with others of this client, so that nothing is sent."""
    if len(grant.holds) != 1 or grant.holds[0] is not hold:
        if not passed_on(grant, hold):
            grant.holds = tuple([h for h in grant.holds if h is not hold])  # readers: the last one releases it
        return True
    return not session.closing and pass_on(grant, clock)


def finish_release(
    session: Session, hold: LeaseBase, answer: tuple[Any, float, bool], quiet: bool = False, repeated: bool = False
) -> None:
    """Handle the reply. Raises LeaseLost if it shows that the hold had been lost (quiet: not even then).

    repeated: an earlier message may have released it.
    """
    reply, at, again = answer
    grant, request = hold._grant, hold._request
    kept = reply == RELEASED_NOW or isinstance(reply, request.ended)
    if not kept and not request.ends_exactly(hold):
        if grant.since < grant.deadline:
            # An earlier try has done it, or the keeper, or another thread that released it, too; or it ended while the
            # request was under way.
            kept = again or repeated or session.backend.may_duplicate or grant.deadline <= session.clock()
        if session.closing:
            kept = True  # close() also releases what other threads are releasing: a missing grant proves nothing
    noticed = accept_release(hold, at, kept)
    if kept:
        if request.at_least is not None and isinstance(reply, Granted):
            hold._closed_until = at + reply.left / 1e6 - session.backend.skew
        if session.on_event is not None or (events.quiet_levels.get(10, True) and "logging" in modules):
            measured = request.measured
            if measured is None or hold._ended or (events.quiet_levels.get(10, True) and "logging" in modules):
                report_released(session, hold, hold._detail)
            else:
                hold._ended = True
                released = measured.released
                released.append(grant.since - hold._since)
                if len(released) >= MEASURED_TOGETHER:
                    measured.evaluate()
        return
    if not noticed:
        hold._reason = "expired"
        grant.loss = Loss("expired", "it had ended before it was released. Someone else may have held it meanwhile")
        report_lost(session, hold, "expired", grant.loss.detail)
    if not quiet:
        raise hold._loss()


def accept_release(hold: LeaseBase, at: float, kept: bool = True) -> bool:
    """Do the part of `finish_release` that ends the hold: kept: it was held until then. Return True if its loss was
    noticed while the request was under way. The reader of the replies to tasks calls it for each of them."""
    grant, request, session = hold._grant, hold._request, hold._session
    session.last_reply = at
    if session.down:
        session.answered(at)
    key = request.key or grant.ticket
    with session.mutex:
        if session.pending_releases:
            session.pending_releases.pop(grant.ticket, None)
        noticed = grant.loss is not None  # while the request was under way
        if not noticed:
            grant.state = RELEASED if kept else LOST
        alone = not (grant.queue or request.together) and session.grants.get(key) is grant
        if alone:
            del session.grants[key]
    if not alone:
        session.drop_grant(grant)
    if session.nested:
        over(hold)
    elif hold._home is not None:  # the same, without a call
        try:
            hold._home.remove(hold)
        except ValueError:
            pass  # a second time
    hold._released = True
    grant.holds = ()  # or the two would keep each other alive until a garbage collection
    return noticed


async def release(
    session: Session, hold: LeaseBase, quiet: bool = False, message: Any = None, repeated: bool = False
) -> None:
    """Give the hold back: to the next of the local queue, or to the store. A second time does nothing.

    Raises LeaseLost if it was lost, StoreError if the store cannot be reached (the keeper goes on trying, and this may
    be called again). quiet: neither; it is reported and kept as a pending release. message: from `begin_release`;
    repeated: it may have been sent already.
    """
    grant, request = hold._grant, hold._request
    if message is None:
        repeated = grant.state is not HELD
        message = begin_release(session, hold, quiet)
        if message is None:
            return
    try:
        answer = await session.call(request.name, message, None, session.pools() if request.pool else None)
    except (StoreError, ConfigError) as error:
        if hold._released:  # by close() of this client
            if quiet or not request.ends_exactly(hold):
                return
            raise
        clock = session.clock()
        with session.mutex:
            session.give_up(grant, clock + max(request.stay(hold, clock), 0.1))
        session.drop_grant(grant)
        if not quiet:
            raise
        over(hold)
        report_released(session, hold, "it did not reach the store and is tried again")
        warn(f"The release of {hold._what} did not reach the store ({error}); it is tried again until the lease ends.")
        return
    except BaseException:
        with session.mutex:
            session.give_up(grant, session.clock(), leave_tombstone=True)
        session.drop_grant(grant)
        raise
    finish_release(session, hold, answer, quiet, repeated)


async def briefly(undo: Awaitable[None]) -> None:
    """Undo something after a cancellation, and wait no longer for a store that does not reply: what could not be
    released in time is a pending release."""
    before = deadline.begin(deadline.left(INTERRUPTED), 0.0)
    try:
        await undo
    finally:
        deadline.end(before)


def over(hold: LeaseBase) -> None:
    """Mark the hold as over. The last line is what counts: a Ctrl-C may come between any two, and this is repeated."""
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
            rest = [h for h in grant.holds if h._who == hold._who and not h._released and h is not hold]
            if rest:  # released in another order than acquired: the rest still counts
                nested[key] = rest[0]
            else:
                nested.pop(key, None)
    hold._released = True


async def _without_waiting(session: Session, pending: PendingRelease) -> object:
    """Send this release if its row is not locked by a transaction. Return the answer; else why not, or None."""
    if not pending.pool:
        return (await session.backend.call_many([(pending.name, pending.command)]))[0]
    from ..rules.pools import On

    if not isinstance(pending.command, On):
        return None
    return (await session.pools().call_many([(pending.name, pending.command)]))[0]


async def flush_release(session: Session, ticket: str, until: float | None = None) -> bool:
    """Try to send one pending release now. False: the store fails, and the keeper tries again."""
    pending = session.pending_releases.get(ticket)
    if pending is None or session.closed or deadline.over():
        return False
    outcome: object = None
    if until is None and session.backend.skips_locked:
        outcome = await _without_waiting(session, pending)
        if isinstance(outcome, RowLocked):  # a transaction has sealed it: the keeper does not wait for its end
            with session.mutex:
                if ticket in session.pending_releases:
                    session.pending_releases[ticket] = pending._replace(due=session.clock() + SEALED)
            return True
    before = None if until is None else deadline.begin(until - session.clock(), 0.0)
    try:
        if not isinstance(outcome, Answer | PoolAnswer):
            await session.call(pending.name, pending.command, until, session.pools() if pending.pool else None)
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
