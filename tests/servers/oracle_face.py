"""The face of python-oracledb over a connection to H2, as far as SQLAlchemy and fairlock use it: for the stand-in.

Its errors are python-oracledb's own. What Oracle would refuse is refused before H2 sees it (`oracle_strict`). For
asyncio the same connection works in a thread of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

import oracledb
import psycopg
from oracledb import errors

from .h2 import Wire, reach
from .oracle_strict import Session, error_of, oracle_error
from .sql import DATABASE, PASSWORD, USER


def connect(dsn: str = "", **options: Any) -> Connection:
    """As oracledb.connect."""
    params = oracledb.ConnectParams()
    params.parse_connect_string(dsn)
    host, port = params.host, params.port
    if not options.get("user") or not options.get("password"):
        raise error_of(errors.ERR_NO_CREDENTIALS)
    if params.sid:
        raise error_of(errors.ERR_INVALID_SID, sid=params.sid, host=host, port=port)
    if params.service_name != DATABASE:
        raise error_of(
            errors.ERR_INVALID_SERVICE_NAME, service_name=params.service_name, host=host, port=port
        )
    if (options["user"], options["password"]) != (USER, PASSWORD):  # H2 would only hang up, after a while
        raise oracle_error(1017, "invalid credential or not authorized; logon denied")
    try:
        # Without a limit, as python-oracledb: its tcp_connect_timeout ends where the handshake begins.
        return Connection(reach(port, options["user"], options["password"], 0))
    except psycopg.Error as error:
        raise _not_connected(error) from None


def _not_connected(error: psycopg.Error) -> Exception:
    cause = OSError(111, "Connection refused") if "refused" in str(error) else error
    return error_of(errors.ERR_CONNECTION_FAILED, cause=cause, connection_id="")


class Connection:
    """As oracledb.Connection, as far as SQLAlchemy and fairlock use it."""

    thin = True
    version = "19.3.0.0.0"
    max_identifier_length = 128
    stmtcachesize = 20
    outputtypehandler: Callable[..., Any] | None = None
    call_timeout = 0

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._session = Session(wire)
        self._closed = False

    @property
    def autocommit(self) -> bool:
        return self._wire.autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        self._wire.autocommit = value

    def cursor(self) -> Cursor:
        return Cursor(self)

    def is_healthy(self) -> bool:
        return not self._wire.closed

    def commit(self) -> None:
        self._call(self._wire.commit)

    def rollback(self) -> None:
        self._call(self._wire.rollback)

    def close(self) -> None:
        """Sends a goodbye and waits for a reply. What was closed already is an error."""
        self._verify()
        try:
            if not self._wire.closed:
                self._call(lambda: self._wire.execute("SELECT 1"))
        except oracledb.Error:
            pass
        self._terminate()

    def _terminate(self) -> None:
        self._closed = True
        self._wire.close()

    def _verify(self) -> None:
        if self._closed:
            raise error_of(errors.ERR_NOT_CONNECTED)

    def _call(self, what: Callable[[], Any]) -> Any:
        self._verify()
        self._wire.limit = self.call_timeout / 1000
        try:
            return what()
        except TimeoutError:
            self._wire.close()
            raise error_of(errors.ERR_CALL_TIMEOUT_EXCEEDED, timeout=self.call_timeout) from None
        except psycopg.Error as error:
            raise self._session.translated(error) from None


class Var:
    def __init__(self, outconverter: Callable[[Any], Any] | None) -> None:
        self.outconverter = outconverter or str


class Lob:
    """A CLOB, unless the caller asked for text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read(self) -> str:
        return self._text


