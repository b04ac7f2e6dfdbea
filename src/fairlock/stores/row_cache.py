"""The last seen row of each name, decoded once: one cache per client.

A step may start from a row in here instead of a read (`Store.cache_ttl`); a wrong guess costs a conflict and nothing
else. So whatever shows a row puts it in: a step, a wake-up that made the client read, a poll. Waiters of one client at
the same row share what one of them has read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from ..rules.locks import EMPTY, LockState, codec
from .base import Row, RowSnapshot
from .keys import is_audit, is_queue

if TYPE_CHECKING:
    from ..rules.pools import WorkerQueue

CAPACITY = 1024
UNDER_WAY = 1.0  # seconds for which others wait for the one that reads; then they read for themselves


class KnownRow(NamedTuple):
    """What a row contained when this client last saw it."""

    state: LockState | WorkerQueue
    version: int | str | None
    at: float
    """The client's clock before the request that showed it."""
    now: int = 0
    """The store's time then; 0 if that is not known."""


def decode(key: str, body: str | None) -> LockState | WorkerQueue:
    """Return the state of the lock or the queue of the pool that has this key. ValueError if it is damaged."""
    if is_queue(key):
        from ..rules.pools.codec import decode_queue

        return decode_queue(body)
    return codec.decode(body) if body is not None else EMPTY


def is_unused(row: Row, now: int, age: int) -> bool:
    """Return True if the lock or the audit lines in this row were not used for `age` microseconds. False for what is
    damaged: `repair` is for that."""
    if is_audit(row.key):
        from ..rules.locks import audit_lines

        return audit_lines.are_old(audit_lines.decode(row.body), now, age)
    try:
        return codec.decode(row.body).is_idle(now, age)
    except ValueError:
        return False


class RowCache(dict[str, KnownRow]):
    """The rows by their keys. From any thread: each change is one operation on a dict.

    A step removes its row (`pop`): while it is under way, only its end shows the current row.
    """

    def __init__(self) -> None:
        self._reading: dict[str, float] = {}

    def put(self, key: str, known: KnownRow) -> None:
        """Keep this row, unless a later one is known."""
        before = self.get(key)
        if before is None:
            if len(self) >= CAPACITY:
                super().clear()
        elif before.at > known.at:
            return
        self[key] = known

    def show(self, key: str, seen: RowSnapshot, state: LockState | WorkerQueue) -> KnownRow:
        """Keep a row that was read, with what it contains."""
        known = KnownRow(state, seen.version, seen.at, seen.now)
        if seen.row is not None or seen.version is None:  # else the store did not show the row that it has
            self.put(key, known)
        return known

    def drop_older(self, key: str, at: float) -> None:
        """Another client has written after this time of the client's clock: what was seen before is of no use."""
        known = self.get(key)
        if known is not None and known.at < at:
            self.pop(key, None)

    async def read(
        self, key: str, age: float, clock: Callable[[], float], read: Callable[[], Awaitable[RowSnapshot]]
    ) -> KnownRow | None:
        """Return the row as it was at most `age` seconds ago; None: another one is just reading it, look again later.

        ValueError if it is damaged.
        """
        now = clock()
        known = self.get(key)
        if known is not None and now - known.at <= age:
            return known
        if now - self._reading.get(key, -UNDER_WAY) < UNDER_WAY:
            return None
        self._reading[key] = now
        try:
            seen = await read()
        finally:
            self._reading.pop(key, None)
        return self.show(key, seen, decode(key, seen.row.body if seen.row is not None else None))

    def clear(self) -> None:
        super().clear()
        self._reading.clear()
