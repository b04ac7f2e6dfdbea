"""How a statement gets to the server and its answer back: the raw cursor of a pooled connection, nothing else.

For tasks it is the same function, run by SQLAlchemy's own bridge to the drivers for asyncio (`tasks`). A connection on
which anything went wrong that is not a plain error of the server is thrown away, and the idle ones with it: they most
likely broke together.
"""

import os
import weakref
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..patience import limit, over
from . import trouble
from .address import CONNECTIONS, Address, on
from .dialects import Dialect, dialect_of
from .tables import Statement, ddl


class Told(NamedTuple):
    """What a statement brought: rows, or how many it met, and the time of its check."""

    rows: list[Any]
    met: int
    now: int


class Hands:
    def __init__(self, address: Address) -> None:
        self.where = address.where
        self.engine = address.engine
        self.dialect: Dialect = dialect_of(address.scheme, address.engine.dialect)
        self.pooled = False  # whether somebody stands between who gives each transaction another session
        self.statements = 0
        self._timeout = address.timeout
        self._parked: list[tuple[Any, Any]] = []
        self._quick = address.engine.dialect.driver == "psycopg"
        self._limits = address.engine.dialect.driver in ("pymysql", "oracledb", "oracledb_async")
        # One who is forgotten without being closed goes in silence. (By a finalizer that has them: in a __del__ of ours
        # they might have been collected before us.)
        self._open: list[Any] = []
        self._pid = os.getpid()
        weakref.finalize(self, _hang_up_all, self._open, self._pid)
        on("connect", self.engine, self._made, first=True)
        on("connect", self.engine, self._opened)
        on("close", self.engine, self._closes)

    async def run(self, statement: Statement, values: dict[str, Any]) -> Told:
        return self.say(statement, values)

    async def make_tables(self) -> None:
        """If that is allowed. Somebody else may do the same at the same time."""
        for text in ddl(self.dialect.sa, self.dialect.makes_if_absent):
            try:
                await self.run(Statement(text, (), False), {})
            except (trouble.Exists, trouble.Conflict):
                pass

    def say(self, statement: Statement, values: dict[str, Any]) -> Told:
        again = statement.reads
        while True:
            lent, cursor = self._lend()
            try:
                self.statements += 1
                if self._limits:
                    self._limit(lent)
                if self._quick and values:
                    rows = cursor.say(statement, values)
                    met, now = cursor.rowcount, 0
                else:
                    rows, met, now = self._by_cursor(lent.cursor() if self._quick else cursor, statement, values)
            except BaseException as error:
                self._failed(lent, cursor, error, again)
                again = False  # it was an old connection, most likely: a new one tells
                continue
            self._put_back(lent, cursor)
            return Told(rows, met, now)

    def _failed(self, lent: Any, cursor: Any, error: BaseException, again: bool) -> None:
        """What a statement that failed means; nothing if it may be sent again, on another connection."""
        if not trouble.is_over(self.dialect, error):
            self._put_back(lent, cursor)
            raise trouble.said_no(self.dialect, self.where, error) from None
        _hang_up(driver_of(lent), by_pool=True)
        self.discard(lent)
        if not isinstance(error, Exception):
            raise error
        self.drop_idle()
        if not again or over():
            raise trouble.said_no(self.dialect, self.where, error) from None

    def _put_back(self, lent: Any, cursor: Any) -> None:
        if not self._parked:  # one: who waits for the pool is not told of what lies here
            self._parked.append((lent, cursor))
        else:
            cursor.close()
            lent.close()

    def _by_cursor(self, cursor: Any, statement: Statement, values: dict[str, Any]) -> Told:
        if values:
            cursor.execute(statement.text, statement.fill(values))
        else:
            cursor.execute(statement.text)
        rows = list(cursor.fetchall()) if statement.shows else []
        return Told(rows, *self.dialect.outcome(cursor))

    def _lend(self) -> tuple[Any, Any]:
        """A connection and its cursor. What was used last is at hand; the pool is asked for what is more than that."""
        if self._parked:
            try:
                return self._parked.pop()
            except IndexError:
                pass  # another thread was quicker
        if over():
            raise trouble.cannot_connect(self.dialect, self.where, TimeoutError())
        try:
            lent = self.engine.raw_connection()
            return lent, self._quickly(lent) if self._quick else lent.cursor()
        except sa.exc.DBAPIError as error:  # of a statement that SQLAlchemy sends on a connection of somebody's engine
            raise trouble.cannot_connect(self.dialect, self.where, error.orig or error) from None
        except (sa.exc.TimeoutError, self.engine.dialect.loaded_dbapi.Error, OSError, TypeError, UnicodeError) as error:
            raise trouble.cannot_connect(self.dialect, self.where, error) from None

    def _quickly(self, lent: Any) -> Any:
        found = lent.info.get("holdfast")
        if found is None:
            found = lent.info["holdfast"] = self._make_quick()(driver_of(lent), self._timeout, not self.pooled)
        return found

    def _make_quick(self) -> Any:
        from .quick import Quick

        return Quick

    def discard(self, lent: Any) -> None:
        """The pool forgets a connection that is closed already."""
        lent.invalidate()

    def drop_idle(self) -> None:
        while self._parked:
            try:
                self._parked.pop()[0].close()
            except IndexError:
                break
        self.engine.dispose()

    def _made(self, connection: Any) -> None:
        """A new connection: its limits. Drivers would wait forever."""
        driver = driver_of(connection)
        if len(self._open) >= CONNECTIONS:
            self._open[:] = [each for each in self._open if not _is_closed(each)]
        self._open.append(driver)
        if hasattr(driver, "pgconn"):
            from .quick import wait_on

            driver.wait = wait_on(driver, self._timeout)
        elif self.engine.dialect.driver == "aiomysql":
            driver.show_warnings = _no_warnings  # early versions of SQLAlchemy 2.0 have it ask, and warn of each item
        else:
            self._limit(connection)

    def _limit(self, connection: Any) -> None:
        """The next replies take no longer than the caller waits."""
        driver = driver_of(connection)
        if hasattr(driver, "call_timeout"):
            driver.call_timeout = int(limit(self._timeout) * 1000)
        elif self._limits:
            driver._read_timeout = limit(self._timeout)  # which pymysql sets on its socket with every read

    def _closes(self, connection: Any) -> None:
        """python-oracledb says goodbye, and waits for a reply."""
        driver = driver_of(connection)
        if hasattr(driver, "call_timeout"):
            driver.call_timeout = min(driver.call_timeout, int(limit(self._timeout) * 1000))

    def _opened(self, connection: Any) -> None:
        """What is sent on a new connection before it is used."""
        driver = driver_of(connection)
        if self.dialect.session:
            cursor = connection.cursor()
            cursor.execute(self.dialect.session)
            cursor.close()
        if self.dialect.name != "PostgreSQL" or not hasattr(driver, "pgconn"):
            return
        cursor = connection.cursor()
        if driver.info.encoding != "utf-8":  # what is stored may be less, but what is said is always the same
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
        self.abandon()  # what others of this client are still using

    def forked(self) -> None:
        """The connections are the parent's: they may not even be closed here."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            _leaked.extend([self.engine.pool, *self._open, *self._parked])
            self._parked = []
            self._open = []
            weakref.finalize(self, _hang_up_all, self._open, self._pid)
            self.engine.dispose(close=False)

    def abandon(self) -> None:
        """Let go of all connections, in silence and without waiting for anything."""
        _hang_up_all(self._open, self._pid)


def driver_of(connection: Any) -> Any:
    """The driver's own, of one that is lent (by the pool, or taken from it for good) or that SQLAlchemy has adapted."""
    inner = getattr(connection, "driver_connection", None) or getattr(connection, "dbapi_connection", None)
    return connection if inner is None else driver_of(inner) if inner is not connection else inner


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
