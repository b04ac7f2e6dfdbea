"""Reads pools in a Redis server: their items, counts and queues. Changes nothing."""

from __future__ import annotations

import json
from typing import Any

from redis.crc import key_slot

from ...rules.pools import BROKEN, STATES, ItemState, WorkerQueue
from ..base import Pools
from . import errors, pool_encoding
from .busy_name_index import POOL
from .packed_commands import begin_evalsha
from .pool_encoding import COUNT, READ_ITEMS, READ_QUEUE, READ_TAKEN
from .read_many_locks import find_names
from .send_and_redirect import RoutedCommand


class PoolLooks(Pools):
    """The part of the pools that reads."""

    _backend: Any
    _namespace: str
    known: dict[str, Any]

    def _damage(self, pool: str, bad: BaseException) -> Exception:
        raise NotImplementedError

    def _keys(self, pool: str) -> tuple[int, list[str]]:
        """Return the slot of a pool and its keys."""
        keys = pool_encoding.keys(self._namespace, pool)
        return key_slot(keys[0].encode()), keys

    async def all(self, pool: str) -> tuple[list[ItemState], int]:
        slot, keys = self._keys(pool)
        found: dict[str, ItemState] = {}
        cursor, now = "0", 0
        while True:
            payload = begin_evalsha(READ_ITEMS, keys[:2], 0, cursor)
            try:
                request = RoutedCommand(slot, payload, READ_ITEMS)
                following, rows, (seconds, micros) = (await self._backend._read(request))[0]
            except errors.UNREADABLE as bad:
                raise self._damage(pool, bad) from None
            for row in rows:
                item = _item(row)
                found[item.key] = item
            cursor, now = following.decode(), int(seconds) * 1_000_000 + int(micros)
            if cursor == "0":
                return sorted(found.values()), now

    async def count(self, pool: str) -> dict[str, int]:
        slot, keys = self._keys(pool)
        totals, seen = [0] * len(STATES), 0
        while True:
            payload = begin_evalsha(COUNT, keys[:2], 0, str(seen))
            try:
                page, *numbers = (await self._backend._read(RoutedCommand(slot, payload, COUNT)))[0]
                totals = [total + number for total, number in zip(totals, numbers, strict=True)]
            except errors.UNREADABLE as bad:
                raise self._damage(pool, bad) from None
            seen += page
            if not page:
                return dict(zip(STATES, totals, strict=True))

    async def names(self, pattern: str, idle: bool = False) -> list[tuple[str, str]]:
        found = await find_names(self._backend, POOL, pattern, idle, True)
        return [(one.namespace, one.name) for one in found]

    def in_namespace(self, namespace: str) -> Pools:
        return type(self)(self._backend, namespace)  # type: ignore[call-arg]

    async def taken(self, pool: str) -> tuple[list[ItemState], int]:
        slot, keys = self._keys(pool)
        payload = begin_evalsha(READ_TAKEN, keys[:2], 0)
        try:
            request = RoutedCommand(slot, payload, READ_TAKEN)
            rows, (seconds, micros) = (await self._backend._read(request))[0]
            found = [pool_encoding.decode_item(key, score, head, b"null") for key, score, head in rows]
        except errors.UNREADABLE as bad:
            raise self._damage(pool, bad) from None
        return found, int(seconds) * 1_000_000 + int(micros)

    async def queue(self, pool: str) -> WorkerQueue:
        slot, keys = self._keys(pool)
        payload = begin_evalsha(READ_QUEUE, [keys[0], keys[3]], 0)
        try:
            found = await self._backend._read(RoutedCommand(slot, payload, READ_QUEUE))
            return pool_encoding.decode_queue(found[0])
        except errors.UNREADABLE as bad:
            raise self._damage(pool, bad) from None


def _item(row: list[bytes]) -> ItemState:
    try:
        item = pool_encoding.decode_item(*row)
        json.loads(item.body)
        return item
    except (TypeError, ValueError, LookupError, OverflowError, RecursionError):
        return ItemState(row[0].decode("utf-8", "replace"), BROKEN)
