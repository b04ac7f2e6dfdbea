"""The Lua and the pure rules side by side: the same moves for both, and every difference is an error.

The time and the unreachable listeners are inputs here, so the scripts get them as their last two arguments. For that
places in their texts are replaced (HOOKS), each of which occurs exactly once: production pays nothing for it, and a
change of the text fails loudly.

A history is computed with the pure rules first, because moves depend on earlier ones (whose fence, which ticket). Then
all of it goes to the server in one write: for each move the step, the state as `look` reads it, the bare keys, and a
mark for the listener, which receives the wake-ups between the marks.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from redis import Redis
from redis.exceptions import ResponseError

from fairlock.rules.locks import (
    ASKED,
    EMPTY,
    Acquire,
    Command,
    Entry,
    Granted,
    LockState,
    Release,
    Released,
    Reply,
    Wakeup,
    apply,
)
from fairlock.stores.redis import encoding
from fairlock.stores.redis.lua_scripts import (
    READ_STATE,
    STEP_FILES,
    Script,
    fold,
    make_batch,
    put_fast_paths,
    read,
    script,
)

CHANNELS = encoding.LISTENERS
HANDED_OVER = 2
MARK = "mark"  # a listener that no ticket has
STRANGE = "strange"  # a key of another type

TIME = "call('TIME')", "{0, ARGV[#ARGV - 1]}"
SUBSCRIBERS = (
    "call('PUBSUB', 'NUMSUB', LISTENERS .. listener)[2]",
    "string.find(ARGV[#ARGV], ' ' .. listener .. ' ', 1, true) and 0 or 1",
)
SUBSCRIBERS_OF_ONE = "call('PUBSUB', 'NUMSUB', channel)[2]", f"({SUBSCRIBERS[1]})"
HOOKS: dict[str, tuple[tuple[str, str], ...]] = {
    "fast_acquire": (TIME,), "fast_release": (TIME, SUBSCRIBERS_OF_ONE), "step": (TIME, SUBSCRIBERS), "batch": (),
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
    unreachable: frozenset[str] = frozenset()  # listeners at which nobody listens
    short: bool = False  # as a client that takes the short cut first


class Differs(Exception):
    """The two do not agree."""


class Mistyped(Exception):
    """The script uses a name that does not exist."""


def difference(error: Exception, said: str) -> Exception:
    """Return what the two do not agree on. A name that does not exist is a typo in a mutant, and no catch."""
    return Mistyped(said) if "nonexistent global variable" in str(error) else Differs(said)


def replaced(text: str, words: str, others: str) -> str:
    times = text.count(words)
    if times != 1:
        raise LookupError(f"these words occur {times} times in the script, not once:\n{words}")
    return text.replace(words, others)


class Scripts(NamedTuple):
    fast_acquire: Script
    fast_release: Script
    step: Script
    batch: Script  # no more than the frame


SOURCES = {
    "fast_acquire": read("fast_acquire.lua"), "fast_release": read("fast_release.lua"),
    "batch": read("batch_fast_steps.lua"), "step": read(*STEP_FILES),
}  # fmt: skip


def hooked(name: str = "", words: str = "", others: str = "") -> Scripts:
    """The scripts with time and listeners as arguments; in the one with this name, other words instead of these.

    The step contains parts of the two fast scripts, so a mistake in one of these is in the step, too.
    """
    texts = {}
    for each, hooks in HOOKS.items():
        text = SOURCES[each]
        if each == name:
            text = replaced(text, words, others)
        for hook in hooks:
            text = replaced(text, *hook)
        texts[each] = text
    texts["step"] = put_fast_paths(texts["step"], texts["fast_acquire"], texts["fast_release"])
    return Scripts(**{each: script(fold(text)) for each, text in texts.items()})


class Pure(NamedTuple):
    """What the rules say about one move."""

    before: LockState
    after: LockState
    reply: Reply
    wakes: list[Wakeup]


def pure(record: LockState, move: Move) -> Pure:
    everybody: list[Entry | Acquire] = [*record.holders, *record.queue]
    if isinstance(move.command, Acquire):
        everybody.append(move.command)
    unreachable = {e.ticket for e in everybody if e.listener and e.listener in move.unreachable}
    after, reply, wakes = apply(record, move.command, move.now, unreachable)
    return Pure(record, after, reply, [wake for wake in wakes if wake.listener])


def is_short(record: LockState, move: Move) -> bool:
    """Return True if the fast path must succeed. It has no rules of its own, so this describes it completely."""
    c = move.command
    if record.queue or record.tombstones or not move.short:
        return False
    if isinstance(c, Acquire):
        return not record.holders and not (record.fixed and c.capacity != record.capacity)
    if isinstance(c, Release) and len(record.holders) == 1:
        e = record.holders[0]
        same = c.fence is None or e.fence <= c.fence < e.fence + e.block
        return e.ticket == c.ticket and e.expires > move.now and same
    return False


class Both:
    def __init__(self, server: Redis, scripts: Scripts, in_batches: bool = False) -> None:
        """in_batches: the short cuts go by the scripts for many doors, with two others beside the one that counts."""
        self._server = server
        self._acquire, self._release, self._step, frame = scripts
        self._in_batches = in_batches
        if in_batches:
            self._acquire, self._release = make_batch(self._acquire, frame.text), make_batch(self._release, frame.text)
            server.set(STRANGE, "of another type")
        self._count = 0
        self.met: Counter[str] = Counter()  # the kinds of replies of the step
        for text in (self._acquire.text, self._release.text, self._step.text, READ_STATE.text):
            server.script_load(text)
        self._bare = script(BARE)
        server.script_load(BARE)
        self._listener: Any = server.connection_pool.make_connection()
        self._listener.connect()
        self._listener.send_command("PSUBSCRIBE", CHANNELS + "*")
        self._listener.read_response(push_request=True)

    def close(self) -> None:
        self._listener.disconnect()

    def play(self, history: list[Move]) -> None:
        """Play these moves on an empty door. Raises Differs at the first that the two see differently."""
        self._count += 1
        keys = encoding.keys("", f"history {self._count}")
        thought, record = [], EMPTY
        with self._server.pipeline(transaction=False) as pipe:
            for number, move in enumerate(history):
                thought.append(pure(record, move))
                self._send(pipe, keys, move, is_short(record, move))
                pipe.evalsha(READ_STATE.sha, len(keys), *keys)
                pipe.evalsha(self._bare.sha, len(keys), *keys)
                pipe.publish(CHANNELS + MARK, number)
                record = thought[-1].after
            pipe.unlink(*keys, beside(keys))
            answers = iter(pipe.execute(raise_on_error=False))
        wakes = self._hear(len(history))
        for move, should, heard in zip(history, thought, wakes, strict=True):
            try:
                self._compare(move, should, heard, answers)
            except (AssertionError, ResponseError, TypeError, ValueError, struct.error) as error:
                said = f"{error}\n{move}\nbefore {should.before}\nafter  {should.after}\npure   {should[2:]}"
                raise difference(error, said) from error

    def _send(self, pipe: Any, keys: list[str], move: Move, short: bool) -> None:
        c = move.command
        inputs = (move.now, f" {' '.join(sorted(move.unreachable))} ")
        if move.short and isinstance(c, Acquire | Release):
            sha = self._acquire.sha if isinstance(c, Acquire) else self._release.sha
            words = encoding.fast_args(c)
            if self._in_batches:
                own = 1 if isinstance(c, Acquire) else 2
                other = (encoding.sized(b"somebody else"), "")
                each = [one for word, its in zip(words[:own], other, strict=False) for one in (its, word, its)]
                pipe.evalsha(sha, 3, STRANGE, keys[0], beside(keys), own, *each, *words[own:], *inputs)
            else:
                pipe.evalsha(sha, 1, keys[0], *words, *inputs)
        if not short:
            pipe.evalsha(self._step.sha, len(keys), *keys, *encoding.message_args(c), *inputs)

    def _compare(self, move: Move, should: Pure, heard: list[Wakeup], answers: Iterator[Any]) -> None:
        c = move.command
        is_quick = is_short(should.before, move)
        if move.short:
            said = good(next(answers))
            if self._in_batches:
                strange, said, other = said
                assert isinstance(strange, ResponseError), strange
                good(other)
            assert (said is not None) == is_quick, f"the short cut says {said}"
        if is_quick:
            reply: Reply = Granted(int(said), c.lease) if isinstance(c, Acquire) else Released(said == 1)
        else:
            raw = good(next(answers))
            reply, contended = encoding.decode_step(raw, c)
            self.met[kind_of(raw, c)] += 1
            alone = len(should.after.holders) < 2 and not should.after.queue and not should.after.tombstones
            assert contended is not alone or raw == HANDED_OVER, f"the short cut will do next: {not contended}"
        assert reply == should.reply, f"replied {reply}"
        assert heard == should.wakes, f"woke {heard}"
        found, _ = encoding.decode_state(good(next(answers)))
        after = should.after
        after = after._replace(tombstones=tuple(sorted(after.tombstones)))
        found = found._replace(tombstones=tuple(sorted(found.tombstones)))
        if not (after.holders or after.queue or after.tombstones):
            found = found._replace(seen=after.seen)  # nothing left whose time could be cut
        assert found == after, f"found {found}"
        check_keys(after, good(next(answers)))
        next(answers)

    def _hear(self, moves: int) -> list[list[Wakeup]]:
        """The wake-ups between the marks."""
        found: list[list[Wakeup]] = []
        wakes: list[Wakeup] = []
        while len(found) < moves:
            *_, channel, text = self._listener.read_response(push_request=True)
            listener = channel.decode().removeprefix(CHANNELS)
            if listener == MARK:
                found.append(wakes)
                wakes = []
            else:
                ticket, place, fence = text.decode().split()
                wakes.append(Wakeup(listener, ticket, int(place), int(fence)))
        return found


def kind_of(raw: Any, command: Command) -> str:
    """Name the part of the step that made this reply."""
    if isinstance(raw, int):
        return "handed over" if raw == HANDED_OVER else f"{type(command).__name__} alone"
    return "joined" if isinstance(raw[0], int) else "full"


def beside(keys: list[str]) -> str:
    """Another door, which is asked for in the same script."""
    return keys[0] + " beside"


def good(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


def check_keys(record: LockState, bare: list[Any]) -> None:
    """The keys are exactly what the head of step_1_read.lua says, and all of them last long enough."""
    flat, queue, holders, unconfirmed, tombstones, ends = bare
    lock = {field.decode(): value for field, value in zip(flat[::2], flat[1::2], strict=True)}
    several = record.holders if len(record.holders) > 1 else ()
    waiting = scores(queue)
    size = len(record.queue)
    assert len(waiting) == 3 * size
    entries, tickets, expiries = (list(waiting)[n * size : (n + 1) * size] for n in range(3))
    assert tickets == ["t" + e.ticket for e in record.queue], tickets
    assert [waiting[name] - 2 * 10**15 for name in tickets] == [waiting[name] for name in entries]
    assert {name[1:]: waiting[name] - 4 * 10**15 for name in expiries} == {e.ticket: e.expires for e in record.queue}
    assert all(name[0] == "x" for name in expiries)
    assert scores(holders) == {e.ticket: e.expires for e in several}
    assert scores(unconfirmed) == {e.ticket: e.expires for e in several if not e.confirmed}
    assert scores(tombstones) == {g.ticket: g.until for g in record.tombstones}
    use = bool(record.queue or several or record.tombstones)
    assert ("a" in lock) == bool(record.holders or use), lock
    assert (lock.get("a", b"")[:1] == b"1") == (len(record.holders) == 1 and not use), lock
    assert bool(lock.get("a")) == (len(record.holders) == 1), lock
    fields = {":" + e.ticket for e in several} | {"#" + g.ticket for g in record.tombstones}
    assert set(lock) - {"a", "n"} == fields
    numbers = lock["n"]
    assert numbers[:2] == (b"3!" if record.fixed else b"3."), numbers
    found = list(map(int, struct.unpack("<11d", numbers[2:])))
    fence, _, place, waiters, head, earliest, capacity, horizon, used, detached, tombstones = found
    assert (fence, max(place, 0), waiters, capacity, tombstones) == (
        record.fence, record.places, size, record.capacity, len(record.tombstones)
    )  # fmt: skip
    assert head == (record.queue[0].expires if size else 0), found
    assert earliest <= min([e.expires for e in record.queue], default=0) and bool(earliest) == bool(size), found
    assert used == sum(e.weight for e in several), found
    assert detached == sum(not e.listener for e in several), found
    furthest = [e.expires for e in (*record.holders, *record.queue)]
    furthest += [g.until for g in record.tombstones if g.why.kind != ASKED]  # a request ends with its holder
    idle = encoding.IDLE_IF_FIXED if record.fixed else encoding.IDLE
    assert horizon >= max([record.fence, *furthest]), found
    assert {end for end in ends if end != -2} == {(horizon + idle // 2) // 1000}, (ends, found)


def scores(flat: list[bytes]) -> dict[str, int]:
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return {name.decode("utf-8", "surrogateescape"): int(float(score)) for name, score in pairs}
