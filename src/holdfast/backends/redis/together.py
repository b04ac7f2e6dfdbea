"""What tasks say in one turn of the loop, said together: one script for many locks, and one message.

Each lock has its own answer, and its own trouble: a door that somebody else has entered, or whose key is not what it
should be, is no other's business. What the server has to say about itself is for the courier, so whoever gets no answer
here asks there. In a cluster each lock is asked for alone, for no script may have keys of two slots; all of them still
go out in one write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .door import Door, tail_of
from .layout import head, pack
from .reading import Said
from .scripts import ENTER, LEAVE, Script, many
from .tasks import Question, TaskNode, fail

if TYPE_CHECKING:
    from ...doorman import Enter
    from .backend import RedisBackend

MOST = 128  # locks in one script: everybody else waits while it runs, and more gain nothing
LIST_AGAIN = 3600.0
ENTER_MANY, LEAVE_MANY = many(ENTER), many(LEAVE)


class Batch:
    """Many locks, one script, one answer. Those who ask get None if they are to ask the courier."""

    __slots__ = ("again", "asked", "doors", "fences", "node", "tail", "tickets")
    alone: Script
    many: Script
    own: int  # how many arguments each lock has for itself
    shared: int  # how many are the same for all

    def __init__(self, node: TaskNode, tail: bytes) -> None:
        self.node = node
        self.tail = tail  # the arguments that are the same for all, packed
        self.doors: list[Door] = []
        self.asked: list[asyncio.Future[Any]] = []
        self.tickets: list[str] = []
        self.fences: list[str] = []  # of those who leave
        self.again = False

    def payload(self) -> bytes:
        count = len(self.doors)
        words = b"".join([door.word for door in self.doors])
        if count == 1:
            script, size = self.alone, 4 + self.own + self.shared
        else:
            script, size = self.many, 4 + (1 + self.own) * count + self.shared
            words += b"$1\r\n%d\r\n" % self.own
        keys = b"%d" % count
        start = b"*%d\r\n$7\r\nEVALSHA\r\n$40\r\n%b\r\n$%d\r\n%b\r\n" % (size, script.sha.encode(), len(keys), keys)
        fences = column(self.fences) if self.fences else b""
        return b"".join((start, words, column(self.tickets, head), fences, self.tail))

    def hear(self, reply: Any) -> bool:
        if type(reply) is Said and str(reply).startswith("NOSCRIPT") and not self.again:
            self.again = True
            load = pack("SCRIPT", "LOAD", (self.alone if len(self.asked) == 1 else self.many).text)
            self.node.send(Question(self.node.loop.create_future(), 1), load)
            self.node.send(self, self)
            return True
        if type(reply) is not list:
            reply = [reply] * len(self.asked)
        for number, (asked, found) in enumerate(zip(self.asked, reply, strict=True)):
            if type(found) is not int:
                if found is None:
                    self.doors[number].crowded = True
                found = None
            if not asked.done():
                asked.set_result(found)
        return True

    def end(self, error: Callable[[], Exception]) -> None:
        for asked in self.asked:
            fail(asked, error())


class Entering(Batch):
    __slots__ = ()
    alone, many, own, shared = ENTER, ENTER_MANY, 1, 4


class Leaving(Batch):
    __slots__ = ()
    alone, many, own, shared = LEAVE, LEAVE_MANY, 2, 0


def column(words: Sequence[str], whole: Callable[[bytes], bytes] = bytes) -> bytes:
    """These arguments, packed, each after what `whole` puts before it.

    Nearly always all are of the same size, and then so is what is between them: one call joins them all.
    """
    size = len(words[0])
    if {*map(len, words)} == {size} and "".join(words).isascii():
        first = whole(words[0].encode())
        before = f"${len(first)}\r\n{first[:-size].decode('latin-1')}"
        return (before + ("\r\n" + before).join(words) + "\r\n").encode("latin-1")
    return b"".join([b"$%d\r\n%b\r\n" % (len(one), one) for one in [whole(word.encode()) for word in words]])


class Together:
    """The steps of one wish that take one message: what never changes of them is at hand."""

    __slots__ = ("_door", "_name", "_node", "_tail", "of")

    def __init__(self, of: RedisBackend, node: Any, name: str, door: Door, tail: bytes) -> None:
        self.of = of
        self._node: TaskNode = node
        self._name = name
        self._door = door
        self._tail = tail

    def enter(self, ticket: str, at: float) -> asyncio.Future[Any] | None:
        """The fence, by and by, or None. None at once: nothing was said."""
        door = self._door
        if door.crowded or at - door.listed > LIST_AGAIN:
            door = self._known()
            if door.crowded or at - door.listed > LIST_AGAIN:
                return None
        node = self._node
        batch = node.open_to_more.get(self._tail)
        if batch is None:
            if node.pipe is None:
                return None
            batch = begin(Entering(node, self._tail))
        asked: asyncio.Future[Any] = asyncio.Future(loop=node.loop)
        batch.asked.append(asked)
        batch.tickets.append(ticket)
        doors = batch.doors
        doors.append(door)
        if len(doors) == MOST:
            node.flush()  # the server may as well begin
        return asked

    def leave(self, ticket: str, fence: int) -> asyncio.Future[Any] | None:
        """1, by and by, or None. None at once: nothing was said."""
        door = self._door
        if door.crowded:
            return None
        node = self._node
        batch = node.open_to_more.get(b"")
        if batch is None:
            if node.pipe is None:
                return None
            batch = begin(Leaving(node, b""))
        asked: asyncio.Future[Any] = asyncio.Future(loop=node.loop)
        batch.asked.append(asked)
        batch.tickets.append(ticket)
        batch.fences.append(str(fence))
        doors = batch.doors
        doors.append(door)
        if len(doors) == MOST:
            node.flush()
        return asked

    def _known(self) -> Door:
        """The door as it is known by now: the backend does not keep all that it has ever seen."""
        door = self._door = self.of.door(self._name)
        return door


def begin(batch: Batch) -> Batch:
    """It goes out at the end of this turn, or when it is full."""
    batch.node.send(batch, batch)
    batch.node.open_to_more[batch.tail] = batch
    return batch


class Apart(Together):
    """In a cluster: a script for each lock, at the server where it lives."""

    __slots__ = ()

    def enter(self, ticket: str, at: float) -> asyncio.Future[Any] | None:
        door = self._known()
        if door.crowded or at - door.listed > LIST_AGAIN:
            return None
        return self._say(door, Entering, self._tail, ticket)

    def leave(self, ticket: str, fence: int) -> asyncio.Future[Any] | None:
        door = self._door
        return None if door.crowded else self._say(door, Leaving, b"", ticket, str(fence))

    def _say(
        self, door: Door, kind: type[Batch], tail: bytes, ticket: str, *fence: str
    ) -> asyncio.Future[Any] | None:
        try:
            node = self.of.atlas.node(door.slot)
        except LookupError:
            return None
        if node.pipe is None:
            return None
        batch = kind(node, tail)
        asked: asyncio.Future[Any] = asyncio.Future(loop=node.loop)
        batch.doors.append(door)
        batch.asked.append(asked)
        batch.tickets.append(ticket)
        batch.fences.extend(fence)
        node.send(batch, batch)
        return asked


def way_of(backend: RedisBackend, name: str, command: Enter) -> Together | None:
    """None: a command like this is not for the short scripts."""
    tail = tail_of(command)
    if not tail:
        return None
    atlas = backend.atlas
    if atlas.many:
        return Apart(backend, None, name, backend.door(name), tail)
    return Together(backend, atlas.nodes()[0], name, backend.door(name), tail)
