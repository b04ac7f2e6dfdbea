"""Runs a statement: the raw cursor of a pooled connection, nothing else. All clients of one address share the pool.

For tasks the same function runs under SQLAlchemy's own bridge to the drivers for asyncio (`async_executor`). After any
problem that is not a plain error of the server, the connection is closed, and the idle ones with it: most likely they
broke together.
"""

import os
import weakref
from queue import Empty
from typing import Any, NamedTuple

import sqlalchemy as sa

from ...errors import LockError, StoreError
from ..deadline import limit, over
from ..shared_connections import SharedConnections
from . import errors
from .dialects import Dialect, dialect_for
from .row_waits import make_room, wait_for_room
from .schema import TUNING, Statement, ddl
from .url import CONNECTIONS, Address, on


class Result(NamedTuple):
    """The result of a statement: its rows, or how many it matched, and the time of its check."""

    rows: list[Any]
    matched: int
    now: int


class Executor(SharedConnections):
    def __init__(self, address: Address) -> None:
        super().__init__()
        self.address = address
        self.where = address.where
        self.engine = address.engine
        self.dialect: Dialect = dialect_for(address.scheme, address.engine.dialect)
        self.pooled = False  # whether a pooler stands between that gives each transaction another session
        self.statements = 0
        self._timeout = address.timeout
        self._uses_libpq = address.engine.dialect.driver == "psycopg"
        self._limits = address.engine.dialect.driver in ("pymysql", "oracledb", "oracledb_async")
        self._start()
        on("connect", self.engine, self._made, first=True)
        on("connect", self.engine, self._opened)
        on("close", self.engine, self._closes)

    def _start(self) -> None:
        """Begin without a connection: at first, and in the child of a fork."""
        self._pid = os.getpid()
        self._parked: list[tuple[Any, Any]] = []
        self._room = make_room()
        # Clients that are forgotten without being closed disconnect in silence. (By a finalizer that has the
        # connections: in a __del__ of ours they might have been collected already.)
        self._open: list[Any] = []
        weakref.finalize(self, _hang_up_all, self._open, self._pid)

    def count_statements(self) -> int:
        """Return how many were sent, of all clients that share these connections."""
        return self.statements

    async def run(self, statement: Statement, values: dict[str, Any]) -> Result:
        return self.execute(statement, values)

    async def make_tables(self) -> None:
        """Create the tables if that is allowed. Another client may do the same at the same time."""
        for text in ddl(self.dialect.sa, self.dialect.makes_if_absent):
            try:
                await self.run(Statement(text, (), False), {})
            except (errors.Exists, errors.Conflict):
                pass
            except StoreError:
                if text not in TUNING.values():  # the table belongs to another user
                    raise

    def execute(self, statement: Statement, values: dict[str, Any]) -> Result:
        if not statement.may_wait:
            return self._execute(statement, values)
        room = self._room
        try:
            room.get(False)
        except Empty:
            if not wait_for_room(room, self._timeout, self.engine.pool):
                raise errors.cannot_connect(self.dialect, self.where, sa.exc.TimeoutError("queuepool limit")) from None
        try:
            return self._execute(statement, values)
        finally:
            room.put(None)

    def _execute(self, statement: Statement, values: dict[str, Any]) -> Result:
        again = statement.reads
        while True:
            lent, cursor = self._lend()
            try:
                self.statements += 1
                if self._limits:
                    self._limit(lent)
                if self._uses_libpq:
                    rows = cursor.execute(statement, values)
                    matched, now = cursor.rowcount, 0
                else:
                    rows, matched, now = self._by_cursor(cursor, statement, values)
            except BaseException as error:
                self._failed(lent, cursor, error, again, statement.many)
                again = False  # it was an old connection, most likely: a new one shows
                continue
            self._put_back(lent, cursor)
            return Result(rows, matched, now)

    def _failed(self, lent: Any, cursor: Any, error: BaseException, again: bool, many: bool = False) -> None:
        """Raise the meaning of a failed statement; return if it may be sent again on another connection."""
        broken = errors.is_over(self.dialect, error)
        if not broken and not many:
            self._put_back(lent, cursor)
            raise errors.explain_failure(self.dialect, self.where, error) from None
        _hang_up(driver_for(lent), by_pool=True)
        self.discard(lent)
        if not isinstance(error, Exception):
            raise error
        if not broken:  # of many rows some were written: the end of the connection undoes that. Each alone shows why
            raise errors.Conflict from None
        self.drop_idle()
        if not again or over():
            raise errors.explain_failure(self.dialect, self.where, error) from None

    def _put_back(self, lent: Any, cursor: Any) -> None:
        if not self._parked:  # only one: a thread that waits for the pool does not see what is parked here
            self._parked.append((lent, cursor))
        else:
            cursor.close()
            lent.close()

    def _by_cursor(self, cursor: Any, statement: Statement, values: dict[str, Any]) -> Result:
        if statement.many:
            cursor.executemany(statement.text, [statement.fill(row) for row in values["rows"]])
        elif values:
            cursor.execute(statement.text, statement.fill(values))
        else:
            cursor.execute(statement.text)
        rows = list(cursor.fetchall()) if statement.shows else []
        return Result(rows, *self.dialect.outcome(cursor))

    def _lend(self) -> tuple[Any, Any]:
        """Return a connection and its cursor: the parked one, else one from the pool."""
        if self._parked:
            try:
                return self._parked.pop()
            except IndexError:
                pass  # another thread was quicker
        if over():
            raise errors.cannot_connect(self.dialect, self.where, TimeoutError())
        try:
            lent = self.engine.raw_connection()
            return lent, self._libpq_for(lent) if self._uses_libpq else lent.cursor()
        except sa.exc.DBAPIError as error:  # of a statement that SQLAlchemy sends for an engine of the caller
            raise errors.cannot_connect(self.dialect, self.where, error.orig or error) from None
        except LockError:
            raise
        except Exception as error:  # drivers also raise AttributeError and EOFError for a connection that breaks
            raise errors.cannot_connect(self.dialect, self.where, error) from None

    def _libpq_for(self, lent: Any) -> Any:
        found = lent.info.get("fairlock")
        if found is None:
            found = lent.info["fairlock"] = self._libpq_class()(driver_for(lent), self._timeout, not self.pooled)
        return found

    def _libpq_class(self) -> Any:
        from .libpq_executor import LibpqExecutor

        return LibpqExecutor

    def discard(self, lent: Any) -> None:
        """Remove a connection that is already closed from the pool."""
        lent.invalidate()

    def drop_idle(self) -> None:
        while self._parked:
            try:
                self._parked.pop()[0].close()
            except IndexError:
                break
        self.engine.dispose()

    def _made(self, connection: Any) -> None:
        """Set the limits of a new connection. Drivers would wait forever."""
        driver = driver_for(connection)
        if len(self._open) >= CONNECTIONS:
            self._open[:] = [each for each in self._open if not _is_closed(each)]
        self._open.append(driver)
        if hasattr(driver, "pgconn"):
            from .libpq_executor import wait_on

            driver.wait = wait_on(driver, self._timeout)
        elif self.engine.dialect.driver == "aiomysql":
            driver.show_warnings = _no_warnings  # early versions of SQLAlchemy 2.0 have it query, and warn of each item
        else:
            self._limit(connection)

    def _limit(self, connection: Any) -> None:
        """Limit the next replies to the time that the caller waits."""
        driver = driver_for(connection)
        if hasattr(driver, "call_timeout"):
            driver.call_timeout = int(limit(self._timeout) * 1000)
        elif self._limits:
            driver._read_timeout = limit(self._timeout)  # which pymysql sets on its socket with every read

    def _closes(self, connection: Any) -> None:
        """Limit the goodbye of python-oracledb, which waits for a reply."""
        driver = driver_for(connection)
        if hasattr(driver, "call_timeout"):
            driver.call_timeout = min(driver.call_timeout, int(limit(self._timeout) * 1000))

    def _opened(self, connection: Any) -> None:
        """Prepare a new connection before it is used."""
        driver = driver_for(connection)
        if self.dialect.session:
            cursor = connection.cursor()
            cursor.execute(self.dialect.session)
            cursor.close()
        if self.dialect.name != "PostgreSQL" or not hasattr(driver, "pgconn"):
            return
        cursor = connection.cursor()
        if driver.info.encoding != "utf-8":  # the database may store less, but the connection always uses this
            cursor.execute("SET client_encoding TO 'UTF8'")
        cursor.execute("SELECT pg_backend_pid()")
        session = cursor.fetchone()[0]
        cursor.close()
        if session != driver.info.backend_pid:
            self.pooled = True  # a pooler gives numbers of its own
        else:
            driver.prepare_threshold = 2  # otherwise statements cannot be prepared: the next one goes elsewhere

    async def close(self) -> None:
        self.drop_idle()
        self.abandon()  # what is still in use

    def forked(self) -> None:
        """The connections are the parent's: they may not even be closed here. Each client calls this."""
        if self._pid != os.getpid():
            _leaked.extend([self.engine.pool, *self._open, *self._parked])
            self._start()
            self.engine.dispose(close=False)

    def abandon(self) -> None:
        """Close all connections, in silence and without waiting."""
        _hang_up_all(self._open, self._pid)


