"""Events: a client reports to `on_event` and to the logger `fairlock`. All of them go through one function: `emit`.

The functions `report_…` below it describe what happened to one hold. Each hold has exactly one last event (given_up,
released, lost, evicted or detached), and a "waiting" exactly if that event, or its "acquired", has a place. So a
counter that reads the stream is never wrong by more than the events that are still to come.

The logger is imported only when there is something worth a warning or the program uses logging anyway: start-up time
counts in cron.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..errors import LossReason

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable

    from .grant import Grant, LeaseBase
    from .session import Session

EventKind = Literal[
    "waiting", "acquired", "given_up", "released", "renewed", "lost", "evicted", "attached", "detached", "place_lost",
    "asked", "store_down", "store_up",
]  # fmt: skip
Outcome = Literal["", "acquired", "timeout", "cancelled", "error", "released", "lost", "evicted"]

silent = False
"""Set by the command-line tool, which prints its own messages."""

LEVELS = {"lost": 30, "place_lost": 30, "evicted": 30, "asked": 30, "store_down": 30, "store_up": 20}
QUIET = frozenset(  # not logged in a program that has not set up logging
    ("waiting", "acquired", "given_up", "released", "renewed", "attached", "detached")
)


class Event(NamedTuple):
    """One event: its kind, the name, the hold and how it went."""

    kind: EventKind
    name: str = ""
    """The lock or the pool; '' for store_down and store_up."""
    ticket: str = ""
    """Shortened: it shows people which hold is meant, and cannot be used to release it."""
    fence: int = 0
    detail: str = ""
    """A text for people; for an item of a pool its key."""
    owner: str = ""
    """The owner of this client, as others see it."""
    seconds: float = 0.0
    """acquired, given_up: how long it waited. released, lost, evicted, detached: how long it was held. renewed: how
    long the store took to reply."""
    outcome: Outcome = ""
    """How the wait ended (acquired, timeout, cancelled, error) or the hold (released, lost, evicted)."""
    contended: bool = False
    """acquired, given_up: another one held it or was before it in the queue."""
    place: int = 0
    """waiting, acquired, given_up: the position in the queue at first, 1 = the next; 0 = it was never in a queue."""
    margin: float = 0.0
    """renewed: how many seconds were left until the lease would have counted as lost."""
    reason: LossReason | Literal[""] = ""
    """lost, evicted: expired, evicted, unreachable, max_hold, forked or store_reset."""


_last = ("", "")  # a ticket and its short form: the events of a hold come one after the other


def short(ticket: str) -> str:
    global _last
    known, form = _last
    if ticket is known:
        return form
    form = ticket[:6] + "-" + ticket[24:].lstrip("0") if ticket else ""
    _last = ticket, form
    return form


def thread_in(ticket: str) -> str:
    """Return the number of the thread or task in this ticket; '' if it has none: Session.ticket()."""
    mark = ticket[18:24]
    return mark if mark.strip("0") and not ticket[:32].strip("0123456789abcdef") and len(ticket) >= 32 else ""


class Measured:
    """What metrics keep of the two events that every hold has: how many seconds each waited and was held, of the names
    of one group. For a lock that is free nothing else is made of these events: that takes a fifth of the time.
    acquire.py and release.py append where every cycle passes: another call would cost as much."""

    __slots__ = ("acquired", "evaluate", "released")

    def __init__(self, acquired: array[float], released: array[float], evaluate: Callable[[], object]) -> None:
        self.acquired = acquired
        self.released = released
        self.evaluate = evaluate  # to be called when `released` has MEASURED_TOGETHER values


MEASURED_TOGETHER = 1000


_logger: Any = None
quiet_levels: dict[int, bool] = {}
"""What the logger has found out about its levels, until they change: False means that nothing of it is logged."""


def is_logged(kind: str) -> Any:
    """Return True if events of this kind are logged. For a quiet kind alone `logging` is not imported."""
    global _logger, quiet_levels
    if _logger is None:
        if silent or (kind in QUIET and "logging" not in sys.modules):
            return False
        import logging

        _logger = logging.getLogger("fairlock")
        quiet_levels = getattr(_logger, "_cache", quiet_levels)
    return _logger.isEnabledFor(LEVELS.get(kind, 10)) and not silent


_make = tuple.__new__  # makes a named tuple in half the time of its own constructor


def emit(
    session: Session,
    kind: EventKind,
    name: str = "",
    ticket: str = "",
    *,
    fence: int = 0,
    detail: str = "",
    seconds: float = 0.0,
    outcome: Outcome = "",
    contended: bool = False,
    place: int = 0,
    margin: float = 0.0,
    reason: LossReason | Literal[""] = "",
) -> None:
    """Make one event, and give it to the logger and to `on_event`, if they read it."""
    logged, on_event = is_logged(kind), session.on_event
    if not logged and on_event is None:
        return
    event = _make(Event, (
        kind, name, short(ticket), fence, detail, session.owner, seconds, outcome, contended, place, margin, reason,
    ))  # fmt: skip
    if logged:
        log(event)
    if on_event is not None:
        try:
            on_event(event)
        except KeyboardInterrupt:
            raise
        except BaseException:  # sys.exit() in it must not end the keeper, nor the acquire that it reports
            log_exception("on_event raised; the lock goes on")


# -- what happened to one hold. Never under the session's mutex: `on_event` may use the client.


def report_waiting(session: Session, hold: LeaseBase, place: int, ticket: str, detail: str) -> None:
    """Report that this hold waits. Only the first time: from one queue it may come into another."""
    if not hold._place:
        hold._place = place
        emit(session, "waiting", hold.name, ticket, detail=detail, contended=True, place=place)


def report_acquired(session: Session, hold: LeaseBase, detail: str = "") -> None:
    grant, place = hold._grant, hold._place
    waited = hold._since - (hold._began or grant.asked)
    logged = quiet_levels.get(10, True) and "logging" in sys.modules and is_logged("acquired")
    if session.measured is not None and not place and not logged:
        measured = hold._request.measured = session.measured(hold._request.name)
        measured.acquired.append(waited)
    else:
        emit(
            session, "acquired", hold.name, grant.ticket, fence=hold.fence, detail=detail, seconds=waited,
            outcome="acquired", contended=place > 0, place=place,
        )  # fmt: skip


def report_given_up(session: Session, hold: LeaseBase, outcome: Outcome) -> None:
    """Report that this hold will not be acquired. Only once, and not for one that was acquired."""
    if not hold._ended and not hold._since:
        hold._ended = True
        waited, place = session.clock() - hold._began if hold._began else 0.0, hold._place
        refused = place > 0 or outcome == "timeout"
        emit(
            session, "given_up", hold.name, hold.ticket, seconds=waited, outcome=outcome, contended=refused, place=place
        )


def report_released(session: Session, hold: LeaseBase, detail: str = "", kind: EventKind = "released") -> None:
    """Report that this hold is over. Only once: a release may be repeated."""
    if not hold._ended:
        hold._ended = True
        grant = hold._grant
        logged = quiet_levels.get(10, True) and "logging" in sys.modules and is_logged(kind)
        if session.measured is not None and kind == "released" and not logged:
            measured = session.measured(hold._request.name)
            measured.released.append(session.clock() - hold._since)
            if len(measured.released) >= MEASURED_TOGETHER:
                measured.evaluate()
        else:
            held = session.clock() - hold._since
            emit(
                session, kind, hold.name, grant.ticket, fence=hold.fence, detail=detail, seconds=held,
                outcome="released",
            )  # fmt: skip


def report_lost(session: Session, hold: LeaseBase, reason: LossReason, detail: str) -> None:
    if not hold._ended:
        hold._ended = True
        held = session.clock() - hold._since
        how: Literal["evicted", "lost"] = "evicted" if reason == "evicted" else "lost"
        emit(
            session, how, hold.name, hold.ticket, fence=hold.fence, detail=detail, seconds=held, outcome=how,
            reason=reason,
        )  # fmt: skip


def report_asked(session: Session, hold: LeaseBase, by: str, reason: str) -> None:
    detail = f"{by or 'somebody'} asks to release it ({reason})"
    emit(session, "asked", hold.name, hold.ticket, fence=hold.fence, detail=detail)


def report_renewed(session: Session, grant: Grant, sent: float, deadline: float) -> None:
    """Report a renewal that was sent at this time, when the lease would have counted as lost at this deadline."""
    if session.on_event is None and not (quiet_levels.get(10, True) and "logging" in sys.modules):
        return
    clock = session.clock()
    emit(
        session, "renewed", grant.name, grant.ticket, fence=grant.fence, detail=grant.detail, seconds=clock - sent,
        margin=deadline - clock,
    )  # fmt: skip


def outcome_for(error: BaseException | None) -> Outcome:
    """Return how a wait ended that this exception has ended: a cancelled task, Ctrl-C, or an error."""
    return "error" if error is None or isinstance(error, Exception) else "cancelled"


# -- the log


def log(event: Event) -> None:
    level = LEVELS.get(event.kind, 10)
    text = f"{event.name!r}: {event.kind}" if event.name else event.kind
    _logger.log(level, "%s%s", text, f": {event.detail}" if event.detail else "", extra={"event": event})


def warn(text: str) -> None:
    if silent:
        return
    import logging

    logging.getLogger("fairlock").warning("%s", text)


def log_exception(text: str) -> None:
    """Log an exception that must not stop anything."""
    import logging

    logging.getLogger("fairlock").exception("%s", text)
