"""Reads pools in a Redis server: their items, counts and queues. Changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...errors import LockError
from ...rules.pools import BROKEN, STATES, ItemState, WorkerQueue
from ..base import Pools
from . import errors, pool_encoding
from .busy_name_index import POOL
from .encoding import decode_time
from .lua_scripts import Script
from .pool_encoding import COUNT, READ_ITEMS, READ_QUEUE, READ_TAKEN
from .read_many_locks import find_names
from .send_and_redirect import script_command

T = TypeVar("T")


class PoolLooks(Pools):
    """The part of the pools that reads."""

    _backend: Any
    _namespace: str

    def _damage(self, pool: str, bad: BaseException) -> LockError:
        return errors.unreadable(bad, pool, self._backend.where, f"What is kept of the pool {pool!r}")

    async def _read(
        self, pool: str, script: Script, decode: Callable[[list[Any]], T], *args: str, parts: Sequence[int] = (0, 1)
    ) -> T:
        """Run a script that changes nothing, with these keys of the pool, and decode its reply."""
        keys = pool_encoding.keys(self._namespace, pool)
        try:
            request = script_command(script, [keys[part] for part in parts], *args)
            return decode((await self._backend._read(request))[0])
        except errors.UNREADABLE as bad:
            raise self._damage(pool, bad) from None

    async def all(self, pool: str) -> tuple[list[ItemState], int]:
        found: dict[str, ItemState] = {}
        cursor = "0"
        while True:
            cursor, items, now = await self._read(pool, READ_ITEMS, _page, cursor)
            found.update((item.key, item) for item in items)
            if cursor == "0":
                return sorted(found.values()), now

    async def count(self, pool: str) -> dict[str, int]:
        totals, seen = [0] * len(STATES), 0
        while True:
            page, *numbers = await self._read(pool, COUNT, list, str(seen))
            totals = [total + number for total, number in zip(totals, numbers, strict=True)]
            seen += page
            if not page:
                return dict(zip(STATES, totals, strict=True))

    async def names(self, pattern: str, idle: bool = False) -> list[tuple[str, str]]:
        found = await find_names(self._backend, POOL, pattern, idle, True)
        return [(one.namespace, one.name) for one in found]

    def in_namespace(self, namespace: str) -> Pools:
        return type(self)(self._backend, namespace)  # type: ignore[call-arg]

    async def taken(self, pool: str) -> tuple[list[ItemState], int]:
        return await self._read(pool, READ_TAKEN, _taken)

    async def queue(self, pool: str) -> WorkerQueue:
        return await self._read(pool, READ_QUEUE, pool_encoding.decode_queue, parts=(0, 3))


def _page(raw: list[Any]) -> tuple[str, list[ItemState], int]:
    cursor, rows, time = raw
    return cursor.decode(), [_item(row) for row in rows], decode_time(time)


def _taken(raw: list[Any]) -> tuple[list[ItemState], int]:
    rows, time = raw
    return [pool_encoding.decode_item(key, score, head, b"null") for key, score, head in rows], decode_time(time)


def _item(row: list[bytes]) -> ItemState:
    try:
        item = pool_encoding.decode_item(*row)
        json.loads(item.body)
        return item
    except (TypeError, ValueError, LookupError, OverflowError, RecursionError):
        return ItemState(row[0].decode("utf-8", "replace"), BROKEN)
