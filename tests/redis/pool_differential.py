"""The Lua of pools and the pure rules side by side: the same orders for both, and every difference is an error.

As differential.py does for locks: time and listeners are inputs here, by two words in the text of the scripts that
occur exactly once, and a history is thought out with the pure rules first and then sent in one write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from redis import Redis
from redis.exceptions import ResponseError

from fairlock.rules.pools import (
    CONFIRM_WINDOW,
    NOBODY,
    STATES,
    Answered,
    Finish,
    Finished,
    Give,
    Given,
    ItemState,
    Look,
    On,
    Order,
    Put,
    Quit,
    Remove,
    Seek,
    Taken,
    Touch,
    Touched,
    Wakeup,
    WorkerQueue,
)
from fairlock.rules.pools.step import apply, step
from fairlock.stores.redis import pool_encoding
from fairlock.stores.redis.lua_scripts import Script, fold, read, script
from fairlock.stores.redis.pool_encoding import COUNT, FAST_FINISH, FAST_TAKE, FAST_TOUCH, READ_ITEMS, READ_QUEUE, STEP
from tests.pool_rules.walkthrough import SECOND, Rack
from tests.redis.differential import CHANNELS, MARK, difference, good, replaced

BEGIN = 4_100_000_000 * SECOND  # far ahead of every real clock
KEYS = [f"item {n}" for n in range(6)] + ["größer", "item"]
TICKETS = [f"t{n}" for n in range(9)]
LEASES = (1, 1, 2, 3, 10, 30, 30, 70, 2)
NAMED = {"t6": KEYS[1], "t7": KEYS[2], "t8": KEYS[1]}
GAPS = (
    0, 0, 0, 1, 1000, SECOND // 2, SECOND, CONFIRM_WINDOW - 1, CONFIRM_WINDOW, CONFIRM_WINDOW + 1, 3 * SECOND,
    9 * SECOND, 31 * SECOND,
)  # fmt: skip
BACK = (-1, -SECOND, -40 * SECOND, -1000 * SECOND)

TIME = "redis.call('TIME')", "{0, string.match(ARGV[#ARGV], '^%d+')}"
SUBSCRIBERS = (
    "call('PUBSUB', 'NUMSUB', LISTENERS .. listener)[2]",
    "(string.find(ARGV[#ARGV], ' ' .. listener .. ' ', 1, true) and 0 or 1)",
)


class Scripts(NamedTuple):
    fast_take: Script
    fast_touch: Script
    fast_finish: Script
    step: Script
    count: Script

    def cut(self, order: Order) -> Script:
        """The short cut for this order."""
        found = pool_encoding.fast_script(order)
        assert found is not None
        return self[TRUE.index(found)]


TRUE = Scripts(FAST_TAKE, FAST_TOUCH, FAST_FINISH, STEP, COUNT)
STEPS = ("pool_step_1_read.lua", "pool_step_2_queue.lua", "pool_step_3_command.lua", "pool_step_4_write.lua")
SOURCES = {name: read(*(STEPS if name == "step" else [f"pool_{name}.lua"])) for name in Scripts._fields}


def hooked(name: str = "", words: str = "", others: str = "") -> Scripts:
    """The scripts with time and listeners as an argument; in the one with this name, other words instead of these."""
    found = {}
    for each, source in SOURCES.items():
        text = replaced(source, words, others) if each == name else source
        text = replaced(text, *TIME) if each != "fast_finish" else text
        found[each] = script(fold(replaced(text, *SUBSCRIBERS) if each == "step" else text))
    return Scripts(**found)


class Move(NamedTuple):
    order: Order
    now: int
    short: bool
    unreachable: tuple[str, ...] = ()  # listeners at which nobody listens

    @property
    def inputs(self) -> str:
        return f"{self.now} {' '.join(self.unreachable)} "


class Pure(NamedTuple):
    """What the rules say about one move."""

    items: dict[str, ItemState]
    queue: WorkerQueue
    reply: Answered
    hints: list[Wakeup]
    is_short: bool


def pure(items: dict[str, ItemState], queue: WorkerQueue, move: Move) -> Pure:
    short = is_short(items, queue, move)
    if short and is_finish(move.order):
        assert isinstance(move.order, On)
        item, said = apply(items[move.order.key], move.order.command, move.now)
        assert item is not None
        return Pure({**items, item.key: item}, queue, said, [], True)  # who finishes does not look at the clock
    rack = Rack(items)
    unreachable = {w.ticket for w in queue.workers if w.listener and w.listener in move.unreachable}
    after, reply, hints = step(rack, queue, move.order, move.now, (), unreachable)
    if not rack.items and not after.workers and not after.watchers:
        after = NOBODY  # of a pool of which nothing is left, nothing is kept
    return Pure(rack.items, after, reply, hints, short)


def is_finish(order: Order) -> bool:
    return isinstance(order, On) and isinstance(order.command, Finish)


def is_short(items: dict[str, ItemState], queue: WorkerQueue, move: Move) -> bool:
    """Return True if the fast path must succeed. It has no rules of its own, so this describes it completely."""
    o = move.order
    if queue.workers or queue.watchers or not move.short:
        return False
    if move.now < queue.seen and not is_finish(o):
        return False
    if isinstance(o, Seek):
        due = any(0 <= i.score <= move.now for i in items.values())
        return due and not any(i.ticket == o.ticket for i in items.values())
    assert isinstance(o, On)
    i, c = items.get(o.key), o.command
    return i is not None and isinstance(c, Touch | Give | Finish) and i.ticket == c.ticket and i.fence == c.fence


def is_longer(command: object) -> bool:
    return isinstance(command, Touch) and command.lease is not None


class Kind(NamedTuple):
    """One sort of history."""

    come: float = 0.45  # how many of the orders are Seeks
    put: float = 0.12
    keys: int = 6
    tickets: int = 9
    back: float = 0.03
    gaps: tuple[int, ...] = GAPS
    moves: int = 60


SOON = GAPS[:8]
KINDS = {
    "crowd": Kind(),
    "few items": Kind(keys=2, put=0.08, gaps=SOON, moves=80),
    "many items": Kind(keys=8, tickets=3, put=0.3, gaps=SOON),
    "one worker": Kind(tickets=1, keys=3, put=0.2, back=0.02),
    "named": Kind(come=0.6, keys=3, put=0.1),
    "clock": Kind(back=0.25, keys=4),
    "silence": Kind(come=0.7, put=0.05, keys=2, gaps=(0, 1, SECOND, 3 * SECOND, 4 * SECOND, 31 * SECOND)),
}


def history(rng: Random, kind: Kind) -> list[Move]:
    tickets = TICKETS[: kind.tickets] if kind.tickets < 9 else TICKETS
    if kind is KINDS["named"]:
        tickets = TICKETS[4:]
    now, items, queue, moves = BEGIN + rng.randrange(SECOND), dict[str, ItemState](), NOBODY, list[Move]()
    for _ in range(rng.randint(8, kind.moves)):
        now += rng.choice(BACK) if rng.random() < kind.back else rng.choice(kind.gaps)
        order = some_order(rng, kind, tickets, items)
        can = (isinstance(order, Seek) and not order.key) or (
            isinstance(order, On) and isinstance(order.command, Touch | Give | Finish) and not is_longer(order.command)
        )
        listeners = [f"e{n}" for n in range(5)] if rng.random() < 0.3 else []
        unreachable = tuple(sorted(rng.sample(listeners, len(listeners) and rng.randint(1, 5))))
        moves.append(Move(order, now, can and rng.random() < 0.6, unreachable))
        items, queue, *_ = pure(items, queue, moves[-1])
    return moves


def some_order(rng: Random, kind: Kind, tickets: list[str], items: dict[str, ItemState]) -> Order:
    keys = KEYS[: kind.keys]
    ticket = rng.choice(tickets)
    what = rng.random()
    lease = LEASES[int(ticket[1:])] * SECOND
    if what < kind.come:
        listener = "" if ticket == "t3" else f"e{int(ticket[1:]) // 2}"
        note = rng.choice(("", "eine Notiz mit Umläuten", "1 2 3 "))
        if any(i.ticket == ticket for i in items.values()):
            lease = rng.choice((lease, SECOND))  # a repeated take never shortens what there is
        return Seek(ticket, lease, rng.random() < 0.8, listener, f"owner {ticket}", note, NAMED.get(ticket, ""))
    what -= kind.come
    if what < kind.put:
        rows = [(key, f'"{key} {rng.randrange(9)}"') for key in rng.choices(keys, k=rng.randint(1, 4))]
        return Put(tuple(rows), rng.choice((0, 0, 200)))
    taken = [i for i in items.values() if i.ticket]
    item = rng.choice(taken) if taken and rng.random() < 0.8 else None
    if item is None:
        key = rng.choice(keys)
        item = items.get(key) or ItemState(key, 0, ticket="t0")
        item = item._replace(ticket=rng.choice((ticket, item.ticket)) or ticket)
    fence = item.fence if rng.random() < 0.9 else max(item.fence - 1, 0)
    body = rng.choice((None, None, '"done, möglicherweise"', "{}"))
    choice = rng.randrange(13)
    if choice < 3:
        return On(item.key, Touch(item.ticket, fence, body, rng.choice((None, None, SECOND // 2, 9 * SECOND))))
    if choice < 7:
        return On(item.key, Give(item.ticket, fence, rng.choice((0, 0, SECOND // 2, 4 * SECOND)), body))
    if choice < 8:
        return On(item.key, Finish(item.ticket, fence, body))
    if choice < 10:
        return Quit(ticket, lease, NAMED.get(ticket, ""))
    if choice < 11:
        return On(item.key, Look())
    return On(item.key, Remove(rng.choice(("", item.ticket)), fence, rng.random() < 0.3))


class Both:
    def __init__(self, server: Redis, scripts: Scripts) -> None:
        self._server = server
        self._scripts = scripts
        self._count = 0
        for each in (*scripts, READ_ITEMS, READ_QUEUE):
            server.script_load(each.text)
        self._listener: Any = server.connection_pool.make_connection()
        self._listener.connect()
        self._listener.send_command("PSUBSCRIBE", CHANNELS + "*")
        self._listener.read_response(push_request=True)

    def close(self) -> None:
        self._listener.disconnect()

    def play(self, history: list[Move]) -> None:
        """Play these moves on an empty pool. Raises Differs at the first that the two see differently."""
        self._count += 1
        keys = pool_encoding.keys("", f"history {self._count}")
        thought: list[Pure] = []
        items, queue = dict[str, ItemState](), NOBODY
        with self._server.pipeline(transaction=False) as pipe:
            for number, move in enumerate(history):
                thought.append(pure(items, queue, move))
                items, queue, *_ = thought[-1]
                self._send(pipe, keys, move, thought[-1].is_short)
                pipe.evalsha(READ_ITEMS.sha, 2, *keys[:2], "0")
                pipe.evalsha(READ_QUEUE.sha, 2, keys[0], keys[3])
                pipe.evalsha(self._scripts.count.sha, 2, *keys[:2], 0, move.inputs)
                pipe.hgetall(keys[0])
                for key in keys[1:]:
                    pipe.zrange(key, 0, -1, withscores=True)
                for key in keys:
                    pipe.pttl(key)
                pipe.publish(CHANNELS + MARK, number)
            pipe.unlink(*keys)
            answers = iter(pipe.execute(raise_on_error=False))
        hints = self._hear(len(history))
        before: tuple[dict[str, ItemState], WorkerQueue] = ({}, NOBODY)
        for move, should, heard in zip(history, thought, hints, strict=True):
            try:
                self._compare(move, should, heard, answers)
            except (AssertionError, ResponseError, KeyError) as error:
                said = f"{error!r}\n{move}\nbefore {before}\nafter  {should[:2]}\npure   {should[2:]}"
                raise difference(error, said) from error
            before = should[:2]

    def _send(self, pipe: Any, keys: list[str], move: Move, short: bool) -> None:
        o = move.order
        if move.short:
            pipe.evalsha(self._scripts.cut(o).sha, 2, *keys[:2], *pool_encoding.fast_args(o), move.inputs)
        if not short:
            args = pool_encoding.message_args(o)
            pipe.evalsha(self._scripts.step.sha, len(keys), *keys, CHANNELS, *args, move.inputs)

    def _compare(self, move: Move, should: Pure, heard: list[Wakeup], answers: Iterator[Any]) -> None:
        o = move.order
        if move.short:
            said = good(next(answers))
            assert (said is not None) == should.is_short, f"the short cut says {said}"
        if should.is_short:
            reply: Answered
            if isinstance(o, Seek):
                fence, key, body = re.fullmatch("([0-9]+) ([^\0]*)\0(.*)", said.decode()).groups()  # type: ignore[union-attr]
                reply = Taken(int(fence), o.lease, body, key)
            else:
                assert isinstance(o, On)
                kind = type(o.command)
                reply = Touched(int(said)) if kind is Touch else Given() if kind is Give else Finished()
        else:
            *words, quick = good(next(answers))
            reply = pool_encoding.decode_reply(words, o)
            alone = not should.queue.workers and not should.queue.watchers
            assert quick == (b"1" if alone else b"0"), f"the short cut will do next: {quick}"
        assert reply == should.reply, f"replied {reply}"
        assert sorted(heard) == sorted(should.hints), f"woke {heard}"
        _, rows, _ = good(next(answers))
        found = {item.key: item for item in [pool_encoding.decode_item(*row) for row in rows]}
        assert found == should.items, f"found {found}"
        queue = pool_encoding.decode_queue(good(next(answers)))
        assert queue == should.queue, f"found {queue}"
        page, *numbers = good(next(answers))
        states = [item.state(move.now) for item in found.values()]
        assert numbers == [states.count(state) for state in STATES], f"counted {page}, {numbers}"
        check_keys(should.items, should.queue, answers)
        next(answers)

    def _hear(self, moves: int) -> list[list[Wakeup]]:
        """The wake-ups between the marks."""
        found: list[list[Wakeup]] = []
        hints: list[Wakeup] = []
        while len(found) < moves:
            *_, channel, text = self._listener.read_response(push_request=True)
            listener = channel.decode().removeprefix(CHANNELS)
            if listener == MARK:
                found.append(hints)
                hints = []
            else:
                ticket, _, _ = text.decode().split()
                hints.append(Wakeup(listener, ticket))
        return found


def check_keys(items: dict[str, ItemState], queue: WorkerQueue, answers: Iterator[Any]) -> None:
    """The keys are exactly what the head of pool_step_1_read.lua says, and only a pool without items has an end."""
    fields = {field.decode(): value for field, value in good(next(answers)).items()}
    due, places, waiter_expiry, watchers = [dict(good(next(answers))) for _ in range(4)]
    times = {next(answers) for _ in range(5)} - {-2}
    waiting = (*queue.workers, *queue.watchers)
    assert named(due) == {i.key: i.score for i in items.values()}
    assert named(places) == {w.ticket: w.place for w in queue.workers}
    assert named(waiter_expiry) == {w.ticket: w.expires for w in waiting}
    assert named(watchers) == {f"{w.key}\0{w.ticket}": 0 for w in queue.watchers}
    use = ("q" if queue.workers else "") + ("w" if queue.watchers else "")
    assert fields.get("s", b"").rstrip(b"0123456789") == use.encode(), fields
    there = {"#" + key for key in items} | {"=" + i.key for i in items.values() if i.fence}
    there |= {":" + i.ticket for i in items.values() if i.ticket}
    there |= {">" + w.ticket for w in waiting}
    if items or waiting:
        there |= {"s", "p"} if "p" in fields else {"s"}
    assert set(fields) == there, (set(fields), there)
    assert all(fields[":" + i.ticket].decode() == f"{i.fence} {i.key}" for i in items.values() if i.ticket)
    assert times <= ({-1} if items else set(range(599_000, 600_001))), times


def named(found: dict[bytes, float]) -> dict[str, int]:
    return {name.decode(): int(score) for name, score in found.items()}
