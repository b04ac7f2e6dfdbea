"""Waiting until it may be one's turn: by a hint where the database sends any, by looking where it does not."""

from typing import TYPE_CHECKING

from ...doorman import wire
from ...errors import BackendError
from ..contract import Colour, Pushed, Seen, Unknown

if TYPE_CHECKING:
    from .ears import Ear
    from .store import SqlStore

FIRST = 0.01  # seconds until the first look, times the place in line
NEXT = 0.1  # seconds between two looks of the next one to come, at most
LATER = 0.5  # and of all others
DEAF = 0.25  # seconds for which one looks while nobody listens yet


async def listen(
    store: "SqlStore", colour: Colour, ear: "Ear", key: str, ticket: str, timeout: float
) -> Pushed | None:
    event = colour.event()
    end = colour.clock() + timeout
    heard = ear.enter(ticket, event)
    try:
        if heard is not None:
            return heard
        while not ear.listening and (left := end - colour.clock()) > 0:
            found = await poll(store, colour, key, ticket, min(left, DEAF))
            if found is not None:
                return found
        # What was said before anybody listened is lost: that is why everybody is woken when somebody begins to.
        await event.wait(max(end - colour.clock(), 0))
    finally:
        told = ear.leave(ticket, event)
    return Pushed(ticket) if told or colour.clock() < end else None


async def poll(store: "SqlStore", colour: Colour, key: str, ticket: str, timeout: float) -> Pushed | None:
    """Plain reads, more often near the head of the line, less often while nothing happens."""
    end = colour.clock() + timeout
    pause, ahead, version = FIRST, -1, -1
    while (now := colour.clock()) < end:
        await colour.sleep(min(pause, end - now))
        try:
            seen = await store.read(key)
        except (Unknown, BackendError):
            pause = min(pause * 2, LATER)
            continue
        if seen.version == version:
            pause = min(pause * 2, LATER if ahead else NEXT)
            continue
        standing = _standing(seen, ticket)
        if standing is None:
            return Pushed(ticket)
        pause, ahead, version = FIRST * (standing + 1), standing, int(seen.version or 0)
    return None


def _standing(seen: Seen, ticket: str) -> int | None:
    """How many stand before this ticket, at a door or in the line of a pool; None if it is time to ask again."""
    if seen.row is None:
        return None
    body = seen.row.body
    try:
        if not body.startswith('["line'):
            return wire.decode(body).standing(ticket)
        from ...pool.wire import decode_line

        line = decode_line(body)
        return 0 if any(w.ticket == ticket for w in line.watchers) else line.standing(ticket)
    except ValueError:
        return None  # whoever asks will be told
