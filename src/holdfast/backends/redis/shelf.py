"""Pools inside a Redis server: the rules run there, as Lua, on native structures.

As at a door, the commonest steps (any item that is due while nobody waits; keeping it, giving it back, finishing it)
are scripts with few keys, and all else is the full step. Wake-ups come by the same listening connection as those of
locks. Made when the first pool is asked for: most programs use none, and start-up time counts.
"""

from __future__ import annotations

import json
from typing import Any

from redis.crc import key_slot

from ...errors import BackendError, LockError
from ...pool import BROKEN, STATES, Finish, Give, Item, Line, On, Order, Put, Seek, Taken, Touch, Touched
from ..pool_contract import PoolAnswer
from . import layout, pool_layout, trouble
from .at_once import PING, new
from .courier import Parcel
from .door import LEAST, MOST, USUAL, command_of
from .layout import packed
from .pool_layout import COUNT, FINISH, LINE, LOOK, SIMPLE, STEP, TAKE, cut
from .reading import NOT_YET, Said

KNOWN = 1024
ENDED: dict[Any, Any] = {Finish: SIMPLE[b"finished"], Give: SIMPLE[b"given"]}


class Pool:
    """What is remembered about one pool: its keys, where they live, and its commands as far as they repeat."""

    __slots__ = ("_begin", "_finish", "_last", "_step", "_take", "crowded", "keys", "slot")

    def __init__(self, namespace: str, name: str) -> None:
        self.keys = pool_layout.keys(namespace, name)
        self.slot = key_slot(self.keys[0].encode())
        self._take = command_of(TAKE, self.keys[:2], 3) + b"$33\r\n:"
        self._last: tuple[tuple[Any, ...], bytes] = (), b""  # a Seek's fields, and what comes behind its ticket
        self._finish = command_of(FINISH, self.keys[:2], 3) + b"$33\r\n:"
        self._step = packed("EVALSHA", STEP.sha, len(self.keys), *self.keys, layout.EARS)
        self.crowded = False  # somebody waits there: the full step is worth sending first

    def quick(self, order: Order) -> bytes | None:
        """This order for one of the short cuts; None: it is not for them."""
        if type(order) is Seek:
            ticket = order[0]
            fields, rest = self._last  # one look: another thread may come with others
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
        script = cut(order)
        if script is None:
            return None
        words = pool_layout.short(order)
        if type(order) is Seek:
            self._last = order[1:], b"\r\n" + packed(*words[1:])
        return command_of(script, self.keys[:2], len(words)) + packed(*words)

    def full(self, order: Order) -> bytes:
        words = pool_layout.words(order)
        return b"*%d\r\n%b%b" % (4 + len(self.keys) + len(words), self._step, packed(*words))


