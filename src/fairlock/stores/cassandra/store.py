"""Locks in Cassandra: one partition for each name, and each step one lightweight transaction on its version.

A step from the last known row is one transaction; a conflict returns the current row. A waiter reads at QUORUM, which
disturbs no other client, and never at SERIAL: such reads take part in the agreement and stall it. A row at QUORUM that
shows a holder is committed. Only after an unknown outcome is there one SERIAL read, which ends whatever was under way.
`cql` has the statements, `statement_sender` sends them, `pool_items` has the items, `errors` what goes wrong.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cassandra.util import Duration

from ...errors import LockError, StoreError
from ...rules.locks import Wakeup
from ..base import OutcomeUnknown, Row, RowSnapshot, RowWrite, Runtime, Written
from ..keys import is_audit
from ..polling import PollingStore
from ..server_clock import ServerClock
from . import cql
from .statement_sender import StatementSender

if TYPE_CHECKING:
    from .pool_items import CassandraItemStore

KEPT = 10.0  # seconds for which the time of a reply is used
VAGUE = 0.02  # seconds; a reply that took longer is too inexact
SLACK = 0.005  # seconds by which we stay behind: a node's clocks differ by this from one statement to the next


class CassandraStore(PollingStore):
    scope = "machines"
    backs_off = True
    shares_steps = True
    batch_size = 32  # transactions at a time: more of them wait for each other in the server
    cache_ttl = 0.5  # an older row has likely changed if others wait; then a read is cheaper than a conflict

    def __init__(self, sender: StatementSender, runtime: Runtime, *, skew: float = 0.0) -> None:
        super().__init__(sender.where, runtime)
        self.sender = sender
        self.keeper_key = sender.keeper_key
        self.skew = skew
        self._server = ServerClock(runtime.clock, KEPT, VAGUE, SLACK)

    @property
    def items(self) -> CassandraItemStore:
        """The store of the items of pools."""
        from .pool_items import CassandraItemStore

        return CassandraItemStore(self)

    def now(self) -> tuple[int, float] | None:
        """Return a time that is not ahead of the clock of the node that replied last; the statement checks it."""
        return self._server.estimate()

    def note(self, milliseconds: int, before: float) -> int:
        """Remember the time that a node has sent."""
        now = milliseconds * 1000
        self._server.note(now, before)
        return now

    async def sample(self) -> tuple[int, float]:
        """Return the time, from the last reply or a new one, and when it was that by our clock at the earliest."""
        sample = self.now()
        if sample is not None:
            return sample
        before = self._clock()
        return self.note((await self.sender.read(cql.CLOCK))[0].now, before), before

    async def time(self) -> int:
        return (await self.sample())[0]

    # -- rows

    async def read(self, key: str, settle: bool = False) -> RowSnapshot:
        at = self._clock()
        return await self._seen(key, await self.sender.read(cql.READ, (key,), settle), at)

    async def _seen(self, key: str, rows: list[Any], at: float) -> RowSnapshot:
        if not rows:
            return RowSnapshot(None, None, self.note((await self.sender.read(cql.CLOCK))[0].now, at), at)
        (row,) = rows
        now = self.note(row.now, at)
        return RowSnapshot(Row(key, row.score, row.owner, row.body), row.version, now, at)

    async def write(
        self, row: Row, expected: int | str | None, now: int, woken: Sequence[Wakeup]
    ) -> Written | RowSnapshot:
        at = self._clock()
        version = int.from_bytes(os.urandom(8)) >> 1
        key, score, owner, body = row
        if expected is None:
            done = await self.sender.transact(cql.INSERT, (key, score, owner, body, version))
        else:
            values = (score, owner, body, version, key, expected, since_1970(now))
            done = await self.sender.transact(cql.UPDATE, values)
        if done["applied"]:
            return Written(version, now, at)
        sample = self.now()
        if sample is None or done.get("body") is None:
            return RowSnapshot(None, expected, now, at)  # it does not show the current row: read
        return RowSnapshot(Row(key, 0, "", done["body"]), done["version"], *sample)

    async def read_many(self, keys: Sequence[str]) -> list[RowSnapshot | OutcomeUnknown | LockError]:
        at = self._clock()
        replies = await self.sender.read_many(cql.READ, [(key,) for key in keys])
        return [
            rows if isinstance(rows, LockError) else await self._seen(key, rows, at)
            for key, rows in zip(keys, replies, strict=True)
        ]

    async def write_many(self, writes: Sequence[RowWrite]) -> list[int | str | OutcomeUnknown | LockError | None]:
        versions = [int.from_bytes(os.urandom(8)) >> 1 for _ in writes]
        values = [
            (*one.row[1:], version, one.row.key, one.expected, since_1970(one.now))
            for one, version in zip(writes, versions, strict=True)
        ]
        return [
            done if isinstance(done, Exception) else version if done["applied"] else None
            for version, done in zip(versions, await self.sender.transact_many(cql.UPDATE, values), strict=True)
        ]

    async def scan(self, prefix: str) -> list[RowSnapshot]:
        at = self._clock()
        now = await self.time()
        found = await self.sender.read(cql.SCAN)
        rows = [(Row(r.key, r.score, r.owner, r.body), r.version) for r in found if r.key.startswith(prefix)]
        return [RowSnapshot(row, version, now, at) for row, version in sorted(rows)]

    async def delete(self, key: str, expected: int | str) -> bool:
        if not is_audit(key):
            raise StoreError("Nothing is deleted in Cassandra: a row that is gone loses its fence.")
        return bool((await self.sender.transact(cql.DELETE_AUDIT, (key, expected)))["applied"])

    # -- the rest

    async def ping(self) -> None:
        await self.sender.read(cql.CLOCK)

    async def close(self) -> None:
        await self.sender.close()

    def forked(self) -> None:
        super().forked()
        self.sender.forked()
        self._server.forget()

    async def doctor(self) -> list[tuple[str, str]]:
        from .doctor import examine

        return await examine(self)

    def schema(self) -> str:
        tables = "\n".join(f"{text.format(keyspace=self.sender.keyspace)};" for text in (cql.LOCKS, cql.ITEMS))
        return cql.SCHEMA.format(keyspace=self.sender.keyspace, tables=tables, replication=self.sender.replication)


def since_1970(now: int) -> Any:
    """Return this time for a condition, in the whole milliseconds of Cassandra's clocks."""
    return Duration(0, 0, now // 1000 * 1_000_000)
