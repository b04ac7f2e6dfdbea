"""The rows of locks in a SQL database: read, compared and written, listed and deleted.

Starvation: the last client that wrote has the only fresh version, and could go on forever while others conflict. A
client that has lost ten races in a row *claims* the row, which gives it a new version, so that all others must read
first. (With a limit of two, the claims of eight clients refuse each other's writes, and each grant costs twice as
many statements.) A claim is a single statement, too: a row lock held from one statement to the next would be an open
transaction, in which a client can be stopped or lose its connection.
"""

import os
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from ...errors import ConfigError, LockError, StoreError, refused
from ...rules.locks import Wakeup
from ..base import Event, OutcomeUnknown, Row, RowLocked, RowSnapshot, RowWrite, Runtime, Sample, Written
from ..jitter import jitter
from ..keys import SEPARATOR
from ..polling import PollingStore
from ..server_clock import ServerClock
from ..shared_connections import Share
from .dialects import EMPTY_BODY, SCANNED, PostgreSQL
from .errors import SCHEMA, Conflict, Exists, NoTable
from .executor import Executor, Result
from .many_rows import ManyRows
from .schema import Statement
from .wait_for_wakeup import wakeups_for

BATCH = 128  # rows in one statement
SOON = 900_000  # microseconds: a write is refused if the time of its step is a second old
LOSSES = 10  # as many races lost in a row: claim
NOTHING_DONE = (StoreError, ConfigError, Conflict, Exists, NoTable)
CONFLICTS = 100  # times that the server itself refuses a statement because of others


