"""How a thread acquires and releases: begin, one exchange with the store, finish. In the queue it waits for its wake-up
by a plain call, too, where the store has one. A coroutine goes on if that was not possible at once, or not enough."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from os import sched_yield
from typing import Any, ParamSpec, TypeVar

from ..engine import cancel_event, with_block
from ..engine.acquire import LOOK_AGAIN, accept_pass, begin_acquire, begin_wait, finish_acquire, finish_wait
from ..engine.acquire import acquire as wait
from ..engine.cancel_event import Cancel
from ..engine.grant import LeaseBase
from ..engine.grant_state import HELD
from ..engine.release import INTERRUPTED, begin_release, finish_release, release
from ..engine.run_sync import run
from ..engine.session import Session
from ..errors import LeaseLost, StoreError
from ..rules.locks import Queued
from ..stores import deadline
from ..stores.base import OutcomeUnknown

P = ParamSpec("P")
H = TypeVar("H", bound=LeaseBase)

CROWD = 32  # threads in a local queue
BRIEFLY = 0.2  # seconds; most waits end within them


def get(
    hold: H, limit: float | None, cancel: Cancel | None = None, reentrant: bool = False, home: list[Any] | None = None
) -> H | None:
    """Acquire this hold as `acquire` does, and return it; None if it was not acquired in time."""
    session = hold._session
    try:  # around everything: a Ctrl-C between any two lines must not leave it held
        if limit is not None:
            deadline.begin(limit)
        if cancel is not None:
            cancel_event.begin(session, hold, cancel)
        had = acquire(session, hold, limit, reentrant, home)
        if limit is not None:
            deadline.end()
        if cancel is not None:
            cancel_event.end(session, hold)
        return hold if had else None
    except BaseException:
        surely(with_block.undo, session, hold)
        deadline.end()
        cancel_event.end(session, hold)
        raise


def acquire(
    session: Session,
    hold: LeaseBase,
    limit: float | None,
    reentrant: bool = False,
    home: Any = None,
) -> bool:
    """Return True if acquired within `limit` seconds (None: forever, 0: only a try). On any exception call `undo`.

    home: the holds of the same object, to which it is added.
    """
    if home and limit is None and any(other._who is hold._who for other in list(home)):
        hold._warn_at = session.clock() + 1.0
    until = session.clock() + limit if limit else None
    message = None if reentrant else begin_acquire(session, hold, limit == 0)
    answer = None
    had = False
    if message is not None:
        request, target = hold._request, session.backend
        try:
            answer = (target.pools if request.pool else target).call_nowait(request.name, message)  # type: ignore[union-attr]
        except (OutcomeUnknown, StoreError):
            pass  # it may have arrived: it is repeated with the same ticket
        else:
            if answer is None:
                hold._grant.doubtful = False  # it was not sent
            elif (
                type(answer[0]) is Queued
                and limit != 0
                and session.backend.wait_briefly is not None
                and hold._warn_at is None
                and (limit is not None or hold._who not in session.entered)
            ):
                had = _was_woken(session, hold, until, answer)
                answer = None
            else:
                had = finish_acquire(session, hold, answer)
    if not had:
        if reentrant:
            work = with_block.get(session, hold, limit, True)
        elif hold._event is not None and _was_passed(session, hold, limit):
            work = None
        else:
            work = wait(session, hold, until, limit == 0, answer)
        if work is not None and not run(work):
            return False
    if home is not None:
        hold._home = home
        home.append(hold)
    return True


def _was_passed(session: Session, hold: LeaseBase, limit: float | None) -> bool:
    """Wait in the local queue, if this one is there. Return True if the lock was passed on to it, False: `wait`."""
    event: Any = hold._event
    if hold._warn_at is not None or hold._request.together or (limit is None and hold._who in session.entered):
        return False
    if not event.block(LOOK_AGAIN if limit is None else min(limit, LOOK_AGAIN)):
        return False
    grant = hold._grant
    if grant.state is not HELD or hold not in grant.holds:
        return False
    accept_pass(session, hold)
    return True


def _was_woken(session: Session, hold: LeaseBase, until: float | None, answer: tuple[Any, float, bool]) -> bool:
    """Wait in the queue of the store after this reply. Return True if a wake-up has granted it, False: `wait`."""
    reply, at, doubt = answer
    backend: Any = session.backend
    hold._began = session.last_reply = at
    if session.down:
        session.answered(at)
    doubt = doubt or backend.may_duplicate
    nap = begin_wait(session, hold, reply, at, doubt)
    if until is not None:
        nap = min(nap, until - session.clock())
    ticket = hold._grant.ticket
    pushed = backend.wait_briefly(ticket, BRIEFLY if nap > BRIEFLY else nap)
    if pushed is None and nap > BRIEFLY:
        try:
            pushed = run(backend.wait_for_wakeup(hold._request.name, ticket, nap - BRIEFLY))
        except StoreError:
            return False  # it cannot listen any more
    return pushed is not None and finish_wait(session, hold, pushed, at, doubt)


def give_back(session: Session, hold: LeaseBase, leaving: bool = False) -> None:
    """Release it. LeaseLost if it was lost, StoreError if the store cannot be reached; leaving a `with` block: neither.

    After a Ctrl-C the caller must `release`.
    """
    grant = hold._grant
    if leaving:
        now = session.clock  # `session.clock()` would take longer: it is not a method
        clock = now()
        if (clock >= grant.deadline or clock >= grant.cap) and not hold._released:
            hold.lost  # noqa: B018  # the body went on after its end: that is a loss even if no other client came
    if grant.state is not HELD:
        run(release(session, hold, leaving))
        return
    message = begin_release(session, hold, leaving)
    if message is None:
        if grant.queue is not None and len(grant.queue) >= CROWD:
            sched_yield()  # the thread that has the lock now waits only for the interpreter
        return
    request, target = hold._request, session.backend
    try:
        answer = (target.pools if request.pool else target).call_nowait(request.name, message)  # type: ignore[union-attr]
    except (OutcomeUnknown, StoreError):
        run(release(session, hold, leaving, message, repeated=True))
        return
    if answer is None:
        run(release(session, hold, leaving, message))
    else:
        finish_release(session, hold, answer, leaving)


def leave(session: Session, hold: LeaseBase, error: BaseException | None) -> None:
    """Leave `with`. A loss is raised only if the body was clean, else noted on its exception."""
    give_back(session, hold, leaving=True)
    if hold._reason:
        with_block.raise_loss(hold, error)


def surely(undo: Callable[P, Coroutine[Any, Any, None] | None], *args: P.args, **options: P.kwargs) -> None:
    """After an exception: call this, and run what it returns, for no longer than `briefly` does. Ctrl-C may come again
    in the middle of it, or have come before it began."""
    before = deadline.begin(deadline.left(INTERRUPTED), 0.0)
    try:
        for _ in range(3):
            try:
                work = undo(*args, **options)
                if work is not None:
                    run(work)
                return
            except (KeyboardInterrupt, LeaseLost):
                continue
            except StoreError:
                return  # the keeper goes on, and the caller raises what has interrupted it
    finally:
        deadline.end(before)
