"""One engine for every store that can compare and swap a row.

A step is: take the record (from the last answer if that is young enough, else read it), apply the pure rules, write the
result on condition that the version is still the same. A conflict returns the current row, and the step is made again
from that. Nothing else is needed for atomicity: no transaction, no session, no lock of the store.

- Where the store reads and writes without waiting (`read_nowait`, `write_nowait`), most steps are plain calls:
  `call_nowait`.
- An optimistic step may only *change* something. "Refused", "not inside" and "still waiting" are returned only after
  a fresh read, because they change nothing that a version check could contradict.
- After an unknown outcome the same command is applied to a settled read: the ticket shows whether it had worked. The
  wake-ups of the lost write may not have been sent, so every unconfirmed holder is woken again.
- Where a step takes long, those of one client at one row are made together: `merge_concurrent_steps`.
- The store is asked about liveness only where it matters: for the clients that a step would grant the lock, and for
  those that it would wait for.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

from ..errors import LockError, RecordDamaged, StoreError
from ..rules.locks import (
    EMPTY,
    Acquire,
    Command,
    LockState,
    Queued,
    Refused,
    Release,
    Renew,
    Reply,
    Wakeup,
    apply,
    codec,
)
from ..rules.locks.encoded_queue import is_in
from .base import (
    CONFLICTS,
    NOBODY,
    Answer,
    Backend,
    OutcomeUnknown,
    PoolAnswer,
    Pushed,
    Row,
    RowLocked,
    RowSnapshot,
    RowWrite,
    Runtime,
    SeenLock,
    Store,
    StoreClient,
    Written,
    crowded,
    fill_gaps,
    replied,
)
from .damaged_records import damaged, fence_after
from .deadline import over
from .jitter import jitter
from .keys import SEPARATOR, audit_key, glob, split_key
from .merge_concurrent_steps import Turn, Turns, served
from .row_cache import CAPACITY, KnownRow, is_unused
from .wakeups import send_wakeups

if TYPE_CHECKING:
    from ..rules.locks.audit_lines import AuditLine
    from ..rules.pools import On
    from .cas_pools import CasPools

SETTLES = 3
AUDIT_TRIES = 5
TRIES = 3  # of a step that is made at once
WAYS = 4  # one that gives way pauses for this many times a write at most, and as many more with each conflict
GIVES_WAY = 1.0  # seconds for which it does so, all in all: beside those that never do it would starve
NEAR = 2  # places in the queue whose owners give way to no other: they may be granted the lock at any moment
LONG = 6  # waiters in a queue that is long: its row changes all the time, and a newcomer has time
LONG_TTL = 0.003  # seconds for which the row of a long queue is most likely the current one
# Seconds for which a newcomer waits at a long queue for another step of its client, and for each in the queue, or it
# might be empty by then. Only where a refused write does not show the row: a tenth fewer statements for each grant.
# Where it does, the row that a newcomer has just written as it released is worth more: a sixth fewer without the wait.
COMPANY, PASSES = 0.06, 0.002

_RESTS_ON_OTHERS = frozenset((Queued, Refused))
_Outcome = tuple[LockState, Reply, tuple[Wakeup, ...]]
_new = tuple.__new__  # makes a named tuple in half the time of its own constructor; every field must be given
_Start = tuple[LockState, int | str | None, int, float]
"""What a step starts from: a record, its version, the store's time, and the client's before it was sampled."""


_Write = tuple[RowWrite, LockState, list[Reply], tuple[Wakeup, ...], float]
"""One of many writes: the row, its state, the replies, the wake-ups, and the client's clock before the read."""


