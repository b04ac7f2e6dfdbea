"""The wire for tasks: one connection to one server, and all commands of one turn of the loop in one write.

redis-py opens the connection; then its transport gets a protocol of ours, which gives each reply to the future that
waits for it. No task reads, and no stream is in between: a reply costs one call from the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from hiredis import PushNotification
from redis import exceptions

from ...errors import BackendError
from ..in_time import in_time
from .address import TIMEOUT
from .reading import NOT_YET, let_go, reader
from .trouble import cannot_connect, lost

PARENTS: list[Any] = []  # of the parent of this process: not to be finalized here, for that would touch its loop


class Pipe(asyncio.Protocol):
    """What the transport calls: `heard` with each reply or pushed message, `ended` once."""

    def __init__(self, connection: Any, heard: Callable[[Any], None], ended: Callable[[Pipe], None]) -> None:
        self.connection = connection  # kept: it warns if it is forgotten while it is open
        self.transport: asyncio.Transport = connection._writer.transport
        self.heard = heard
        self.ended = ended
        self._reader = reader()
        left = bytes(connection._reader._buffer)
        self.transport.set_protocol(self)
        if left:
            self.data_received(left)
        self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        feed = self._reader
        feed.feed(data)
        while (found := feed.gets()) is not NOT_YET:
            self.heard(found)

    def connection_lost(self, error: Exception | None) -> None:
        self.ended(self)

    def close(self) -> None:
        if self.connection._writer is not None:
            self.transport.abort()
            self.connection._reader = self.connection._writer = None

    def forget(self) -> None:
        """After a fork: neither the socket nor the loop are ours, so nothing is closed but our copy of the socket."""
        let_go(self.fileno())
        PARENTS.extend((self, self.connection._reader, self.connection._writer))
        self.connection._reader = self.connection._writer = None

    def fileno(self) -> int:
        sock = self.transport.get_extra_info("socket")
        return -1 if sock is None else int(sock.fileno())


class Asked(Protocol):
    """Something that was sent and has not been answered."""

    def hear(self, reply: Any) -> bool:
        """The next reply is for this one. Whether it was the last."""

    def end(self, error: Callable[[], Exception]) -> None:
        """There will be no answer."""


class Packed(Protocol):
    def payload(self) -> bytes:
        """What goes out, put together at the end of the turn: until then more may join."""


class Question:
    """A command, or several, whose replies somebody awaits."""

    __slots__ = ("future", "replies", "wanted")

    def __init__(self, future: asyncio.Future[list[Any]], wanted: int) -> None:
        self.future = future
        self.wanted = wanted
        self.replies: list[Any] = []

    def hear(self, reply: Any) -> bool:
        self.replies.append(reply)
        if len(self.replies) < self.wanted:
            return False
        if not self.future.done():
            self.future.set_result(self.replies)
        return True

    def end(self, error: Callable[[], Exception]) -> None:
        fail(self.future, error())


def fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # whoever was cancelled meanwhile does not fetch it


async def opened(opening: asyncio.Task[None], where: str) -> None:
    """Wait until a connection is open that several tasks wait for. A client that closes breaks it off: that is an error
    for those who wait, and no cancellation of theirs."""
    try:
        await in_time(asyncio.shield(opening))
    except TimeoutError as late:
        raise cannot_connect(where, late) from None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if opening.cancelled() and not (task is not None and task.cancelling()):
            raise BackendError(f"This client of {where} is closed.") from None
        raise


class TaskNode:
    """One server, as tasks reach it."""

    def __init__(self, make: Callable[[], Any], where: str) -> None:
        self._make = make
        self.where = where
        self.breaks = 0  # how often a connection broke: it may be another server now, or one that has lost its data
        self.pipe: Pipe | None = None
        self._opening: asyncio.Task[None] | None = None
        self._asked: deque[Asked] = deque()  # in the order of the replies
        self._answers = 0
        self._out: list[bytes | Packed] = []
        self.open_to_more: dict[object, Any] = {}  # of what goes out at the end of this turn: what others may join
        self._timer: asyncio.TimerHandle | None = None
        self.timeout = TIMEOUT
        self._closed = False
        self.loop: asyncio.AbstractEventLoop  # since it is connected

    async def talk(self, payload: bytes, replies: int) -> list[Any]:
        """Send, and wait for so many replies; an error reply is given as `Said`. Unknown if it broke."""
        while self.pipe is None:
            await self._open()
        future: asyncio.Future[list[Any]] = self.loop.create_future()
        self.send(Question(future, replies), payload)
        try:
            return await in_time(future)
        except TimeoutError as late:
            raise lost(self.where, late) from None

    def send(self, asked: Asked, payload: bytes | Packed) -> None:
        """At the end of this turn, with all else that is sent in it. There is a connection: `pipe`."""
        if not self._out:
            self.loop.call_soon(self.flush)
        self._asked.append(asked)
        self._out.append(payload)

    def flush(self) -> None:
        """Send it now."""
        out, self._out = self._out, []
        self.open_to_more.clear()
        if self.pipe is not None and out:
            self.pipe.transport.write(b"".join([one if type(one) is bytes else one.payload() for one in out]))  # type: ignore[union-attr]
            if self._timer is None:
                self._watch()

    def _hear(self, reply: Any) -> None:
        if type(reply) is PushNotification or not self._asked:
            return  # not an answer, and not for us
        self._answers += 1
        if self._asked[0].hear(reply):
            self._asked.popleft()

    def _watch(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self.timeout, self._late, self._answers)

    def _late(self, answers: int) -> None:
        """Nothing at all has been answered for so long, although somebody waits for it."""
        self._timer = None
        if not self._asked or self.pipe is None:
            return
        if self._answers == answers:
            self._end(self.pipe, TimeoutError())
        else:
            self._watch()

    async def _open(self) -> None:
        """Connect, once for all who want to talk. Whoever is cancelled meanwhile does not break it off for the rest."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._connect())
            self._opening.add_done_callback(self._opened)
        await opened(self._opening, self.where)

    def _opened(self, opening: asyncio.Future[None]) -> None:
        if self._opening is opening:
            self._opening = None
        if not opening.cancelled():
            opening.exception()  # those who asked for it have it; perhaps nobody does any more

    async def open(self, heard: Callable[[Any], None], ended: Callable[[Pipe], None]) -> Pipe:
        """A new connection. BackendError (or ConfigError) if there is none to be had."""
        if self._closed:
            raise BackendError(f"This client of {self.where} is closed.")
        connection = self._make()
        try:
            await connection.connect()
            return Pipe(connection, heard, ended)
        except (exceptions.RedisError, OSError) as error:
            await connection.disconnect(nowait=True)
            raise cannot_connect(self.where, error) from None
        except BaseException:
            await connection.disconnect(nowait=True)
            raise

    async def _connect(self) -> None:
        pipe = await self.open(self._hear, self._ended)
        self.timeout = pipe.connection.socket_timeout
        self.loop = asyncio.get_running_loop()
        self.pipe = pipe

    def _ended(self, pipe: Pipe) -> None:
        self._end(pipe, None)

    def _end(self, pipe: Pipe, error: Exception | None) -> None:
        if self.pipe is not pipe:
            return
        self.pipe = None
        self.breaks += 1
        pipe.close()
        asked, self._asked, self._out = self._asked, deque(), []
        self.open_to_more.clear()
        for one in asked:
            one.end(lambda: lost(self.where, error))

    async def drop(self) -> None:
        """The next command makes a new connection."""
        if self.pipe is not None:
            self._end(self.pipe, None)

    def forget(self) -> None:
        """After a fork: the socket and the loop are the parent's."""
        if self.pipe is not None:
            self.pipe.forget()
        self.pipe = self._opening = self._timer = None
        self._asked.clear()
        self._out.clear()
        self.open_to_more.clear()

    async def close(self) -> None:
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self.drop()
