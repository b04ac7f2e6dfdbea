"""The Lua of pools and the pure rules side by side: the same orders for both, and every difference is an error.

As `both.py` does for the doorman: time and listeners are inputs here, by two words in the text of the scripts that
occur exactly once, and a life is thought out with the pure rules first and then sent in one write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from redis import Redis
from redis.exceptions import ResponseError

from holdfast.backends.redis import pool_layout
from holdfast.backends.redis.pool_layout import COUNT, FINISH, KEEP, LINE, LOOK, STEP, TAKE
from holdfast.backends.redis.scripts import Script, script
from holdfast.pool import (
    NOBODY,
    STATES,
    WINDOW,
    Answered,
    Finish,
    Finished,
    Give,
    Given,
    Hint,
    Item,
    Line,
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
)
from holdfast.pool.counter import step
from holdfast.pool.rules import apply
from tests.pool.bench import SECOND, Rack
from tests.redis.both import EARS, MARK, Differs, good, replaced

BEGIN = 4_100_000_000 * SECOND  # far ahead of every real clock
KEYS = [f"item {n}" for n in range(6)] + ["größer", "item"]
TICKETS = [f"t{n}" for n in range(9)]
LEASES = (1, 1, 2, 3, 10, 30, 30, 70, 2)
NAMED = {"t6": KEYS[1], "t7": KEYS[2], "t8": KEYS[1]}
GAPS = (0, 0, 0, 1, 1000, SECOND // 2, SECOND, WINDOW - 1, WINDOW, WINDOW + 1, 3 * SECOND, 9 * SECOND, 31 * SECOND)
BACK = (-1, -SECOND, -40 * SECOND, -1000 * SECOND)

TIME = "redis.call('TIME')", "{0, string.match(ARGV[#ARGV], '^%d+')}"
LISTENERS = (
    "call('PUBSUB', 'NUMSUB', EARS .. ear)[2]",
    "(string.find(ARGV[#ARGV], ' ' .. ear .. ' ', 1, true) and 0 or 1)",
)


class Scripts(NamedTuple):
    take: Script
    keep: Script
    finish: Script
    step: Script
    count: Script

    def cut(self, order: Order) -> Script:
        """The short cut for this order."""
        found = pool_layout.cut(order)
        assert found is not None
        return self[TRUE.index(found)]


TRUE = Scripts(TAKE, KEEP, FINISH, STEP, COUNT)


def hooked(name: str = "", words: str = "", others: str = "") -> Scripts:
    """The scripts with time and listeners as an argument; in the one with this name, other words instead of these."""
    found = {}
    for each, true in TRUE._asdict().items():
        text = replaced(true.text, words, others) if each == name else true.text
        text = replaced(text, *TIME) if each != "finish" else text
        found[each] = script(replaced(text, *LISTENERS) if each == "step" else text)
    return Scripts(**found)


class Move(NamedTuple):
    order: Order
    now: int
    short: bool
    deaf: tuple[str, ...] = ()  # ears at which nobody listens

    @property
    def inputs(self) -> str:
        return f"{self.now} {' '.join(self.deaf)} "


class Pure(NamedTuple):
    """What the rules say about one move."""

    items: dict[str, Item]
    line: Line
    reply: Answered
    hints: list[Hint]
    is_short: bool


def pure(items: dict[str, Item], line: Line, move: Move) -> Pure:
    short = is_short(items, line, move)
    if short and is_plain_finish(move.order):
        assert isinstance(move.order, On)
        item, said = apply(items[move.order.key], move.order.command, move.now)
        assert item is not None
        return Pure({**items, item.key: item}, line, said, [], True)  # who finishes does not look at the clock
    rack = Rack(items)
    deaf = {w.ticket for w in line.workers if w.ear and w.ear in move.deaf}
    after, reply, hints = step(rack, line, move.order, move.now, (), deaf)
    if not rack.items and not after.workers and not after.watchers:
        after = NOBODY  # of a pool of which nothing is left, nothing is kept
    return Pure(rack.items, after, reply, hints, short)


def is_plain_finish(order: Order) -> bool:
    return isinstance(order, On) and isinstance(order.command, Finish) and order.command.body is None


def is_short(items: dict[str, Item], line: Line, move: Move) -> bool:
    """Whether the short cut must do. It has no rules of its own, so this is all there is to say about it."""
    o = move.order
    if line.workers or line.watchers or not move.short:
        return False
    if move.now < line.seen and not is_plain_finish(o):
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
    """One sort of life."""

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


def life(chance: Random, kind: Kind) -> list[Move]:
    tickets = TICKETS[: kind.tickets] if kind.tickets < 9 else TICKETS
    if kind is KINDS["named"]:
        tickets = TICKETS[4:]
    now, items, line, moves = BEGIN + chance.randrange(SECOND), dict[str, Item](), NOBODY, list[Move]()
    for _ in range(chance.randint(8, kind.moves)):
        now += chance.choice(BACK) if chance.random() < kind.back else chance.choice(kind.gaps)
        order = some_order(chance, kind, tickets, items)
        can = (isinstance(order, Seek) and not order.key) or (
            isinstance(order, On) and isinstance(order.command, Touch | Give | Finish) and not is_longer(order.command)
        )
        ears = [f"e{n}" for n in range(5)] if chance.random() < 0.3 else []
        deaf = tuple(sorted(chance.sample(ears, len(ears) and chance.randint(1, 5))))
        moves.append(Move(order, now, can and chance.random() < 0.6, deaf))
        items, line, *_ = pure(items, line, moves[-1])
    return moves


def some_order(chance: Random, kind: Kind, tickets: list[str], items: dict[str, Item]) -> Order:
    keys = KEYS[: kind.keys]
    ticket = chance.choice(tickets)
    what = chance.random()
    lease = LEASES[int(ticket[1:])] * SECOND
    if what < kind.come:
        ear = "" if ticket == "t3" else f"e{int(ticket[1:]) // 2}"
        note = chance.choice(("", "eine Notiz mit Umläuten", "1 2 3 "))
        if any(i.ticket == ticket for i in items.values()):
            lease = chance.choice((lease, SECOND))  # a repeated take never shortens what there is
        return Seek(ticket, lease, chance.random() < 0.8, ear, f"owner {ticket}", note, NAMED.get(ticket, ""))
    what -= kind.come
    if what < kind.put:
        rows = [(key, f'"{key} {chance.randrange(9)}"') for key in chance.choices(keys, k=chance.randint(1, 4))]
        return Put(tuple(rows), chance.choice((0, 0, 200)))
    taken = [i for i in items.values() if i.ticket]
    item = chance.choice(taken) if taken and chance.random() < 0.8 else None
    if item is None:
        key = chance.choice(keys)
        item = items.get(key) or Item(key, 0, ticket="t0")
        item = item._replace(ticket=chance.choice((ticket, item.ticket)) or ticket)
    fence = item.fence if chance.random() < 0.9 else max(item.fence - 1, 0)
    body = chance.choice((None, None, '"done, möglicherweise"', "{}"))
    choice = chance.randrange(13)
    if choice < 3:
        return On(item.key, Touch(item.ticket, fence, body, chance.choice((None, None, SECOND // 2, 9 * SECOND))))
    if choice < 7:
        return On(item.key, Give(item.ticket, fence, chance.choice((0, 0, SECOND // 2, 4 * SECOND)), body))
    if choice < 8:
        return On(item.key, Finish(item.ticket, fence, body))
    if choice < 10:
        return Quit(ticket, lease, NAMED.get(ticket, ""))
    if choice < 11:
        return On(item.key, Look())
    return On(item.key, Remove(chance.choice(("", item.ticket)), fence, chance.random() < 0.3))


class Both:
    def __init__(self, server: Redis, scripts: Scripts) -> None:
        self._server = server
        self._scripts = scripts
        self._count = 0
        for each in (*scripts, LOOK, LINE):
            server.script_load(each.text)
        self._listener: Any = server.connection_pool.make_connection()
        self._listener.connect()
        self._listener.send_command("PSUBSCRIBE", EARS + "*")
        self._listener.read_response(push_request=True)

    def close(self) -> None:
        self._listener.disconnect()

    def live(self, life: list[Move]) -> None:
        """Play these moves on an empty pool. Raises Differs at the first that the two see differently."""
        self._count += 1
        keys = pool_layout.keys("", f"life {self._count}")
        thought: list[Pure] = []
        items, line = dict[str, Item](), NOBODY
        with self._server.pipeline(transaction=False) as pipe:
            for number, move in enumerate(life):
                thought.append(pure(items, line, move))
                items, line, *_ = thought[-1]
                self._send(pipe, keys, move, thought[-1].is_short)
                pipe.evalsha(LOOK.sha, 2, *keys[:2], "0")
                pipe.evalsha(LINE.sha, 2, keys[0], keys[3])
                pipe.evalsha(self._scripts.count.sha, 2, *keys[:2], 0, move.inputs)
                pipe.hgetall(keys[0])
                for key in keys[1:]:
                    pipe.zrange(key, 0, -1, withscores=True)
                for key in keys:
                    pipe.pttl(key)
                pipe.publish(EARS + MARK, number)
            pipe.unlink(*keys)
            answers = iter(pipe.execute(raise_on_error=False))
        hints = self._hear(len(life))
        before: tuple[dict[str, Item], Line] = ({}, NOBODY)
        for move, should, heard in zip(life, thought, hints, strict=True):
            try:
                self._compare(move, should, heard, answers)
            except (AssertionError, ResponseError, KeyError) as error:
                said = f"{error!r}\n{move}\nbefore {before}\nafter  {should[:2]}\npure   {should[2:]}"
                raise Differs(said) from error
            before = should[:2]

    def _send(self, pipe: Any, keys: list[str], move: Move, short: bool) -> None:
        o = move.order
        if move.short:
            pipe.evalsha(self._scripts.cut(o).sha, 2, *keys[:2], *pool_layout.short(o), move.inputs)
        if not short:
            pipe.evalsha(self._scripts.step.sha, len(keys), *keys, EARS, *pool_layout.words(o), move.inputs)

    def _compare(self, move: Move, should: Pure, heard: list[Hint], answers: Iterator[Any]) -> None:
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
            reply = pool_layout.reply(words, o)
            alone = not should.line.workers and not should.line.watchers
            assert quick == (b"1" if alone else b"0"), f"the short cut will do next: {quick}"
        assert reply == should.reply, f"replied {reply}"
        assert sorted(heard) == sorted(should.hints), f"woke {heard}"
        _, rows, _ = good(next(answers))
        found = {item.key: item for item in [pool_layout.item(*row) for row in rows]}
        assert found == should.items, f"found {found}"
        line = pool_layout.line(good(next(answers)))
        assert line == should.line, f"found {line}"
        page, *numbers = good(next(answers))
        states = [item.state(move.now) for item in found.values()]
        assert numbers == [states.count(state) for state in STATES], f"counted {page}, {numbers}"
        check_keys(should.items, should.line, answers)
        next(answers)

    def _hear(self, moves: int) -> list[list[Hint]]:
        """The wake-ups between the marks."""
        found: list[list[Hint]] = []
        hints: list[Hint] = []
        while len(found) < moves:
            *_, channel, text = self._listener.read_response(push_request=True)
            ear = channel.decode().removeprefix(EARS)
            if ear == MARK:
                found.append(hints)
                hints = []
            else:
                ticket, _, _ = text.decode().split()
                hints.append(Hint(ear, ticket))
        return found


def check_keys(items: dict[str, Item], line: Line, answers: Iterator[Any]) -> None:
    """The keys are exactly what the head of pool.lua says, and only a pool without items has an end."""
    fields = {field.decode(): value for field, value in good(next(answers)).items()}
    due, places, ends, watch = [dict(good(next(answers))) for _ in range(4)]
    times = {next(answers) for _ in range(5)} - {-2}
    waiting = (*line.workers, *line.watchers)
    assert named(due) == {i.key: i.score for i in items.values()}
    assert named(places) == {w.ticket: w.place for w in line.workers}
    assert named(ends) == {w.ticket: w.expires for w in waiting}
    assert named(watch) == {f"{w.key}\0{w.ticket}": 0 for w in line.watchers}
    use = ("l" if line.workers else "") + ("w" if line.watchers else "")
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
