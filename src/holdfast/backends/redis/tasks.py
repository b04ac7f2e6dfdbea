"""The wire for tasks: one connection to one server, and all commands of one turn of the loop in one write.

redis-py opens the connection; then its transport gets a protocol of ours, which gives each reply to the future that
waits for it. No task reads, and no stream is in between: a reply costs one call from the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from hiredis import PushNotification
from redis import exceptions

from ...errors import BackendError
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
        self._guard = self._until_the_end()
        _step(self._guard.__anext__())

    async def _until_the_end(self) -> AsyncGenerator[None, None]:
        """A loop that ends closes its generators last: after its tasks, which may still release what they hold."""
        try:
            yield
        finally:
            self.close()

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
            _step(self._guard.aclose())

    def forget(self) -> None:
        """After a fork: neither the socket nor the loop are ours, so nothing is closed but our copy of the socket."""
        let_go(self.fileno())
        self.connection._reader = self.connection._writer = None
        PARENTS.append(self)

    def fileno(self) -> int:
        sock = self.transport.get_extra_info("socket")
        return -1 if sock is None else int(sock.fileno())


def _step(asked: Awaitable[None]) -> None:
    """One step of a generator that awaits nothing. None if it is in the middle of one, for then it is about to end."""
    try:
        asked.__await__().send(None)
    except (StopIteration, RuntimeError):
        pass


class Question:
    """A command, or several, whose replies somebody awaits."""

    __slots__ = ("future", "replies", "wanted")

    def __init__(self, future: asyncio.Future[list[Any]], wanted: int) -> None:
        self.future = future
        self.wanted = wanted
        self.replies: list[Any] = []


class TaskNode:
    """One server, as tasks reach it."""

    def __init__(self, make: Callable[[], Any], where: str) -> None:
        self._make = make
        self.where = where
        self.breaks = 0  # how often a connection broke: it may be another server now, or one that has lost its data
        self._pipe: Pipe | None = None
        self._opening: asyncio.Task[None] | None = None
        self._asked: deque[Question | asyncio.Future[Any]] = deque()  # in the order of the replies
        self._answers = 0
        self._out: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self.timeout = 5.0
        self._closed = False

    async def talk(self, payload: bytes, replies: int) -> list[Any]:
        """Send, and wait for so many replies; an error reply is given as `Said`. Unknown if it broke."""
        while self._pipe is None:
            await self._open()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()
        self._asked.append(Question(future, replies))
        self._send(loop, payload)
        return await future

    def say(self, payload: bytes) -> asyncio.Future[Any] | None:
        """One command, and its reply in a future. None: nothing was said, for there is no connection at hand."""
        if self._pipe is None:
            return None
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._asked.append(future)
        self._send(loop, payload)
        return future

    def _send(self, loop: asyncio.AbstractEventLoop, payload: bytes) -> None:
        if not self._out:
            loop.call_soon(self._flush)
        self._out.append(payload)

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self._pipe is not None:
            self._pipe.transport.write(b"".join(out))
            if self._timer is None:
                self._watch()

    def _hear(self, reply: Any) -> None:
        if type(reply) is PushNotification or not self._asked:
            return  # not an answer, and not for us
        self._answers += 1
        question = self._asked[0]
        if type(question) is not Question:
            self._asked.popleft()
            if not question.done():  # type: ignore[union-attr]
                question.set_result(reply)  # type: ignore[union-attr]
            return
        question.replies.append(reply)
        if len(question.replies) == question.wanted:
            self._asked.popleft()
            if not question.future.done():
                question.future.set_result(question.replies)

    def _watch(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self.timeout, self._late, self._answers)

    def _late(self, answers: int) -> None:
        """Nothing at all has been answered for so long, although somebody waits for it."""
        self._timer = None
        if not self._asked or self._pipe is None:
            return
        if self._answers == answers:
            self._end(self._pipe, TimeoutError())
        else:
            self._watch()

    async def _open(self) -> None:
        """Connect, once for all who want to talk. Whoever is cancelled meanwhile does not break it off for the rest."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._connect())
            self._opening.add_done_callback(self._opened)
        await asyncio.shield(self._opening)

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
        self._pipe = pipe

    def _ended(self, pipe: Pipe) -> None:
        self._end(pipe, None)

    def _end(self, pipe: Pipe, error: Exception | None) -> None:
        if self._pipe is not pipe:
            return
        self._pipe = None
        self.breaks += 1
        pipe.close()
        asked, self._asked, self._out = self._asked, deque(), []
        for question in asked:
            future = question.future if type(question) is Question else question
            if not future.done():  # type: ignore[union-attr]
                future.set_exception(lost(self.where, error))  # type: ignore[union-attr]
                future.exception()  # type: ignore[union-attr]  # whoever was cancelled meanwhile does not fetch it

    async def drop(self) -> None:
        """The next command makes a new connection."""
        if self._pipe is not None:
            self._end(self._pipe, None)

    def forget(self) -> None:
        """After a fork: the socket and the loop are the parent's."""
        if self._pipe is not None:
            self._pipe.forget()
        self._pipe = self._opening = self._timer = None
        self._asked.clear()
        self._out.clear()

    async def close(self) -> None:
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self.drop()
