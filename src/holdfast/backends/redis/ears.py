"""How threads hear: one subscription for each server that they wait at, read by whoever waits.

The first who waits reads for all and gives each wake-up to the one it names; the others wait for an event of their own.
When the reader leaves, the next one reads. So a client with one waiter needs no thread and no second wake-up, and a
client with none reads only now and then, when the keeper looks whether a holder has been told to go.
"""

from __future__ import annotations

import os
from typing import Any

from ..contract import Colour, Pushed
from .hearing import Hearing
from .layout import pack
from .reading import NOT_YET, Said, let_go, wake_up
from .trouble import lost, said_no
from .wire import CHUNK, ThreadNode, Tie


class ThreadEars(Hearing):
    def __init__(self, colour: Colour, channel: str) -> None:
        super().__init__(colour)
        self._channel = channel
        self._ties: dict[ThreadNode, Tie] = {}
        self._bell: tuple[int, int] | None = None  # tells the reader that there is one more to listen to
        self._fresh()

    def _fresh(self) -> None:
        self._mutex = self._colour.mutex()
        self._reading = False
        self._followers: list[Any] = []

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
            if len(self._ties) > 1:
                self._bell = self._bell or os.pipe()
                os.write(self._bell[1], b".")
        if tie is not None:
            tie.close()  # another thread was quicker

    @property
    def listening(self) -> bool:
        return bool(self._ties)

    async def wait(self, ticket: str, timeout: float) -> Pushed | None:
        """A wake-up for this ticket; None when the time is over or something may have been missed."""
        clock = self._colour.clock
        end = clock() + timeout
        missed = self.breaks
        event = self._waiting[ticket] = self._colour.event()
        try:
            while ticket not in self._hints and missed == self.breaks and clock() < end:
                with self._mutex:
                    lead = not self._reading and bool(self._ties)
                    if lead:
                        self._reading = True
                    else:
                        event.clear()
                        self._followers.append(event)
                try:
                    if lead:
                        await self._read(ticket, end)
                    elif ticket not in self._hints and missed == self.breaks:
                        await event.wait(max(end - clock(), 0))
                finally:
                    self._step_back(lead, event)
            return self.take(ticket)
        finally:
            self._waiting.pop(ticket, None)

    def _step_back(self, lead: bool, event: Any) -> None:
        with self._mutex:
            if not lead:
                self._followers.remove(event)
            else:
                self._reading = False
            if not self._reading and self._followers:
                self._followers[0].set()

    async def _read(self, ticket: str, end: float) -> None:
        """Read for everybody until this one is called, or the time is over, or a subscription breaks."""
        clock, missed = self._colour.clock, self.breaks
        while ticket not in self._hints and missed == self.breaks:
            rest = end - clock()
            if rest <= 0:
                return
            ties = {tie.sock.fileno(): node for node, tie in list(self._ties.items())}
            fds = list(ties) if self._bell is None else [*ties, self._bell[0]]
            for fd in await self._colour.readable(fds, rest):
                if fd in ties:
                    self._take_in(ties[fd])
                elif self._bell is not None:
                    os.read(self._bell[0], 64)

    def _take_in(self, node: ThreadNode) -> None:
        """What has come from this server; if it has hung up, whoever waits is told that something may be missed."""
        tie = self._ties.get(node)
        if tie is None:
            return
        try:
            while True:
                data = tie.recv(CHUNK)
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
        bell, self._bell = self._bell, None
        for fd in bell or ():
            os.close(fd)
