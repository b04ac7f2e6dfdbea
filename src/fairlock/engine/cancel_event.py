"""Cancel a wait from elsewhere: `acquire(cancel=event)` ends without the lock soon after the event is set.

Any object with `is_set()` works, so a threading.Event as well as an asyncio.Event. The watch reads it, which never
calls the store, and only while a wait has one: without `cancel` this costs nothing.
"""

from __future__ import annotations

from typing import Protocol

from ..errors import ConfigError
from .grant import LeaseBase
from .session import Session

LOOK = 0.05  # seconds between two checks


class Cancel(Protocol):
    def is_set(self) -> bool: ...


def begin(session: Session, waiter: LeaseBase, cancel: Cancel) -> None:
    """Let this waiter be cancelled from here on until `end`. ConfigError if cancel is no such object."""
    if not callable(getattr(cancel, "is_set", None)):
        raise ConfigError(f"cancel must be an Event, or have is_set() as one has, not {type(cancel).__name__}.")
    with session.mutex:
        session.cancels[waiter] = cancel
        if cancel.is_set():
            session.called_off.add(waiter)
        session.watch(session.clock() + LOOK)


def end(session: Session, waiter: LeaseBase) -> None:
    session.cancels.pop(waiter, None)
    session.called_off.discard(waiter)


def look(session: Session) -> None:
    """Wake the cancelled waiters, again and again until they have noticed it. The watch calls this."""
    for waiter, cancel in list(session.cancels.items()):
        if cancel.is_set():
            session.called_off.add(waiter)
            if waiter._event is not None:
                waiter._event.set()
            session.backend.wake_here([waiter._grant.ticket])
