"""Calling off a wait from elsewhere: `acquire(cancel=event)` ends without the lock soon after somebody sets the event.

Any object with `is_set()` will do, so a threading.Event as well as an asyncio.Event. The watch looks at it, which never
talks to the store, and only while a wait has one: nothing of this costs anything without `cancel`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..errors import ConfigError
from .desk import Desk
from .seat import Hold

if TYPE_CHECKING:
    from .pool import Seeker

LOOK = 0.05  # seconds between two looks


class Cancel(Protocol):
    def is_set(self) -> bool: ...


def begin(desk: Desk, waiter: Hold | Seeker, cancel: Cancel) -> None:
    """From here on until `end` this waiter can be called off. ConfigError if cancel is no such object."""
    if not callable(getattr(cancel, "is_set", None)):
        raise ConfigError(f"cancel must be an Event, or have is_set() as one has, not {type(cancel).__name__}.")
    with desk.mutex:
        desk.cancels[waiter] = cancel
        if cancel.is_set():
            desk.called_off.add(waiter)
        desk.watch(desk.clock() + LOOK)


def end(desk: Desk, waiter: Hold | Seeker) -> None:
    desk.cancels.pop(waiter, None)
    desk.called_off.discard(waiter)


def look(desk: Desk) -> None:
    """What the watch does: wake those that were called off, again and again until they have noticed it."""
    for waiter, cancel in list(desk.cancels.items()):
        if cancel.is_set():
            desk.called_off.add(waiter)
            if isinstance(waiter, Hold):
                if waiter._event is not None:
                    waiter._event.set()
                desk.backend.wake_here([waiter._seat.ticket])
            else:
                desk.backend.wake_here([waiter.ticket])
