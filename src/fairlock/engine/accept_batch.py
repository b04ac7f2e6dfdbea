"""What the replies to many tasks mean: `accept_grant` and `accept_release` for all of a batch.

Nearly all of them are plain: a lock without options, whose lease is renewed already. For these everything that is the
same in the whole batch is computed once, and nothing else is called; any other goes the ordinary way. No mutex is
needed: tasks change the session only between two awaits, and this does not wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .acquire import accept_grant
from .grant import LeaseBase
from .grant_state import HELD, RELEASED
from .release import accept_release
from .session import Session


def accept_grants(replies: Iterable[tuple[Any, LeaseBase, int]], left: int, at: float, clock: float) -> None:
    """Handle these replies to requests that were sent at `at`: of each its future, its hold and its fence. All were
    granted for `left` microseconds, which is the lease of each. The result of the future is that of `accept_grant`."""
    session: Session | None = None
    deadline = renew_at = 0.0
    usual = False
    for future, hold, fence in replies:
        request = hold._request
        if hold._session is not session:
            session = hold._session
            session.answered(at)
            deadline, renew_at = at + request.usable, at + request.third
            backend = session.backend
            usual = session.wake_at <= renew_at and clock < deadline and not session.closing
            usual = usual and not (backend.skew or backend.may_duplicate)
        grant = hold._grant
        if usual and request.plain and not hold._watched:
            grant.fence = hold.fence = fence
            grant.doubtful = False
            grant.asked, grant.deadline, grant.renew_at = at, deadline, renew_at
            grant.since = hold._since = clock
            grant.state = HELD
            future.set_result(True)
        else:
            try:
                future.set_result(accept_grant(hold, fence, left, at, clock))
            except Exception as error:
                future.set_exception(error)
                future.exception()  # a task that was cancelled meanwhile does not fetch it


def accept_releases(replies: Iterable[tuple[Any, LeaseBase, int]], _: int, at: float, clock: float) -> None:
    """Handle these replies to releases that were sent at `at`: of each its future and its hold, which was held until
    then. The result of the future is True."""
    session: Session | None = None
    for future, hold, _ in replies:
        if hold._session is not session:
            session = hold._session
            session.answered(at)
            grants, others = session.grants, session.nested or session.pending_releases
        grant, home = hold._grant, hold._home
        key = hold._request.key or grant.ticket
        if others or grant.queue or not hold._request.plain or grant.loss is not None or grants.get(key) is not grant:
            accept_release(hold, at)
        else:
            grant.state = RELEASED
            del grants[key]
            if home:
                home.remove(hold)
            hold._released = True
            grant.holds = ()  # or the two would keep each other alive until a garbage collection
        future.set_result(True)
