"""The counter: how items and line together make one step, where a store can make it one (memory, a script in a server).

After every step nobody stands in line while something is due: what was added, given back or has expired meanwhile is
handed over the counter to the first in line, with his ticket, for WINDOW until he is heard. If he never comes, it is
due again then; that is all it costs.

Stores that can only compare and swap single rows do the same in several steps, in an order in which a crash between any
two of them costs WINDOW at most: see backends/cas_pool.py.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from . import line as lines
from .commands import (
    Add,
    Added,
    Answered,
    Command,
    Finished,
    Give,
    Gone,
    Nothing,
    On,
    Order,
    Put,
    Quit,
    Seek,
    Take,
    Taken,
    Waiting,
)
from .item import Hint, Item, Line
from .rules import apply, in_time


class Shelf(Protocol):
    """Where the items are, as far as a step needs them."""

    def get(self, key: str) -> Item | None: ...

    def put(self, item: Item) -> None: ...

    def drop(self, key: str) -> None: ...

    def due(self, now: int, limit: int) -> Sequence[Item]:
        """Those with 0 <= score <= now, lowest first."""

    def coming(self, now: int) -> Item | None:
        """The one with the lowest score after now."""

    def of(self, ticket: str) -> Item | None:
        """What this ticket has, if anything."""

    def late(self, now: int) -> Sequence[Item]:
        """Those with a score later than now + their span. Asked only when the clock has gone back."""


def step(
    shelf: Shelf,
    line: Line,
    order: Order,
    now: int,
    dead: Collection[str] = lines.NONE,
    deaf: Collection[str] = lines.NONE,
) -> tuple[Line, Answered, list[Hint]]:
    """One atomic step. The shelf is changed; the line after it, the answer, and whom to wake.

    dead, deaf: tickets whose process is gone, and to whom nobody listens.
    """
    asker = order.ticket if isinstance(order, Seek | Quit) else ""
    deaf = {ticket for ticket in deaf if ticket != asker}
    before = line
    if now < line.seen:
        for item in shelf.late(now):
            shelf.put(in_time(item, now))
    line = settled = lines.settle(line, now, asker, dead)
    changed: set[str] = set()
    if isinstance(order, Put):
        reply: Answered = _put(shelf, order, now, changed)
    elif isinstance(order, On):
        reply = _on(shelf, order.key, order.command, now, changed)
    elif isinstance(order, Quit):
        line = lines.without(line, {order.ticket})
        _give_back(shelf, order.ticket, now, changed)
        reply = Gone()
    elif order.key:
        line, reply = _take_named(shelf, line, order, now)
    else:
        line, reply = _take_any(shelf, line, order, now, deaf)
    line = lines.without(line, {take.ticket for _, take in _hand_over(shelf, line, now, deaf)})
    rests = bool(changed) and isinstance(order, On) and isinstance(order.command, Give)
    return line, reply, lines.hints(before, settled, line, changed, rests, asker)


def _put(shelf: Shelf, order: Put, now: int, changed: set[str]) -> Answered:
    count = 0
    for key, body in order.rows:
        item, reply = apply(shelf.get(key), Add(body, order.first + count), now, key)
        if isinstance(reply, Added) and item is not None:
            shelf.put(item)
            changed.add(key)
            count += 1
    return Added(count)


def _on(shelf: Shelf, key: str, command: Command, now: int, changed: set[str]) -> Answered:
    before = shelf.get(key)
    item, reply = apply(before, command, now, key)
    if item is None and before is not None:
        shelf.drop(key)
    elif item is not None and item != before:
        shelf.put(item)
    if (before and before.ticket) != (item and item.ticket):
        changed.add(key)  # it is nobody's now, or there no more
    return reply


def _give_back(shelf: Shelf, ticket: str, now: int, changed: set[str]) -> None:
    item = shelf.of(ticket)
    if item is not None:
        _on(shelf, item.key, Give(ticket, item.fence), now, changed)


def _take_named(shelf: Shelf, line: Line, seek: Seek, now: int) -> tuple[Line, Answered]:
    before = shelf.get(seek.key)
    item, reply = apply(before, Take(seek.ticket, seek.lease, seek.owner, seek.note), now)
    if item is not None and item != before:
        shelf.put(item)
    if isinstance(reply, Taken):
        reply = reply._replace(key=seek.key)
    if seek.wait and not isinstance(reply, Taken | Finished):
        return lines.stand(line, seek, now), reply
    return lines.without(line, {seek.ticket}), reply


def _take_any(
    shelf: Shelf, line: Line, seek: Seek, now: int, deaf: Collection[str]
) -> tuple[Line, Answered]:
    mine = shelf.of(seek.ticket)
    standing = lines.stand(line, seek, now)
    handed: dict[str, Item] = {}
    if mine is None:
        handed = {take.ticket: item for item, take in _hand_over(shelf, standing, now, deaf)}
        mine = handed.get(seek.ticket)
    if mine is not None:
        item, reply = apply(mine, Take(seek.ticket, seek.lease, seek.owner, seek.note), now)
        assert item is not None and isinstance(reply, Taken)
        shelf.put(item)
        return lines.without(line, {seek.ticket, *handed}), reply._replace(key=item.key)
    if not seek.wait and line.standing(seek.ticket) is None:
        return lines.without(line, handed), Nothing()
    standing = lines.stand(lines.without(standing, handed), seek, now)  # again: he may stand further ahead by now
    ahead = standing.standing(seek.ticket)
    assert ahead is not None
    return standing, Waiting(ahead, standing.workers[ahead].place, retry_in(shelf, now, ahead))


def _hand_over(shelf: Shelf, line: Line, now: int, deaf: Collection[str]) -> list[tuple[Item, Take]]:
    """What is due goes to those who stand in line, and is theirs for WINDOW."""
    handed = []
    for item, take in lines.deal(line, shelf.due(now, len(line.workers)), deaf) if line.workers else ():
        taken, _ = apply(item, take, now)
        assert taken is not None
        shelf.put(taken)
        handed.append((taken, take))
    return handed


def retry_in(shelf: Shelf, now: int, ahead: int) -> int:
    """How long until it is worth to ask again, if nobody is heard of. Only the first looks when something is due: he
    takes for those behind him, too."""
    coming = shelf.coming(now) if not ahead else None
    span = lines.sleep_span(ahead)
    return span if coming is None else min(span, coming.score - now)

