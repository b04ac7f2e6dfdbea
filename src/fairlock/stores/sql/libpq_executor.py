"""Statements to PostgreSQL by psycopg's own layer over libpq, without its cursor: the fastest way.

A cursor of psycopg finds out with each statement what we know in advance: which values are numbers, what a
reply looks like, that it has been prepared. That takes as long as everything else that the client does for a lock,
and for tasks three times as long. A statement is prepared when it is sent for the second time on a connection, unless
there is a pooler between.

What is sent and received is written once, as a generator that yields what it waits for; a thread waits by blocking, a
task (`async_libpq_executor`) by suspending.
"""

import select
import time
from collections.abc import Callable, Generator, Sequence
from struct import Struct
from typing import Any

from psycopg import AsyncConnection, OperationalError, errors, pq, waiting

from ..deadline import left, limit
from .schema import Statement

INT8 = 20
NUMBERS = (20, 21, 23, 26)
BINARY, TEXT = 1, 0
TOO_MANY = 200  # statements of different text on one connection: items that are added come by the number
REPLY, ROOM = False, True  # what is waited for: that something has arrived; or, besides, that more can be sent

Rows = list[tuple[Any, ...]]
Steps = Generator[bool, None, Any]


class Known:
    """A statement as this connection knows it."""

    __slots__ = ("decoders", "formats", "name", "parameters", "text", "types", "used")

    def __init__(self, statement: Statement, values: dict[str, Any]) -> None:
        order = statement.order or ()
        self.text = statement.text.encode()
        kinds = [type(values[name]) for name in order]
        self.types = [INT8 if kind is int else 0 for kind in kinds]
        self.formats = [TEXT if kind is list else BINARY for kind in kinds]
        self.parameters = [(name, ENCODERS[kind]) for name, kind in zip(order, kinds, strict=True)]
        self.name = b""  # as long as it is not prepared
        self.used = False
        self.decoders: list[tuple[int, Callable[[bytes], Any]]] | None = None


class LibpqExecutor:
    """One connection. It does what a cursor would: execute, fetchall, rowcount, close."""

    def __init__(self, connection: Any, timeout: float, prepares: bool) -> None:
        self._pgconn = connection.pgconn
        self._timeout = timeout
        self._prepares = prepares
        self._known: dict[str, Known] = {}
        self._poll = select.poll()
        self._poll.register(self._pgconn.socket, select.POLLIN)
        self._sends = select.poll()
        self._sends.register(self._pgconn.socket, select.POLLIN | select.POLLOUT)
        self.rowcount = 0

    def execute(self, statement: Statement, values: dict[str, Any]) -> Rows:
        """Run it and return its rows. Errors are psycopg's; TimeoutError if no reply came in time."""
        steps = self._steps(statement, values)
        end = 0.0
        try:
            while True:
                poll = self._sends if next(steps) is ROOM else self._poll
                now = time.monotonic()
                end = end or now + left(self._timeout)
                if end <= now or not poll.poll((end - now) * 1000):
                    raise TimeoutError("no reply in time")
        except StopIteration as done:
            rows: Rows = done.value
            return rows

    def _steps(self, statement: Statement, values: dict[str, Any]) -> Steps:
        pgconn = self._pgconn
        known = self._known.get(statement.text)
        if known is None:
            known = Known(statement, values)
            if len(self._known) < TOO_MANY:
                self._known[statement.text] = known
        if known.used and not known.name and self._prepares:
            name = b"fairlock_%d" % len(self._known) + b"_%d" % id(known)
            pgconn.send_prepare(name, known.text, known.types)
            yield from self._reply()
            known.name = name
        filled = [encode(values[name]) for name, encode in known.parameters]
        if known.name:
            pgconn.send_query_prepared(known.name, filled, known.formats, TEXT)
        else:
            pgconn.send_query_params(known.text, filled, known.types, known.formats, TEXT)
        rows = self._rows((yield from self._reply()), known)
        known.used = True
        return rows

    def _reply(self) -> Steps:
        pgconn = self._pgconn
        while pgconn.flush():
            yield ROOM
            pgconn.consume_input()
        yield REPLY
        pgconn.consume_input()
        while pgconn.is_busy():
            yield REPLY
            pgconn.consume_input()
        result = pgconn.get_result()
        while True:  # until the end of the reply
            while pgconn.is_busy():
                yield REPLY
                pgconn.consume_input()
            if pgconn.get_result() is None:
                break
        if result is None:
            raise OperationalError("the connection is closed")
        if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            raise errors.error_from_result(result)
        return result

    def _rows(self, result: Any, known: Known) -> list[tuple[Any, ...]]:
        number = result.ntuples
        decoders = known.decoders
        if decoders is None:
            columns = range(result.nfields)
            decoders = known.decoders = [(n, int if result.ftype(n) in NUMBERS else bytes.decode) for n in columns]
        self.rowcount = number if decoders else result.command_tuples or 0
        value = result.get_value
        return [
            tuple([None if (raw := value(row, n)) is None else decode(raw) for n, decode in decoders])
            for row in range(number)
        ]

    def close(self) -> None:
        pass


def wait_on(connection: Any, timeout: float) -> Any:
    """How psycopg waits on this connection: for a server that hangs no longer than its caller, and no longer after a
    cancellation.

    By itself it asks the server to cancel the statement and waits up to ten seconds for that. If the connection breaks
    meanwhile, the cancellation turns into an error of the connection. Ours is thrown away in any case.
    """

    async def suspend(gen: Any, interval: float = 0.1) -> Any:
        return await waiting.wait_async(gen, connection.pgconn.socket, interval=interval, timeout=limit(timeout))

    def block(gen: Any, interval: float = 0.1) -> Any:
        return waiting.wait(gen, connection.pgconn.socket, interval=interval, timeout=limit(timeout))

    return suspend if isinstance(connection, AsyncConnection) else block


def _array(values: Sequence[object]) -> bytes:
    quoted = (str(text).replace("\\", "\\\\").replace('"', '\\"') for text in values)
    return ("{" + ",".join(f'"{text}"' for text in quoted) + "}").encode()


ENCODERS: dict[type, Callable[[Any], bytes]] = {str: str.encode, int: Struct(">q").pack, list: _array}
