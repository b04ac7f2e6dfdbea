"""Pools in a Redis server: the rules run there, as Lua, on native structures.

As for locks, the commonest steps (take a due item while nothing waits; touch it, give it back, finish it) are scripts
with few keys, and everything else is the full step. Wake-ups arrive at the same listener as those of locks. The module
is imported with the first pool: most programs use none, and start-up time counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from redis.crc import key_slot

from ...errors import LockError
from ...rules.pools import Answered, Finish, Give, On, Order, Put, Seek, Taken, Touch, Touched
from ..base import OutcomeUnknown, PoolAnswer, fill_gaps
from . import encoding, errors, pool_encoding
from .busy_name_index import POOL
from .encoding import PING, pack_args
from .packed_commands import LEAST, MOST, USUAL, PackedByName, begin_evalsha
from .pool_encoding import FAST_FINISH, FAST_TAKE, SIMPLE, STEP, fast_script
from .read_pools import PoolLooks
from .reply_reader import NOT_YET, ReplyError, new
from .send_and_redirect import RoutedCommand
from .send_many_renewals import MESSAGE, BatchScript, Step, send_many, too_few_replicas

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
        self._finish = begin_evalsha(FAST_FINISH, self.keys[:2], 4) + b"$33\r\n:"
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
                return b"%b%b\r\n$%d\r\n%d %b\r\n$%d\r\n%b\r\n$0\r\n\r\n" % (
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


class RedisPools(PoolLooks):
    batch_size = MESSAGE

    def __init__(self, backend: Any, namespace: str | None = None) -> None:
        self._backend = backend
        self._namespace: str = backend.namespace if namespace is None else namespace
        self.known: PackedByName[PackedOrders] = PackedByName(KNOWN, partial(PackedOrders, self._namespace))
        self._clock, self._only_node, self._nowait = backend._clock, backend._only_node, backend._nowait

    async def call(self, pool: str, order: Order, again: bool = False) -> PoolAnswer:
        """`again`: the first try found a damaged item, which has been set apart."""
        try:
            backend = self._backend
            one = self.known[pool]
            at = backend.runtime.clock()
            payload = None if one.contended or backend._confirm else one.pack_fast(order)
            if payload is not None:
                raw = (await backend.send(RoutedCommand(one.slot, payload, fast_script(order))))[0]
                if raw is not None:
                    return PoolAnswer(_decode_fast(order, raw), at)
                at = backend.runtime.clock()
            if type(order) is Seek and order.wait:
                await backend._listen(one.slot)
            # PING first, and the server writes to the clients that a step has woken before it replies to this one.
            before = PING if type(order) is Put or type(order) is On else b""
            counts = type(order) is Seek or (type(order) is On and type(order.command) is Touch)
            after = backend._confirm if counts else b""
            request = RoutedCommand(one.slot, one.pack_step(order), STEP, before, after)
            raw, *confirmed = await backend.send(request)
            one.contended = raw.pop() != b"1"
            reply = pool_encoding.decode_reply(raw, order)
            if confirmed and type(reply) in (Taken, Touched):
                few = too_few_replicas(backend, confirmed[0])
                if few is not None:  # it does not count: give back what was taken
                    if type(order) is Seek and type(reply) is Taken and type(confirmed[0]) is not ReplyError:
                        await self.call(pool, On(reply.key, Give(order.ticket, reply.fence)))
                    raise few
            return PoolAnswer(reply, at)
        except errors.UNREADABLE as bad:
            from .repair_keys import set_apart

            if again or not await set_apart(self._backend, pool):
                raise self._damage(pool, bad) from None
        return await self.call(pool, order, True)

    async def call_many(self, calls: Sequence[tuple[str, On]]) -> list[PoolAnswer | OutcomeUnknown | LockError]:
        """Renew many items by one message; in a cluster by one for each server. See send_many_renewals.py."""
        if len(calls) == 1 or not all(type(order.command) is Touch for _, order in calls):
            return await super().call_many(calls)
        at = self._backend.runtime.clock()
        steps = [self._renewal(pool, order) for pool, order in calls]
        replies = await send_many(self._backend, BATCH_STEP, steps)
        outcomes = [_read_renewal(order, raw, at) for (_, order), raw in zip(calls, replies, strict=True)]
        return await fill_gaps(self.call, calls, outcomes)

    def _renewal(self, pool: str, order: On) -> Step:
        one = self.known[pool]
        args = pack_args(encoding.LISTENERS, *pool_encoding.message_args(order))
        return Step(one.slot, pack_args(*one.keys), args)

    def call_nowait(self, pool: str, order: Order) -> PoolAnswer | None:
        """Make a step for threads: one write, one read, no coroutine. OutcomeUnknown if no reply came.

        What a server reports about itself is left to the dispatcher, and so to `call`.
        """
        one = self.known.get(pool)
        if one is None or not self._nowait:
            return None
        clock, node = self._clock, self._only_node
        at = clock()
        if node is None:
            try:
                node = self._backend._node_of(one.slot)
            except LookupError:
                return None
        payload = None if one.contended else one.pack_fast(order)
        if payload is None:
            return self._step_nowait(one, node, order, at)
        found = node.request_one(payload)
        try:
            if type(found) is bytes:
                mine, _, body = found.partition(b"\0")
                reply = new(Taken, (int(mine[:16]), order[1], body.decode(), mine[17:].decode()))
            elif type(found) is int:
                reply = ENDED.get(type(order[1])) or Touched(found)
            else:
                if found is None:
                    one.contended = True  # or the step is not a simple one
                    return self._step_nowait(one, node, order, at)
                if found is not NOT_YET:
                    errors.raise_if_begun(found)
                return None
        except errors.UNREADABLE as bad:
            raise self._damage(pool, bad) from None
        return new(PoolAnswer, (reply, at, False))  # type: ignore[no-any-return]

    def _step_nowait(self, one: PackedOrders, node: Any, order: Order, at: float) -> PoolAnswer | None:
        """Make it with the full step, as for contended locks. OutcomeUnknown also if an item that it read is damaged:
        `call` then sets that one apart."""
        if type(order) is On:
            raw = node.request_one(PING + one.pack_step(order), True)
        elif type(order) is Seek and (not order.wait or node in self._backend.listeners.connections):
            raw = node.request_one(one.pack_step(order))
        else:
            return None
        if type(raw) is not list:
            if type(raw) is ReplyError:
                errors.raise_if_begun(raw)
            return None
        one.contended = raw.pop() != b"1"
        try:
            return PoolAnswer(pool_encoding.decode_reply(raw, order), at)
        except errors.UNREADABLE as bad:
            raise OutcomeUnknown(f"its reply cannot be read: {bad}") from None

    # -- waiting and reading

    async def wait_for_wakeup(self, pool: str, ticket: str, timeout: float) -> None:
        await self._backend.wait_listed(POOL, pool, ticket, timeout)


def _decode_fast(order: Any, raw: Any) -> Answered:
    """Decode the reply of a fast script."""
    if type(order) is not Seek:
        return ENDED.get(type(order.command)) or Touched(raw)
    mine, _, body = raw.partition(b"\0")
    fence, _, key = mine.partition(b" ")
    return Taken(int(fence), order.lease, body.decode(), key.decode())


def _read_renewal(order: On, raw: Any, at: float) -> PoolAnswer | OutcomeUnknown | LockError | None:
    """Return the answer in this reply; None if there is none."""
    if type(raw) is not list:
        return raw  # type: ignore[no-any-return]
    try:
        return PoolAnswer(pool_encoding.decode_reply(raw[:-1], order), at)
    except errors.UNREADABLE:
        return None
