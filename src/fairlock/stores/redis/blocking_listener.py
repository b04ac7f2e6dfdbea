"""The listener of threads: one subscription for each server at which they wait, read by the waiters.

The first waiter reads for all and delivers each wake-up to the ticket that it names; the others wait for an event of
their own. When the reader leaves, the next waiter reads. So a client with one waiter needs no thread and no second
wake-up, and a client without one reads only when the keeper checks whether a holder was evicted.
"""

from __future__ import annotations

import os
import select
from contextlib import suppress
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
        self.since = NEVER  # the client's clock when the last of the subscriptions was made
        self._channel = channel
        self.connections: dict[ThreadNode, ThreadConnection] = {}  # with a subscription
        self._by_fd: dict[int, ThreadNode] = {}  # the same servers
        self._poll: Any = None  # of these, and of the alarm
        self._alarm = -1  # interrupts the reader
        super().__init__(runtime)

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
                fd = connection.sock.fileno()
                self._begin_poll().register(fd, select.POLLIN)
                self._by_fd[fd] = node
                self.connections[node], connection = connection, None
                self.since = self._runtime.clock()
        self.interrupt_reader()
        if connection is not None:
            connection.close()  # another thread was quicker

    def interrupt_reader(self) -> None:
        """Interrupt the reader, if there is one: there is one more server, or a wait must end."""
        with self._mutex:
            if self._alarm >= 0:
                os.eventfd_write(self._alarm, 1)

    def wait_for(self, ticket: str, timeout: float) -> Pushed | None:
        """Wait for a wake-up of this ticket; None when the time is over."""
        clock, me = self._runtime.clock, Waiter(ticket)
        end = clock() + timeout
        try:
            self.start_waiting(me)
            poll = self._poll
            if poll is None:
                with self._mutex:
                    poll = self._begin_poll()
            while not me.woken:
                left = end - clock()
                if left <= 0:
                    break
                if self._reader is not me:
                    self._wait_for_reader(me, left)
                    continue
                for fd, _ in poll.poll(left * 1000):
                    if fd == self._alarm:
                        with suppress(BlockingIOError):
                            os.eventfd_read(fd)
                    elif (pushed := self._receive_from(self._by_fd.get(fd), ticket)) is not None:
                        return pushed
            return self.take(me)
        finally:
            self.stop_waiting(me)

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

    def _begin_poll(self) -> Any:
        """Return the poll object of the readers, made with the first. Call this under the mutex."""
        if self._poll is None:
            self._alarm = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self._poll = select.poll()
            self._poll.register(self._alarm, select.POLLIN)
        return self._poll

    def _receive_from(self, node: ThreadNode | None, own: str = "") -> Pushed | None:
        """`_read` what this server has sent."""
        while node is not None and (connection := self.connections.get(node)) is not None:
            try:
                data = connection.recv(CHUNK)
            except SLOW:
                break  # of TLS: less than can be decrypted has come
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
            if connection is not None:
                fd = connection.sock.fileno()
                self._poll.unregister(fd)
                del self._by_fd[fd]
            self.breaks += 1
        if connection is not None:
            connection.close()
        self.wake_all()

    def drain(self) -> None:
        """Deliver what has arrived, without waiting, unless a waiter reads anyway."""
        if not self.connections:
            return
        me = Waiter("")
        try:
            self.start_waiting(me)
            if self._reader is me:
                for fd, _ in self._poll.poll(0):
                    self._receive_from(self._by_fd.get(fd))
        finally:
            self.stop_waiting(me)

    def forget(self, channel: str) -> None:
        """After a fork: the sockets belong to the parent, and must not count as subscribers when it has ended."""
        for connection in self.connections.values():
            detach_socket(connection.sock.fileno())
        self._close_alarm()
        self.connections.clear()
        self._by_fd.clear()
        self._channel = channel
        self.clear()

    def _close_alarm(self) -> None:
        alarm, self._alarm, self._poll = self._alarm, -1, None
        if alarm >= 0:
            os.close(alarm)

    async def close(self) -> None:
        for node in list(self.connections):
            self._drop(node)
        with self._mutex:
            self._close_alarm()
