"""One engine for every store that can compare and swap a row.

A step is: take the record (from the last answer if that is young enough, else read it), apply the pure rules, write the
result on condition that the version is still the same. A conflict brings what is there now, and the step is made again
from that. Nothing else is needed for atomicity: no transaction, no session, no lock of the store.

- Where the store reads and writes without waiting (`get`, `put`), most steps are plain calls: `at_once`.
- An optimistic step may only *change* something. "Refused", "not inside" and "still waiting" are said only after a
  fresh read, for they change nothing that a version check could contradict.
- After an unknown outcome the same command is applied to a settled read: the ticket tells whether it had worked. The
  wake-ups of the lost write may not have been sent, so every unsure insider is woken again.
- Where a step takes long, those of one client at one row are made together: `turns`.
- Who is dead or deaf is asked only where it matters: those whom a step would admit, and those it would wait for.
"""

import os
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import TYPE_CHECKING, TypeVar

from ..doorman import EMPTY, Command, Enter, Leave, Record, Refused, Reply, Waiting, Wake, apply, wire
from ..errors import BackendError, RecordDamaged
from .contract import NEVER, Answer, Colour, Pushed, Row, Seen, Store, Unknown, Written, unanswered
from .damage import damaged, fence_after
from .names import SEPARATOR, glob
from .patience import over
from .turns import Turn, Turns, served

if TYPE_CHECKING:
    from .cas_pool import CasPools

CONFLICTS = 400  # more in a row than any real crowd causes: something else is wrong
SETTLES = 3
TRIES = 3  # of a step that is made at once
WAYS = 4  # one that gives way pauses for this many times a write at most, and as many more with each conflict
GIVES_WAY = 1.0  # seconds for which it does so, all in all: beside those that never do it would starve
NEAR = 2  # places in the queue whose owners give way to nobody: they may be let in at any moment
CACHED = 1024  # names whose last record is remembered

T = TypeVar("T")

_NOBODY: frozenset[str] = frozenset()
_RESTS_ON_OTHERS = frozenset((Waiting, Refused))
_Known = tuple[Record, int | str | None, float]
"""A record as this client last saw it, its version, and when that was."""
_Start = tuple[_Known, int, float]
"""What a step starts from: that, the store's time, and the client's before it was sampled."""


