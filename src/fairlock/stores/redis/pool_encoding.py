"""The keys of a pool in Redis; encodes orders, decodes replies, items and queues."""

from __future__ import annotations

import re
from typing import Any

from ...rules.pools import (
    DONE,
    Absent,
    Added,
    Answered,
    Busy,
    Finish,
    Finished,
    Give,
    Given,
    ItemState,
    Looked,
    Lost,
    Nothing,
    On,
    Order,
    Put,
    Queued,
    Removed,
    Revoked,
    Seek,
    Taken,
    Touch,
    Touched,
    Worker,
    WorkerQueue,
)
from .encoding import state_key
from .lua_scripts import Script, load

PARTS = ("items", "due", "queue", "waiter_expiry", "watchers")

FAST_TAKE, FAST_TOUCH = load("pool_fast_take.lua"), load("pool_fast_touch.lua")
FAST_FINISH = load("pool_fast_finish.lua")
STEP = load("pool_step_1_read.lua", "pool_step_2_queue.lua", "pool_step_3_command.lua", "pool_step_4_write.lua")
READ_ITEMS, COUNT, READ_QUEUE = load("pool_read_items.lua"), load("pool_count.lua"), load("pool_read_queue.lua")
READ_TAKEN = load("pool_read_taken.lua")

SIMPLE: dict[bytes, Answered] = {
    b"finished": Finished(), b"absent": Absent(), b"given": Given(), b"lost": Lost(), b"nothing": Nothing(),
    b"revoked": Revoked(),
}  # fmt: skip
NUMBERS: dict[bytes, Any] = {b"added": Added, b"busy": Busy, b"touched": Touched, b"queued": Queued}

_head = re.compile(rb"(\d+):(\S*) (\d+) (\d+) (\d+) ")


def keys(namespace: str, name: str) -> list[str]:
    """Return the keys of a pool, in the slot of the lock of that name."""
    state = state_key(namespace, name)
    return [f"{state}:pool:{part}" for part in PARTS]


def message_args(order: Order) -> list[str | int]:
    """Return the arguments of this order for the full step: its name and its fields."""
    if type(order) is Put:
        return ["put", order.first, *[word for row in order.rows for word in row]]
    if type(order) is Seek:
        return ["seek", *order[:2], int(order.wait), *order[3:7]]
    if type(order) is On:
        fields = [int(field) if isinstance(field, bool) else "" if field is None else field for field in order.command]
        return [type(order.command).__name__.lower(), order.key, *fields]
    return ["quit", *order]


def fast_script(order: Order) -> Script | None:
    """Return the fast script for this order, if there is one."""
    if type(order) is Seek:
        return None if order.key or order.again else FAST_TAKE
    command = order.command if type(order) is On else None
    if type(command) is Touch:
        return FAST_TOUCH if command.lease is None else None
    return FAST_FINISH if type(command) is Finish else FAST_TOUCH if type(command) is Give else None


def fast_args(order: Any) -> list[str | bytes | int]:
    """Return the arguments of the fast script for this order."""
    if type(order) is Seek:
        owner, note = order.owner.encode(), order.note.encode()
        head = b" %d %d %d %b%b" % (order.lease, len(owner), len(note), owner, note)
        return [":" + order.ticket, order.lease, head]
    key, command = order
    mine: list[str | bytes | int] = [":" + command.ticket, f"{command.fence} {key}", key, command.body or ""]
    if type(command) is Finish:
        return mine
    return [*mine, command.after if type(command) is Give else ""]


def decode_reply(raw: list[Any], order: Order) -> Answered:
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
        if not fields:
            return Looked(None)
        score, fence, ticket, lease, *texts = fields
        owner, note, body = [text.decode() for text in texts]
        return Looked(ItemState(order.key, int(score), int(fence), ticket.decode(), int(lease), owner, note, body))
    return SIMPLE[kind]


def decode_item(key: bytes, score: bytes, head: bytes, body: bytes) -> ItemState:
    """Decode one item of pool_read_items.lua. ValueError if it is not an item."""
    due = int(float(score))
    if not head:
        return ItemState(key.decode(), due, body=body.decode())
    found = _head.match(head)
    if found is None:
        raise ValueError(f"not an item of a pool: {head[:80]!r}")
    ticket = found[2].decode() if due != DONE else ""
    middle = found.end() + int(found[4])
    owner, note = head[found.end() : middle].decode(), head[middle:].decode()
    return ItemState(key.decode(), due, int(found[1]), ticket, int(found[3]), owner, note, body.decode())


def decode_queue(raw: list[Any]) -> WorkerQueue:
    """Decode the reply of pool_read_queue.lua."""
    seen, places, waiting = raw
    found = sorted([_worker(each) for each in waiting], key=lambda w: w.place)
    workers, watchers = [w for w in found if not w.key], [w for w in found if w.key]
    return WorkerQueue(int(places), int(seen), tuple(workers), tuple(watchers))


def _worker(raw: list[Any]) -> Worker:
    ticket, end, lease, listener, owner, note, place, since, poll_ttl, key = raw
    return Worker(
        ticket.decode(), lease, listener.decode(), owner.decode(), note.decode(), place, since, poll_ttl,
        int(float(end)), key.decode(),
    )  # fmt: skip
