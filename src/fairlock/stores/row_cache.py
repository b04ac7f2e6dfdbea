"""The last seen row of each name, decoded once: one cache per client.

A step may start from a row in here instead of a read (`Store.cache_ttl`); a wrong guess costs a conflict and nothing
else. So whatever shows a row puts it in: a step, a wake-up that made the client read, a poll. Waiters of one client at
the same row share what one of them has read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from ..rules.locks import EMPTY, LockState, codec
from .base import RowSnapshot
from .keys import is_queue

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


class RowCache:
    """From any thread: each change is one operation on a dict."""

    def __init__(self) -> None:
        self.known: dict[str, KnownRow] = {}
        self._reading: dict[str, float] = {}

    def get(self, key: str) -> KnownRow | None:
        return self.known.get(key)

    def take(self, key: str) -> KnownRow | None:
        """Remove and return it: while a step is under way, only the end of the step shows the current row."""
        return self.known.pop(key, None)

    def put(self, key: str, known: KnownRow) -> None:
        """Keep this row, unless a later one is known."""
        before = self.known.get(key)
        if before is None:
            if len(self.known) >= CAPACITY:
                self.known.clear()
        elif before.at > known.at:
            return
        self.known[key] = known

    def show(self, key: str, seen: RowSnapshot, state: LockState | WorkerQueue) -> KnownRow:
        """Keep a row that was read, with what it contains."""
        known = KnownRow(state, seen.version, seen.at, seen.now)
        if seen.row is not None or seen.version is None:  # else the store did not show the row that it has
            self.put(key, known)
        return known

    def drop_older(self, key: str, at: float) -> None:
        """Another client has written after this time of the client's clock: what was seen before is of no use."""
        known = self.known.get(key)
        if known is not None and known.at < at:
            self.known.pop(key, None)

    async def read(
        self, key: str, age: float, clock: Callable[[], float], read: Callable[[], Awaitable[RowSnapshot]]
    ) -> KnownRow | None:
        """Return the row as it was at most `age` seconds ago; None: another one is just reading it, look again later.

        ValueError if it is damaged.
        """
        now = clock()
        known = self.known.get(key)
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
        self.known.clear()
        self._reading.clear()
