"""The connections of threads to one server.

A command takes the connection that was used last from a list and puts it back: no bookkeeping of a pool, no packing, no
retries by the driver. A connection on which anything failed is closed, because its next reply could belong to the last
request; and all idle ones with it, because what broke one has most likely broken them all.

The kernel interrupts each read after a tick. That costs nothing while a server replies; when it does not, the reader
checks at every tick whether its caller still waits.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from time import monotonic
from typing import Any

from ..deadline import left, over
from .errors import NOT_CONNECTED, cannot_connect, lost
from .reply_reader import NOT_YET, detach_socket, reader, set_timeouts

MOST = 64  # connections; a thread that needs one more waits for one of them
CHUNK = 65536
SMALL = 448  # bytes; Python allocates as much quickly, and most items are no larger
TICK = 0.1  # seconds
SLOW = (BlockingIOError, TimeoutError)  # raised at the end of a tick, without TLS and with it


class ThreadConnection:
    """A connection that redis-py has made, with direct access to its socket."""

    __slots__ = ("connection", "feed", "gets", "pending", "recv", "send", "sock", "timeout")

    def __init__(self, connection: Any, timeout: float) -> None:
        self.connection = connection  # kept: its socket is closed when it is forgotten
        sock = self.sock = connection._sock
        self.timeout = timeout
        self.send = set_timeouts(sock, timeout, min(timeout, TICK))
        self.recv = sock.recv
        self.pending = getattr(sock, "pending", None)  # of TLS: how much it has read already
        own = reader()
        self.feed, self.gets = own.feed, own.gets

    def read(self) -> Any:
        """Read the next reply. Raises what the socket raises, and EOFError at its end."""
        gets = self.gets
        found = gets()
        while found is NOT_YET:
            try:
                data = self.recv(CHUNK)
            except SLOW:
                data = self.wait(CHUNK)
            if not data:
                raise EOFError
            self.feed(data)
            found = gets()
        return found

    def wait(self, size: int) -> bytes:
        """Continue to read after a tick without a byte, while a reply may still come and the caller waits."""
        end = monotonic() - TICK + self.timeout
        while monotonic() < end and not over():
            try:
                return self.recv(size)  # type: ignore[no-any-return]
            except SLOW:
                pass
        raise TimeoutError

    def close(self) -> None:
        self.connection.disconnect()


class ThreadNode:
    """One server, as threads reach it."""

    def __init__(self, make: Callable[[], Any], where: str) -> None:
        self._make = make
        self.where = where
        self.breaks = 0  # how often a connection broke: it may be another server now, or one that has lost its data
        self.forget()

    def request_one(self, payload: bytes, pings: bool = False) -> Any:
        """Send one command without waiting for a connection, and return its reply. NOT_YET: nothing was sent.

        pings: there is a PING before it, whose reply is ignored.
        """
        try:
            connection = self._free.pop()
        except IndexError:
            return NOT_YET
        try:
            # These are no methods: called by their names they take longer.
            send, recv, gets = connection.send, connection.recv, connection.gets
            send(payload)
            try:
                data = recv(SMALL)
            except SLOW:
                data = connection.wait(SMALL)
            if not data:
                raise EOFError
            connection.feed(data)
            found = gets()
            if pings and found is not NOT_YET:
                pings, found = False, gets()
            if found is NOT_YET:
                found = connection.read()
                if pings:
                    found = connection.read()
        except BaseException as error:
            raise self._broken(connection, error) from None
        self._free.append(connection)
        if self._waiting:
            self._wake_next()
        return found

    async def request(self, payload: bytes, replies: int) -> list[Any]:
        """Send, and read this number of replies; an error reply is a `ReplyError`. OutcomeUnknown if it broke."""
        try:
            connection = self._free.pop()
        except IndexError:
            connection = self._new_connection()
        found: list[Any] = []
        try:
            connection.send(payload)
            while len(found) < replies:
                found.append(connection.read())
        except BaseException as error:
            raise self._broken(connection, error) from None
        self._free.append(connection)
        if self._waiting:
            self._wake_next()
        return found

    def _new_connection(self) -> ThreadConnection:
        while True:
            if over():
                raise cannot_connect(self.where, TimeoutError())
            with self._mutex:
                if self._count < MOST:
                    self._count += 1
                    break
                gate = allocate_lock()
                gate.acquire()
                self._waiting.append(gate)
            try:
                return self._free.pop()  # it may have come back meanwhile
            except IndexError:
                gate.acquire(timeout=0.5)
            try:
                return self._free.pop()
            except IndexError:
                continue
        try:
            return self.connect()
        except BaseException:
            self._decrement()
            raise

    def _wake_next(self) -> None:
        try:
            self._waiting.pop(0).release()
        except IndexError:
            pass

    def connect(self) -> ThreadConnection:
        """Open a connection. StoreError (or ConfigError) if that fails."""
        connection = self._make()
        timeout = connection.socket_timeout
        connection.socket_timeout = max(left(timeout), 0.001)
        connection.socket_connect_timeout = max(left(connection.socket_connect_timeout), 0.001)
        try:
            connection.connect()
            return ThreadConnection(connection, timeout)
        except BaseException as error:
            connection.disconnect()
            if isinstance(error, NOT_CONNECTED):
                raise cannot_connect(self.where, error) from None
            raise

    def _broken(self, connection: ThreadConnection, error: BaseException) -> BaseException:
        """Close it, whatever the error is. Returns the error to raise. A Ctrl-C concerns no other connection."""
        self._decrement()
        connection.close()
        if not isinstance(error, OSError | EOFError):
            return error
        self.breaks += 1
        self._drop()
        return lost(self.where, error)

    def _decrement(self) -> None:
        with self._mutex:
            self._count -= 1
        if self._waiting:
            self._wake_next()

    def _drop(self) -> None:
        while self._free:
            try:
                connection = self._free.pop()
            except IndexError:
                break
            self._decrement()
            connection.close()

    async def drop(self) -> None:
        """The next command makes a new connection."""
        self._drop()

    def forget(self) -> None:
        """At the start, and after a fork: the sockets belong to the parent."""
        for connection in getattr(self, "_free", ()):
            detach_socket(connection.sock.fileno())
        self._free: list[ThreadConnection] = []
        self._waiting: list[Any] = []
        self._mutex = allocate_lock()
        self._count = 0

    close = drop
