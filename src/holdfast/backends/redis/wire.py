"""The wire for threads: commands packed by us on redis-py's own connections, which carry TLS, AUTH and the rest.

A command takes a connection from a list and puts it back: no pool checkout, no packing, no retries by the driver. A
connection on which anything went wrong is thrown away, for its next reply could be the answer to the last question.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redis import exceptions

from .trouble import cannot_connect, lost

IDLE = 16  # connections kept for the next command


class ThreadWire:
    def __init__(self, make: Callable[[], Any], where: str) -> None:
        self._make = make
        self._where = where
        self._free: list[Any] = []

    async def talk(self, payload: bytes, replies: int) -> list[Any]:
        """Send, and read so many replies; an error reply is given as the exception it is. Unknown if it broke."""
        try:
            connection = self._free.pop()
        except IndexError:
            connection = self.connect()
        try:
            connection.send_packed_command((payload,), check_health=False)
            found = [self._read(connection) for _ in range(replies)]
        except (exceptions.ConnectionError, exceptions.TimeoutError, OSError) as error:
            connection.disconnect()
            raise lost(self._where, error) from None
        except BaseException:
            connection.disconnect()
            raise
        if len(self._free) < IDLE:
            self._free.append(connection)
        else:
            connection.disconnect()
        return found

    @staticmethod
    def _read(connection: Any) -> Any:
        try:
            return connection.read_response(disable_decoding=True)
        except exceptions.ResponseError as error:
            return error

    def connect(self) -> Any:
        connection = self._make()
        try:
            connection.connect()
        except (exceptions.RedisError, OSError) as error:
            connection.disconnect()
            raise cannot_connect(self._where, error) from None
        return connection

    def forget(self) -> None:
        """After a fork: the sockets are the parent's."""
        self._free = []

    async def close(self) -> None:
        while self._free:
            self._free.pop().disconnect()
