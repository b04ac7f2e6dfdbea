"""The keeper of a client: it renews leases at a third of their length, sends pending releases, tidies the store.

One message renews many leases (renewal_messages.py). To fill its messages the keeper renews a little early what is due
soon; if too many leases are due at the same time, it spreads their next renewals over the interval.

A round reads all grants to find what is due, and the plan of the next one reads them again: with 100,000 grants these
passes take a third of the keeper's time, 8 % of a core. Rejected alternative: a heap of due times. Every acquire would
have to write to it under a mutex, also of a hold that is over before it is ever renewed.

A loss is not decided here: `LeaseBase.lost` reads the clock. The keeper only finds out from the store that a grant has
ended, and notices deadlines that have passed while it was busy. It notices an eviction, and a request to release,
within about a second: by a wake-up where the store sends them, by reading the state where it does not. Because a store
that hangs also hangs the keeper, the watch reads the clock for holds with a callback; it never calls the store.

Both end after a second or two without work and are started again when needed: a client that holds nothing costs no
thread, and can be dropped without being closed. Clients of threads that share connections also share the threads of
their keepers: see keeper_threads.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ConfigError, StoreError
from ..rules.locks import ASKED
from . import cancel_event
from .boot_clock import jitter
from .busy_name_index import HeldNames
from .events import log_exception
from .grant import NEVER, Grant, LeaseBase
from .grant_state import HELD, RELEASING
from .release import flush_release
from .renewal_messages import pause_after_failure, renew_all
from .session import SOON, Session

LINGER = 1.0  # seconds
IDLE = 2.2  # seconds for which a keeper goes on: a store takes a name off its index two seconds after its last hold
TIDY = 1.0
BRIEF = 0.3  # seconds: a hold that may be over in a moment has no wake-ups before the next round
MESSAGES = 16  # of one round; then comes what has been acquired meanwhile, and may have less time
FLUSHING = 0.5  # seconds for which one round sends pending releases; the rest is sent by the next ones
MANY = 1000  # grants; with more of them the keeper attends to their wake-ups at most once in TIDY seconds
LOOKS = 16  # such reads in one round; with more names held, each has its turn later
WINDOWS = 16  # the time between two renewals has this many parts; a lease may be renewed one part of it early
EARLY = 1 / 3 / WINDOWS


class Keeper:
    """The keeper of a session. Its thread or task calls `plan`, and `work` when that is due, until nothing is left."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._idle_since: float | None = None
        self._retry_at = 0.0  # after a failure nothing is tried before this
        self._attended = -TIDY
        self._names = HeldNames()

    def plan(self) -> float | None:
        """Return when to work next; None if nothing is left. Then `keeping` is cleared: the next keeper can start."""
        session = self.session
        with session.mutex:
            clock = session.clock()
            session.wake_at = NEVER
            due = NEVER if session.closed else _next_due(session)
            if due == NEVER:
                idle_since = self._idle_since = clock if self._idle_since is None else self._idle_since
                due = idle_since + IDLE
                if session.closed or clock >= due:
                    session.keeping = False
                    return None
            else:
                self._idle_since = None
                due = max(due, self._retry_at)
            # With many short holds it wakes up by itself: an event for each would cost more than the hold.
            session.wake_at = due = min(due, clock + (SOON if clock - session.hurried < LINGER else TIDY))
            session.keeper_event.clear()
        return due

    async def work(self) -> None:
        session = self.session
        if not session.closed:
            attend = len(session.grants) < MANY or session.clock() - self._attended >= TIDY
            self._retry_at = await _round(session, self._names if attend else None)
            self._attended = session.clock() if attend else self._attended

    async def end(self) -> None:
        if not self.session.closed:
            await _tidy(self.session)

    def fail(self) -> None:
        """It ends by an error: the next call starts another one."""
        self.session.keeping = False


async def keep(session: Session) -> None:
    """Run the keeper of one session, in a task or a thread of its own."""
    keeper = Keeper(session)
    try:
        while (due := keeper.plan()) is not None:
            clock = session.clock()
            if due > clock:
                await session.keeper_event.wait(due - clock)
            await keeper.work()
    except BaseException:
        keeper.fail()
        raise
    await keeper.end()


def _next_due(session: Session) -> float:
    ours = list(session.grants.values())
    times = [s.renew_at if s.renew_at < s.cap else s.cap for s in ours if s.state is HELD]
    grants = min(times, default=NEVER)
    pending_releases = min((d.due for d in session.pending_releases.values()), default=NEVER)
    return min(grants, pending_releases)


