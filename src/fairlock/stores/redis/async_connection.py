"""The connection of tasks to one server: all commands of one turn of the loop go out in one write.

redis-py opens the connection; then its transport gets our protocol, which gives each reply to the future that waits for
it. No task reads, and no stream is in between: a reply costs one call from the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from hiredis import PushNotification

from ...errors import StoreError
from ..async_deadline import in_time
from .errors import NOT_CONNECTED, cannot_connect, lost
from .reply_reader import NOT_YET, detach_socket, reader
from .url import TIMEOUT

if TYPE_CHECKING:
    from .async_batching import Batch

PARENTS: list[Any] = []  # objects of the parent process: finalizing them here would touch its loop


class Pipe(asyncio.Protocol):
    """The protocol of a transport: calls `on_reply` with each reply or pushed message, and `on_end` once."""

    def __init__(self, connection: Any, on_reply: Callable[[Any], None], on_end: Callable[[Pipe], None]) -> None:
        self.connection = connection  # kept: it warns if it is finalized while it is open
        self.transport: asyncio.Transport = connection._writer.transport
        self.on_reply = on_reply
        self.on_end = on_end
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
            self.on_reply(found)

    def connection_lost(self, error: Exception | None) -> None:
        self.on_end(self)

    def close(self) -> None:
        if self.connection._writer is not None:
            self.transport.abort()
            self.connection._reader = self.connection._writer = None

    def forget(self) -> None:
        """After a fork: socket and loop belong to the parent, so only our copy of the socket is closed."""
        sock = self.transport.get_extra_info("socket")
        detach_socket(-1 if sock is None else sock.fileno())
        PARENTS.extend((self, self.connection._reader, self.connection._writer))
        self.connection._reader = self.connection._writer = None


class PendingRequest:
    """One or more commands whose replies a task awaits."""

    __slots__ = ("future", "replies", "wanted")

    def __init__(self, future: asyncio.Future[list[Any]], wanted: int) -> None:
        self.future = future
        self.wanted = wanted
        self.replies: list[Any] = []

    def receive(self, reply: Any) -> bool:
        """Take the next reply. Returns whether it was the last one."""
        self.replies.append(reply)
        if len(self.replies) < self.wanted:
            return False
        if not self.future.done():
            self.future.set_result(self.replies)
        return True

    def end(self, error: Callable[[], Exception]) -> None:
        """No reply will come."""
        fail(self.future, error())


def fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # a task that was cancelled meanwhile does not fetch it


class Opening:
    """The opening of a connection that several tasks wait for, one at a time. A task that is cancelled meanwhile does
    not cancel it for the others."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._task: asyncio.Task[None] | None = None

    async def wait(self, open: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait until it is open. A client that closes cancels the opening: that is an error here, no cancellation."""
        opening = self._task
        if opening is None:
            opening = self._task = asyncio.ensure_future(open())
            opening.add_done_callback(self._done)
        try:
            await in_time(asyncio.shield(opening))
        except TimeoutError as late:
            raise cannot_connect(self._where, late) from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if opening.cancelled() and not (task is not None and task.cancelling()):
                raise StoreError(f"This client of {self._where} is closed.") from None
            raise

    def _done(self, opening: asyncio.Future[None]) -> None:
        self._task = None
        if not opening.cancelled():
            opening.exception()  # the waiting tasks have it; perhaps none is left

    async def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])


class AsyncNode:
    """One server, as tasks reach it."""

    def __init__(self, make: Callable[[], Any], where: str) -> None:
        self._make = make
        self.where = where
        self.breaks = 0  # how often a connection broke: it may be another server now, or one that has lost its data
        self.pipe: Pipe | None = None
        self._opening = Opening(where)
        self._pending: deque[PendingRequest | Batch] = deque()  # in the order of the replies
        self._answers = 0
        self._out: list[bytes | Batch] = []  # a batch is packed at the end of the turn: until then more may join
        self.open_batches: dict[object, Any] = {}  # batches of this turn that others may join
        self._timer: asyncio.TimerHandle | None = None
        self.timeout = TIMEOUT
        self._closed = False
        self.loop: asyncio.AbstractEventLoop  # since it is connected

    async def request(self, payload: bytes, replies: int) -> list[Any]:
        """Send, and wait for this number of replies; an error reply is a `ReplyError`. OutcomeUnknown if it broke."""
        while self.pipe is None:
            await self._opening.wait(self._connect)
        future: asyncio.Future[list[Any]] = self.loop.create_future()
        self.send(PendingRequest(future, replies), payload)
        try:
            return await in_time(future)
        except TimeoutError as late:
            raise lost(self.where, late) from None

    def send(self, pending: PendingRequest | Batch, payload: bytes | Batch) -> None:
        """Send at the end of this turn, with everything else of it. `pipe` must be open."""
        if not self._out:
            self.loop.call_soon(self.flush)
        self._pending.append(pending)
        self._out.append(payload)

    def flush(self) -> None:
        """Send it now."""
        out, self._out = self._out, []
        self.open_batches.clear()
        if self.pipe is not None and out:
            self.pipe.transport.write(b"".join([one if type(one) is bytes else one.payload() for one in out]))  # type: ignore[union-attr]
            if self._timer is None:
                self._watch()

    def _receive(self, reply: Any) -> None:
        if type(reply) is PushNotification or not self._pending:
            return  # not a reply to a request
        self._answers += 1
        if self._pending[0].receive(reply):
            self._pending.popleft()

    def _watch(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self.timeout, self._late, self._answers)

    def _late(self, answers: int) -> None:
        """Called when the timeout is over: end the connection if no reply at all has come since."""
        self._timer = None
        if not self._pending or self.pipe is None:
            return
        if self._answers == answers:
            self._end(self.pipe, TimeoutError())
        else:
            self._watch()

    async def open(self, on_reply: Callable[[Any], None], on_end: Callable[[Pipe], None]) -> Pipe:
        """Open a connection. StoreError (or ConfigError) if that fails."""
        if self._closed:
            raise StoreError(f"This client of {self.where} is closed.")
        connection = self._make()
        try:
            await connection.connect()
            return Pipe(connection, on_reply, on_end)
        except BaseException as error:
            await connection.disconnect(nowait=True)
            if isinstance(error, NOT_CONNECTED):
                raise cannot_connect(self.where, error) from None
            raise

    async def _connect(self) -> None:
        pipe = await self.open(self._receive, self._end)
        self.timeout = pipe.connection.socket_timeout
        self.loop = asyncio.get_running_loop()
        self.pipe = pipe

    def _end(self, pipe: Pipe, error: Exception | None = None) -> None:
        if self.pipe is not pipe:
            return
        self.pipe = None
        self.breaks += 1
        pipe.close()
        pending, self._pending, self._out = self._pending, deque(), []
        self.open_batches.clear()
        for one in pending:
            one.end(lambda: lost(self.where, error))

    async def drop(self) -> None:
        """The next command makes a new connection."""
        if self.pipe is not None:
            self._end(self.pipe)

    def forget(self) -> None:
        """After a fork: the socket and the loop belong to the parent."""
        if self.pipe is not None:
            self.pipe.forget()
        self.pipe = self._timer = None
        self._opening = Opening(self.where)
        self._pending.clear()
        self._out.clear()
        self.open_batches.clear()

    async def close(self) -> None:
        self._closed = True
        await self._opening.cancel()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self.drop()
