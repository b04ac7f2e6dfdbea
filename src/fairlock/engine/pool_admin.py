"""Add, remove, list and count the items of a pool. Bad input gets a sentence, and nothing is sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..errors import ConfigError
from ..rules.pools import DAMAGED, STATES, Added, Busy, On, Put, Remove, Removed
from . import validate
from .pool_counts import PoolCounts
from .session import Session

LARGEST = 64 * 1024  # bytes of JSON
DEEPEST = 100
CHUNK = 200  # items added in one step


class PoolItem(NamedTuple):
    """One item of a pool, as it was when it was read."""

    key: str
    state: str
    """free, resting, taken, expired or done; damaged: it cannot be read, and the other fields mean nothing."""
    body: Any
    fence: int
    """Of the last take; 0: it was never taken."""
    owner: str
    """The owner that holds it, or that has finished it."""
    note: str
    due_in: float
    """Seconds until it can be acquired: 0.0 at once; negative: done."""


def body_text(body: Any) -> str:
    """Return a body as JSON."""
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as bad:
        raise ConfigError(f"A body is what JSON can say, and this one is not ({bad}). Make it plain data.") from None
    if size > LARGEST:
        raise ConfigError(f"A body has at most 64 KiB of JSON, this one {size} bytes. Keep the rest elsewhere.")
    if text.count("[") + text.count("{") > DEEPEST and _depth(body) > DEEPEST:
        raise ConfigError(f"A body is nested at most {DEEPEST} deep. Not everything that reads it can go deeper.")
    return text


def body(text: str, pool: str, key: str) -> Any:
    """Return a body from JSON. RecordDamaged if it is not JSON: some stores have no checksum."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        from ..stores.damaged_records import damaged

        raise damaged(pool, "the store", "its body is not JSON", f"The item {key!r} of the pool {pool!r}") from None


def _depth(body: Any) -> int:
    depth, level = 0, [body]
    while level := [each for each in level if isinstance(each, dict | list | tuple)]:
        depth += 1
        level = [part for each in level for part in (each.values() if isinstance(each, dict) else each)]
    return depth


def _rows(rows: Mapping[str, Any] | Iterable[Any]) -> list[tuple[str, str]]:
    """Return pairs from {key: body}, from keys, or from pairs of key and body."""
    if isinstance(rows, str | bytes):
        raise ConfigError("add_many() takes many: a mapping from key to body, or keys, or pairs of key and body.")
    found = []
    for row in rows.items() if isinstance(rows, Mapping) else rows:
        if isinstance(row, str):
            row = (row, None)
        if not isinstance(row, tuple | list) or len(row) != 2:
            raise ConfigError(f"add_many() takes keys, or pairs of key and body, not {type(row).__name__}.")
        found.append((validate.name(row[0], "A key"), body_text(row[1])))
    return found


async def add(session: Session, pool: str, rows: Mapping[str, Any] | Iterable[Any]) -> int:
    """Add items. Returns how many of them are new."""
    checked = _rows(rows)
    new = 0
    for first in range(0, len(checked), CHUNK):
        answer = await session.call_pool(pool, Put(tuple(checked[first : first + CHUNK]), first))
        assert isinstance(answer.reply, Added)
        new += answer.reply.new
    return new


async def remove(session: Session, pool: str, key: str, force: bool) -> bool:
    """Remove an item. Returns True if it existed. ConfigError if it is held."""
    answer = await session.call_pool(pool, On(validate.name(key, "A key"), Remove(force=force)))
    reply = answer.reply
    if isinstance(reply, Busy):
        raise ConfigError(
            f"{key!r} of {pool!r} is taken for another {reply.due_in / 1e6:.0f} s. Wait for it, or use force=True."
        )
    assert isinstance(reply, Removed)
    return reply.there or answer.again


async def items(session: Session, pool: str, state: str | None) -> list[PoolItem]:
    if state is not None and state not in (*STATES, DAMAGED):
        raise ConfigError(f"The state of an item is one of {', '.join(STATES)}, not {validate.shown(state)}.")
    found, now = await session.pools().all(pool)
    return [
        PoolItem(
            i.key, i.state(now), json.loads(i.body), i.fence, i.owner, i.note,
            -1.0 if i.score < 0 else max(i.score - now, 0) / 1e6,
        )
        for i in found
        if state is None or i.state(now) == state
    ]  # fmt: skip


async def counts(session: Session, pool: str) -> PoolCounts:
    return PoolCounts(**await session.pools().count(pool))