def driver_for(connection: Any) -> Any:
    """Return the driver's own connection behind one that is lent, detached, or adapted by SQLAlchemy."""
    inner = getattr(connection, "driver_connection", None) or getattr(connection, "dbapi_connection", None)
    return connection if inner is None else driver_for(inner) if inner is not connection else inner


async def _no_warnings() -> None:
    pass


def _hang_up_all(open: list[Any], pid: int) -> None:
    if pid == os.getpid():
        while open:
            _hang_up(open.pop())


def _hang_up(driver: Any, by_pool: bool = False) -> None:
    """Close it, without a reply. `by_pool`: its pool closes it next, and some drivers refuse to be closed twice."""
    try:
        if hasattr(driver, "pgconn"):
            driver.pgconn.finish()
        elif hasattr(driver, "_force_close"):
            driver._force_close()
        elif hasattr(driver, "call_timeout"):
            driver.call_timeout = 1  # its close() sends a goodbye and waits for a reply
            if not by_pool:
                goodbye = (driver.terminate if hasattr(driver, "terminate") else driver.close)()
                if goodbye is not None:  # in asyncio, before python-oracledb 26: only a loop can close it
                    goodbye.close()
        elif driver is not None:
            driver.close()
    except Exception:
        pass  # it is broken; and at the end of the interpreter anything may be missing


def _is_closed(driver: Any) -> bool:
    if hasattr(driver, "is_healthy"):
        return not driver.is_healthy()
    return bool(getattr(driver, "closed", not getattr(driver, "open", True)))


_leaked: list[Any] = []