class CasBackend(Backend):
    def __init__(self, store: Store, runtime: Runtime, namespace: str = "") -> None:
        self.store = store
        self.where = store.where
        self.scope = store.scope
        self.skew = store.skew
        self.pushes_grants = store.pushes_grants
        self.poll_interval = store.poll_interval
        self.batch_size = store.batch_size
        self.skips_locked = store.skips_locked
        self.keeper_key = store.keeper_key
        self.runtime = runtime
        self.namespace = namespace
        self.prefix = namespace + SEPARATOR if namespace else ""
        self._rows = store.row_cache
        self._doubts: set[str] = set()  # keys with a write of ours whose outcome is unknown
        self.conflicts = 0
        self._turns = Turns(runtime) if store.shares_steps else None

    @cached_property
    def pools(self) -> "CasPools | None":
        """None if this store keeps none."""
        from .cas_pools import CasPools

        items = self.store.items
        return CasPools(self.store, items, self.runtime, self.prefix) if items is not None else None

    # -- one step

    def call_nowait(self, name: str, command: Command) -> Answer | None:
        store, turns, rows = self.store, self._turns, self._rows
        if not store.has_nowait:
            return None
        key = self.prefix + name
        if turns is not None and not turns.begin(key):
            return None  # another one of this client is at it, and takes this one along
        try:
            start, fresh = self._recall(key), False
            for _ in range(TRIES):
                if start is None:
                    seen = store.read_nowait(key) if key not in self._doubts else None
                    if seen is None:
                        return None
                    _, version, now, at = seen
                    before, fresh = self._decode(key, seen), True
                else:
                    before, version, now, at = start
                outcome = apply(before, command, now)
                if outcome[2] or type(outcome[1]) in _RESTS_ON_OTHERS:
                    outcome = self._with_liveness(before, command, now, outcome)
                record, reply, woken = outcome
                if record[5] != before[5] or record[3] != before[3] or not _same(record, before):
                    if version is None:
                        return None
                    body = codec.encode(record)
                    owner = codec.owners(record) if record[5] or record[6] else ""
                    if store.wakes_holder and record.queue:
                        woken = _and_the_holder(before, record, woken)
                    try:
                        row = _new(Row, (key, record[2], owner, body))
                        result = store.write_nowait(row, version, now, woken, at)
                    except BaseException:
                        self._doubt(key)
                        raise
                    if result is not None and not isinstance(result, RowSnapshot):
                        known = _new(KnownRow, (record, result, at, now))
                        if key in rows or len(rows) >= CAPACITY:
                            self._rows.put(key, known)
                        else:
                            rows[key] = known
                        return _new(Answer, (reply, at, False))
                    self.conflicts += 1
                    if result is not None and result.version != version:
                        start, fresh = self._start(key, result), True
                        continue
                elif fresh:
                    if before is not EMPTY or version is None:  # else the store did not show the row that it has
                        self._rows.put(key, _new(KnownRow, (before, version, at, now)))
                    return Answer(reply, at)
                start = None
            return None
        except ValueError as bad:
            if isinstance(bad, LockError):
                raise
            raise damaged(name, self.where, bad) from None  # a waiter that was not decoded before
        finally:
            if turns is not None:
                turns.end(key)

    async def call(self, name: str, command: Command) -> Answer:
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
        """Make the steps of these, and of those that join them meanwhile, with one write; each has its answer then."""
        store, turns = self.store, self._turns
        settle = key in self._doubts
        alone = turns is None or settle or key not in turns.waiters
        if not alone and store.backs_off and not store.shows_conflicts:
            await self._wait_for_company(key, batch)
        start = self._recall(key)
        fresh = False
        conflicts = settles = 0
        patient_until = self.runtime.clock() + GIVES_WAY if store.backs_off else 0.0
        while True:
            if turns is not None and turns.join(key, batch):
                fresh = False  # what was read before they came may be older than their call
            if start is None:
                seen = await store.read(key, settle)
                start, fresh = self._start(key, seen), True
                if settle:
                    await self._wake_unconfirmed(start[0])
                    self._doubts.discard(key)
            before, version, now, at = start
            record, replies, woken = self._steps(key, before, batch, now)
            if _same(record, before) and not (settle and any(isinstance(t.command, Release) for t in batch)):
                if not fresh:
                    start = None
                    continue
                _answer(batch, replies, at)
                return
            row = Row(key, record.fence, codec.owners(record), codec.encode(record))
            if store.wakes_holder and record.queue:
                woken = _and_the_holder(before, record, woken)
            sent = self.runtime.clock()
            try:
                result = await store.write(row, version, now, woken)
            except OutcomeUnknown:
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
                self._rows.put(key, KnownRow(record, result.version, result.at, result.now))
                _answer(batch, replies, at)
                return
            conflicts += 1
            self.conflicts += 1
            if conflicts > CONFLICTS:
                raise crowded(repr(key.removeprefix(self.prefix)), "names")
            stale = result.version == version  # refused for its time, or an old row shown: read again
            start = self._start(key, result)
            there = start[0]
            pause = min(0.0001 * conflicts, 0.002) if conflicts > 3 else 0.0
            if store.backs_off and _crowd(before, there, result, stale) and _can_wait(batch, there):
                # Of all that try again at once but one fails. As long as the queue is empty there is no choice: a
                # client that is quick enough is in and out in the meantime, and one that pauses never gets a turn.
                clock = self.runtime.clock()
                pause = max(pause, min((clock - sent) * WAYS * conflicts, patient_until - clock))
            if pause:
                await self._rest(key, jitter() * pause, there)
                stale = True  # what was shown before the pause would only conflict again
            start, fresh = None if stale else start, True

    async def _wait_for_company(self, key: str, batch: list[Turn]) -> None:
        """A newcomer to a long queue waits a moment for another step of its client, which is written with it."""
        known = self._rows.get(key)
        if known is None or not isinstance(record := known.state, LockState) or len(record.queue) < LONG:
            return
        if all(type(t.command) is Acquire and t.command.wait and not _has_a_place(t, record) for t in batch):
            await self._rest(key, min(COMPANY, PASSES * len(record.queue)), record)

    # -- many steps

    async def call_many(self, calls: Sequence[tuple[str, Command]]) -> list[Answer | OutcomeUnknown | LockError]:
        """Read the rows of all, make the steps, write what has changed: two requests, however many they are.

        A step that is not so simple is made by `call`: the row has changed in between, or a write of ours is in doubt.
        A store that skips locked rows makes no step that might wait for one; its wake-ups are sent after the write.
        """
        if (len(calls) == 1 or self.batch_size == 1) and not self.skips_locked:
            return await super().call_many(calls)
        by_key: dict[str, list[int]] = {}
        for number, (name, _) in enumerate(calls):
            by_key.setdefault(self.prefix + name, []).append(number)
        outcomes: list[Answer | OutcomeUnknown | LockError | None] = [None] * len(calls)
        try:
            keys = [key for key in by_key if key not in self._doubts]
            writes: list[_Write] = []
            for key, seen in zip(keys, await self.store.read_many(keys) if keys else (), strict=True):
                numbers = by_key[key]
                try:
                    if isinstance(seen, Exception):
                        raise seen
                    before, version = self._decode(key, seen), seen.version
                    turns = [Turn(calls[number][1]) for number in numbers]
                    record, replies, woken = self._steps(key, before, turns, seen.now)
                except (OutcomeUnknown, LockError) as error:
                    for number in numbers:
                        outcomes[number] = error
                    continue
                if _same(record, before):
                    for number, reply in zip(numbers, replies, strict=True):
                        outcomes[number] = Answer(reply, seen.at)
                elif version is not None and (
                    self.skips_locked or (not woken and len(record.queue) == len(before.queue))
                ):
                    row = Row(key, record.fence, codec.owners(record), codec.encode(record))
                    writes.append((RowWrite(row, version, seen.now), record, replies, woken, seen.at))
            await self._write_many(writes, by_key, outcomes)
        except (OutcomeUnknown, LockError) as error:
            return [error if outcome is None else outcome for outcome in outcomes]
        return await fill_gaps(self.call, calls, outcomes)

    async def _write_many(
        self,
        writes: list[_Write],
        by_key: dict[str, list[int]],
        outcomes: list[Answer | OutcomeUnknown | LockError | None],
    ) -> None:
        if not writes:
            return
        known = [self._rows.pop(write.row.key, None) is not None for write, *_ in writes]
        try:
            versions = await self.store.write_many([write for write, *_ in writes])
        except BaseException:
            for write, *_ in writes:
                self._doubt(write.row.key)
            raise
        all_woken: list[Wakeup] = []
        for (write, record, replies, woken, at), version, cached in zip(writes, versions, known, strict=True):
            key = write.row.key
            if version is None:
                self.conflicts += 1
                continue
            if isinstance(version, Exception):
                if not isinstance(version, RowLocked):
                    self._doubt(key)
                for number in by_key[key]:
                    outcomes[number] = version
                continue
            if cached:
                self._rows.put(key, KnownRow(record, version, at))
            for number, reply in zip(by_key[key], replies, strict=True):
                outcomes[number] = Answer(reply, at)
            all_woken += woken
        await send_wakeups(self.store, all_woken)

    async def _rest(self, key: str, seconds: float, record: LockState) -> None:
        """Pause, but not while one of this client waits behind that has a place already: it keeps others waiting."""
        if self._turns is None:
            await self.runtime.sleep(seconds)
        else:
            await self._turns.rest(key, seconds, lambda turn: _has_a_place(turn, record))

    def _steps(
        self, key: str, record: LockState, batch: list[Turn], now: int
    ) -> tuple[LockState, list[Reply], tuple[Wakeup, ...]]:
        """Apply these messages one after the other, all at the same time of the store."""
        name = key.removeprefix(self.prefix)
        if len(batch) == 1:
            record, reply, woken = self._step(name, record, batch[0].command, now)
            return record, [reply], woken
        replies = []
        all_woken: list[Wakeup] = []
        for turn in batch:
            record, reply, woken = self._step(name, record, turn.command, now)
            replies.append(reply)
            all_woken += woken
        return record, replies, tuple(all_woken)

    def _recall(self, key: str) -> _Start | None:
        """Return the start of an optimistic step: the cached record, if that is good enough, and a time.

        The record leaves the cache: however the step goes, only its end shows the current row.
        """
        known = self._rows.pop(key, None)
        if known is None or key in self._doubts:
            return None
        store = self.store
        state, version, seen_at, _ = known
        assert isinstance(state, LockState)
        if state[6] and store.reads_queues:
            return None
        sample = store.now()
        if sample is None or sample[1] - seen_at > store.cache_ttl or sample[0] < state[4]:
            return None
        if not store.shows_conflicts and sample[1] - seen_at > LONG_TTL and len(state.queue) >= LONG:
            return None  # others write here all the time: a refused write and a read would cost one request more
        if not store.checks_time and lapsed(state, sample[0]):
            return None  # an entry would be dropped by a time that no write checks: ask for it
        return state, version, sample[0], sample[1]

    def _step(self, name: str, record: LockState, command: Command, now: int) -> _Outcome:
        """Apply the rules, asking about liveness only for the clients that decide the outcome. RecordDamaged if a
        waiter that it looks at cannot be decoded."""
        try:
            outcome = apply(record, command, now)
        except ValueError as bad:
            raise damaged(name, self.where, bad) from None
        if outcome[2] or type(outcome[1]) in _RESTS_ON_OTHERS:
            outcome = self._with_liveness(record, command, now, outcome)
        return outcome

    def _with_liveness(self, record: LockState, command: Command, now: int, outcome: _Outcome) -> _Outcome:
        """Make the step again without those that are known to be dead or unreachable, if they decide its outcome."""
        woken = outcome[2]
        if type(outcome[1]) not in _RESTS_ON_OTHERS:
            if len(woken) == 1 and (listener := woken[0].listener) not in ("", self.store.listener):
                if not any(self.store.liveness((listener,))):
                    return outcome  # the usual hand-off, to one that is alive
        elif not woken and type(outcome[1]) is Queued and outcome[0].places != record.places:
            return outcome  # it has just come, and now watches those ahead
        unreachable = dead = NOBODY
        asked: set[str] = {"", self.store.listener}
        while True:
            listeners = {e for e in _decisive(*outcome) if e not in asked}
            if not listeners:
                return outcome
            asked |= listeners
            no_one_listens, gone = self.store.liveness(listeners)
            if not no_one_listens and not gone:
                return outcome
            everyone = [*record.holders, *record.queue]
            unreachable |= {e.ticket for e in everyone if e.listener in no_one_listens}
            dead |= {e.ticket for e in everyone if e.listener in gone}
            outcome = apply(record, command, now, unreachable, dead)

    def _start(self, key: str, seen: RowSnapshot) -> _Start:
        """Decode a row that was read, and keep it. RecordDamaged if that is not possible."""
        state = self._decode(key, seen)
        row, version, now, at = seen
        if row is not None or version is None:  # else the store did not show the row that it has
            self._rows.put(key, _new(KnownRow, (state, version, at, now)))
        return state, version, now, at

    def _decode(self, key: str, seen: RowSnapshot) -> LockState:
        if seen.row is None:
            return EMPTY
        try:
            if seen.version is None:
                raise ValueError("it has no version")
            return codec.decode(seen.row.body)
        except ValueError as bad:
            raise damaged(key.removeprefix(self.prefix), self.where, bad) from None

    def _doubt(self, key: str) -> None:
        self._rows.pop(key, None)
        self._doubts.add(key)

    async def _wake_unconfirmed(self, record: LockState) -> None:
        woken = [
            Wakeup(e.listener, e.ticket, e.place, e.fence) for e in record.holders if not e.confirmed and e.listener
        ]
        await send_wakeups(self.store, woken)

    async def seal(self, name: str, command: Renew, transaction: object, lease: float) -> Answer:
        from .user_transaction import UserTransaction

        key = self.prefix + name
        given = UserTransaction(transaction, self.runtime.blocking)
        seen = await replied(self.where, self.store.lock_row(key, given, lease))
        state = self._decode(key, seen)
        return Answer(self._step(name, state, command, max(seen.now, state.seen))[1], seen.at)

    async def seal_item(self, pool: str, order: "On", transaction: object, lease: float) -> PoolAnswer:
        from ..rules.pools import apply as apply_to_item
        from .user_transaction import UserTransaction

        given = UserTransaction(transaction, self.runtime.blocking)
        seen = await replied(self.where, self.store.lock_item(self.prefix + pool, order.key, given, lease))
        return PoolAnswer(apply_to_item(seen.item, order.command, seen.now, order.key)[1], seen.at)

    # -- waiting and looking

    async def wait_for_wakeup(self, name: str, ticket: str, timeout: float) -> Pushed | None:
        key = self.prefix + name
        known = self._rows.get(key)
        listeners: set[str] = set()
        if known is not None and isinstance(record := known.state, LockState):
            ahead = (*record.holders[:8], record.queue[0]) if record.queue else record.holders[:8]
            for e in ahead:
                if e.listener and e.ticket != ticket:
                    listeners.add(e.listener)
        began = self.runtime.clock()
        turns = self._turns
        if turns is not None:
            turns.add_waiter(key)
        try:
            pushed = await self.store.wait_for_wakeup(key, ticket, timeout, listeners)
        finally:
            if turns is not None:
                turns.add_waiter(key, -1)
        if pushed is not None:
            self._rows.drop_older(key, began)  # another client has written: what was seen before would only conflict
            if self.pushes_grants and not pushed.until:
                return await self._granted(key, ticket)
        return pushed

    async def _granted(self, key: str, ticket: str) -> Pushed:
        """Return the grant that a wake-up suggests, if the row proves it: any process that reaches the socket can send
        a wake-up.

        A row that this client has seen since it began to wait proves it as well: another step of it has made the grant,
        or has found it. A read is not lost: a release that follows within `cache_ttl` writes from it, unless it is read
        again because others wait (`reads_queues`).
        """
        known = self._rows.get(key)
        if known is not None and known.now and isinstance(known.state, LockState):
            grant = known.state.grant(ticket)
            if grant is not None and not grant.confirmed:
                return Pushed(ticket, grant.place, grant.fence, known.at + (grant.expires - known.now) / 1e6)
        try:
            seen = self.store.read_nowait(key)
            if seen is None:
                seen = await self.store.read(key)
            grant = self._start(key, seen)[0].grant(ticket)
        except (OutcomeUnknown, StoreError):
            return Pushed(ticket)  # the next request raises it
        if grant is None or grant.confirmed:
            return Pushed(ticket)
        return Pushed(ticket, grant.place, grant.fence, seen.at + (grant.expires - seen.now) / 1e6)

    async def attend(self, locks: Collection[str], pools: Collection[str]) -> float:
        return await self.store.attend()

    async def look(self, name: str) -> tuple[LockState, int]:
        seen = await replied(self.where, self.store.read(self.prefix + name))
        return self._living(self._decode_all(name, seen), seen.now), seen.now

    async def looks(self, pattern: str, idle: bool = False, namespaces: bool = False) -> tuple[list[SeenLock], int]:
        matches = glob(pattern)
        found: list[SeenLock] = []
        prefix = "" if namespaces else self.prefix
        rows = await replied(self.where, self.store.scan(prefix) if idle else self.store.scan_busy(prefix))
        for seen in rows:
            namespace, name = split_key(seen.row.key) or ("", "") if seen.row is not None else ("", "")
            if name and matches(name) and (namespaces or namespace == self.namespace):
                found.append(SeenLock(namespace, name, self._state_in(name, seen)))
        found.sort(key=lambda each: each[:2])
        return found, rows[-1].now if rows else await self._time()

    def _state_in(self, name: str, seen: RowSnapshot) -> LockState | RecordDamaged:
        assert seen.row is not None
        try:
            state = codec.decode(seen.row.body)
            return self._living(state._replace(queue=tuple(state.queue)), seen.now)
        except ValueError as bad:
            return damaged(name, self.where, bad)

    async def _time(self) -> int:
        sample = self.store.now()
        return sample[0] if sample is not None else (await replied(self.where, self.store.read(self.prefix + "?"))).now

    async def prune(self, pattern: str, age: int, delete: bool) -> tuple[int, int] | None:
        return await self._prune(self.prefix, pattern, age, delete)

    async def prune_audit(self, pattern: str, age: int, delete: bool) -> tuple[int, int] | None:
        """Prune audit lines as `prune` does rows. A row that cannot be read has no lines and is deleted, too."""
        return await self._prune(audit_key(self.prefix), pattern, age, delete)

    async def _prune(self, start: str, pattern: str, age: int, delete: bool) -> tuple[int, int]:
        """Delete the rows of the names under this start of their key that match and are unused. Each is deleted by a
        statement of its own, if it is still the one that was read."""
        matches = glob(pattern)
        found = deleted = 0
        for seen in await replied(self.where, self.store.scan(start)):
            row = seen.row
            name = row.key[len(start) :] if row is not None else SEPARATOR
            if row is None or SEPARATOR in name or not matches(name) or not is_unused(row, seen.now, age):
                continue
            found += 1
            if delete and seen.version is None:  # a scan of this store shows no versions
                seen = await replied(self.where, self.store.read(row.key))
                if seen.row is None or not is_unused(seen.row, seen.now, age):
                    continue
            if delete and seen.version is not None:
                deleted += await replied(self.where, self.store.delete(row.key, seen.version))
                self._rows.pop(row.key, None)
        return found, deleted

    async def audit(self, name: str) -> list["AuditLine"]:
        from ..rules.locks.audit_lines import decode

        seen = await replied(self.where, self.store.read(audit_key(self.prefix + name)))
        return decode(seen.row.body if seen.row is not None else None)

    async def add_audit(self, name: str, line: "AuditLine") -> None:
        from ..rules.locks.audit_lines import add, decode, encode

        key, settle = audit_key(self.prefix + name), False
        for _ in range(AUDIT_TRIES):
            seen = await self.store.read(key, settle)
            lines = decode(seen.row.body if seen.row is not None else None)
            if settle and lines and lines[0][1:] == line[1:]:
                return  # the try without a reply has written it
            row = Row(key, seen.now, "", encode(add(lines, line._replace(at=seen.now / 1e6))))
            try:
                if isinstance(await self.store.write(row, seen.version, seen.now, ()), Written):
                    return
            except OutcomeUnknown:
                settle = True
        raise OutcomeUnknown("others write there at the same time, or no reply comes")

    async def repair(self, name: str) -> list[str]:
        key = self.prefix + name
        done: list[str] = []
        seen = await replied(self.where, self.store.read(key))
        try:
            self._decode_all(name, seen)
        except RecordDamaged:
            fence = fence_after(seen.row.score if seen.row is not None else 0, seen.now)
            row = Row(key, fence, "", codec.encode(EMPTY._replace(fence=fence, seen=seen.now)))
            self._doubt(key)
            written = await replied(self.where, self.store.replace(row, seen.version, seen.now, ()))
            if not isinstance(written, Written):
                changed = f"{self.where}: it has changed meanwhile. Look again whether it is still damaged."
                raise StoreError(changed) from None
            done.append(f"The record of {name!r} was reset; its next fence is above {fence}.")
        return done + await self.pools.repair(name) if self.pools is not None else done

    def _decode_all(self, name: str, seen: RowSnapshot) -> LockState:
        """Decode a row, and every waiter in it. RecordDamaged if that is not possible."""
        state = self._decode(self.prefix + name, seen)
        try:
            return state._replace(queue=tuple(state.queue))
        except ValueError as bad:
            raise damaged(name, self.where, bad) from None

    def _living(self, record: LockState, now: int) -> LockState:
        """Return the state with the leases of processes that are gone as ended, and without their waiters: the next
        step of any client drops both, so they are not shown as holders. But a lease that was not released is not
        forgotten before."""
        listeners = {e.listener for e in (*record.holders, *record.queue)} - {"", self.store.listener}
        gone = self.store.liveness(listeners)[1] if listeners else NOBODY
        if not gone:
            return record
        holders = tuple(e._replace(expires=min(e.expires, now)) if e.listener in gone else e for e in record.holders)
        return record._replace(holders=holders, queue=tuple(e for e in record.queue if e.listener not in gone))

    async def ping(self) -> None:
        await self.store.ping()

    def forked(self) -> None:
        self._rows.clear()
        self._doubts.clear()
        if self._turns is not None:
            self._turns.reset()
        self.store.forked()

    def schema(self) -> str:
        text = self.store.schema()
        if not self.namespace:
            return text
        shared = f"-- All namespaces share this, so no rights can be limited to {self.namespace!r}."
        return f"{text.rstrip()}\n{shared} Use a database, schema, keyspace or file of its own.\n"