class CasBackend:
    doubles = False

    def __init__(self, store: Store, colour: Colour, namespace: str = "") -> None:
        self.store = store
        self.colour = colour
        self.prefix = namespace + SEPARATOR if namespace else ""
        self._cache: dict[str, _Known] = {}
        self._get: Callable[[str], Seen | None] | None = getattr(store, "get", None)
        self._put: Callable[..., int | str | Seen | None] | None = getattr(store, "put", None)
        self._hinted: Callable[[Iterable[str]], Collection[str]] | None = getattr(store, "hinted", None)
        self._attend: Callable[[], Awaitable[float]] | None = getattr(store, "attend", None)
        self.glance: float = getattr(store, "glance", 1.0)
        self._shown_by_hint: Callable[[str], Seen | None] | None = getattr(store, "shown", None)
        self.pushes_grants: bool = getattr(store, "pushes_grants", False)
        self._checks_time: bool = getattr(store, "checks_time", True)
        self._gives_way: bool = getattr(store, "gives_way", False)
        self._tells_holders: bool = getattr(store, "tells_holders", False)
        self._doubts: set[str] = set()  # keys with a write of ours of which nobody knows whether it was done
        self.conflicts = 0
        self._pools: CasPools | None = None
        self._turns = Turns(colour) if getattr(store, "gathers", False) else None

    @property
    def pools(self) -> "CasPools | None":
        """None if this store keeps none."""
        if self._pools is None:
            from .cas_pool import pools_of

            self._pools = pools_of(self.store, self.colour, self.prefix)
        return self._pools

    @property
    def where(self) -> str:
        return self.store.where

    @property
    def span(self) -> str:
        return self.store.span

    @property
    def ear(self) -> str:
        return self.store.ear

    @property
    def skew(self) -> float:
        return self.store.skew

    # -- one step

    def at_once(self, name: str, command: Command) -> Answer | None:
        if self._get is None or self._put is None:
            return None
        key = self.prefix + name
        turns = self._turns
        if turns is None:
            return self._at_once(key, command)
        if not turns.begin(key):
            return None  # another one of this client is at it, and takes this one along
        try:
            return self._at_once(key, command)
        finally:
            turns.end(key)

    def _at_once(self, key: str, command: Command) -> Answer | None:
        assert self._get is not None and self._put is not None
        start, fresh = self._recall(key), False
        for _ in range(TRIES):
            if start is None:
                seen = self._get(key) if key not in self._doubts else None
                if seen is None:
                    return None
                start, fresh = (self._know(seen), seen.now, seen.at), True
            (before, version, _), now, at = start
            record, reply, woken = self._step(before, command, now)
            if not _same(record, before):
                if version is None:
                    return None
                body = wire.encode(record)
                if self._tells_holders and record.line:
                    woken = _and_the_holder(before, record, woken)
                try:
                    said = self._put(key, record.fence, wire.owners(record), body, version, woken, at, now)
                except BaseException:
                    self._doubt(key)
                    raise
                if said is not None and not isinstance(said, Seen):
                    self._cache[key] = (record, said, at)
                    return Answer(reply, at)
                self.conflicts += 1
                if said is not None and said.version != version:
                    start, fresh = (self._know(said), said.now, said.at), True
                    continue
            elif fresh:
                self._remember(key, start[0])
                return Answer(reply, at)
            start = None
        return None

    async def ask(self, name: str, command: Command) -> Answer:
        key = self.prefix + name
        turn = Turn(command)
        turns = self._turns
        if turns is None:
            await self._make(key, [turn])
        elif await turns.wait(key, turn):
            batch = [turn]
            try:
                await self._make(key, batch)
            except BaseException as error:
                turns.failed(batch, error)
                raise
            finally:
                turns.end(key)
        if turn.error is not None:
            raise turn.error
        assert turn.answer is not None
        return turn.answer

    async def _make(self, key: str, batch: list[Turn]) -> None:
        """Make the steps of these, and of those who join them meanwhile, with one write; each has its answer then."""
        store, turns = self.store, self._turns
        settle = key in self._doubts
        start = self._recall(key)
        fresh = False
        conflicts = settles = 0
        patient_until = self.colour.clock() + GIVES_WAY if self._gives_way else 0.0
        while True:
            if turns is not None and turns.join(key, batch):
                fresh = False  # what was read before they came says nothing about their moment
            if start is None:
                seen = await store.read(key, settle)
                start, fresh = (self._know(seen), seen.now, seen.at), True
                if settle:
                    await self._wake_unsure(start[0][0])
                    self._doubts.discard(key)
            (before, version, _), now, at = start
            record, replies, woken = self._steps(before, batch, now)
            if _same(record, before) and not (settle and any(isinstance(t.command, Leave) for t in batch)):
                if not fresh:
                    start = None
                    continue
                self._remember(key, start[0])
                _answer(batch, replies, at)
                return
            row = Row(key, record.fence, wire.owners(record), wire.encode(record))
            if self._tells_holders and record.line:
                woken = _and_the_holder(before, record, woken)
            sent = self.colour.clock()
            try:
                result = await store.write(row, version, now, woken)
            except Unknown:
                self._doubt(key)
                settles += 1
                if settles > SETTLES or over():
                    raise
                start, settle = None, True
                for turn in batch:
                    turn.again = True
                continue
            except BaseException:
                self._doubt(key)
                raise
            if isinstance(result, Written):
                self._remember(key, (record, result.version, result.at))
                _answer(batch, replies, at)
                return
            conflicts += 1
            self.conflicts += 1
            if conflicts > CONFLICTS:
                raise BackendError(
                    f"{key.removeprefix(self.prefix)!r} changed {CONFLICTS} times while one step was tried. "
                    "Spread the work over more names, or use a store with a server."
                )
            stale = result.version == version  # refused for its time, or an old row shown: read again
            known = self._know(result)
            pause = min(0.0001 * conflicts, 0.002) if conflicts > 3 else 0.0
            if self._gives_way and _crowd(before, known[0], result, stale) and _can_wait(batch, known[0]):
                # Of all that try again at once but one fails. As long as nobody is in the queue there is no choice: a
                # client that is quick enough is in and out in the meantime, and one that pauses never gets a turn.
                clock = self.colour.clock()
                pause = max(pause, min((clock - sent) * WAYS * conflicts, patient_until - clock))
            if pause:
                await self._rest(key, int.from_bytes(os.urandom(2)) / 65536 * pause, known[0])
                stale = True  # what was shown before the pause would only conflict again
            start, fresh = None if stale else (known, result.now, result.at), True

    async def _rest(self, key: str, seconds: float, record: Record) -> None:
        """Pause, but not while one of this client waits behind that has a place already: it keeps others waiting."""
        if self._turns is None:
            await self.colour.sleep(seconds)
        else:
            await self._turns.rest(key, seconds, lambda turn: _has_a_place(turn, record))

    def _steps(self, record: Record, batch: list[Turn], now: int) -> tuple[Record, list[Reply], tuple[Wake, ...]]:
        """One after the other, all at the same time of the store."""
        if len(batch) == 1:
            record, reply, woken = self._step(record, batch[0].command, now)
            return record, [reply], woken
        replies = []
        all_woken: list[Wake] = []
        for turn in batch:
            record, reply, woken = self._step(record, turn.command, now)
            replies.append(reply)
            all_woken += woken
        return record, replies, tuple(all_woken)

    def _recall(self, key: str) -> _Start | None:
        """What an optimistic step can start from: what is known of this one, if that is good enough, and a time.

        From now on it is known no more: whatever becomes of the step, only its end tells what is there.
        """
        known = self._cache.pop(key, None)
        if self._shown_by_hint is not None:
            known = self._shown_since(key, known)
        if known is None or key in self._doubts:
            return None
        sample = self.store.now()
        if sample is None or sample[1] - known[2] > self.store.trust or sample[0] < known[0].seen:
            return None
        if not self._checks_time and lapsed(known[0], sample[0]):
            return None  # somebody would be dropped by a time that no write checks: ask for it
        return known, sample[0], sample[1]

    def _step(self, record: Record, command: Command, now: int) -> tuple[Record, Reply, tuple[Wake, ...]]:
        """Apply the rules, asking about life and hearing only for those who decide the outcome."""
        outcome = apply(record, command, now)
        if not outcome[2]:
            said = type(outcome[1])
            if said not in _RESTS_ON_OTHERS or (said is Waiting and outcome[0].places != record.places):
                return outcome  # nobody else had a part in it; or it has just come, and now watches those ahead
        deaf = dead = _NOBODY
        asked: set[str] = {"", self.store.ear}
        while True:
            ears = {e for e in _decisive(*outcome) if e not in asked}
            if not ears:
                return outcome
            asked |= ears
            no_one_listens, gone = self.store.silent(ears)
            if not no_one_listens and not gone:
                return outcome
            everyone = [*record.inside, *record.line]
            deaf |= {e.ticket for e in everyone if e.ear in no_one_listens}
            dead |= {e.ticket for e in everyone if e.ear in gone}
            outcome = apply(record, command, now, deaf, dead)

    def _know(self, seen: Seen) -> _Known:
        if seen.row is None:
            return EMPTY, seen.version, seen.at
        try:
            if seen.version is None:
                raise ValueError("it has no version")
            return wire.decode(seen.row.body), seen.version, seen.at
        except ValueError as bad:
            raise damaged(seen.row.key.removeprefix(self.prefix), self.where, bad) from None

    def _shown_since(self, key: str, known: _Known | None) -> _Known | None:
        """What was read on a hint since this was known."""
        assert self._shown_by_hint is not None
        shown = self._shown_by_hint(key)
        if shown is None or (known is not None and shown.at < known[2]):
            return known
        return self._know(shown)

    def _doubt(self, key: str) -> None:
        self._cache.pop(key, None)
        self._doubts.add(key)

    def _remember(self, key: str, known: _Known) -> None:
        if len(self._cache) >= CACHED and key not in self._cache:
            self._cache.clear()
        self._cache[key] = known

    async def _wake_unsure(self, record: Record) -> None:
        woken = [Wake(e.ear, e.ticket, e.place, e.fence) for e in record.inside if not e.sure and e.ear]
        if woken:
            try:
                await self.store.wake(woken)
            except (Unknown, BackendError):
                pass  # they look for themselves before long

    # -- waiting and looking

    async def changed(self, name: str, ticket: str, timeout: float) -> Pushed | None:
        key = self.prefix + name
        known = self._cache.get(key)
        ears: set[str] = set()
        if known is not None:
            record = known[0]
            ears = {e.ear for e in (*record.inside[:8], *record.line[:1]) if e.ear and e.ticket != ticket}
        pushed = await self.store.changed(key, ticket, timeout, ears)
        if pushed is not None:
            self._cache.pop(key, None)  # somebody else has written: what is remembered would only conflict
            shown = self._shown_since(key, None) if self._shown_by_hint is not None else None
            if shown is not None:
                self._remember(key, shown)
            if pushed.fence and not pushed.until and self.pushes_grants:
                return await self._granted(key, pushed)
        return pushed

    async def _granted(self, key: str, pushed: Pushed) -> Pushed:
        """A push names a grant; only the row proves it, because anybody that reaches the socket can send one.

        The read is not lost: a release that follows within `trust` writes from it.
        """
        seen = self._get(key) if self._get is not None else None
        if seen is None:
            seen = await self._shown(self.store.read(key))
        known = self._know(seen)
        self._remember(key, known)
        seat = known[0].seat(pushed.ticket)
        if seat is None or seat.sure or (seat.place, seat.fence) != (pushed.place, pushed.fence):
            return Pushed(pushed.ticket)
        return pushed._replace(until=seen.at + (seat.expires - seen.now) / 1e6)

    def notify_reset(self, call: Callable[[], None]) -> None:
        notify: Callable[[Callable[[], None]], None] | None = getattr(self.store, "notify_reset", None)
        if notify is not None:
            notify(call)

    def wake_here(self, tickets: Collection[str]) -> None:
        self.store.wake_here(tickets)

    def hinted(self, tickets: Iterable[str]) -> Collection[str]:
        return self._hinted(tickets) if self._hinted is not None else ()

    async def attend(self, locks: Collection[str], pools: Collection[str]) -> float:
        if self._attend is not None:
            return await self._attend()
        return 0.0 if self._hinted is not None and self.store.ear else NEVER

    async def look(self, name: str) -> tuple[Record, int]:
        seen = await self._shown(self.store.read(self.prefix + name))
        return self._living(self._know(seen)[0]), seen.now

    async def looks(self, pattern: str) -> tuple[list[tuple[str, Record | RecordDamaged]], int]:
        matches = glob(pattern)
        found: list[tuple[str, Record | RecordDamaged]] = []
        now = 0
        for seen in await self._shown(self.store.scan(self.prefix)):
            now = seen.now
            name = seen.row.key[len(self.prefix) :] if seen.row else SEPARATOR
            if SEPARATOR not in name and matches(name):
                try:
                    found.append((name, self._living(wire.decode(seen.row.body) if seen.row else EMPTY)))
                except ValueError as bad:
                    found.append((name, damaged(name, self.where, bad)))
        found.sort(key=lambda each: each[0])
        return found, now

    async def repair(self, name: str) -> list[str]:
        key = self.prefix + name
        done: list[str] = []
        seen = await self._shown(self.store.read(key))
        try:
            self._know(seen)
        except RecordDamaged:
            fence = fence_after(seen.row.score if seen.row is not None else 0, seen.now)
            record = EMPTY._replace(fence=fence, seen=seen.now)
            await self._replace(Row(key, fence, "", wire.encode(record)), seen)
            done.append(f"The record of {name!r} was reset; its next fence is above {fence}.")
        return done + await self.pools.repair(name) if self.pools is not None else done

    async def _replace(self, row: Row, seen: Seen) -> None:
        """Put this in the place of what was seen and cannot be read. Nobody else can write it, but may repair it."""
        self._doubt(row.key)
        replace = getattr(self.store, "replace", self.store.write)
        if not isinstance(await self._shown(replace(row, seen.version, seen.now, ())), Written):
            raise BackendError(f"{self.where}: it has changed meanwhile. Look again whether it is still damaged.")

    async def _shown(self, reading: Awaitable[T]) -> T:
        """What a read shows. Nothing of it can be in doubt: no answer is no answer."""
        try:
            return await reading
        except Unknown as doubt:
            raise unanswered(self.where, doubt) from None

    def _living(self, record: Record) -> Record:
        """Without those whose process is gone: anybody's next step would drop them, so nobody should read of them."""
        ears = {e.ear for e in (*record.inside, *record.line)} - {"", self.store.ear}
        gone = self.store.silent(ears)[1] if ears else _NOBODY
        if not gone:
            return record
        inside = tuple(e for e in record.inside if e.ear not in gone)
        return record._replace(inside=inside, line=tuple(e for e in record.line if e.ear not in gone))

    async def tidy(self) -> None:
        await self.store.tidy()

    async def ping(self) -> None:
        await self.store.ping()

    async def close(self) -> None:
        await self.store.close()

    def forked(self) -> None:
        self._cache.clear()
        self._doubts.clear()
        if self._turns is not None:
            self._turns.reset()
        self.store.forked()

    def beacon(self) -> int | None:
        return self.store.beacon()

    async def doctor(self) -> list[tuple[str, str]]:
        return await self.store.doctor()

    def schema(self) -> str:
        return self.store.schema()


