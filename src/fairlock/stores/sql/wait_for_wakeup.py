"""Wait for a wake-up where the database sends any."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...rules.locks import Wakeup
from ..base import Pushed, Runtime
from ..wakeups import Waiter
from .schema import LISTENER, ROW_CHANGED

if TYPE_CHECKING:
    from .notify_listener import NotifyListener
    from .store import SqlStore

UNREACHABLE = 0.25  # seconds for which a waiter polls while the process does not listen yet


async def listen(
    store: "SqlStore", runtime: Runtime, listener: "NotifyListener", key: str, ticket: str, timeout: float
) -> Pushed | None:
    event = runtime.event()
    me = Waiter(ticket, event)
    end = runtime.clock() + timeout
    try:
        listener.start_waiting(me)
        while not me.woken and not listener.listening and (left := end - runtime.clock()) > 0:
            found = await store.poll(key, ticket, min(left, UNREACHABLE), listener)
            if found is not None:
                return found
        # A wake-up that was sent before the process listened is lost. So all are woken when it begins to listen, also
        # those that poll.
        if not me.woken:
            await event.wait(max(end - runtime.clock(), 0))
        return listener.take(me)
    finally:
        listener.stop_waiting(me)


def wakeups_for(woken: Sequence[Wakeup], key: str = "") -> tuple[list[str], list[str]] | None:
    """Return the channels and their payloads: a ticket, or, without a ticket, the key of the changed row.

    Never the row itself: a role that may only read and NOTIFY could then make other clients write for it."""
    sent = [(listener, ticket or ROW_CHANGED + key) for listener, ticket, *_ in woken if listener.startswith(LISTENER)]
    return ([listener for listener, _ in sent], [payload for _, payload in sent]) if sent else None
