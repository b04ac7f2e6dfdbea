"""Locks in a table of Oracle's NoSQL service: key, score, owner, body, one row for each name, the etag as its version.

A step from what is known already is one PUT; a fresh one is a GET, a query for the time if that matters, and a PUT. The
service pushes nothing, so waiters look: one GET each time. `clock` has the time, `table_requests` the requests,
`row_format` the form of a row, `errors` the sentences, `pool_items` the items.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...errors import LockError
from ...rules.locks import Wakeup
from ..base import OutcomeUnknown, Row, RowSnapshot, RowWrite, Runtime, Written
from ..polling import PollingStore
from .clock import CLOCK, Clock, rests_on_it
from .row_format import ALL, from_value, key_range, table_key, to_value
from .table_requests import COLUMNS, Kept, Table, together

if TYPE_CHECKING:
    from .pool_items import OciItemStore

SCAN = "DECLARE $low STRING; $high STRING; " + ALL + " WHERE t.key >= $low AND t.key < $high"

# Comments begin with # there, and a statement ends without a semicolon.
SCHEMA = """# The table of {where}: any name, and as many read, write and storage units as the work takes.
CREATE TABLE IF NOT EXISTS {table} ({columns})

# The rights, as a policy of the compartment:
# Allow group LOCKERS to use nosql-rows in compartment NAME
# Allow group LOCKERS to read nosql-tables in compartment NAME
"""


class OciStore(PollingStore):
    scope = "machines"
    shares_steps = True
    cache_ttl = 5.0
    poll_interval = 2.0  # each look is a request that is paid for
    checks_time = False
    backs_off = True
    batch_size = 8  # requests at a time: each takes a connection, and units of the table
    first_pause = 0.02  # each look costs a read unit

    def __init__(self, table: Table, runtime: Runtime, *, skew: float = 0.0) -> None:
        super().__init__(table.where, runtime)
        self.table = table
        self.skew = skew
        self.clock = Clock(table)

    @property
    def items(self) -> OciItemStore:
        """The store of the items of pools."""
        from .pool_items import OciItemStore

        return OciItemStore(self)

    def now(self) -> tuple[int, float] | None:
        return self.clock.guess()

    # -- rows

    async def read(self, key: str, settle: bool = False) -> RowSnapshot:
        (seen,) = await self.read_many([key])
        if isinstance(seen, Exception):
            raise seen
        return seen

    async def read_many(self, keys: Sequence[str]) -> list[RowSnapshot | OutcomeUnknown | LockError]:
        at = self._clock()
        rows = await together(self.runtime, [partial(self._get, key) for key in keys])
        guess = self.clock.guess()  # after the rows, or a row could be from the future
        asked: tuple[int, float] | None = None
        found: list[RowSnapshot | OutcomeUnknown | LockError] = []
        for each in rows:
            if isinstance(each, Exception):
                found.append(each)
                continue
            sample = guess
            if sample is None or rests_on_it(each[0], sample[0]):
                sample = asked = asked or (await self.clock.call(), at)
            found.append(RowSnapshot(*each, *sample))
        return found

    async def _get(self, key: str) -> tuple[Row | None, str | None]:
        kept = await self.table.get(table_key(key))
        return from_value(kept.value, key) if kept.value is not None else None, kept.etag

    async def write(
        self, row: Row, expected: int | str | None, now: int, woken: Sequence[Wakeup]
    ) -> Written | RowSnapshot:
        at = self._clock()
        done = await self.table.put(to_value(row), None if expected is None else str(expected))
        if isinstance(done, str):
            return Written(done, now, at)
        if isinstance(done, Kept) and done.value is not None:
            return RowSnapshot(from_value(done.value, row.key), done.etag, await self.clock.call(), at)
        return RowSnapshot(None, expected, now, at)  # the service does not show the current row: read

    async def write_many(self, writes: Sequence[RowWrite]) -> list[int | str | OutcomeUnknown | LockError | None]:
        done = await together(self.runtime, [partial(self.write, *one, ()) for one in writes])
        shown = [each.version if isinstance(each, Written) else each for each in done]
        return [None if isinstance(each, RowSnapshot) else each for each in shown]

    async def scan(self, prefix: str) -> list[RowSnapshot]:
        at = self._clock()
        if prefix:
            low, high = key_range(prefix)
            found = await self.table.query(SCAN, {"$low": low, "$high": high})
        else:
            found = await self.table.query(ALL, {})
        now = await self.clock.call()
        rows = sorted(from_value(value) for value in found if value["key"] != CLOCK)
        return [RowSnapshot(row, None, now, at) for row in rows]

    async def delete(self, key: str, expected: int | str) -> bool:
        return await self.table.delete(table_key(key), str(expected))

    async def read_to_wait(self, key: str) -> RowSnapshot:
        at = self._clock()
        row, etag = await self._get(key)
        return RowSnapshot(row, etag, *(self.now() or (0, at)))

    # -- the rest

    async def ping(self) -> None:
        await self.clock.call()

    async def close(self) -> None:
        self.table.close()

    def forked(self) -> None:
        super().forked()
        self.table.forget()

    async def doctor(self) -> list[tuple[str, str]]:
        from .doctor import examine

        return await examine(self)

    def schema(self) -> str:
        name = "locks" if self.table.name.startswith("ocid1.") else self.table.name
        return SCHEMA.format(where=self.where, table=name, columns=COLUMNS)