# What a Store and a Backend share, and CasBackend does not do itself, is done by its store.
for name, member in vars(StoreClient).items():
    if callable(member) and not name.startswith("_") and name not in vars(CasBackend):
        setattr(CasBackend, name, property(attrgetter(f"store.{name}")))


def _answer(batch: list[Turn], replies: list[Reply], at: float) -> None:
    for turn, reply in zip(batch, replies, strict=True):
        turn.answer = Answer(reply, at, turn.again)
    served(batch)


def _crowd(before: LockState, there: LockState, shown: RowSnapshot, stale: bool) -> bool:
    """Return True if a write was refused because of others in the queue."""
    return bool(before.queue) if shown.row is None else bool(there.queue) and not stale


def _can_wait(batch: list[Turn], record: LockState) -> bool:
    """Return True if all of these only join the queue, or keep a place far back. One that was granted the lock, or is
    about to be, keeps the others waiting."""
    near = {e.ticket for e in (*record.holders, *record.queue[:NEAR])}
    return all(type(turn.command) is Acquire and turn.command.ticket not in near for turn in batch)


def _has_a_place(turn: Turn, record: LockState) -> bool:
    """Return True if this one holds the lock or is in the queue. It may have been granted since and come to confirm."""
    if type(turn.command) is not Acquire:
        return True
    ticket = turn.command.ticket
    return record.grant(ticket) is not None or is_in(record.queue, ticket)


