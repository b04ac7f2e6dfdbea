"""The wire for threads: the connections to one server.

A command takes a connection from a list, the one that was used last, and puts it back: no pool's bookkeeping, no
packing, no retries by the driver. A connection on which anything went wrong is thrown away, for its next reply could be
the answer to the last question; and with it all that lie idle, for what broke one has most likely broken them all.

The kernel interrupts each read after a tick. That costs nothing while a server replies, and when it does not, the
reader looks at every tick whether its caller still waits.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from time import monotonic
from typing import Any

from redis import exceptions

from ..patience import left, over
from .reading import NOT_YET, let_go, patient, reader
from .trouble import cannot_connect, lost

MOST = 64  # connections; who needs one more waits for one of them
CHUNK = 65536
USUAL = 4096  # bytes for which room is made for the reply to a step; what is longer comes in pieces
SMALL = 448  # bytes; so many Python has ready, and most items are no larger
SHORT = 32  # bytes; more has no reply of the quickest scripts, and so few are made ready quicker
PLAIN = {b":", b"$", b"_"}  # numbers, and two ways to say that there is none
END = b"\r\n"
TICK = 0.1  # seconds
SLOW = (BlockingIOError, TimeoutError)  # how the end of a tick looks, without TLS and with it


class Tie:
    """A connection that redis-py has made, with what is needed of it at hand."""

    __slots__ = ("connection", "reader", "recv", "send", "sock", "timeout")

    def __init__(self, connection: Any, timeout: float) -> None:
        self.connection = connection  # kept: its socket is closed when it is forgotten
        sock = self.sock = connection._sock
        self.timeout = timeout
        self.send = patient(sock, timeout, min(timeout, TICK))
        self.recv = sock.recv
        self.reader = reader()

    def read(self) -> Any:
        """The next reply. Raises what the socket raises, and EOFError at its end."""
        gets = self.reader.gets
        found = gets()
        while found is NOT_YET:
            try:
                data = self.recv(CHUNK)
            except SLOW:
                data = self.wait(CHUNK)
            if not data:
                raise EOFError
            self.reader.feed(data)
            found = gets()
        return found

    def wait(self, size: int) -> bytes:
        """Read on after a tick without a byte, for as long as a reply may take and the caller waits."""
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

    def say(self, payload: bytes) -> bytes | None:
        """One command at once, and its reply as it came. None: nothing was said, for no connection is at hand.

        For the scripts that answer by a number, or by nothing. b'' if it is an error: then it has done nothing.
        """
        try:
            tie = self._free.pop()
        except IndexError:
            return None
        try:
            tie.send(payload)
            try:
                found: bytes = tie.recv(SHORT)
            except SLOW:
                found = tie.wait(SHORT)
            if found[-2:] != END or found[:1] not in PLAIN:
                if not found:
                    raise EOFError
                tie.reader.feed(found)
                whole = tie.read()  # in pieces, perhaps
                found = b":%d\r\n" % whole if type(whole) is int else b"_\r\n" if whole is None else b""
        except BaseException as error:
            raise self._broken(tie, error) from None
        self._free.append(tie)
        if self._thirsty:
            self._give()
        return found

    def hear(self, payload: bytes) -> Any:
        """One command at once, and its reply. NOT_YET: nothing was said, for no connection is at hand."""
        try:
            tie = self._free.pop()
        except IndexError:
            return NOT_YET
        try:
            tie.send(payload)
            try:
                data = tie.recv(SMALL)
            except SLOW:
                data = tie.wait(SMALL)
            if not data:
                raise EOFError
            reader = tie.reader
            reader.feed(data)
            found = reader.gets()
            if found is NOT_YET:
                found = tie.read()
        except BaseException as error:
            raise self._broken(tie, error) from None
        self._free.append(tie)
        if self._thirsty:
            self._give()
        return found

    def tell(self, payload: bytes, replies: int) -> list[Any] | None:
        """The same as `talk`, at once. None: nothing was said, for no connection is at hand."""
        try:
            tie = self._free.pop()
        except IndexError:
            return None
        return self._exchange(tie, payload, replies)

    async def talk(self, payload: bytes, replies: int) -> list[Any]:
        """Send, and read so many replies; an error reply is given as `Said`. Unknown if it broke."""
        try:
            tie = self._free.pop()
        except IndexError:
            tie = self._another()
        return self._exchange(tie, payload, replies)

    def _exchange(self, tie: Tie, payload: bytes, replies: int) -> list[Any]:
        found: list[Any] = []
        try:
            tie.send(payload)
            feed, gets = tie.reader.feed, tie.reader.gets
            while len(found) < replies:
                try:
                    data = tie.recv(USUAL)
                except SLOW:
                    data = tie.wait(USUAL)
                if not data:
                    raise EOFError
                feed(data)
                while (one := gets()) is not NOT_YET:
                    found.append(one)
        except BaseException as error:
            raise self._broken(tie, error) from None
        self._free.append(tie)
        if self._thirsty:
            self._give()
        return found

    def _another(self) -> Tie:
        while True:
            if over():
                raise cannot_connect(self.where, TimeoutError())
            with self._mutex:
                if self._count < MOST:
                    self._count += 1
                    break
                gate = allocate_lock()
                gate.acquire()
                self._thirsty.append(gate)
            try:
                return self._free.pop()  # it may have come back before we stood in line
            except IndexError:
                gate.acquire(timeout=0.5)
            try:
                return self._free.pop()
            except IndexError:
                continue
        try:
            return self.connect()
        except BaseException:
            self._one_less()
            raise

    def _give(self) -> None:
        try:
            self._thirsty.pop(0).release()
        except IndexError:
            pass

    def connect(self) -> Tie:
        """A new connection. BackendError (or ConfigError) if there is none to be had."""
        connection = self._make()
        timeout = connection.socket_timeout
        connection.socket_timeout = max(left(timeout), 0.001)
        connection.socket_connect_timeout = max(left(connection.socket_connect_timeout), 0.001)
        try:
            connection.connect()
            return Tie(connection, timeout)
        except (exceptions.RedisError, OSError) as error:
            connection.disconnect()
            raise cannot_connect(self.where, error) from None
        except BaseException:
            connection.disconnect()
            raise

    def _broken(self, tie: Tie, error: BaseException) -> BaseException:
        """Throw it away, whatever it was; what is to be raised."""
        self.breaks += 1
        self._one_less()
        tie.close()
        self._drop()
        return lost(self.where, error) if isinstance(error, OSError | EOFError) else error

    def _one_less(self) -> None:
        with self._mutex:
            self._count -= 1
        if self._thirsty:
            self._give()

    def _drop(self) -> None:
        while self._free:
            try:
                tie = self._free.pop()
            except IndexError:
                break
            self._one_less()
            tie.close()

    async def drop(self) -> None:
        """The next command makes a new connection."""
        self._drop()

    def forget(self) -> None:
        """At first, and after a fork: the sockets are the parent's."""
        for tie in getattr(self, "_free", ()):
            let_go(tie.sock.fileno())
        self._free: list[Tie] = []
        self._thirsty: list[Any] = []
        self._mutex = allocate_lock()
        self._count = 0

    async def close(self) -> None:
        self._drop()
