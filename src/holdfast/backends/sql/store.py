"""SQL databases as a store: a row per doorman, one statement per step, the server's clock.

`dialects` says what is said to which database, `hands` and `tasks` bring it there, `ears` hear PostgreSQL's hints.

Starvation: the last one who wrote has the only fresh version, and could go on for ever while others conflict. One who
was beaten twice in a row *claims* the row, which gives it a new version, so that everybody else has to read first.
That is a single statement, too: a row lock held from one statement to the next would be an open transaction, in which a
client can be stopped or lose its connection.
"""

import os
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...doorman import Wake
from ...errors import BackendError, ConfigError
from ..contract import Colour, Pushed, Row, Sample, Seen, Written
from .address import Address
from .dialects import EMPTY_BODY, PostgreSQL
from .hands import Hands, Told
from .tables import Statement, ddl
from .trouble import SCHEMA, Conflict, Exists, NoTable, refused
from .waiting import hints_of, listen, poll

if TYPE_CHECKING:
    from .ears import Ear
    from .shelf import SqlShelf

LOSSES = 2  # this many races lost in a row: claim
CONFLICTS = 100  # times that the server itself says 'not now'
NOBODY: frozenset[str] = frozenset()


class SqlStore:
    span = "machines"
    trust = 10.0  # a conflict shows what is there: a write from what is known is never dearer than a read before it
    skew = 0.0

    def __init__(self, address: Address, colour: Colour) -> None:
        self.address = address
        self.where = address.where
        self.hands = self._make_hands(address, colour)
        self.dialect = self.hands.dialect
        # A row that shows us inside was read after the write that let us in. But such a grant has to be confirmed
        # within a second or two, and an event loop may be blocked for longer.
        self.pushes_grants = colour.blocking
        self._colour = colour
        self._clock = colour.clock
        self._sample: tuple[int, float, float] | None = None
        self._lost: dict[str, int] = {}
        self._ear: Ear | None = None
        self._told: dict[str, Seen] = {}
        self._closed = False

    def _make_hands(self, address: Address, colour: Colour) -> Hands:
        if colour.blocking:
            return Hands(address)
        from .tasks import TaskHands

        return TaskHands(address)

    @property
    def items(self) -> "SqlShelf":
        """Where the items of pools are."""
        from .items import items_of
        from .shelf import SqlShelf

        return SqlShelf(self, items_of(self.dialect))  # not kept: whoever forgets the store is to forget all of it

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
        key, version, dialect = row.key, _version(), self.dialect
        values = {
            "v_key": key, "v_score": row.score, "v_owner": row.owner or dialect.nobody, "v_body": row.body,
            "v_version": version,
        }  # fmt: skip
        statement = dialect.insert
        if expected is not None:
            values |= {"v_expected": expected, "v_now": now}
            statement = dialect.write
            if isinstance(dialect, PostgreSQL) and (hints := hints_of(woken, version, row.body)):
                values["v_ears"], values["v_hints"] = hints
                statement = dialect.write_and_tell
        try:
            told = await self.ask(statement, values)
        except (Exists, Conflict):
            return await self._beaten(key)
        if dialect.shows:
            if told.rows[0][5] is None:
                seen = self._seen(key, told.rows[0], at)
                return await self._beaten(key, seen)
            now = self.sampled(told.rows[0][0], at)
        else:
            if not told.met:
                return await self._beaten(key)
            if expected is not None:
                self.sampled(told.now, at)
        if self._lost:
            self._lost.pop(key, None)
        if expected is None and woken:
            await self.wake(woken)
        return Written(version, now, at)

    async def _beaten(self, key: str, seen: Seen | None = None) -> Seen:
        """Somebody else was quicker. What is there now; and if it is not the first time, with the right to be next."""
        if len(self._lost) > 1000:
            self._lost.clear()
        self._lost[key] = self._lost.get(key, 0) + 1
        return seen if seen is not None and self._lost[key] < LOSSES else await self.read(key)

    async def scan(self, prefix: str) -> list[Seen]:
        found: list[Seen] = []
        last = prefix
        while True:
            at = self._clock()
            told = await self.ask(self.dialect.scan_on if found else self.dialect.scan, {"v_key": last})
            for now, key, *rest in told.rows:
                if not key.startswith(prefix):
                    return found
                found.append(self._seen(key, (now, *rest), at))
                last = key
            if len(told.rows) < 1000:
                return found

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

    # -- waiting

    @property
    def ear(self) -> str:
        found = self._hearing()
        return found.name if found is not None else ""

    def _hearing(self) -> "Ear | None":
        address = self.address
        direct = address.listen
        if direct is None or (self.hands.pooled and direct is address.engine.url) or self._closed:
            return None
        if self._ear is None:
            from .ears import ear_at

            self._ear = ear_at(direct, address.timeout)
        return self._ear

    async def wake(self, woken: Sequence[Wake]) -> None:
        hints = hints_of(woken)
        if hints and isinstance(self.dialect, PostgreSQL):
            await self.ask(self.dialect.tell, {"v_ears": hints[0], "v_hints": hints[1]})

    async def changed(self, key: str, ticket: str, timeout: float, ears: Collection[str]) -> Pushed | None:
        ear = self._hearing()
        if ear is None:
            return await poll(self, self._colour, key, ticket, timeout)
        return await listen(self, self._colour, ear, key, ticket, timeout)

    def tell(self, key: str, said: str | Seen) -> None:
        """A hint has brought the row as it was written then, or a look has."""
        if isinstance(said, str):
            version, _, body = said.partition(" ")
            if not version.isdigit() or not body:
                return
            said = Seen(Row(key, 0, "", body), int(version), 0, self._clock())
        if len(self._told) > 1000:
            self._told.clear()
        self._told[key] = said

    def shown(self, key: str) -> Seen | None:
        return self._told.pop(key, None)

    def hinted(self, tickets: Iterable[str]) -> Collection[str]:
        return self._ear.hinted(tickets) if self._ear is not None else ()

    def silent(self, ears: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        return NOBODY, NOBODY

    # -- the rest

    async def tidy(self) -> None:
        pass

    async def ping(self) -> None:
        at = self._clock()
        told = await self.ask(self.dialect.time, {})
        self.sampled(told.rows[0][0], at)

    async def close(self) -> None:
        self._closed = True
        await self.hands.close()

    def forked(self) -> None:
        self._sample = None
        self._ear = None
        self._lost.clear()
        self.hands.forked()

    def beacon(self) -> int | None:
        return None

    async def doctor(self) -> list[tuple[str, str]]:
        from .doctor import examine

        return await examine(self)

    def schema(self) -> str:
        dialect = self.dialect
        lines = [f"-- {self.where}: made by the first use if the user may, else by an administrator"]
        lines += [text + ";" for text in ddl(dialect.sa, dialect.name != "Oracle")]
        lines += ["-- what the user of the program needs:"]
        user = self.address.engine.url.username or "the_user"
        lines += [dialect.grants.format(table=table, user=user) for table in ("holdfast_locks", "holdfast_items")]
        return "\n".join(lines)


def _version() -> int:
    return int.from_bytes(os.urandom(8)) >> 2

