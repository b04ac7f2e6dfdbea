"""Waiting until it may be one's turn: by a hint where the database sends any, by looking where it does not."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...doorman import Wake, wire
from ...errors import BackendError
from ..contract import Colour, Pushed, Seen, Unknown
from ..names import SEPARATOR

if TYPE_CHECKING:
    from .ears import Ear
    from .store import SqlStore

FIRST = 0.01  # seconds until the first look, times the place in line
NEXT = 0.1  # seconds between two looks of the next one to come, at most
LATER = 0.5  # and of all others
LONGEST = 7500  # bytes of a hint; PostgreSQL takes 7999
DEAF = 0.25  # seconds for which one looks while nobody listens yet


async def listen(
    store: "SqlStore", colour: Colour, ear: "Ear", key: str, ticket: str, timeout: float
) -> Pushed | None:
    event = colour.event()
    end = colour.clock() + timeout
    said: str | None = None
    heard = ear.enter(ticket, event)
    try:
        while not heard and not ear.listening and (left := end - colour.clock()) > 0:
            found = await poll(store, colour, key, ticket, min(left, DEAF))
            if found is not None:
                return found
        # What was said before anybody listened is lost: that is why everybody is woken when somebody begins to.
        if not heard:
            await event.wait(max(end - colour.clock(), 0))
    finally:
        said = ear.leave(ticket, event)
    if said:
        store.tell(key, said)
    return Pushed(ticket) if said is not None or colour.clock() < end else None


async def poll(store: "SqlStore", colour: Colour, key: str, ticket: str, timeout: float) -> Pushed | None:
    """Plain reads, more often near the head of the line, less often while nothing happens."""
    end = colour.clock() + timeout
    pause, place, version = FIRST, Place(-1), -1
    while (now := colour.clock()) < end:
        await colour.sleep(min(pause, end - now))
        try:
            seen = await store.read(key)
            changed = seen.version != version
            if changed:
                found = _place(seen, ticket)
                if found is None:
                    return Pushed(ticket)
                place, version = found, int(seen.version or 0)
            if place.waits_for is not None and not place.ahead:
                if await store.items.is_due(pool_of(key), place.waits_for):
                    return Pushed(ticket)
        except (Unknown, BackendError):
            pause = min(pause * 2, LATER)
            continue
        pause = FIRST * (place.ahead + 1) if changed else min(pause * 2, LATER if place.ahead else NEXT)
    return None


class Place(NamedTuple):
    ahead: int
    waits_for: str | None = None  # of a worker: the item, or '' for any


def _place(seen: Seen, ticket: str) -> Place | None:
    """Where this ticket stands, at a door or in the line of a pool; None if it is time to ask again."""
    if seen.row is None:
        return None
    body = seen.row.body
    try:
        if not body.startswith('["line'):
            ahead = wire.decode(body).standing(ticket)
            return Place(ahead) if ahead is not None else None
        from ...pool.wire import decode_line

        line = decode_line(body)
        watched = next((w.key for w in line.watchers if w.ticket == ticket), None)
        if watched is not None:
            return Place(0, watched)
        ahead = line.standing(ticket)
        return Place(ahead, "") if ahead is not None else None
    except ValueError:
        return None  # whoever asks will be told


def pool_of(line: str) -> str:
    """The pool whose line is kept under this key."""
    before, _, name = line.rpartition(SEPARATOR)
    return before + name


def hints_of(woken: Sequence[Wake], version: int = 0, body: str = "") -> tuple[list[str], list[str]] | None:
    """Where to say what: the ticket, and to one who was let in also the row, if it is short enough for a NOTIFY."""
    heard = [wake for wake in woken if wake.ear.startswith("holdfast_")]
    if not heard:
        return None
    said = f" {version} {body}" if body and len(body.encode()) < LONGEST else ""
    return [wake.ear for wake in heard], [wake.ticket + said for wake in heard]