async def _round(session: Session, names: HeldNames | None) -> float:
    """Do what is due; with `names` also attend to the wake-ups of what is held, and list it. Returns the time before
    which nothing should be tried again, after a failure."""
    clock = session.clock()
    grants: list[Grant] = []
    try:
        with session.mutex:
            ours = list(session.grants.values())
            holders = (s for s in ours if s.state is HELD or s.state is RELEASING)
            woken = set(session.backend.take_wakeups(s.ticket for s in holders))
            for grant in [s for s in ours if s.ticket in woken] if woken else ():
                grant.renew_at = clock  # evicted or asked to release, most likely: not at a third of the lease
            due = _due(session, ours, clock)
            pending_releases = [d for d in session.pending_releases.values() if d.due <= clock]
            for pending in pending_releases:
                if pending.until <= clock:
                    session.pending_releases.pop(pending.ticket, None)
        due.sort(key=lambda s: s.deadline)
        # The one that failed last goes last, so that one damaged record does not cost the other leases.
        due.sort(key=lambda s: s.failed)
        grants = due[: MESSAGES * session.backend.batch_size]
        await renew_all(session, grants)
        if len(due) > max(session.backend.batch_size, 2 * len(ours) // WINDOWS):
            _spread(grants, session.backend.batch_size)
        enough = session.clock() + FLUSHING
        for pending in pending_releases:
            if session.clock() >= enough:
                break  # after a loss of many leases: what is still held must be renewed meanwhile
            if pending.ticket in session.pending_releases and not await flush_release(session, pending.ticket):
                with session.mutex:
                    if pending.ticket in session.pending_releases:
                        session.pending_releases[pending.ticket] = session.pending_releases.pop(pending.ticket)
                return session.clock() + 0.25
        if names is not None:
            await _attend(session, names)
        await _tidy(session)
    except (StoreError, ConfigError):  # down, or damaged: either way it cannot be renewed now
        shortest = min((s.lease for s in grants), default=10.0)
        return session.clock() + pause_after_failure(shortest)
    except Exception:
        log_exception("the keeper failed; it goes on")
        return session.clock() + 0.25
    return 0.0


def _due(session: Session, grants: Sequence[Grant], clock: float) -> list[Grant]:
    """Return the grants to be renewed now: those that are due, and, if one message renews many, those due soon."""
    soon = [s for s in grants if s.renew_at - s.lease * EARLY <= clock or s.cap <= clock]
    due = [s for s in soon if (s.renew_at <= clock or s.cap <= clock) and s.state is HELD]
    if due and session.backend.batch_size > 1:
        # One that was acquired a moment ago may be released in a moment: it is renewed when it is due. Any other goes
        # along, also if `_spread` has made it due early: a round reads all grants, and so there must be few of them.
        early = [s for s in soon if clock < s.renew_at and clock < s.cap and s.state is HELD]
        due += [s for s in early if clock - s.asked >= s.lease / 8]
    return due


def _spread(grants: Sequence[Grant], size: int) -> None:
    """More grants than their share were due at the same time. Make sure that it is not so forever. Those of a message
    stay together: grants that were acquired together are near each other in memory, and so are read faster."""
    for first in range(0, len(grants), size):
        part = jitter() / 6
        for grant in grants[first : first + size]:
            if grant.renew_at != NEVER:
                grant.renew_at -= part * grant.lease


async def _attend(session: Session, names: HeldNames) -> None:
    """Receive wake-ups for what is held from here on, and list it. Earlier wake-ups are not received, so these grants
    are renewed at once."""
    clock = session.clock()
    old = clock - BRIEF
    held = [s for s in list(session.grants.values()) if s.since <= old and s.state is HELD]
    names.collect(held, clock)
    if held:
        since = await session.backend.attend(names.locks, names.pools)
        unnotified = [s for s in held if (s.asked < since or not s.is_notified) and not s.request.pool]
        if since < NEVER:
            for grant in [s for s in unnotified if s.is_notified]:
                grant.renew_at = clock
            unnotified = [s for s in unnotified if not s.is_notified]
        if unnotified:
            await _read_held_rows(session, unnotified, clock)
    if session.backend.has_index:
        await session.backend.list_names(names.locks, names.pools)


async def _read_held_rows(session: Session, grants: list[Grant], clock: float) -> None:
    """Read these names, because no wake-ups come for them: the longest unread first, an unreadable one last."""
    old = clock - session.backend.poll_interval * 0.9
    due = sorted((s for s in grants if s.asked < old), key=lambda s: s.asked)
    for name in list(dict.fromkeys(s.name for s in due))[:LOOKS]:
        same = [s for s in due if s.name == name]
        for grant in same:
            grant.asked = session.clock()
        record, _ = await session.backend.look(name)
        news = {tombstone.ticket: tombstone.why for tombstone in record.tombstones}
        for grant in same:
            why = news.get(grant.ticket)
            known = why is None or (why.kind == ASKED and why[1:] == session.release_requests.get(grant.ticket))
            if not known or record.grant(grant.ticket) is None:
                grant.renew_at = clock


async def _tidy(session: Session) -> None:
    try:
        await session.backend.tidy()
    except (StoreError, ConfigError) as error:
        session.note_down(str(error))


async def watch(session: Session) -> None:
    idle_since: float | None = None
    try:
        while True:
            with session.mutex:
                clock = session.clock()
                watched = [s for s in session.holders() if s.watched and s.state is HELD]
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
                session.watch_event.clear()
            if due > clock:
                await session.watch_event.wait(due - clock)
            clock = session.clock()
            if session.cancels:
                cancel_event.look(session)
            for grant in watched:  # not one that is being released: its body ended in time, and only the reply is late
                if grant.end() <= clock and grant.state is HELD:
                    session.lose(grant)
    except BaseException:
        session.watching = False
        raise


async def call_user(hold: LeaseBase, what: str) -> None:
    """Call the `on_lost` or `on_asked` of this hold. Whatever it raises is logged."""
    try:
        result = getattr(hold._request, what)(hold)
        if hasattr(result, "__await__"):
            await result
    except (Exception, SystemExit):
        log_exception(f"{what} for {hold.name!r} raised")
