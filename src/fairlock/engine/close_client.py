"""Close a client: release what it holds, end its waits, send its pending releases once more.

`close` may come at any moment, also while other threads or tasks are in the middle of an acquire. Those are woken and
end with the error of a closed client; each undoes what it has done so far. An acquire that does not end in time,
because the store does not reply, is undone from here: its ticket gets a tombstone, which a late request finds.

At the normal end of the interpreter all clients are closed, too, so that no other client waits a whole lease for a
process that simply ended. (A client of asyncio is closed when its loop is closed: aio/runtime.py.)
"""

from __future__ import annotations

import atexit
from collections.abc import Iterable

from ..errors import ConfigError, StoreError
from ..stores import deadline
from .events import warn
from .fork import sessions
from .grant import Grant
from .grant_state import HELD
from .release import flush_release, release
from .session import Session

RETRY_FOR = 2.0  # seconds in which acquires under way may end by themselves
AT_EXIT = 0.5  # the same at the end of the interpreter: threads that wait are daemons, which it does not wait for
GLANCE = 0.05  # seconds between two checks of them
LIMIT = 3.0  # seconds since the last reply after which nothing more is sent


async def close(session: Session, wait: float = RETRY_FOR) -> None:
    """Release what is held, end the acquires under way, try each pending release once, and close the store.

    Never raises what the store replies, and never hangs. A second time does nothing.
    """
    if session.closed:
        return
    with session.mutex:
        session.closing = True
        session.ended = session.ended or session.runtime.event()
    await _end_acquires(session, session.clock() + wait)
    before = deadline.begin(LIMIT)
    try:
        await _give_up(session)
    finally:
        deadline.end(before)
    session.closed = True
    session.keeper_event.set()
    session.watch_event.set()
    try:
        await session.backend.tidy()
    except (StoreError, ConfigError) as error:
        warn(f"Closing {session.backend.where}: {error}")
    await session.backend.close()


async def _give_up(session: Session) -> None:
    """Release what is held and send the pending releases, as long as the store replies."""
    until = session.clock() + LIMIT
    for hold in [hold for grant in session.holders() for hold in grant.holds]:
        deadline.begin(until - session.clock(), 0.0)
        if deadline.over():
            return
        await release(session, hold, quiet=True)
        if hold.ticket not in session.pending_releases:
            until = session.clock() + LIMIT
    for ticket in list(session.pending_releases):
        deadline.begin(until - session.clock(), 0.0)
        if deadline.over():
            return
        if await flush_release(session, ticket):
            until = session.clock() + LIMIT


async def _end_acquires(session: Session, until: float) -> None:
    """Wait until all acquires under way have ended, and undo those that have not ended by then."""
    assert session.ended is not None
    while under_way := _under_way(session):
        left = until - session.clock()
        if left <= 0:
            break
        session.ended.clear()
        _call_off(session, under_way)
        if _under_way(session):
            await session.ended.wait(min(left, GLANCE))
    with session.mutex:
        for each in under_way:
            if each.known:
                session.give_up(each, session.clock(), leave_tombstone=True)


def _under_way(session: Session) -> list[Grant]:
    """Return the acquires that have neither ended nor succeeded, and the releases without a reply."""
    return [grant for grant in list(session.grants.values()) if grant.state is not HELD or grant.queue]


def _call_off(session: Session, under_way: Iterable[Grant]) -> None:
    """Wake these acquires now."""
    session.backend.wake_here([each.ticket for each in under_way])
    with session.mutex:
        events = [hold._event for grant in session.grants.values() for hold in grant.queue or ()]
    for event in events:
        if event is not None:
            event.set()


def warn_dropped(session: Session) -> None:
    """Warn that a client was dropped while it held something. A finalizer must not raise."""
    try:
        import warnings

        names = ", ".join(sorted({grant.name for grant in session.holders()}))
        warnings.warn(f"a client of {session.backend.where} was dropped while holding {names}", ResourceWarning, 3)
    except Exception:
        pass


def close_at_exit(session: Session) -> None:
    """Close the session when the interpreter ends, before the driver of its store closes the connections: the function
    that was registered last is called first, and connect() imports most drivers."""
    sessions.add(session)
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)


def _at_exit() -> None:
    for session in list(sessions):
        if session.ends_with_process and not session.closed and (session.grants or session.pending_releases):
            try:
                session.runtime.finish(_close_for_good(session))
            except Exception:
                pass  # the program has ended: nothing reads it any more


async def _close_for_good(session: Session) -> None:
    session.exiting = session.runtime.current()
    await close(session, AT_EXIT)
