"""The listener of threads: one subscription for each server at which they wait, read by the waiters.

The first waiter reads for all and delivers each wake-up to the ticket that it names; the others wait for an event of
their own. When the reader leaves, the next waiter reads. So a client with one waiter needs no thread and no second
wake-up, and a client without one reads only when the keeper checks whether a holder was evicted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..base import NEVER, Runtime
from ..wakeups import SharedReader, Waiter
from .encoding import pack
from .errors import error_for, lost
from .reply_reader import NOT_YET, ReplyError, detach_socket, parse_wakeup
from .thread_connections import CHUNK, SLOW, ThreadConnection, ThreadNode


class ThreadListener(SharedReader):
    def __init__(self, runtime: Runtime, channel: str) -> None:
        self.breaks = 0  # how often a subscription broke
        self.on_break: Callable[[], None] | None = None  # not called here: `take_wakeups` compares `breaks`
        self.since = NEVER  # the client's clock when the last of the subscriptions was made
        self._channel = channel
        self._connections: dict[ThreadNode, ThreadConnection] = {}
        self._wake_pipe: tuple[int, int] | None = None  # interrupts the reader
        super().__init__(runtime)

    def clear(self) -> None:
        super().clear()
        self._changes = 0  # of the subscriptions
        self._polled = -1  # for how many changes of them the poll object was made
        self._by_fd: dict[int, ThreadNode] = {}
        self._poll: Any = None

    async def listen(self, node: ThreadNode) -> None:
        """Subscribe at this server. StoreError or OutcomeUnknown if that fails."""
        if node in self._connections:
            return
        connection: ThreadConnection | None = node.connect()
        assert connection is not None
        try:
            connection.send(pack("SUBSCRIBE", self._channel))
            reply = connection.read()
        except (OSError, EOFError) as error:
            connection.close()
            raise lost(node.where, error) from None
        if type(reply) is ReplyError:
            connection.close()
            raise error_for(node.where, reply)
        with self._mutex:
            if node not in self._connections:
                self._connections[node], connection = connection, None
                self._changes += 1
                self.since = self._runtime.clock()
        self.interrupt_reader()
        if connection is not None:
            connection.close()  # another thread was quicker

    def interrupt_reader(self) -> None:
        """Interrupt the reader, if there is one: there is one more server, or a wait must end."""
        with self._mutex:
            if self._wake_pipe is not None:
                try:
                    os.write(self._wake_pipe[1], b".")
                except BlockingIOError:
                    pass  # the pipe is full: the reader is interrupted anyway

    @property
    def listening(self) -> bool:
        return bool(self._connections)

    def listens_at(self, node: ThreadNode) -> bool:
        return node in self._connections

    async def read(self, reader: Waiter, timeout: float) -> None:
        end = self._runtime.clock() + timeout
        while True:
            # First, or a wake-up between the check and the poll would be missed.
            poll = self._poll if self._polled == self._changes else self._make_poll()
            rest = end - self._runtime.clock()
            if reader.woken or rest <= 0:
                return
            for fd, _ in poll.poll(rest * 1000):
                node = self._by_fd.get(fd)
                if node is not None:
                    self._receive_from(node)
                elif self._wake_pipe is not None:
                    os.read(self._wake_pipe[0], 64)

    def _make_poll(self) -> Any:
        """Make the poll object of the reader, for the subscriptions that there are now."""
        from select import POLLIN, poll

        self._polled = self._changes  # first: a change during the next lines makes it again
        self._poll = poll()
        self._by_fd = {connection.sock.fileno(): node for node, connection in list(self._connections.items())}
        for fd in self._by_fd:
            self._poll.register(fd, POLLIN)
        if self._wake_pipe is None:
            wake_pipe = os.pipe()
            os.set_blocking(wake_pipe[1], False)
            self._wake_pipe = wake_pipe
        self._poll.register(self._wake_pipe[0], POLLIN)
        return self._poll

    def _receive_from(self, node: ThreadNode) -> None:
        """Deliver the wake-ups from this server. If it has closed the connection, wake all waiters."""
        connection = self._connections.get(node)
        if connection is None:
            return
        try:
            while True:
                try:
                    data = connection.recv(CHUNK)
                except SLOW:
                    data = connection.wait(CHUNK)
                if not data:
                    raise EOFError
                connection.reader.feed(data)
                while (message := connection.reader.gets()) is not NOT_YET:
                    found = parse_wakeup(message)
                    if found is not None:
                        self.deliver(found)
                if not getattr(connection.sock, "pending", int)():
                    return
        except (OSError, EOFError, ReplyError):
            self._drop(node)

    def _drop(self, node: ThreadNode) -> None:
        with self._mutex:
            connection = self._connections.pop(node, None)
            self._changes += 1
            self.breaks += 1
        if connection is not None:
            connection.close()
        self.wake_all()

    def drain(self) -> None:
        """Deliver what has arrived, without waiting, unless a waiter reads anyway."""
        if not self._connections:
            return
        from select import POLLIN, poll

        me = Waiter("")
        try:
            self.start_waiting(me)
            if self._reader is me:
                for node, connection in list(self._connections.items()):
                    one = poll()
                    one.register(connection.sock, POLLIN)
                    if one.poll(0):
                        self._receive_from(node)
        finally:
            self.stop_waiting(me)

    def forget(self, channel: str) -> None:
        """After a fork: the sockets belong to the parent, and must not count as subscribers when it has ended."""
        for connection in self._connections.values():
            detach_socket(connection.sock.fileno())
        for fd in self._wake_pipe or ():
            os.close(fd)
        self._wake_pipe = None
        self._connections.clear()
        self._channel = channel
        self.clear()

    async def close(self) -> None:
        for node in list(self._connections):
            self._drop(node)
        with self._mutex:
            wake_pipe, self._wake_pipe = self._wake_pipe, None
        for fd in wake_pipe or ():
            os.close(fd)
