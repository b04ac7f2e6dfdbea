"""Wait for a wake-up where the database sends any, and poll where it does not."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...rules.locks import Wakeup
from .. import polling
from ..base import Pushed, Runtime
from ..polling import Ahead, pool_for_queue, standing
from ..wakeups import Waiter, WakeupInbox
from .schema import LISTENER, ROW_CHANGED

if TYPE_CHECKING:
    from .notify_listener import NotifyListener
    from .store import SqlStore

FIRST = 0.01  # seconds: the shortest pause between two reads
NEXT = 0.1  # the longest for the first waiter
BEHIND = 0.5  # and for all others
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
            found = await poll(store, key, ticket, min(left, UNREACHABLE), listener)
            if found is not None:
                return found
        # A wake-up that was sent before the process listened is lost. So all are woken when it begins to listen, also
        # those that poll.
        if not me.woken:
            await event.wait(max(end - runtime.clock(), 0))
        return listener.take(me)
    finally:
        listener.stop_waiting(me)


async def poll(
    store: "SqlStore", key: str, ticket: str, timeout: float, inbox: WakeupInbox | None = None
) -> Pushed | None:
    look = partial(_look, store, key, ticket)
    return await polling.poll(inbox or store.inbox, store.runtime, ticket, timeout, look, FIRST, NEXT, BEHIND)


async def _look(store: "SqlStore", key: str, ticket: str, age: float) -> Pushed | Ahead | None:
    known = await store.row_cache.read(key, age, store.client_clock, partial(store.read, key))
    if known is None:
        return None
    found = standing(known, ticket)
    if isinstance(found, Ahead) and found.wants is not None and not found.number:
        if await store.items.is_due(pool_for_queue(key), found.wants):
            return Pushed(ticket)
    return found


def wakeups_for(woken: Sequence[Wakeup], key: str = "") -> tuple[list[str], list[str]] | None:
    """Return the channels and their payloads: a ticket, or, without a ticket, the key of the changed row.

    Never the row itself: a role that may only read and NOTIFY could then make other clients write for it."""
    sent = [(listener, ticket or ROW_CHANGED + key) for listener, ticket, *_ in woken if listener.startswith(LISTENER)]
    return ([listener for listener, _ in sent], [payload for _, payload in sent]) if sent else None
