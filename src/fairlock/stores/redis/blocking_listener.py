"""The listener of threads: one subscription for each server at which they wait, read by the waiters.

The first waiter reads for all and delivers each wake-up to the ticket that it names; the others wait for an event of
their own. When the reader leaves, the next waiter reads. So a client with one waiter needs no thread and no second
wake-up, and a client without one reads only when the keeper checks whether a holder was evicted.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from ..base import Pushed, Runtime
from .encoding import pack
from .errors import error_for, lost
from .reply_reader import NOT_YET, ReplyError, detach_socket, parse_wakeup
from .thread_connections import CHUNK, SLOW, ThreadConnection, ThreadNode
from .wakeup_inbox import WakeupInbox


class ThreadListener(WakeupInbox):
    def __init__(self, runtime: Runtime, channel: str) -> None:
        super().__init__(runtime)
        self._channel = channel
        self._connections: dict[ThreadNode, ThreadConnection] = {}
        self._wake_pipe: tuple[int, int] | None = None  # interrupts the reader
        self._reset()

    def _reset(self) -> None:
        self._mutex = self._runtime.mutex()
        self._reading = False
        self._followers: list[Any] = []
        self._polled: list[Any] = []
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
                self.since = self._runtime.clock()
        self._interrupt_reader()
        if connection is not None:
            connection.close()  # another thread was quicker

    def _interrupt_reader(self) -> None:
        """Interrupt the reader, if there is one: there is one more server, or a wait must end."""
        with self._mutex:
            if self._wake_pipe is not None:
                try:
                    os.write(self._wake_pipe[1], b".")
                except BlockingIOError:
                    pass  # the pipe is full: the reader is interrupted anyway

    def wake_here(self, tickets: Collection[str]) -> None:
        super().wake_here(tickets)
        self._interrupt_reader()

    @property
    def listening(self) -> bool:
        return bool(self._connections)

    def listens_at(self, node: ThreadNode) -> bool:
        return node in self._connections

    async def wait(self, ticket: str, timeout: float) -> Pushed | None:
        """Wait for a wake-up of this ticket; None when the time is over or one may have been missed."""
        clock = self._runtime.clock
        end = clock() + timeout
        missed = self.breaks
        while ticket not in self._wakeups and missed == self.breaks and clock() < end:
            lead = False
            try:
                with self._mutex:
                    lead = not self._reading and bool(self._connections)
                    self._reading = self._reading or lead
                if lead:
                    self._read(ticket, end)
            finally:
                if lead:
                    with self._mutex:
                        self._reading = False
                        if self._followers:
                            self._followers[0].set()
            if not lead:
                await self._follow(ticket, end, missed)
        return self.take(ticket)

    async def _follow(self, ticket: str, end: float, missed: int) -> None:
        """Wait until the reader has delivered a wake-up for this ticket, or this waiter must read."""
        event = self._waiting[ticket] = self._runtime.event()
        try:
            with self._mutex:
                self._followers.append(event)
                if not self._reading and self._connections:
                    event.set()  # the reader has left meanwhile
            if ticket not in self._wakeups and missed == self.breaks:
                await event.wait(max(end - self._runtime.clock(), 0))
        finally:
            self._waiting.pop(ticket, None)
            with self._mutex:
                if event in self._followers:
                    self._followers.remove(event)
                if not self._reading and self._followers:
                    self._followers[0].set()

    def _read(self, ticket: str, end: float) -> None:
        """Read for all waiters until this ticket has a wake-up, the time is over, or a subscription breaks."""
        clock, missed = self._runtime.clock, self.breaks
        while True:
            poll = self._make_poll()  # first, or a wake-up between the check and the poll would be missed
            rest = end - clock()
            if ticket in self._wakeups or missed != self.breaks or rest <= 0:
                return
            for fd, _ in poll.poll(rest * 1000):
                node = self._by_fd.get(fd)
                if node is not None:
                    self._receive_from(node)
                elif self._wake_pipe is not None:
                    os.read(self._wake_pipe[0], 64)

    def _make_poll(self) -> Any:
        """Return the poll object of the reader. It is made again only when the subscriptions have changed."""
        connections = list(self._connections.items())
        if connections != self._polled:
            from select import POLLIN, poll

            self._polled = connections
            self._poll = poll()
            self._by_fd = {connection.sock.fileno(): node for node, connection in connections}
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
                        self.deliver(*found)
                if not getattr(connection.sock, "pending", int)():
                    return
        except (OSError, EOFError, ReplyError):
            self._drop(node)

    def _drop(self, node: ThreadNode) -> None:
        with self._mutex:
            connection = self._connections.pop(node, None)
            self.breaks += 1
        if connection is not None:
            connection.close()
        self.wake_all()

    def drain(self) -> None:
        """Deliver what has arrived, without waiting, unless a waiter reads anyway."""
        if not self._connections:
            return
        from select import POLLIN, poll

        with self._mutex:
            if self._reading:
                return
            self._reading = True
        try:
            for node, connection in list(self._connections.items()):
                one = poll()
                one.register(connection.sock, POLLIN)
                if one.poll(0):
                    self._receive_from(node)
        finally:
            with self._mutex:
                self._reading = False
                if self._followers:
                    self._followers[0].set()

    def forget(self, channel: str) -> None:
        """After a fork: the sockets belong to the parent, and must not count as subscribers when it has ended."""
        for connection in self._connections.values():
            detach_socket(connection.sock.fileno())
        for fd in self._wake_pipe or ():
            os.close(fd)
        self._wake_pipe = None
        self._connections.clear()
        self._wakeups.clear()
        self._waiting.clear()
        self._channel = channel
        self._reset()

    async def close(self) -> None:
        for node in list(self._connections):
            self._drop(node)
        with self._mutex:
            wake_pipe, self._wake_pipe = self._wake_pipe, None
        for fd in wake_pipe or ():
            os.close(fd)
