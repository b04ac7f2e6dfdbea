"""How threads hear: one subscription for each server that they wait at, read by whoever waits.

The first who waits reads for all and gives each wake-up to the one it names; the others wait for an event of their own.
When the reader leaves, the next one reads. So a client with one waiter needs no thread and no second wake-up, and a
client with none reads only now and then, when the keeper looks whether a holder has been told to go.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from ..contract import Colour, Pushed
from .hearing import Hearing
from .layout import pack
from .reading import NOT_YET, Said, let_go, wake_up
from .trouble import lost, said_no
from .wire import CHUNK, SLOW, ThreadNode, Tie


class ThreadEars(Hearing):
    def __init__(self, colour: Colour, channel: str) -> None:
        super().__init__(colour)
        self._channel = channel
        self._ties: dict[ThreadNode, Tie] = {}
        self._bell: tuple[int, int] | None = None  # makes the reader look up
        self._fresh()

    def _fresh(self) -> None:
        self._mutex = self._colour.mutex()
        self._reading = False
        self._followers: list[Any] = []
        self._polled: list[Any] = []
        self._by_fd: dict[int, ThreadNode] = {}
        self._poll: Any = None

    async def listen(self, node: ThreadNode) -> None:
        """Be subscribed at this server from here on. BackendError or Unknown if that cannot be."""
        if node in self._ties:
            return
        tie: Tie | None = node.connect()
        assert tie is not None
        try:
            tie.send(pack("SUBSCRIBE", self._channel))
            reply = tie.read()
        except (OSError, EOFError) as error:
            tie.close()
            raise lost(node.where, error) from None
        if type(reply) is Said:
            tie.close()
            raise said_no(node.where, reply)
        with self._mutex:
            if node not in self._ties:
                self._ties[node], tie = tie, None
                self.since = self._colour.clock()
        self._ring()
        if tie is not None:
            tie.close()  # another thread was quicker

    def _ring(self) -> None:
        """Make the reader, if there is one, look up: there is one more to listen to, or a waiter is to end."""
        with self._mutex:
            if self._bell is not None:
                try:
                    os.write(self._bell[1], b".")
                except BlockingIOError:
                    pass  # it has been rung often enough

    def wake_here(self, tickets: Collection[str]) -> None:
        super().wake_here(tickets)
        self._ring()

    @property
    def listening(self) -> bool:
        return bool(self._ties)

    def hears(self, node: ThreadNode) -> bool:
        return node in self._ties

    async def wait(self, ticket: str, timeout: float) -> Pushed | None:
        """A wake-up for this ticket; None when the time is over or something may have been missed."""
        clock = self._colour.clock
        end = clock() + timeout
        missed = self.breaks
        while ticket not in self._hints and missed == self.breaks and clock() < end:
            lead = False
            try:
                with self._mutex:
                    lead = not self._reading and bool(self._ties)
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
        """Wait until the one who reads has read what is for this one, or this one is to read."""
        event = self._waiting[ticket] = self._colour.event()
        try:
            with self._mutex:
                self._followers.append(event)
                if not self._reading and self._ties:
                    event.set()  # the one who read has gone meanwhile
            if ticket not in self._hints and missed == self.breaks:
                await event.wait(max(end - self._colour.clock(), 0))
        finally:
            self._waiting.pop(ticket, None)
            with self._mutex:
                if event in self._followers:
                    self._followers.remove(event)
                if not self._reading and self._followers:
                    self._followers[0].set()

    def _read(self, ticket: str, end: float) -> None:
        """Read for everybody until this one is called, or the time is over, or a subscription breaks."""
        clock, missed = self._colour.clock, self.breaks
        while True:
            poll = self._poll_of()  # first, or a wake-up between the look and the bell would be missed
            rest = end - clock()
            if ticket in self._hints or missed != self.breaks or rest <= 0:
                return
            for fd, _ in poll.poll(rest * 1000):
                node = self._by_fd.get(fd)
                if node is not None:
                    self._take_in(node)
                elif self._bell is not None:
                    os.read(self._bell[0], 64)

    def _poll_of(self) -> Any:
        """What tells the reader that something has come: made anew only when there is another to listen to."""
        ties = list(self._ties.items())
        if ties != self._polled:
            from select import POLLIN, poll

            self._polled = ties
            self._poll = poll()
            self._by_fd = {tie.sock.fileno(): node for node, tie in ties}
            for fd in self._by_fd:
                self._poll.register(fd, POLLIN)
            if self._bell is None:
                bell = os.pipe()
                os.set_blocking(bell[1], False)
                self._bell = bell
            self._poll.register(self._bell[0], POLLIN)
        return self._poll

    def _take_in(self, node: ThreadNode) -> None:
        """What has come from this server; if it has hung up, whoever waits is told that something may be missed."""
        tie = self._ties.get(node)
        if tie is None:
            return
        try:
            while True:
                try:
                    data = tie.recv(CHUNK)
                except SLOW:
                    data = tie.wait(CHUNK)
                if not data:
                    raise EOFError
                tie.reader.feed(data)
                while (message := tie.reader.gets()) is not NOT_YET:
                    found = wake_up(message)
                    if found is not None:
                        self.hear(*found)
                if not getattr(tie.sock, "pending", int)():
                    return
        except (OSError, EOFError, Said):
            self._drop(node)

    def _drop(self, node: ThreadNode) -> None:
        with self._mutex:
            tie = self._ties.pop(node, None)
            self.breaks += 1
        if tie is not None:
            tie.close()
        self.wake_all()

    def drain(self) -> None:
        """Take in what has come, without waiting, unless somebody reads anyway."""
        if not self._ties:
            return
        from select import POLLIN, poll

        with self._mutex:
            if self._reading:
                return
            self._reading = True
        try:
            for node, tie in list(self._ties.items()):
                one = poll()
                one.register(tie.sock, POLLIN)
                if one.poll(0):
                    self._take_in(node)
        finally:
            with self._mutex:
                self._reading = False
                if self._followers:
                    self._followers[0].set()

    def forget(self, channel: str) -> None:
        """After a fork: the sockets are the parent's, and must not count as listeners when it is gone."""
        for tie in self._ties.values():
            let_go(tie.sock.fileno())
        for fd in self._bell or ():
            os.close(fd)
        self._bell = None
        self._ties.clear()
        self._hints.clear()
        self._waiting.clear()
        self._channel = channel
        self._fresh()

    async def close(self) -> None:
        for node in list(self._ties):
            self._drop(node)
        with self._mutex:
            bell, self._bell = self._bell, None
        for fd in bell or ():
            os.close(fd)