def _same(one: LockState, other: LockState) -> bool:
    """Return True if nothing but the time of the read differs."""
    return one[5] == other[5] and one[:4] == other[:4] and one[6:] == other[6:]


def lapsed(record: LockState, now: int) -> bool:
    """Return True if a step at this time would drop an entry because its time is over."""
    expiries = [e.expires for e in (*record.holders, *record.queue)] + [g.until for g in record.tombstones]
    return bool(expiries) and min(expiries) <= now


def _decisive(record: LockState, reply: Reply, woken: Iterable[Wakeup]) -> list[str]:
    """Return the listeners that decide this outcome: of the granted, and of those directly ahead of the sender."""
    listeners = [w.listener for w in woken if w.fence]
    if type(reply) in _RESTS_ON_OTHERS:
        listeners += [e.listener for e in record.holders[:16]]
        listeners += [e.listener for e in record.queue[:1]]
    return listeners


def _and_the_holder(before: LockState, record: LockState, woken: tuple[Wakeup, ...]) -> tuple[Wakeup, ...]:
    """Also wake a holder that is alone when the first waiter joins: then its release finds the row that it expects."""
    if len(record.queue) > 1 or before.queue or len(record.holders) != 1 or not record.holders[0].listener:
        return woken
    return (*woken, Wakeup(record.holders[0].listener, ""))
