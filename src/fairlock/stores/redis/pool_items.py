"""Pools in a Redis server: the rules run there, as Lua, on native structures.

As for locks, the commonest steps (take a due item while nothing waits; touch it, give it back, finish it) are scripts
with few keys, and everything else is the full step. Wake-ups arrive at the same listener as those of locks. The module
is imported with the first pool: most programs use none, and start-up time counts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from redis.crc import key_slot

from ...errors import LockError, StoreError
from ...rules.pools import (
    BROKEN,
    STATES,
    Finish,
    Give,
    ItemState,
    On,
    Order,
    Put,
    Seek,
    Taken,
    Touch,
    Touched,
    WorkerQueue,
)
from ..base import OutcomeUnknown, PoolAnswer, Pools, fill_gaps
from . import encoding, errors, pool_encoding
from .encoding import pack_args
from .many_steps import MESSAGE, BatchScript, Step, send_many
from .packed_commands import LEAST, MOST, USUAL, begin_evalsha
from .pool_encoding import COUNT, FAST_FINISH, FAST_TAKE, READ_ITEMS, READ_QUEUE, SIMPLE, STEP, fast_script
from .reply_reader import NOT_YET, ReplyError
from .send_and_redirect import RoutedCommand
from .thread_calls import PING, new

KNOWN = 1024
BATCH_STEP = BatchScript(STEP, len(pool_encoding.PARTS), 3 + len(Touch._fields))
ENDED: dict[Any, Any] = {Finish: SIMPLE[b"finished"], Give: SIMPLE[b"given"]}


class PackedOrders:
    """The orders of one pool, packed as far as they repeat; and its keys and their slot."""

    __slots__ = ("_finish", "_last", "_step", "_take", "contended", "keys", "slot")

    def __init__(self, namespace: str, name: str) -> None:
        self.keys = pool_encoding.keys(namespace, name)
        self.slot = key_slot(self.keys[0].encode())
        self._take = begin_evalsha(FAST_TAKE, self.keys[:2], 3) + b"$33\r\n:"
        self._last: tuple[tuple[Any, ...], bytes] = (), b""  # the fields of a Seek, and the bytes behind its ticket
        self._finish = begin_evalsha(FAST_FINISH, self.keys[:2], 3) + b"$33\r\n:"
        self._step = pack_args("EVALSHA", STEP.sha, len(self.keys), *self.keys, encoding.LISTENERS)
        self.contended = False  # a client waits there: send the full step first

    def pack_fast(self, order: Order) -> bytes | None:
        """Pack this order for a fast script; None: none of them supports it."""
        if type(order) is Seek:
            ticket = order[0]
            fields, rest = self._last  # read once: another thread may replace it
            if order[1:] == fields and len(ticket) == USUAL:
                return self._take + ticket.encode() + rest
        elif type(order) is On and type(order[1]) is Finish:
            ticket, fence, body = order[1]
            if body is None and LEAST <= fence <= MOST and len(ticket) == USUAL:
                key = order[0].encode()
                size = len(key)
                return b"%b%b\r\n$%d\r\n%d %b\r\n$%d\r\n%b\r\n" % (
                    self._finish, ticket.encode(), size + 17, fence, key, size, key
                )  # fmt: skip
        script = fast_script(order)
        if script is None:
            return None
        words = pool_encoding.fast_args(order)
        if type(order) is Seek:
            self._last = order[1:], b"\r\n" + pack_args(*words[1:])
        return begin_evalsha(script, self.keys[:2], len(words)) + pack_args(*words)

    def pack_step(self, order: Order) -> bytes:
        words = pool_encoding.message_args(order)
        return b"*%d\r\n%b%b" % (4 + len(self.keys) + len(words), self._step, pack_args(*words))


class RedisPools(Pools):
    batch_size = MESSAGE

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.known: dict[str, PackedOrders] = {}  # by the name of the pool

    async def call(self, pool: str, order: Order, again: bool = False) -> PoolAnswer:
        """`again`: the first try met a damaged item, which has been set apart."""
        try:
            backend = self._backend
            one = self.commands_for(pool)
            at = backend.runtime.clock()
            if not one.contended:
                answer = await self._short(one, order, at)
                if answer is not None:
                    return answer
                at = backend.runtime.clock()
            if type(order) is Seek and order.wait:
                await backend._listen(one)
            # PING first, and the server writes to the clients that a step has woken before it replies to this one.
            before = PING if type(order) is Put or type(order) is On else b""
            after = backend._confirm if _counts(order) else b""
            request = RoutedCommand(one.slot, one.pack_step(order), STEP, before, after)
            raw, *confirmed = await backend._dispatcher.send(request)
            one.contended = raw.pop() != b"1"
            reply = pool_encoding.decode_reply(raw, order)
            if confirmed and type(reply) in (Taken, Touched):
                await self._replicated(confirmed[0], pool, order, reply)
            return PoolAnswer(reply, at)
        except errors.UNREADABLE as bad:
            from .repair import set_apart

            if again or not await set_apart(self._backend, pool):
                raise self._damage(pool, bad) from None
        return await self.call(pool, order, True)

    async def call_many(self, calls: Sequence[tuple[str, On]]) -> list[PoolAnswer | OutcomeUnknown | LockError]:
        """Renew many items by one message; in a cluster by one for each server. See many_steps.py."""
        if len(calls) == 1 or not all(type(order.command) is Touch for _, order in calls):
            return await super().call_many(calls)
        at = self._backend.runtime.clock()
        steps = [self._renewal(pool, order) for pool, order in calls]
        replies = await send_many(self._backend, BATCH_STEP, steps)
        outcomes = [_read_renewal(order, raw, at) for (_, order), raw in zip(calls, replies, strict=True)]
        return await fill_gaps(self.call, calls, outcomes)

    def _renewal(self, pool: str, order: On) -> Step:
        one = self.commands_for(pool)
        args = pack_args(encoding.LISTENERS, *pool_encoding.message_args(order))
        return Step(one.slot, pack_args(*one.keys), args)

    def _damage(self, pool: str, bad: BaseException) -> LockError:
        return errors.unreadable(bad, pool, self._backend.where, f"What is kept of the pool {pool!r}")

    async def _short(self, one: PackedOrders, order: Order, at: float) -> PoolAnswer | None:
        """Use a fast script; None: it does not apply, and nothing was done."""
        backend = self._backend
        payload, script = None if backend._confirm else one.pack_fast(order), fast_script(order)
        if payload is None:
            return None
        return _read(order, (await backend._dispatcher.send(RoutedCommand(one.slot, payload, script)))[0], at)

    def call_nowait(self, pool: str, order: Order) -> PoolAnswer | None:
        """The same for threads: one write, one read, no coroutine. OutcomeUnknown if no reply came.

        What a server reports about itself is left to the dispatcher, and so to `call`.
        """
        backend = self._backend
        one = self.known.get(pool)
        if one is None or one.contended or not backend._nowait:
            return None
        at = backend._clock()
        try:
            node = backend._node_of(one.slot)
        except LookupError:
            return None
        payload = one.pack_fast(order)
        if payload is None:
            return None
        found = node.request_one(payload)
        try:
            if type(found) is bytes:
                mine, _, body = found.partition(b"\0")
                return new(PoolAnswer, (  # type: ignore[no-any-return]
                    new(Taken, (int(mine[:16]), order[1], body.decode(), mine[17:].decode())), at, False
                ))  # fmt: skip
            if found is NOT_YET:
                return None
            if type(found) is ReplyError:
                errors.raise_if_begun(found)
                return None
            answer = _read(order, found, at)
        except errors.UNREADABLE as bad:
            raise self._damage(pool, bad) from None
        if answer is None:
            one.contended = True  # or the step is not a simple one: `call` need not try the same again
        return answer

    def commands_for(self, name: str) -> PackedOrders:
        pool = self.known.get(name)
        if pool is None:
            if len(self.known) >= KNOWN:
                self.known.clear()
            pool = self.known[name] = PackedOrders(self._backend.namespace, name)
        return pool

    async def _replicated(self, count: Any, pool: str, order: Order, reply: Any) -> None:
        """As for a lock: a take counts only when enough replicas have it. Otherwise give it back, and raise."""
        backend = self._backend
        if type(count) is ReplyError:
            raise errors.error_for(backend.where, count)
        if count >= backend.min_replicas:
            return
        if type(order) is Seek and type(reply) is Taken:
            await self.call(pool, On(reply.key, Give(order.ticket, reply.fence)))
        few = f"{count} of {backend.min_replicas} replicas have" if count else "no replica has"
        raise StoreError(
            f"{backend.where}: {few} confirmed it in time, so it does not count (min_replicas). "
            "Are the replicas running and connected?"
        )

    # -- waiting and reading

    async def wait_for_wakeup(self, pool: str, ticket: str, timeout: float) -> None:
        await self._backend.listeners.wait_for(ticket, timeout)

    async def all(self, pool: str) -> tuple[list[ItemState], int]:
        one = self.known.get(pool) or PackedOrders(self._backend.namespace, pool)
        found: dict[str, ItemState] = {}
        cursor, now = "0", 0
        while True:
            payload = begin_evalsha(READ_ITEMS, one.keys[:2], 0, cursor)
            try:
                request = RoutedCommand(one.slot, payload, READ_ITEMS)
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
        one = self.known.get(pool) or PackedOrders(self._backend.namespace, pool)
        totals, seen = [0] * len(STATES), 0
        while True:
            payload = begin_evalsha(COUNT, one.keys[:2], 0, str(seen))
            try:
                page, *numbers = (await self._backend._read(RoutedCommand(one.slot, payload, COUNT)))[0]
                totals = [total + number for total, number in zip(totals, numbers, strict=True)]
            except errors.UNREADABLE as bad:
                raise self._damage(pool, bad) from None
            seen += page
            if not page:
                return dict(zip(STATES, totals, strict=True))

    async def queue(self, pool: str) -> WorkerQueue:
        one = self.known.get(pool) or PackedOrders(self._backend.namespace, pool)
        payload = begin_evalsha(READ_QUEUE, [one.keys[0], one.keys[3]], 0)
        try:
            found = await self._backend._read(RoutedCommand(one.slot, payload, READ_QUEUE))
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


def _read(order: Any, raw: Any, at: float) -> PoolAnswer | None:
    """Decode the reply of a fast script. tuple.__new__ is quicker than the constructors."""
    if raw is None:
        return None
    if type(order) is Seek:
        mine, _, body = raw.partition(b"\0")
        fence, _, key = mine.partition(b" ")
        reply = new(Taken, (int(fence), order[1], body.decode(), key.decode()))
    else:
        reply = ENDED.get(type(order[1])) or Touched(raw)
    return new(PoolAnswer, (reply, at, False))  # type: ignore[no-any-return]


def _read_renewal(order: On, raw: Any, at: float) -> PoolAnswer | OutcomeUnknown | LockError | None:
    """Return the answer in this reply; None if there is none."""
    if type(raw) is not list:
        return raw  # type: ignore[no-any-return]
    try:
        return PoolAnswer(pool_encoding.decode_reply(raw[:-1], order), at)
    except errors.UNREADABLE:
        return None


def _counts(order: Order) -> bool:
    """Return whether replicas must confirm this order."""
    return type(order) is Seek or (type(order) is On and type(order.command) is Touch)