class Cursor:
    arraysize = 100
    outputtypehandler: Callable[..., Any] | None = None

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rows: list[Any] = []
        self.description: list[Any] | None = None
        self.rowcount = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def var(self, kind: Any, *sizes: Any, outconverter: Callable[[Any], Any] | None = None, **options: Any) -> Var:
        return Var(outconverter)

    def setinputsizes(self, *kinds: Any, **named: Any) -> None:
        pass

    def execute(self, text: str, values: dict[str, Any] | None = None) -> Any:
        answer = self._connection._session.answer(text)
        if answer is not None:
            known = [("VALUE", oracledb.DB_TYPE_VARCHAR, 0, 0, 0)] if answer else None
            self._rows, self.description, self.rowcount = answer, known, 0
            return None
        statement, filled = self._connection._session.strict(text, values or {})
        found = self._connection._call(lambda: self._connection._wire.execute(statement, filled))
        self._rows, self.description = [], None
        if found.description is None:
            self.rowcount = max(found.rowcount, 0)
            return None
        kinds = [self._kind(column) for column in found.description]
        self.description = [(column.name.upper(), *kind) for column, kind in zip(found.description, kinds, strict=True)]
        changes = [self._output(name, *kind) for name, *kind in self.description]
        self._rows = [tuple(map(_changed, changes, row)) for row in found.fetchall()]
        self.rowcount = 0
        return self

    def executemany(self, text: str, rows: list[dict[str, Any]]) -> None:
        """Array DML: the same statement with the values of many rows, in one transaction, which autocommit ends if all
        goes well. After an error what was done before it stays in the open transaction, as Oracle documents it."""
        if not rows:
            raise error_of(errors.ERR_NO_STATEMENT)
        wire = self._connection._wire
        commits, matched = wire.autocommit, 0
        wire.autocommit = False
        for values in rows:
            Cursor.execute(self, text, values)
            matched += self.rowcount
        self.rowcount = matched
        if commits:
            self._connection.commit()
            wire.autocommit = True

    def _kind(self, column: Any) -> tuple[Any, int, int, int]:
        """Type, size, precision and scale, of which an expression has none."""
        if column.type_code in (20, 21, 23):
            return oracledb.DB_TYPE_NUMBER, 0, 0, -127
        if column.type_code == 1700:
            return oracledb.DB_TYPE_NUMBER, 0, 19, 0
        return (oracledb.DB_TYPE_CLOB if column.type_code == 25 else oracledb.DB_TYPE_VARCHAR), 4000, 0, 0

    def _output(self, name: str, kind: Any, size: int, precision: int, scale: int) -> Callable[[Any], Any] | None:
        handler = self.outputtypehandler or self._connection.outputtypehandler
        var = handler(self, name, kind, size, precision, scale) if handler is not None else None
        if var is None:
            return Lob if kind is oracledb.DB_TYPE_CLOB else int if kind is oracledb.DB_TYPE_NUMBER else None
        return lambda value: var.outconverter(str(value))

    def fetchall(self) -> list[Any]:
        if self.description is None:
            raise error_of(errors.ERR_NOT_A_QUERY)
        rows, self._rows = self._rows, []
        self.rowcount += len(rows)
        return rows

    def fetchone(self) -> Any:
        return self._rows.pop(0) if self._rows else None

    def close(self) -> None:
        self._rows = []


def _changed(change: Callable[[Any], Any] | None, value: Any) -> Any:
    return value if change is None or value is None else change(value)


async def task_connect(dsn: str = "", **options: Any) -> TaskConnection:
    """As oracledb.connect_async."""
    worker = ThreadPoolExecutor(1, "oracle-stand-in")
    making = worker.submit(connect, dsn, **options)
    try:
        return TaskConnection(await asyncio.wrap_future(making), worker)
    except BaseException:
        making.add_done_callback(_unwanted)
        worker.shutdown(wait=False)
        raise


def _unwanted(making: Future[Connection]) -> None:
    """It was given up while it was being made."""
    if not making.cancelled() and making.exception() is None:
        making.result()._terminate()


class TaskConnection:
    """As oracledb.AsyncConnection."""

    def __init__(self, inner: Connection, worker: ThreadPoolExecutor) -> None:
        self.__dict__.update(_inner=inner, _worker=worker)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)

    async def _run(self, what: Callable[..., Any], *values: Any) -> Any:
        self._inner._verify()
        return await asyncio.get_running_loop().run_in_executor(self._worker, what, *values)

    def cursor(self) -> TaskCursor:
        return TaskCursor(self)

    async def commit(self) -> None:
        await self._run(self._inner.commit)

    async def rollback(self) -> None:
        await self._run(self._inner.rollback)

    async def close(self) -> None:
        await self._run(self._inner.close)
        self.terminate()

    def terminate(self) -> None:
        """Without a goodbye."""
        self._inner._terminate()
        self._worker.shutdown(wait=False)


class TaskCursor(Cursor):
    def __init__(self, connection: TaskConnection) -> None:
        super().__init__(connection._inner)
        self._task_connection = connection

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()

    async def execute(self, text: str, values: dict[str, Any] | None = None) -> Any:
        return await self._task_connection._run(super().execute, text, values)

    async def executemany(self, text: str, rows: list[dict[str, Any]]) -> None:  # type: ignore[override]
        await self._task_connection._run(super().executemany, text, rows)

    async def fetchall(self) -> list[Any]:
        return super().fetchall()

    async def fetchone(self) -> Any:
        return super().fetchone()
