"""The keeper, one per client: it renews leases at a third of their length, sends pending releases, tidies the store.

A loss is not decided here: `LeaseBase.lost` reads the clock. The keeper only finds out from the store that a grant has
ended, and notices deadlines that have passed while it was busy. It notices an eviction within about a second: by a
wake-up where the store sends them, by reading the state where it does not. Because a store that hangs also hangs the
keeper, the watch reads the clock for holds with a callback; it never calls the store.

Both end after a second without work and are started again when needed: a client that holds nothing costs no thread, and
can be dropped without being closed.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import ConfigError, RecordDamaged, StoreError
from ..rules.locks import EXCLUSIVE, Granted, NotHolder, Renew
from . import cancel_event
from .events import stumbled
from .grant import NEVER, Grant, LeaseBase
from .recheck_leases import suspect
from .release import flush_release
from .session import SOON, Session

LINGER = 1.0
TIDY = 1.0
BRIEF = 0.3  # seconds: a hold that may be over in a moment has no wake-ups before the next round
LOOKS = 16  # such reads in one round; with more names held, each has its turn later


async def keep(session: Session) -> None:
    try:
        await _keep(session)
    except BaseException:
        session.keeping = False
        raise
    if not session.closed:
        await _tidy(session)


async def _keep(session: Session) -> None:
    """Run until nothing is left to keep. It clears `keeping` itself, under the mutex: the next keeper can start."""
    idle_since: float | None = None
    retry_at = 0.0  # after a failure nothing is tried before this
    while True:
        with session.mutex:
            clock = session.clock()
            session.wake_at = NEVER
            due = NEVER if session.closed else _next_due(session)
            if due == NEVER:
                idle_since = clock if idle_since is None else idle_since
                due = idle_since + LINGER
                if session.closed or clock >= due:
                    session.keeping = False
                    return
            else:
                idle_since = None
                due = max(due, retry_at)
            # With many short holds it wakes up by itself: an event for each would cost more than the hold.
            session.wake_at = due = min(due, clock + (SOON if clock - session.hurried < LINGER else TIDY))
            session.bell.clear()
        if due > clock:
            await session.bell.wait(due - clock)
        if not session.closed:
            retry_at = await _round(session)


def _next_due(session: Session) -> float:
    grants = min((min(s.renew_at, s.cap) for s in session.holders() if not s.leaving), default=NEVER)
    pending_releases = min((d.due for d in session.pending_releases.values()), default=NEVER)
    return min(grants, pending_releases)


async def _round(session: Session) -> float:
    """Do what is due. Returns the time before which nothing should be tried again, after a failure."""
    clock = session.clock()
    with session.mutex:
        ours = {s.ticket: s for s in session.holders()}
        for ticket in session.backend.take_wakeups(
            ours
        ):  # evicted, most likely: renew now, not at a third of the lease
            ours[ticket].renew_at = clock
        grants = [s for s in ours.values() if min(s.renew_at, s.cap) <= clock and not s.leaving]
        pending_releases = [d for d in session.pending_releases.values() if d.due <= clock]
        for pending in pending_releases:
            if pending.until <= clock:
                session.pending_releases.pop(pending.ticket, None)
    try:
        # The one that failed last goes last, so that one damaged record does not cost the other leases.
        for grant in sorted(grants, key=lambda s: (s.failed, s.end())):
            await renew(session, grant)
        for pending in pending_releases:
            if pending.ticket in session.pending_releases and not await flush_release(session, pending.ticket):
                with session.mutex:
                    if pending.ticket in session.pending_releases:
                        session.pending_releases[pending.ticket] = session.pending_releases.pop(pending.ticket)
                return session.clock() + 0.25
        await _attend(session, ours.values())
        await _tidy(session)
    except (StoreError, ConfigError):  # down, or damaged: either way it cannot be renewed now
        shortest = min((s.lease for s in grants), default=10.0)
        return session.clock() + min(shortest / 10, 1.0)
    except Exception:
        stumbled("the keeper stumbled; it goes on")
        return session.clock() + 0.25
    return 0.0


async def _attend(session: Session, grants: Iterable[Grant]) -> None:
    """Receive wake-ups for these from here on. Earlier ones are not received, so these grants are renewed at once."""
    clock = session.clock()
    held = [s for s in grants if clock - s.admitted >= BRIEF and not s.leaving]
    if not held:
        return
    locks = [s for s in held if s.order is None]
    since = await session.backend.attend({s.name for s in locks}, {s.name for s in held if s.order is not None})
    for grant in locks:
        if grant.hears and grant.asked < since < NEVER:
            grant.renew_at = clock
    unheard = [s for s in locks if since == NEVER or not s.hears]
    if unheard:
        await _glance(session, unheard, clock)


async def _glance(session: Session, grants: list[Grant], clock: float) -> None:
    """Read these names, because no wake-ups come for them: the longest unread first, an unreadable one last."""
    old = clock - session.backend.poll_interval * 0.9
    due = sorted((s for s in grants if s.asked < old), key=lambda s: s.asked)
    for name in list(dict.fromkeys(s.name for s in due))[:LOOKS]:
        same = [s for s in due if s.name == name]
        for grant in same:
            grant.asked = session.clock()
        record, _ = await session.backend.look(name)
        ended = {tombstone.ticket for tombstone in record.tombstones}
        for grant in same:
            if grant.ticket in ended or record.grant(grant.ticket) is None:
                grant.renew_at = clock


async def renew(session: Session, grant: Grant, lease: float | None = None) -> None:
    """Renew one grant, with a longer lease if one is given, or find that it is lost. StoreError if the store cannot be
    reached."""
    if session.clock() >= grant.cap:
        session.lose(grant)
        return
    if grant.order is not None:
        from .pool_renewal import renew as renew_item

        await renew_item(session, grant)
        return
    in_time = session.clock() < grant.deadline
    try:
        weight, span = grant.weight if grant.lowered else None, None if lease is None else int(lease * 1e6)
        answer = await session.call(grant.name, Renew(grant.ticket, grant.fence, weight, span))
    except RecordDamaged as damage:
        lose_damaged(session, grant, damage)
        return
    except (StoreError, ConfigError):
        grant.failed = session.clock()
        if grant.failed >= grant.deadline:
            session.lose(grant)
        raise
    if grant.leaving or grant.reason:
        return
    reply = answer.reply
    if isinstance(reply, Granted) and reply.fence == grant.fence:
        with session.mutex:  # another thread may be shortening or releasing it: then it must not be filed again
            if grant.longer(reply.left) and not (grant.left or grant.leaving):
                if grant.weight == EXCLUSIVE:
                    session.set_apart(grant)  # the passing on ends: those who wait did not ask for such a lease
                grant.lengthen(answer.at, reply.left)
            grant.confirm(answer.at, reply.left)
        session.tell("renewed", grant.name, grant.ticket, grant.fence)
        return
    why = reply.why if isinstance(reply, NotHolder) else None
    if why is not None and why.kind == "evicted":
        reason = f" ({why.reason})" if why.reason else ""
        session.lose(grant, "evicted", f"{why.by or 'somebody'} evicted its holder{reason}")
    elif in_time:
        session.lose(grant, "store_reset", "the store no longer knows it. Someone else may hold it now")
        suspect(session)  # the others may be lost with it
    else:
        session.lose(grant)


def lose_damaged(session: Session, grant: Grant, damage: RecordDamaged) -> None:
    """Lose a grant whose state is damaged: it cannot be renewed, and after a repair another client may get the lock."""
    session.lose(grant, "store_reset", str(damage).rstrip("."))


async def _tidy(session: Session) -> None:
    try:
        await session.backend.tidy()
    except (StoreError, ConfigError) as error:
        session.set_down(str(error))


async def watch(session: Session) -> None:
    try:
        await _watch(session)
    except BaseException:
        session.watching = False
        raise


async def _watch(session: Session) -> None:
    idle_since: float | None = None
    while True:
        with session.mutex:
            clock = session.clock()
            watched = [s for s in session.holders() if s.watched]
            due = min((s.end() for s in watched), default=NEVER)
            if session.cancels:
                due = min(due, clock + cancel_event.LOOK)
            if due == NEVER:
                idle_since = clock if idle_since is None else idle_since
                due = idle_since + LINGER
                if session.closed or clock >= due:
                    session.watching = False
                    return
            else:
                idle_since = None
            session.watch_at = due
            session.watch_bell.clear()
        if due > clock:
            await session.watch_bell.wait(due - clock)
        clock = session.clock()
        if session.cancels:
            cancel_event.look(session)
        for grant in watched:
            if grant.end() <= clock and not grant.left:
                session.lose(grant)


async def call_on_lost(hold: LeaseBase) -> None:
    try:
        assert hold._request.on_lost is not None
        result = hold._request.on_lost(hold)
        if hasattr(result, "__await__"):
            await result
    except (Exception, SystemExit):
        stumbled(f"on_lost for {hold.name!r} raised")
