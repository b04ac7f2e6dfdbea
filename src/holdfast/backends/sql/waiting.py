"""Waiting until it may be one's turn: by a hint where the database sends any, by looking where it does not."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...doorman import Wake
from ...errors import BackendError
from .. import polling
from ..contract import Colour, Pushed, Unknown
from ..names import is_line
from ..polling import Ahead, pool_of, standing
from .tables import EAR, NEWS

if TYPE_CHECKING:
    from .ears import Ear
    from .store import SqlStore

FIRST = 0.01  # seconds: the shortest pause between two looks
NEXT = 0.1  # the longest, of who is the next to come in
BEHIND = 0.5  # and of all others
DEAF = 0.25  # seconds for which one looks while nobody listens yet


async def listen(
    store: "SqlStore", colour: Colour, ear: "Ear", key: str, ticket: str, timeout: float
) -> Pushed | None:
    event = colour.event()
    end = colour.clock() + timeout
    said = False
    heard = ear.enter(ticket, event)
    try:
        while not heard and not ear.listening and (left := end - colour.clock()) > 0:
            found = await poll(store, key, ticket, min(left, DEAF))
            if found is not None:
                return found
        # What was said before anybody listened is lost: that is why everybody is woken when somebody begins to.
        if not heard:
            await event.wait(max(end - colour.clock(), 0))
    finally:
        said = ear.leave(ticket, event)
    if not said and colour.clock() >= end:
        return None
    if is_line(key) or not store.pushes_grants:
        return Pushed(ticket)  # what it asks next is read and written together with what others of this client ask
    try:
        shown = await look(store, key, ticket, 0.0)
    except (Unknown, BackendError):
        return Pushed(ticket)
    return shown if isinstance(shown, Pushed) else Pushed(ticket)


async def poll(store: "SqlStore", key: str, ticket: str, timeout: float) -> Pushed | None:
    return await polling.poll(store.naps, ticket, timeout, partial(look, store, key, ticket), FIRST, NEXT, BEHIND)


async def look(store: "SqlStore", key: str, ticket: str, age: float) -> Pushed | Ahead | None:
    seen = await store.shared.get(key, age, partial(store.read, key))
    if seen is None:
        return None
    found = standing(seen.row.body if seen.row is not None else None, ticket, (seen.now, seen.at))
    if isinstance(found, Ahead) and found.wants is not None and not found.number:
        if await store.items.is_due(pool_of(key), found.wants):
            return Pushed(ticket)
    if isinstance(found, Pushed):
        store.tell(key, seen)
    return found


def hints_of(woken: Sequence[Wake], key: str = "") -> tuple[list[str], list[str]] | None:
    """Where to say what: the ticket; to one without a ticket, which row has changed. Never the row itself: whoever may
    read the table and say something could then have others write what he may not."""
    heard = [(ear, ticket or NEWS + key) for ear, ticket, *_ in woken if ear.startswith(EAR)]
    return ([ear for ear, _ in heard], [hint for _, hint in heard]) if heard else None