def _answer(batch: list[Turn], replies: list[Reply], at: float) -> None:
    for turn, reply in zip(batch, replies, strict=True):
        turn.answer = Answer(reply, at, turn.again)
    served(batch)


def _crowd(before: Record, there: Record, shown: Seen, stale: bool) -> bool:
    """Whether a write was refused because of others, who stand in line."""
    return bool(before.line) if shown.row is None else bool(there.line) and not stale


def _can_wait(batch: list[Turn], record: Record) -> bool:
    """Whether all of these only want to come, or to keep a place far back. One that was let in, or is about to be,
    keeps the others waiting."""
    near = {e.ticket for e in (*record.inside, *record.line[:NEAR])}
    return all(type(turn.command) is Enter and turn.command.ticket not in near for turn in batch)


def _has_a_place(turn: Turn, record: Record) -> bool:
    """Whether this one is inside or in the queue. It may have been let in since: then it is there to say so."""
    known = {e.ticket for e in (*record.inside, *record.line)}
    return type(turn.command) is not Enter or turn.command.ticket in known


def _same(one: Record, other: Record) -> bool:
    """Whether nothing but the time of looking differs."""
    return one.inside == other.inside and one._replace(seen=0) == other._replace(seen=0)


def lapsed(record: Record, now: int) -> bool:
    """Whether a step at this time would drop anybody for it."""
    expiries = [e.expires for e in (*record.inside, *record.line)] + [g.until for g in record.graves]
    return bool(expiries) and min(expiries) <= now


def _decisive(record: Record, reply: Reply, woken: Iterable[Wake]) -> list[str]:
    """The ears of those on whose life this outcome rests: the admitted, and the ones directly ahead of the asker."""
    ears = [w.ear for w in woken if w.fence]
    if type(reply) in _RESTS_ON_OTHERS:
        ears += [e.ear for e in record.inside[:16]]
        ears += [e.ear for e in record.line[:1]]
    return ears


def _and_the_holder(before: Record, record: Record, woken: tuple[Wake, ...]) -> tuple[Wake, ...]:
    """Who is alone inside is shown the first who waits for it: then its leave finds what it expects."""
    if len(record.line) > 1 or before.line or len(record.inside) != 1 or not record.inside[0].ear:
        return woken
    return (*woken, Wake(record.inside[0].ear, ""))