class RedisPools:
    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.known: dict[str, Pool] = {}  # that were asked something here

    async def ask(self, pool: str, order: Order, again: bool = False) -> PoolAnswer:
        """`again`: it stumbled over a damaged item, which is out of its way now."""
        try:
            backend = self._backend
            one = self.door(pool)
            at = backend.colour.clock()
            if not one.crowded:
                answer = await self._short(one, order, at)
                if answer is not None:
                    return answer
                at = backend.colour.clock()
            if type(order) is Seek and order.wait:
                await backend._listen(one)
            # PING first, and the server writes to the clients that a step has woken before it replies to this one.
            before = PING if type(order) is Put or type(order) is On else b""
            after = backend._confirm if _counts(order) else b""
            raw, *confirmed = await backend._courier.bring(Parcel(one.slot, one.full(order), STEP, before, after))
            one.crowded = raw.pop() != b"1"
            reply = pool_layout.reply(raw, order)
            if confirmed and type(reply) in (Taken, Touched):
                await self._replicated(confirmed[0], pool, order, reply)
            return PoolAnswer(reply, at)
        except trouble.UNREADABLE as bad:
            from .repair import set_apart

            if again or not await set_apart(self._backend, pool):
                raise self._damage(pool, bad) from None
        return await self.ask(pool, order, True)

    def _damage(self, pool: str, bad: BaseException) -> LockError:
        return trouble.unreadable(bad, pool, self._backend.where, f"What is kept of the pool {pool!r}")

    async def _short(self, one: Pool, order: Order, at: float) -> PoolAnswer | None:
        """The commonest steps, while nobody waits; None: it is not as simple as that, and nothing was done."""
        backend = self._backend
        payload, script = None if backend._confirm else one.quick(order), cut(order)
        if payload is None:
            return None
        return _read(order, (await backend._courier.bring(Parcel(one.slot, payload, script)))[0], at)

    def at_once(self, pool: str, order: Order) -> PoolAnswer | None:
        """The same for threads: one write, one read, no coroutine. Unknown if no answer came.

        What a server has to say about itself is left to the courier, and thus to `ask`.
        """
        backend = self._backend
        one = self.known.get(pool)
        if one is None or one.crowded or not backend._plain:
            return None
        at = backend._clock()
        try:
            node = backend._node_of(one.slot)
        except LookupError:
            return None
        payload = one.quick(order)
        if payload is None:
            return None
        found = node.hear(payload)
        try:
            if type(found) is bytes:
                mine, _, body = found.partition(b"\0")
                return new(PoolAnswer, (  # type: ignore[no-any-return]
                    new(Taken, (int(mine[:16]), order[1], body.decode(), mine[17:].decode())), at, False
                ))  # fmt: skip
            if found is NOT_YET:
                return None
            if type(found) is Said:
                trouble.doubt_if_begun(found)
                return None
            answer = _read(order, found, at)
        except trouble.UNREADABLE as bad:
            raise self._damage(pool, bad) from None
        if answer is None:
            one.crowded = True  # or something else than plain: `ask` need not try the same again
        return answer

    def door(self, name: str) -> Pool:
        pool = self.known.get(name)
        if pool is None:
            if len(self.known) >= KNOWN:
                self.known.clear()
            pool = self.known[name] = Pool(self._backend.namespace, name)
        return pool

    async def _replicated(self, count: Any, pool: str, order: Order, reply: Any) -> None:
        """As for a lock: what is taken counts only when enough replicas know it. Else it is given back, and said."""
        backend = self._backend
        if type(count) is Said:
            raise trouble.said_no(backend.where, count)
        if count >= backend.min_replicas:
            return
        if type(order) is Seek and type(reply) is Taken:
            await self.ask(pool, On(reply.key, Give(order.ticket, reply.fence)))
        few = f"{count} of {backend.min_replicas} replicas have" if count else "no replica has"
        raise BackendError(
            f"{backend.where}: {few} confirmed it in time, so it does not count (min_replicas). "
            "Are the replicas running and connected?"
        )

    # -- waiting and looking

    async def changed(self, pool: str, ticket: str, timeout: float) -> None:
        await self._backend.ears.wait(ticket, timeout)

    async def all(self, pool: str) -> tuple[list[Item], int]:
        one = self.known.get(pool) or Pool(self._backend.namespace, pool)
        found: dict[str, Item] = {}
        cursor, now = "0", 0
        while True:
            payload = command_of(LOOK, one.keys[:2], 0, cursor)
            try:
                following, rows, (seconds, micros) = (await self._backend._read(Parcel(one.slot, payload, LOOK)))[0]
            except trouble.UNREADABLE as bad:
                raise self._damage(pool, bad) from None
            for row in rows:
                item = _item(row)
                found[item.key] = item
            cursor, now = following.decode(), int(seconds) * 1_000_000 + int(micros)
            if cursor == "0":
                return sorted(found.values()), now

    async def count(self, pool: str) -> dict[str, int]:
        one = self.known.get(pool) or Pool(self._backend.namespace, pool)
        totals, seen = [0] * len(STATES), 0
        while True:
            payload = command_of(COUNT, one.keys[:2], 0, str(seen))
            try:
                page, *numbers = (await self._backend._read(Parcel(one.slot, payload, COUNT)))[0]
                totals = [total + number for total, number in zip(totals, numbers, strict=True)]
            except trouble.UNREADABLE as bad:
                raise self._damage(pool, bad) from None
            seen += page
            if not page:
                return dict(zip(STATES, totals, strict=True))

    async def line(self, pool: str) -> Line:
        one = self.known.get(pool) or Pool(self._backend.namespace, pool)
        payload = command_of(LINE, [one.keys[0], one.keys[3]], 0)
        try:
            return pool_layout.line((await self._backend._read(Parcel(one.slot, payload, LINE)))[0])
        except trouble.UNREADABLE as bad:
            raise self._damage(pool, bad) from None


def _item(row: list[bytes]) -> Item:
    try:
        item = pool_layout.item(*row)
        json.loads(item.body)
        return item
    except (TypeError, ValueError, LookupError, OverflowError, RecursionError):
        return Item(row[0].decode("utf-8", "replace"), BROKEN)


def _read(order: Any, raw: Any, at: float) -> PoolAnswer | None:
    """What a short cut has said. Named tuples without the function that each has for being made."""
    if raw is None:
        return None
    if type(order) is Seek:
        mine, _, body = raw.partition(b"\0")
        fence, _, key = mine.partition(b" ")
        reply = new(Taken, (int(fence), order[1], body.decode(), key.decode()))
    else:
        reply = ENDED.get(type(order[1])) or Touched(raw)
    return new(PoolAnswer, (reply, at, False))  # type: ignore[no-any-return]


def _counts(order: Order) -> bool:
    """Whether replicas must know it before it is believed."""
    return type(order) is Seek or (type(order) is On and type(order.command) is Touch)