class SqlRows(PollingStore):
    place: tuple[str, str] | None = None  # the table with its schema, and the server: lock_in_user_transaction.py
    batch_size = BATCH
    cache_ttl = 10.0  # a conflict shows the current row, so a write from the cache never costs more than a read first

    def __init__(self, share: Share[Executor], runtime: Runtime) -> None:
        super().__init__(share.of.address.where, runtime)
        self._share = share
        self.has_nowait = runtime.blocking
        self.executor = self.keeper_key = share.of
        self.address = self.executor.address
        self.dialect = self.executor.dialect
        self.count_statements = self.executor.count_statements
        self.shows_conflicts = self.dialect.shows
        self.skips_locked = self.dialect.skips_locked
        self._server = ServerClock(runtime.clock, self.cache_ttl)
        self._lost: dict[str, int] = {}
        self._making: Event | None = None  # one of this client creates the tables
        self._closed = False

    # -- time

    def now(self) -> Sample | None:
        return self._server.estimate()

    def sampled(self, now: int, at: float) -> int:
        if now:
            self._server.note(int(now), at)
        return int(now)

    # -- rows

    async def read(self, key: str, settle: bool = False) -> RowSnapshot:
        if settle or (self._lost and self._lost.get(key, 0) >= LOSSES):
            return await self._claim(key)
        at = self._clock()
        result = await self.call(self.dialect.read, {"v_key": key})
        return self._seen(key, result.rows[0], at)

    async def _claim(self, key: str) -> RowSnapshot:
        self._lost.pop(key, None)
        at = self._clock()
        values = {"v_key": key, "v_version": _version()}
        result = await self.call(self.dialect.claim, values)
        if result.rows:
            return self._seen(key, result.rows[0], at)
        if not result.matched:
            fresh = {"v_score": 0, "v_owner": self.dialect.nobody, "v_body": EMPTY_BODY}
            try:
                await self.call(self.dialect.insert, {**values, **fresh})
            except Exists:
                pass
        return await self.read(key)

    def _seen(self, key: str, row: Sequence[Any], at: float) -> RowSnapshot:
        now, score, owner, body, version = row[:5]
        now = self.sampled(now, at)
        if version is None:
            return RowSnapshot(None, None, now, at)
        owner = owner if owner != self.dialect.nobody else ""
        return RowSnapshot(Row(key, int(score), owner, body), int(version), now, at)

    async def write(
        self, row: Row, expected: int | str | None, now: int, woken: Sequence[Wakeup]
    ) -> Written | RowSnapshot:
        at = self._clock()
        key, version = row.key, _version()
        try:
            result = await self.call(*self._writing(row, version, expected, now, woken))
        except (Exists, Conflict):
            return await self._beaten(key)
        seen = self._outcome(key, result, at)
        if not isinstance(seen, int):
            return await self._beaten(key, seen)
        if expected is None and woken:
            await self.wake(woken)
        return Written(version, seen or now, at)

    async def read_many(self, keys: Sequence[str]) -> list[RowSnapshot | OutcomeUnknown | LockError]:
        at = self._clock()
        result = await self.call(*self.dialect.many.read([(key,) for key in keys]))
        found = {row[5]: self._seen(row[5], row, at) for row in result.rows}
        return [found[key] for key in keys]

    async def write_many(self, writes: Sequence[RowWrite]) -> list[int | str | OutcomeUnknown | LockError | None]:
        versions = [_version() for _ in writes]
        both = zip(writes, versions, strict=True)
        rows = [self._writing(one.row, version, one.expected, one.now, ())[1] for one, version in both]
        if await self.write_all(self.dialect.many, sorted(rows, key=itemgetter("v_key"))):
            return [*versions]
        found: list[int | str | OutcomeUnknown | LockError | None] = []
        seen = await self.read_many([one.row.key for one in writes])
        for one, version, each in zip(writes, versions, seen, strict=True):
            assert isinstance(each, RowSnapshot)
            if each.version == one.expected and 0 <= each.now - one.now < SOON:
                found.append(self.locked(repr(one.row.key.rpartition(SEPARATOR)[2])))
            else:
                found.append(version if each.version == version else None)
        return found

    async def write_all(self, many: ManyRows, rows: Sequence[dict[str, Any]]) -> bool:
        """Write these rows, which are in the order of their keys. False: some were not written."""
        try:
            return (await self.call(*many.write(rows))).matched == len(rows)
        except Conflict:
            return False

    def locked(self, what: str) -> RowLocked | None:
        """Return the error for a row that is still as it was read, and was not written nevertheless."""
        return RowLocked(f"A transaction has sealed {what}.") if self.skips_locked else None

    def _writing(
        self, row: Row, version: int, expected: int | str | None, now: int, woken: Sequence[Wakeup]
    ) -> tuple[Statement, dict[str, Any]]:
        """Return the statement and its values."""
        key, score, owner, body = row
        dialect = self.dialect
        owner = dialect.label(owner) if len(owner) * 4 > dialect.label_bytes else owner or dialect.nobody
        values = {"v_key": key, "v_score": score, "v_owner": owner, "v_body": body, "v_version": version}
        if expected is None:
            return dialect.insert, values
        values["v_expected"], values["v_now"] = expected, now
        if woken and isinstance(dialect, PostgreSQL) and (wakeups := wakeups_for(woken, key)):
            values["v_listeners"], values["v_wakeups"] = wakeups
            return dialect.write_and_notify, values
        return dialect.write, values

    def _outcome(self, key: str, result: Result, at: float) -> int | RowSnapshot | None:
        """Return the time of the write (0 if unknown), or the row that is there instead (None if that is not shown)."""
        if self.dialect.shows:
            row = result.rows[0]
            if row[5] is None:
                return self._seen(key, row, at)
            now = row[0]
        elif result.matched:
            now = result.now
        else:
            return None
        if self._lost:
            self._lost.pop(key, None)
        return self.sampled(now, at)

    async def wake(self, woken: Sequence[Wakeup]) -> None:
        wakeups = wakeups_for(woken)
        if wakeups and isinstance(self.dialect, PostgreSQL):
            await self.call(self.dialect.notify, {"v_listeners": wakeups[0], "v_wakeups": wakeups[1]})

    async def _beaten(self, key: str, seen: RowSnapshot | None = None) -> RowSnapshot:
        """Another client was faster. Return the current row; after many losses in a row, claim it."""
        return seen if self._lose(key) and seen is not None else await self.read(key)

    def _lose(self, key: str) -> bool:
        """Count a lost race. Whether that has not happened too often yet."""
        if len(self._lost) > 1000:
            self._lost.clear()
        lost = self._lost[key] = self._lost.get(key, 0) + 1
        return lost < LOSSES

    # -- by plain calls, for threads: on any problem the caller uses the others

    def read_nowait(self, key: str) -> RowSnapshot | None:
        if not self.has_nowait or self._closed or self._lost.get(key, 0) >= LOSSES:
            return None
        at = self._clock()
        try:
            result = self.executor.execute(self.dialect.read, {"v_key": key})
        except (OutcomeUnknown, *NOTHING_DONE):
            return None
        return self._seen(key, result.rows[0], at)

    def write_nowait(
        self, row: Row, expected: int | str, now: int, woken: Sequence[Wakeup], at: float
    ) -> int | RowSnapshot | None:
        if self._closed:
            return None
        version = _version()
        begun = self._clock()
        try:
            result = self.executor.execute(*self._writing(row, version, expected, now, woken))
        except NOTHING_DONE:
            return None
        seen = self._outcome(row.key, result, begun)
        if isinstance(seen, int):
            return version
        return seen if self._lose(row.key) else None

    # -- other statements

    async def scan(self, prefix: str) -> list[RowSnapshot]:
        dialect = self.dialect
        first, values = (dialect.scan, {"v_key": prefix}) if prefix else (dialect.scan_all, {})
        found = await self.pages(first, dialect.scan_on, values, prefix)
        return [self._seen(key, (now, *rest), at) for (now, key, *rest), at in found]

    async def scan_busy(self, prefix: str) -> list[RowSnapshot]:
        """Read the busy rows, without a lower bound: with one, the server would follow the index row by row and take
        many times as long."""
        found = await self.pages(self.dialect.scan_busy, self.dialect.scan_busy_on, {})
        return [self._seen(key, (now, *rest), at) for (now, key, *rest), at in found if key.startswith(prefix)]

    async def pages(
        self, first: Statement, on: Statement, values: dict[str, Any], prefix: str = ""
    ) -> list[tuple[Sequence[Any], float]]:
        """Read rows that begin with the time and a key, a page at a time, `on` from the last key, until one does not
        begin with this. Return each with the client's clock before its page."""
        found: list[tuple[Sequence[Any], float]] = []
        statement = first
        while True:
            at = self._clock()
            rows = (await self.call(statement, values)).rows
            found += [(row, at) for row in rows if row[1].startswith(prefix)]
            if len(rows) < SCANNED or not rows[-1][1].startswith(prefix):
                return found
            statement, values = on, {**values, "v_key": rows[-1][1]}

    async def delete(self, key: str, expected: int | str) -> bool:
        return (await self.call(self.dialect.delete, {"v_key": key, "v_expected": expected})).matched > 0

    async def call(self, statement: Statement, values: dict[str, Any]) -> Result:
        """Run one statement. Create the tables if they are missing."""
        if self._closed:
            raise ConfigError(f"{self.where} was closed. Connect again.")
        made = False
        for turn in range(CONFLICTS):
            try:
                return await self.executor.run(statement, values)
            except NoTable:
                if made:
                    raise refused(f"{self.where} has no tables of fairlock, and cannot create any. {SCHEMA}") from None
                made = await self._make_tables()
            except Conflict:
                if statement is not self.dialect.claim and not statement.reads:
                    raise
                await self.runtime.sleep(jitter() * min(0.001 * turn, 0.05))
        raise self.crowded()

    def crowded(self) -> StoreError:
        return StoreError(f"{self.where} refused a statement {CONFLICTS} times because of other clients. Try again.")

    async def _make_tables(self) -> bool:
        """Create the tables. Return False if another one of this client was at it, and this one has waited for that."""
        if self._making is not None:
            await self._making.wait(self.address.timeout)
            return False
        making = self._making = self.runtime.event()
        try:
            await self.executor.make_tables()
        except StoreError as error:
            if error.refused:
                raise refused(
                    f"{self.where} has no tables of fairlock, and this user may not create them. {SCHEMA}"
                ) from None
            raise
        finally:
            self._making = None
            making.set()
        return True


def _version() -> int:
    return int.from_bytes(os.urandom(8)) >> 2
