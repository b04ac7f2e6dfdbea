"""The Lua and the pure rules side by side: the same moves for both, and every difference is an error.

The time and who listens are inputs here, so the scripts get them as their last two arguments. That takes two words in
their text (HOOKS), each of which occurs exactly once: production pays nothing for it, and drift fails loudly.

A life is thought out with the pure rules first, because moves depend on what has happened (whose fence, which ticket).
Then all of it goes to the server in one write: for each move the step, the record as `look` reads it, the bare keys,
and a mark for the listener, who hears the wake-ups between the marks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from redis import Redis
from redis.exceptions import ResponseError

from holdfast.backends.redis import layout
from holdfast.backends.redis.scripts import ENTER, LEAVE, LOOK, STEP, Script, load, many, script
from holdfast.doorman import EMPTY, Admitted, Command, Enter, Entrant, Leave, Left, Record, Reply, Wake, apply

EARS = "ear:"
MARK = "mark"  # an ear that nobody has
STRANGE = "strange"  # a key that is no door

TIME = "call('TIME')", "{0, ARGV[#ARGV - 1]}"
LISTENERS = (
    "call('PUBSUB', 'NUMSUB', EARS .. ear)[2]",
    "string.find(ARGV[#ARGV], ' ' .. ear .. ' ', 1, true) and 0 or 1",
)
HOOKS: dict[str, tuple[tuple[str, str], ...]] = {
    "enter": (TIME,), "leave": (TIME,), "step": (TIME, LISTENERS), "many": (),
}  # fmt: skip

BARE = """
local found = {redis.call('HGETALL', KEYS[1])}
for i = 2, #KEYS do found[i] = redis.call('ZRANGE', KEYS[i], 0, -1, 'WITHSCORES') end
local ends = {}
for i = 1, #KEYS do ends[i] = redis.call('PEXPIRETIME', KEYS[i]) end
found[#KEYS + 1] = ends
return found
"""



class Move(NamedTuple):
    command: Command
    now: int
    deaf: frozenset[str] = frozenset()  # ears at which nobody listens
    short: bool = False  # as a client that takes the short cut first


class Differs(Exception):
    """The two do not agree."""


def replaced(text: str, words: str, others: str) -> str:
    times = text.count(words)
    if times != 1:
        raise LookupError(f"these words occur {times} times in the script, not once:\n{words}")
    return text.replace(words, others)


class Scripts(NamedTuple):
    enter: Script
    leave: Script
    step: Script
    many: Script  # no more than the frame


TRUE = Scripts(ENTER, LEAVE, STEP, load("many.lua"))


def hooked(name: str = "", words: str = "", others: str = "") -> Scripts:
    """The scripts with time and listeners as arguments; in the one with this name, other words instead of these."""
    found = {}
    for each, hooks in HOOKS.items():
        text: str = getattr(TRUE, each).text
        if each == name:
            text = replaced(text, words, others)
        for hook in hooks:
            text = replaced(text, *hook)
        found[each] = script(text)
    return Scripts(**found)


class Pure(NamedTuple):
    """What the rules say about one move."""

    before: Record
    after: Record
    reply: Reply
    wakes: list[Wake]


def pure(record: Record, move: Move) -> Pure:
    everybody: list[Entrant | Enter] = [*record.inside, *record.line]
    if isinstance(move.command, Enter):
        everybody.append(move.command)
    deaf = {e.ticket for e in everybody if e.ear and e.ear in move.deaf}
    after, reply, wakes = apply(record, move.command, move.now, deaf)
    return Pure(record, after, reply, [wake for wake in wakes if wake.ear])


def is_short(record: Record, move: Move) -> bool:
    """Whether the short cut must do. It has no rules of its own, so this is all there is to say about it."""
    c = move.command
    if record.line or record.graves or not move.short:
        return False
    if isinstance(c, Enter):
        return not record.inside and not (record.fixed and c.capacity != record.capacity)
    if isinstance(c, Leave) and len(record.inside) == 1:
        e = record.inside[0]
        same = c.fence is None or e.fence <= c.fence < e.fence + e.block
        return e.ticket == c.ticket and e.expires > move.now and same
    return False


class Both:
    def __init__(self, server: Redis, scripts: Scripts, by_many: bool = False) -> None:
        """by_many: the short cuts go by the scripts for many doors, with two others beside the one that counts."""
        self._server = server
        self._enter, self._leave, self._step, frame = scripts
        self._by_many = by_many
        if by_many:
            self._enter, self._leave = many(self._enter, frame.text), many(self._leave, frame.text)
            server.set(STRANGE, "of another type")
        self._count = 0
        for text in (self._enter.text, self._leave.text, self._step.text, LOOK.text):
            server.script_load(text)
        self._bare = script(BARE)
        server.script_load(BARE)
        self._listener: Any = server.connection_pool.make_connection()
        self._listener.connect()
        self._listener.send_command("PSUBSCRIBE", EARS + "*")
        self._listener.read_response(push_request=True)

    def close(self) -> None:
        self._listener.disconnect()

    def live(self, life: list[Move]) -> None:
        """Play these moves on an empty door. Raises Differs at the first that the two see differently."""
        self._count += 1
        keys = layout.keys("", f"life {self._count}")
        thought, record = [], EMPTY
        with self._server.pipeline(transaction=False) as pipe:
            for number, move in enumerate(life):
                thought.append(pure(record, move))
                self._send(pipe, keys, move, is_short(record, move))
                pipe.evalsha(LOOK.sha, len(keys), *keys)
                pipe.evalsha(self._bare.sha, len(keys), *keys)
                pipe.publish(EARS + MARK, number)
                record = thought[-1].after
            pipe.unlink(*keys, beside(keys))
            answers = iter(pipe.execute(raise_on_error=False))
        wakes = self._hear(len(life))
        for move, should, heard in zip(life, thought, wakes, strict=True):
            try:
                self._compare(move, should, heard, answers)
            except (AssertionError, ResponseError) as error:
                said = f"{error}\n{move}\nbefore {should.before}\nafter  {should.after}\npure   {should[2:]}"
                raise Differs(said) from error

    def _send(self, pipe: Any, keys: list[str], move: Move, short: bool) -> None:
        c = move.command
        inputs = (move.now, f" {' '.join(sorted(move.deaf))} ")
        if move.short and isinstance(c, Enter | Leave):
            sha = self._enter.sha if isinstance(c, Enter) else self._leave.sha
            words = short_words(c)
            if self._by_many:
                own = 1 if isinstance(c, Enter) else 2
                other = (layout.head(b"somebody else"), "")
                each = [one for word, its in zip(words[:own], other, strict=False) for one in (its, word, its)]
                pipe.evalsha(sha, 3, STRANGE, keys[0], beside(keys), own, *each, *words[own:], *inputs)
            else:
                pipe.evalsha(sha, 1, keys[0], *words, *inputs)
        if not short:
            pipe.evalsha(self._step.sha, len(keys), *keys, EARS, *layout.words(c), *inputs)

    def _compare(self, move: Move, should: Pure, heard: list[Wake], answers: Iterator[Any]) -> None:
        c = move.command
        is_quick = is_short(should.before, move)
        if move.short:
            said = good(next(answers))
            if self._by_many:
                strange, said, other = said
                assert isinstance(strange, ResponseError), strange
                good(other)
            assert (said is not None) == is_quick, f"the short cut says {said}"
        if is_quick:
            reply: Reply = Admitted(int(said), c.lease) if isinstance(c, Enter) else Left(said == 1)
        else:
            *words, quick = good(next(answers))
            reply = layout.reply(words)
            alone = len(should.after.inside) < 2 and not should.after.line and not should.after.graves
            assert quick == (b"1" if alone else b"0"), f"the short cut will do next: {quick}"
        assert reply == should.reply, f"replied {reply}"
        assert heard == should.wakes, f"woke {heard}"
        found, _ = layout.record(good(next(answers)))
        after = should.after
        after = after._replace(graves=tuple(sorted(after.graves)))
        found = found._replace(graves=tuple(sorted(found.graves)))
        if not (after.inside or after.line or after.graves):
            found = found._replace(seen=after.seen)  # nothing left whose time could be cut
        assert found == after, f"found {found}"
        check_keys(after, good(next(answers)))
        next(answers)

    def _hear(self, moves: int) -> list[list[Wake]]:
        """The wake-ups between the marks."""
        found: list[list[Wake]] = []
        wakes: list[Wake] = []
        while len(found) < moves:
            *_, channel, text = self._listener.read_response(push_request=True)
            ear = channel.decode().removeprefix(EARS)
            if ear == MARK:
                found.append(wakes)
                wakes = []
            else:
                ticket, place, fence = text.decode().split()
                wakes.append(Wake(ear, ticket, int(place), int(fence)))
        return found


def beside(keys: list[str]) -> str:
    """Another door, which is asked for in the same script."""
    return keys[0] + " beside"


def short_words(c: Enter | Leave) -> tuple[object, ...]:
    """What the short cut gets of this command."""
    head = layout.head(c.ticket.encode())
    if isinstance(c, Leave):
        return head, "" if c.fence is None else c.fence
    return head, layout.tail(c), c.capacity, c.lease, max(c.block, 1) if c.weight == c.capacity else 1


def good(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


def check_keys(record: Record, bare: list[Any]) -> None:
    """The keys are exactly what the head of record.lua says, and all of them last long enough."""
    flat, line, due, room, unsure, graves, ends = bare
    door = {field.decode(): value for field, value in zip(flat[::2], flat[1::2], strict=True)}
    several = record.inside if len(record.inside) > 1 else ()
    assert scores(due) == {e.ticket: e.expires for e in record.line}
    assert list(scores(line)) == [e.ticket for e in record.line]
    assert scores(room) == {e.ticket: e.expires for e in several}
    assert scores(unsure) == {e.ticket: e.expires for e in several if not e.sure}
    assert scores(graves) == {g.ticket: g.until for g in record.graves}
    use = ("l" if record.line else "") + ("r" if several else "") + ("g" if record.graves else "")
    assert door.get("g", b"") == use.encode(), door
    assert ("a" in door) == bool(record.inside or use), door
    assert (door.get("a", b"")[:2] == b"\x9f\x01") == (len(record.inside) == 1 and not use), door
    assert bool(door.get("a")) == (len(record.inside) == 1), door
    assert not several or int(door["u"]) == sum(e.weight for e in several), door
    assert not several or int(door.get("k", 0)) == sum(not e.ear for e in several), door
    entrants = {":" + e.ticket for e in (*several, *record.line)}
    assert {field for field in door if len(field) > 1} == entrants | {"#" + g.ticket for g in record.graves}
    furthest = [e.expires for e in (*record.inside, *record.line)] + [g.until for g in record.graves]
    idle = layout.IDLE_IF_FIXED if record.fixed else layout.IDLE
    assert int(door["h"]) >= max([record.fence, *furthest]), door
    assert {end for end in ends if end != -2} == {(int(door["h"]) + idle // 2) // 1000}, (ends, door)


def scores(flat: list[bytes]) -> dict[str, int]:
    return {name.decode(): int(float(score)) for name, score in zip(flat[::2], flat[1::2], strict=True)}
