"""Where a pool lives in Redis, how an order is written, and how replies, items and lines are read."""

from __future__ import annotations

import re
from typing import Any

from ...pool import (
    Absent,
    Added,
    Answered,
    Busy,
    Finish,
    Finished,
    Give,
    Given,
    Gone,
    Item,
    Line,
    Looked,
    Lost,
    Nothing,
    On,
    Order,
    Put,
    Removed,
    Seek,
    Taken,
    Touch,
    Touched,
    Waiting,
    Worker,
)
from .layout import PREFIX, tag
from .scripts import load

PARTS = ("items", "due", "line", "ends", "watch")

TAKE, KEEP = load("pool_take.lua"), load("pool_keep.lua")
STEP = load("pool.lua", "pool_line.lua", "pool_order.lua", "pool_close.lua")
LOOK, COUNT, LINE = load("pool_look.lua"), load("pool_count.lua"), load("pool_line_look.lua")

SIMPLE: dict[bytes, Answered] = {
    b"finished": Finished(), b"absent": Absent(), b"given": Given(), b"lost": Lost(), b"nothing": Nothing(),
    b"gone": Gone(),
}  # fmt: skip
NUMBERS: dict[bytes, Any] = {b"added": Added, b"busy": Busy, b"touched": Touched, b"waiting": Waiting}

_row = re.compile(rb"(\d+) (\d+) (\S*) (\d+) (\d+) ")


def keys(namespace: str, name: str) -> list[str]:
    """Beside the doorman of that name, in the same slot."""
    pool = f"{PREFIX}{{{tag(namespace, name)}}}:pool"
    return [f"{pool}:{part}" for part in PARTS]


def words(order: Order) -> list[str | int]:
    """The order for the full step: its name and its fields."""
    if type(order) is Put:
        return ["put", order.first, *[word for row in order.rows for word in row]]
    if type(order) is Seek:
        return ["seek", *order[:2], int(order.wait), *order[3:7]]
    if type(order) is On:
        fields = [int(field) if isinstance(field, bool) else "" if field is None else field for field in order.command]
        return [type(order.command).__name__.lower(), order.key, *fields]
    return ["quit", *order]


def short(command: object) -> list[str | int] | None:
    """A command for the short cut, all but the key, which is to be second; None: it is not for it."""
    if type(command) is Give:
        return ["give", command.ticket, command.fence, command.after, command.body or ""]
    if type(command) is Touch or type(command) is Finish:
        return [type(command).__name__.lower(), command.ticket, command.fence, 0, command.body or ""]
    return None


def reply(raw: list[Any], order: Order) -> Answered:
    kind, *fields = raw
    if kind == b"taken":
        return Taken(int(fields[0]), int(fields[1]), fields[2].decode(), fields[3].decode())
    if kind in NUMBERS:
        answered: Answered = NUMBERS[kind](*map(int, fields))
        return answered
    if kind == b"removed":
        return Removed(fields[0] == 1)
    if kind == b"looked":
        assert type(order) is On
        return Looked(_looked(order.key, fields) if fields else None)
    return SIMPLE[kind]


def _looked(key: str, fields: list[bytes]) -> Item:
    score, fence, ticket, lease, *texts = fields
    owner, note, body = [text.decode() for text in texts]
    return Item(key, int(score), int(fence), ticket.decode(), int(lease), owner, note, body)


def item(key: bytes, score: bytes, row: bytes) -> Item:
    """What pool_look.lua gave. ValueError if it is no item."""
    found = _row.match(row)
    if found is None:
        raise ValueError(f"not an item of a pool: {row[:80]!r}")
    at = found.end()
    middle = at + int(found[4])
    end = middle + int(found[5])
    return Item(
        key.decode(), int(float(score)), int(found[1]), found[3].decode(), int(found[2]), row[at:middle].decode(),
        row[middle:end].decode(), row[end:].decode(),
    )  # fmt: skip


def line(raw: list[Any]) -> Line:
    """What pool_line_look.lua gave."""
    seen, places, waiting = raw
    found = sorted([_worker(each) for each in waiting], key=lambda w: w.place)
    workers, watchers = [w for w in found if not w.key], [w for w in found if w.key]
    return Line(int(places), int(seen), tuple(workers), tuple(watchers))


def _worker(raw: list[Any]) -> Worker:
    ticket, end, lease, ear, owner, note, place, since, patience, key = raw
    return Worker(
        ticket.decode(), lease, ear.decode(), owner.decode(), note.decode(), place, since, patience, int(float(end)),
        key.decode(),
    )  # fmt: skip
