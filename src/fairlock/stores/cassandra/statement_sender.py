"""A session of the driver, for both runtimes: a statement is sent, and its callback sets the event that the caller
awaits.

Clients of the same address share the session: see ../shared_connections.py. Statements are prepared when they are first
used. Reads are tried again, on another node if the first is silent; a transaction is sent once; if its outcome is
unknown, `OutcomeUnknown` is raised.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from math import inf
from typing import Any

from cassandra import ConsistencyLevel, OperationTimedOut
from cassandra.cluster import Session
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import SimpleStatement

from ...errors import ConfigError, LockError, StoreError
from .. import split_url
from ..base import OutcomeUnknown, Runtime
from ..deadline import left, over
from ..jitter import jitter
from ..shared_connections import Share, SharedConnections
from . import cql, errors
from .url import Address

TRIES = 4  # of a read
FIRST_PAUSE = 0.03
QUIET = 0.7  # seconds after which a node that has not answered is asked for a sign of life
ALIVE = 0.6  # seconds for that sign
HURRIED = 0.2  # of those at least, also if the caller waits no longer
SLOW = 1.0  # seconds for which a node that lives may be late for a caller that waits no longer
GRACE = 1.0  # seconds more than the driver's own timeout, after which we no longer wait for it


class DriverSession(SharedConnections):
    """A session of the driver and the statements that it has prepared, for all clients of one address."""

    def __init__(self, address: Address) -> None:
        super().__init__()
        self.address = address
        self.session: Session | None = None
        self.prepared: dict[str, Any] = {}
        self._opening = threading.Lock()
        self._pid = os.getpid()

    def connect(self) -> None:
        """Connect, if no client has done so yet. May take long."""
        address = self.address
        with self._opening:
            if self.session is not None:
                return
            if address.make is None:
                if self._pid != os.getpid():
                    raise StoreError("This session of the driver is the parent's. Make one after the fork.")
                self.session = address.session
                return
            try:
                self.session = address.make()
            except LockError:
                raise
            except UnicodeError as error:
                raise split_url.cannot_send(address.where, error) from None
            except errors.DRIVERS as error:
                raise errors.explain(error, address.where, address.keyspace) from None

    def forked(self) -> None:
        """Forget the session in a forked child: it belongs to the parent, its threads above all. Each client calls
        this."""
        if self._pid != os.getpid():
            self._pid = os.getpid() if self.address.make is not None else -1
            self.session = None
            self.prepared = {}
            self._opening = threading.Lock()

    async def close(self, runtime: Runtime) -> None:
        session, self.session = self.session, None
        if session is not None and self.address.make is not None:
            await runtime.call(session.cluster.shutdown)


class StatementSender:
    def __init__(self, share: Share[DriverSession], runtime: Runtime) -> None:
        address = share.of.address
        self.where = address.where
        self.keyspace = address.keyspace
        self.replication = address.replication
        self.runtime = runtime
        self._address = address
        self._serial, self._quorum = (getattr(ConsistencyLevel, name) for name in address.consistency)
        self._share = share
        self._driver = share.of
        self.keeper_key = self._driver
        self._closed = False
        self.sent = 0  # transactions

    async def transact(self, text: str, values: Sequence[Any]) -> dict[str, Any]:
        """Send this transaction, once: its row, with `applied`. Raise OutcomeUnknown if its outcome is not known."""
        (done,) = await self.transact_many(text, (values,))
        if isinstance(done, Exception):
            raise done
        return done

    async def read(self, text: str, values: Sequence[Any] = (), settle: bool = False) -> list[Any]:
        """Return the rows that this finds. settle: after it nothing of a transaction in flight can still appear."""
        pause = FIRST_PAUSE
        for turn in range(TRIES):
            statement = await self._bound(text, values)
            statement.consistency_level = self._serial if settle else self._quorum
            statement.is_idempotent = True
            try:
                return await self._send(statement)
            except errors.DRIVERS as error:
                if turn == TRIES - 1 or not errors.is_passing(error) or over():
                    raise errors.explain(error, self.where, self.keyspace) from None
            await self.runtime.sleep(pause * (0.5 + jitter()))
            pause *= 3
        raise AssertionError("the last try returns or raises")

    async def simple(self, text: str) -> list[Any]:
        """Query the server's own tables: the statement is not prepared, and any node may reply."""
        await self.open()
        try:
            return await self._send(SimpleStatement(text, is_idempotent=True))
        except errors.DRIVERS as error:
            raise errors.explain(error, self.where, self.keyspace) from None

    async def _bound(self, text: str, values: Sequence[Any]) -> Any:
        prepared: Any = self._driver.prepared.get(text)
        if prepared is None:
            await self.open()
            prepared = await self.runtime.call(self._prepare, text)
        statement = prepared.bind(values)
        statement.retry_policy = RETHROW
        return statement

    def _prepare(self, text: str) -> Any:
        session = self._session()
        try:
            prepared = session.prepare(text.format(keyspace=self.keyspace))
        except errors.DRIVERS as error:
            raise errors.explain(error, self.where, self.keyspace) from None
        self._driver.prepared[text] = prepared
        return prepared

    async def transact_many(
        self, text: str, values: Sequence[Sequence[Any]]
    ) -> list[dict[str, Any] | OutcomeUnknown | LockError]:
        """Send these transactions, all of them before the first reply: for each its row, or what `transact` raises."""
        found: list[dict[str, Any] | OutcomeUnknown | LockError] = []
        for done in await self._send_all(text, values, reads=False):
            if not isinstance(done, Exception):
                found.append(dict(done[0]._asdict()))
            elif errors.is_unknown(done):
                found.append(OutcomeUnknown(f"{type(done).__name__} from {self.where}"))
            else:
                found.append(errors.explain(done, self.where, self.keyspace))
        return found

    async def read_many(self, text: str, values: Sequence[Sequence[Any]]) -> list[list[Any] | LockError]:
        """Send these reads, all of them before the first reply: for each its rows, or what `read` raises."""
        return [
            errors.explain(rows, self.where, self.keyspace) if isinstance(rows, Exception) else rows
            for rows in await self._send_all(text, values, reads=True)
        ]

    async def _send_all(self, text: str, values: Sequence[Sequence[Any]], reads: bool) -> list[list[Any] | Exception]:
        """Send this with each of these values. Return for each its rows, or an error of the driver."""
        begun: list[Any] = []
        for each in values:
            statement = await self._bound(text, each)
            statement.consistency_level = self._quorum
            statement.serial_consistency_level = self._serial
            statement.is_idempotent = reads
            self.sent += not reads
            try:
                begun.append(self._begin(statement, self._address.timeout))
            except errors.DRIVERS as error:
                begun.append(error)
        found: list[list[Any] | Exception] = []
        for pending in begun:
            try:
                found.append(pending if isinstance(pending, Exception) else await self._finish(*pending))
            except errors.DRIVERS as error:
                found.append(error)
        return found

    async def _send(self, statement: Any) -> list[Any]:
        return await self._finish(*self._begin(statement, self._address.timeout))

    def _begin(self, statement: Any, timeout: float, host: Any = None) -> tuple[Any, list[Any], list[Any], Any]:
        """Send it. Return what `_finish` waits for."""
        session = self._session()
        event = self.runtime.event()
        outcomes: list[Any] = []
        future = session.execute_async(statement, timeout=timeout, host=host)
        rows: list[Any] = []

        def came(page: Any) -> None:
            rows.extend(page or ())
            if future.has_more_pages:
                future.start_fetching_next_page()
            else:
                outcomes.append(None)
                event.set()

        def failed(error: Any) -> None:
            outcomes.append(error)
            event.set()

        future.add_callbacks(came, failed)
        return future, outcomes, rows, event

    async def _finish(self, future: Any, outcomes: list[Any], rows: list[Any], event: Any) -> list[Any]:
        timeout = self._address.timeout
        quiet = min(QUIET, timeout)
        if not await event.wait(quiet) and (timeout <= quiet + ALIVE or await self._lives(future._current_host)):
            await event.wait(min(timeout - quiet + GRACE, left(inf) + SLOW))
        if not outcomes:
            outcomes.append(OperationTimedOut())
        if outcomes[0] is not None:
            if isinstance(outcomes[0], OperationTimedOut) and self._address.route is not None:
                self._address.route.suspect(future._current_host)
            raise outcomes[0]
        return rows

    async def _lives(self, host: Any) -> bool:
        """Return whether a node that is slow to answer answers at all. One that hangs would cost every client its whole
        timeout, and a holder that was granted the lock by a row it has read has less time than that."""
        if host is None or self._driver.session is None or self._closed:
            return True
        statement = SimpleStatement(cql.CLOCK, is_idempotent=True, retry_policy=RETHROW)
        _, outcomes, _, event = self._begin(statement, ALIVE, host)
        await event.wait(min(ALIVE, left(inf) + HURRIED))
        return bool(outcomes) and not isinstance(outcomes[0], OperationTimedOut)

    # -- beginning and end

    async def open(self) -> Session:
        if self._closed:
            raise ConfigError(f"{self.where} was closed. Connect again.")
        if self._driver.session is None:
            await self.runtime.call(self._driver.connect)
        return self._session()

    def _session(self) -> Session:
        session = self._driver.session
        if session is None or self._closed:
            raise StoreError(f"{self.where} was closed while it was asked. Connect again.")
        return session

    def forked(self) -> None:
        self._driver.forked()

    async def close(self) -> None:
        self._closed = True
        if self._share.leave():
            await self._driver.close(self.runtime)


RETHROW = FallthroughRetryPolicy()
