"""The wire and the ears for tasks: all commands of one turn of the loop go out in one write, on one connection."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from redis import exceptions

from .trouble import cannot_connect, lost


class TaskWire:
    def __init__(self, make: Callable[[], Any], where: str) -> None:
        self._make = make
        self._where = where
        self._connection: Any = None
        self._opening: Any = None
        self._waiting: deque[Any] = deque()  # futures, in the order of the replies
        self._out: list[bytes] = []
        self._reader: Any = None

    async def talk(self, payload: bytes, replies: int) -> list[Any]:
        import asyncio

        loop = asyncio.get_running_loop()
        if self._connection is None:
            await self._open(asyncio)
        futures = [loop.create_future() for _ in range(replies)]
        self._waiting.extend(futures)
        if not self._out:
            loop.call_soon(self._flush)
        self._out.append(payload)
        return [await future for future in futures]

    async def _open(self, asyncio: Any) -> None:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._connect(asyncio))
        opening = self._opening
        try:
            await asyncio.shield(opening)
        finally:
            if opening.done():
                self._opening = None

    async def _connect(self, asyncio: Any) -> None:
        connection = self._make()
        try:
            await connection.connect()
        except (exceptions.RedisError, OSError) as error:
            raise cannot_connect(self._where, error) from None
        self._connection = connection
        self._reader = asyncio.ensure_future(self._read(connection))

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self._connection is not None:
            self._connection._writer.write(b"".join(out))

    async def _read(self, connection: Any) -> None:
        error: Exception = lost(self._where)
        try:
            while True:
                try:
                    found = await connection.read_response(disable_decoding=True, timeout=float("inf"))
                except exceptions.ResponseError as said:
                    found = said
                future = self._waiting.popleft()
                if not future.done():
                    future.set_result(found)
        except (exceptions.RedisError, OSError, IndexError) as problem:
            error = lost(self._where, problem)
        finally:
            self._break(error)
            await connection.disconnect(nowait=True)

    def _break(self, error: Exception) -> None:
        self._connection = None
        waiting, self._waiting = self._waiting, deque()
        for future in waiting:
            if not future.done():
                future.set_exception(error)
                future.exception()  # whoever was cancelled meanwhile does not fetch it

    def forget(self) -> None:
        self._connection = self._reader = self._opening = None
        self._waiting.clear()

    async def close(self) -> None:
        connection = self._connection
        if self._reader is not None:
            self._reader.cancel()
        if connection is not None:
            await connection.disconnect(nowait=True)


class TaskEars:
    """Hears for all tasks of a client: one subscription, read by one task."""

    def __init__(
        self, make: Callable[[], Any], channel: str, where: str, heard: Callable[[str, int, int], None]
    ) -> None:
        self._make = make
        self._channel = channel
        self._where = where
        self._heard = heard
        self._task: Any = None
        self._ready: Any = None

    async def listen(self) -> None:
        """Be subscribed from here on."""
        import asyncio

        if self._task is None or self._task.done():
            self._ready = asyncio.get_running_loop().create_future()
            self._task = asyncio.ensure_future(self._hear())
        await asyncio.shield(self._ready)

    async def _hear(self) -> None:
        ready, connection = self._ready, self._make()
        try:
            await connection.connect()
            await connection.send_command("SUBSCRIBE", self._channel)
            while True:
                message = await connection.read_response(
                    disable_decoding=True, timeout=float("inf"), push_request=True
                )
                if message[0] == b"subscribe":
                    if not ready.done():
                        ready.set_result(None)
                elif message[0] == b"message":
                    ticket, place, fence = message[2].split()
                    self._heard(ticket.decode(), int(place), int(fence))
        except (exceptions.RedisError, OSError) as error:
            if not ready.done():
                ready.set_exception(cannot_connect(self._where, error))
                ready.exception()
        finally:
            await connection.disconnect(nowait=True)

    async def wait(self, event: Any, timeout: float) -> None:
        await event.wait(timeout)

    def forget(self) -> None:
        self._task = None

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
