"""The listener of threads: one subscription for each server at which they wait, read by the waiters.

The first waiter reads for all and delivers each wake-up to the ticket that it names; the others wait for an event of
their own. When the reader leaves, the next waiter reads. So a client with one waiter needs no thread and no second
wake-up, and a client without one reads only when the keeper checks whether a holder was evicted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..base import NEVER, Pushed, Runtime
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
        self.connections: dict[ThreadNode, ThreadConnection] = {}  # with a subscription
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
        if node in self.connections:
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
            if node not in self.connections:
                self.connections[node], connection = connection, None
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
        return bool(self.connections)

    def wait_for(self, ticket: str, timeout: float) -> Pushed | None:
        """Wait for a wake-up of this ticket; None when the time is over."""
        clock, me = self._runtime.clock, Waiter(ticket)
        end = clock() + timeout
        try:
            self.start_waiting(me)
            poll = self._poll
            while not me.woken:
                if self._polled != self._changes:
                    poll = self._make_poll()
                    continue  # a wake-up between the check and this would be missed
                left = end - clock()
                if left <= 0:
                    break
                if self._reader is not me:
                    self._wait_for_reader(me, left)
                    continue
                for fd, _ in poll.poll(left * 1000):
                    reached = self._by_fd.get(fd)
                    if reached is None:
                        self._drain_pipe()
                    elif (pushed := self._receive_from(reached, ticket)) is not None:
                        return pushed
            return self.take(me)
        finally:
            self.stop_waiting(me)

    def _drain_pipe(self) -> None:
        if self._wake_pipe is not None:
            os.read(self._wake_pipe[0], 64)

    def _wait_for_reader(self, waiter: Waiter, timeout: float) -> None:
        """Wait at most this long until this waiter is woken by the reader, or becomes the reader. May return early."""
        event: Any = waiter.event
        if event is None:
            event = waiter.event = self._runtime.event()
        if not waiter.woken:
            event.block(timeout)
            event.clear()
        if self._reader is not waiter:
            self._become_reader(waiter)

    def _make_poll(self) -> Any:
        """Make the poll object of the reader, for the subscriptions that there are now."""
        from select import POLLIN, poll

        self._polled = self._changes  # first: a change during the next lines makes it again
        self._poll = poll()
        self._by_fd = {connection.sock.fileno(): node for node, connection in list(self.connections.items())}
        for fd in self._by_fd:
            self._poll.register(fd, POLLIN)
        if self._wake_pipe is None:
            wake_pipe = os.pipe()
            os.set_blocking(wake_pipe[1], False)
            self._wake_pipe = wake_pipe
        self._poll.register(self._wake_pipe[0], POLLIN)
        return self._poll

    def _receive_from(self, node: ThreadNode, own: str = "") -> Pushed | None:
        """`_read` what this server has sent."""
        connection = self.connections.get(node)
        while connection is not None:
            try:
                try:
                    data = connection.recv(CHUNK)
                except SLOW:
                    data = connection.wait(CHUNK)
            except OSError:
                data = b""
            if connection.pending is None or not data:
                return self._read(node, connection, data, own)
            self._read(node, connection, data)
            if not connection.pending():  # of TLS: `poll` does not show what it has read already
                break
        return None

    def _read(self, node: ThreadNode, connection: ThreadConnection, data: bytes, own: str = "") -> Pushed | None:
        """Deliver the wake-ups in these bytes. If the only one is for the ticket `own`, which its reader waits for,
        return it instead. If the server has closed the connection, wake all waiters."""
        gets = connection.gets
        try:
            if not data:
                raise EOFError
            connection.feed(data)
            message = gets()
            while message is not NOT_YET:
                found = parse_wakeup(message)
                message = gets()
                if found is None:
                    continue
                if found[0] == own and message is NOT_YET:
                    with self._mutex:
                        fence = found[2]
                        if fence and self._taken.get(own) != fence:
                            self._wakeups.pop(own, None)
                            self._note_taken(own, fence)
                            return found
                own = ""  # the last one counts
                self.deliver(found)
        except (EOFError, ReplyError):
            if self.connections.get(node) is connection:
                self._drop(node)
        return None

    def _drop(self, node: ThreadNode) -> None:
        with self._mutex:
            connection = self.connections.pop(node, None)
            self._changes += 1
            self.breaks += 1
        if connection is not None:
            connection.close()
        self.wake_all()

    def drain(self) -> None:
        """Deliver what has arrived, without waiting, unless a waiter reads anyway."""
        if not self.connections:
            return
        from select import POLLIN, poll

        me = Waiter("")
        try:
            self.start_waiting(me)
            if self._reader is me:
                for node, connection in list(self.connections.items()):
                    one = poll()
                    one.register(connection.sock, POLLIN)
                    if one.poll(0):
                        self._receive_from(node)
        finally:
            self.stop_waiting(me)

    def forget(self, channel: str) -> None:
        """After a fork: the sockets belong to the parent, and must not count as subscribers when it has ended."""
        for connection in self.connections.values():
            detach_socket(connection.sock.fileno())
        for fd in self._wake_pipe or ():
            os.close(fd)
        self._wake_pipe = None
        self.connections.clear()
        self._channel = channel
        self.clear()

    async def close(self) -> None:
        for node in list(self.connections):
            self._drop(node)
        with self._mutex:
            wake_pipe, self._wake_pipe = self._wake_pipe, None
        for fd in wake_pipe or ():
            os.close(fd)
