"""The rows of locks in a SQL database: read, written on condition that they are still the same, found and removed.

Starvation: the last client that wrote has the only fresh version, and could go on forever while others conflict. One
that was beaten ten times in a row *claims* the row, which gives it a new version, so that everybody else has to read
first. (After two times already, the claims of eight clients refuse each other's writes, and each grant costs twice as
many statements.) A claim is a single statement, too: a row lock held from one statement to the next would be an open
transaction, in which a client can be stopped or lose its connection.
"""

import os
from collections.abc import Sequence
from typing import Any

from ...doorman import Wake
from ...errors import BackendError, ConfigError
from ..contract import Colour, Row, Sample, Seen, Unknown, Written
from ..polling import Naps
from .address import Address
from .dialects import EMPTY_BODY, SCANNED, PostgreSQL
from .hands import Hands, Told
from .tables import Statement
from .trouble import SCHEMA, Conflict, Exists, NoTable, refused
from .waiting import hints_of

LOSSES = 10  # as many races lost in a row: claim
NOTHING_DONE = (BackendError, ConfigError, Conflict, Exists, NoTable)
CONFLICTS = 100  # times that the server itself says 'not now'


class SqlRows:
    trust = 10.0  # a conflict shows what is there: a write from what is known is never dearer than a read before it

    def __init__(self, address: Address, colour: Colour) -> None:
        self.address = address
        self.where = address.where
        self.hands = self._make_hands(address, colour)
        self.dialect = self.hands.dialect
        self._colour = colour
        self.naps = Naps(colour)
        self._clock = colour.clock
        self._sample: tuple[int, float, float] | None = None
        self._lost: dict[str, int] = {}
        self._closed = False

    def _make_hands(self, address: Address, colour: Colour) -> Hands:
        if colour.blocking:
            return Hands(address)
        from .tasks import TaskHands

        return TaskHands(address)

    def client_clock(self) -> float:
        return self._clock()

    # -- time

    def now(self) -> Sample | None:
        """Since the last answer. The server looked at its clock before we had that, so this is not ahead of it."""
        if self._sample is None:
            return None
        now, before, after = self._sample
        at = self._clock()
        if at - after > self.trust:
            return None
        return Sample(now + int((at - after) * 1e6), at - (after - before))

    def sampled(self, now: int, at: float) -> int:
        if now:
            self._sample = (int(now), at, self._clock())
        return int(now)

    # -- rows

    async def read(self, key: str, settle: bool = False) -> Seen:
        if settle or (self._lost and self._lost.get(key, 0) >= LOSSES):
            return await self._claim(key)
        at = self._clock()
        told = await self.ask(self.dialect.read, {"v_key": key})
        return self._seen(key, told.rows[0], at)

    async def _claim(self, key: str) -> Seen:
        self._lost.pop(key, None)
        at = self._clock()
        values = {"v_key": key, "v_version": _version()}
        told = await self.ask(self.dialect.claim, values)
        if told.rows:
            return self._seen(key, told.rows[0], at)
        if not told.met:
            fresh = {"v_score": 0, "v_owner": self.dialect.nobody, "v_body": EMPTY_BODY}
            try:
                await self.ask(self.dialect.insert, {**values, **fresh})
            except Exists:
                pass
        return await self.read(key)

    def _seen(self, key: str, row: Sequence[Any], at: float) -> Seen:
        now, score, owner, body, version = row[:5]
        now = self.sampled(now, at)
        if version is None:
            return Seen(None, None, now, at)
        return Seen(Row(key, int(score), owner if owner != self.dialect.nobody else "", body), int(version), now, at)

    async def write(self, row: Row, expected: int | str | None, now: int, woken: Sequence[Wake]) -> Written | Seen:
        at = self._clock()
        key, version = row.key, _version()
        try:
            told = await self.ask(*self._writing(*row, version, expected, now, woken))
        except (Exists, Conflict):
            return await self._beaten(key)
        seen = self._outcome(key, told, at)
        if not isinstance(seen, int):
            return await self._beaten(key, seen)
        if expected is None and woken:
            await self.wake(woken)
        return Written(version, seen or now, at)

    def _writing(
        self, key: str, score: int, owner: str, body: str, version: int, expected: int | str | None, now: int,
        woken: Sequence[Wake],
    ) -> tuple[Statement, dict[str, Any]]:  # fmt: skip
        """What is to be said."""
        dialect = self.dialect
        owner = dialect.label(owner) if len(owner) * 4 > dialect.label_bytes else owner or dialect.nobody
        values = {"v_key": key, "v_score": score, "v_owner": owner, "v_body": body, "v_version": version}
        if expected is None:
            return dialect.insert, values
        values["v_expected"], values["v_now"] = expected, now
        if woken and isinstance(dialect, PostgreSQL) and (hints := hints_of(woken, key)):
            values["v_ears"], values["v_hints"] = hints
            return dialect.write_and_tell, values
        return dialect.write, values

    def _outcome(self, key: str, told: Told, at: float) -> int | Seen | None:
        """What became of it: written, at this time (0: it does not say); or what is there instead (None: neither)."""
        if self.dialect.shows:
            row = told.rows[0]
            if row[5] is None:
                return self._seen(key, row, at)
            now = row[0]
        elif told.met:
            now = told.now
        else:
            return None
        if self._lost:
            self._lost.pop(key, None)
        return self.sampled(now, at)

    async def wake(self, woken: Sequence[Wake]) -> None:
        hints = hints_of(woken)
        if hints and isinstance(self.dialect, PostgreSQL):
            await self.ask(self.dialect.tell, {"v_ears": hints[0], "v_hints": hints[1]})

    async def _beaten(self, key: str, seen: Seen | None = None) -> Seen:
        """Somebody else was quicker. What is there now; and if it is not the first time, with the right to be next."""
        return seen if self._lose(key) and seen is not None else await self.read(key)

    def _lose(self, key: str) -> bool:
        """Whether it has not happened too often yet."""
        if len(self._lost) > 1000:
            self._lost.clear()
        lost = self._lost[key] = self._lost.get(key, 0) + 1
        return lost < LOSSES

    async def scan(self, prefix: str) -> list[Seen]:
        found: list[Seen] = []
        dialect = self.dialect
        statement, values = (dialect.scan, {"v_key": prefix}) if prefix else (dialect.scan_all, {})
        while True:
            at = self._clock()
            told = await self.ask(statement, values)
            for now, key, *rest in told.rows:
                if not key.startswith(prefix):
                    return found
                found.append(self._seen(key, (now, *rest), at))
            if len(told.rows) < SCANNED:
                return found
            statement, values = dialect.scan_on, {"v_key": found[-1].row.key}  # type: ignore[union-attr]

    async def delete(self, key: str, expected: int | str) -> bool:
        return (await self.ask(self.dialect.delete, {"v_key": key, "v_expected": expected})).met > 0

    async def ask(self, statement: Statement, values: dict[str, Any]) -> Told:
        """One statement. The tables are made if there are none."""
        if self._closed:
            raise ConfigError(f"{self.where} was closed. Connect again.")
        made = False
        for turn in range(CONFLICTS):
            try:
                return await self.hands.run(statement, values)
            except NoTable:
                if made:
                    raise refused(f"{self.where} has no tables of holdfast, and none could be made. {SCHEMA}") from None
                made = True
                await self._make_tables()
            except Conflict:
                if statement is not self.dialect.claim and not statement.reads:
                    raise
                await self._colour.sleep(int.from_bytes(os.urandom(1)) / 256 * min(0.001 * turn, 0.05))
        raise self.crowded()

    def crowded(self) -> BackendError:
        return BackendError(f"{self.where} said {CONFLICTS} times in a row that somebody else was first.")

    async def _make_tables(self) -> None:
        try:
            await self.hands.make_tables()
        except BackendError as error:
            if error.refused:
                raise refused(
                    f"{self.where} has no tables of holdfast, and this user may not make them. {SCHEMA}"
                ) from None
            raise


class ThreadRows(SqlRows):
    """For threads: a step of a lock that nobody else wants, by plain calls. What goes wrong is left to the others."""

    def get(self, key: str) -> Seen | None:
        if self._closed or self._lost.get(key, 0) >= LOSSES:
            return None
        at = self._clock()
        try:
            told = self.hands.say(self.dialect.read, {"v_key": key})
        except (Unknown, *NOTHING_DONE):
            return None
        return self._seen(key, told.rows[0], at)

    def put(
        self, key: str, score: int, owner: str, body: str, expected: int, woken: Sequence[Wake], at: float, now: int
    ) -> int | Seen | None:
        if self._closed:
            return None
        version = _version()
        begun = self._clock()
        try:
            told = self.hands.say(*self._writing(key, score, owner, body, version, expected, now, woken))
        except NOTHING_DONE:
            return None
        seen = self._outcome(key, told, begun)
        if isinstance(seen, int):
            return version
        return seen if self._lose(key) else None


def _version() -> int:
    return int.from_bytes(os.urandom(8)) >> 2
