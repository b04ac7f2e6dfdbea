"""Where a pool lives in Redis, how an order is written, and how replies, items and lines are read."""

from __future__ import annotations

import re
from typing import Any

from ...pool import (
    DONE,
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
from .scripts import Script, load

PARTS = ("items", "due", "line", "ends", "watch")

TAKE, KEEP, FINISH = load("pool_take.lua"), load("pool_keep.lua"), load("pool_finish.lua")
STEP = load("pool.lua", "pool_line.lua", "pool_order.lua", "pool_close.lua")
LOOK, COUNT, LINE = load("pool_look.lua"), load("pool_count.lua"), load("pool_line_look.lua")

SIMPLE: dict[bytes, Answered] = {
    b"finished": Finished(), b"absent": Absent(), b"given": Given(), b"lost": Lost(), b"nothing": Nothing(),
    b"gone": Gone(),
}  # fmt: skip
NUMBERS: dict[bytes, Any] = {b"added": Added, b"busy": Busy, b"touched": Touched, b"waiting": Waiting}

_head = re.compile(rb"(\d+):(\S*) (\d+) (\d+) (\d+) ")


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


def cut(order: Order) -> Script | None:
    """The short cut that is for this order, if there is one."""
    if type(order) is Seek:
        return None if order.key or order.again else TAKE
    command = order.command if type(order) is On else None
    if type(command) is Finish and command.body is None:
        return FINISH
    if type(command) is Touch:
        return KEEP if command.lease is None else None
    return KEEP if type(command) in (Give, Finish) else None


def short(order: Any) -> list[str | bytes | int]:
    """What the short cut for it is told."""
    if type(order) is Seek:
        owner, note = order.owner.encode(), order.note.encode()
        head = b" %d %d %d %b%b" % (order.lease, len(owner), len(note), owner, note)
        return [":" + order.ticket, order.lease, head]
    key, command = order
    mine: list[str | bytes | int] = [":" + command.ticket, f"{command.fence} {key}", key]
    if type(command) is Finish and command.body is None:
        return mine
    after = command.after if type(command) is Give else 0
    return [type(command).__name__.lower(), *mine, after, command.body or ""]


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


def item(key: bytes, score: bytes, head: bytes, body: bytes) -> Item:
    """What pool_look.lua gave. ValueError if it is no item."""
    due = int(float(score))
    if not head:
        return Item(key.decode(), due, body=body.decode())
    found = _head.match(head)
    if found is None:
        raise ValueError(f"not an item of a pool: {head[:80]!r}")
    ticket = found[2].decode() if due != DONE else ""
    middle = found.end() + int(found[4])
    owner, note = head[found.end() : middle].decode(), head[middle:].decode()
    return Item(key.decode(), due, int(found[1]), ticket, int(found[3]), owner, note, body.decode())


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
