"""What tasks say in one turn of the loop, said together: one script for many locks, and one message.

Each lock has its own answer, and its own trouble: a door that somebody else has entered, or whose key is not what it
should be, is no other's business. What the server has to say about itself is for the courier, so whoever gets no answer
here asks there. In a cluster each lock is asked for alone, for no script may have keys of two slots; all of them still
go out in one write.
"""

from __future__ import annotations

import asyncio
from asyncio import get_running_loop
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...doorman import Enter
from .door import Door, tail_of
from .layout import head, pack
from .reading import Said
from .scripts import ENTER, LEAVE, Script, many
from .tasks import Question, TaskNode, fail

if TYPE_CHECKING:
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

    def __init__(self, node: TaskNode, tail: bytes = b"") -> None:
        self.node = node
        self.tail = tail  # the arguments that are the same for all, packed
        self.doors: list[Door] = []
        self.tickets: list[str] = []
        self.fences: list[int] = []
        self.asked: list[asyncio.Future[Any]] = []
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
        fences = column(list(map(str, self.fences))) if self.fences else b""
        return b"".join((start, words, column(self.tickets, head), fences, self.tail))

    def hear(self, reply: Any) -> bool:
        if type(reply) is Said and str(reply).startswith("NOSCRIPT") and not self.again:
            self.again = True
            load = pack("SCRIPT", "LOAD", (self.alone if len(self.asked) == 1 else self.many).text)
            self.node.send(Question(get_running_loop().create_future(), 1), load)
            self.node.send(self, self)
            return True
        if type(reply) is not list:
            reply = [reply] if len(self.asked) == 1 else [reply] * len(self.asked)
        for door, asked, found in zip(self.doors, self.asked, reply, strict=True):
            if found is None:
                door.crowded = True
            elif type(found) is Said:
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


def column(words: list[str], whole: Callable[[bytes], bytes] = bytes) -> bytes:
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

    __slots__ = ("_atlas", "_doors", "_most", "_name", "_tail", "of")

    def __init__(self, of: RedisBackend, doors: dict[str, Door], name: str, command: Enter) -> None:
        self.of = of
        self._atlas = atlas = of.atlas
        self._doors = doors
        self._name = name
        self._tail = tail_of(command)
        self._most = 1 if atlas.many else MOST

    def enter(self, ticket: str, at: float) -> asyncio.Future[Any] | None:
        """The fence, by and by, or None. None at once: nothing was said."""
        door = self._doors.get(self._name)
        if door is None or door.crowded or at - door.listed > LIST_AGAIN or not self._tail:
            return None
        return self._say(door, self._tail, ticket, 0)

    def leave(self, ticket: str, fence: int) -> asyncio.Future[Any] | None:
        """1, by and by, or None. None at once: nothing was said."""
        door = self._doors.get(self._name)
        return None if door is None or door.crowded else self._say(door, b"", ticket, fence)

    def _say(self, door: Door, tail: bytes, ticket: str, fence: int) -> asyncio.Future[Any] | None:
        try:
            node = self._atlas.node(door.slot)
        except LookupError:
            return None
        batch = node.open_to_more.get(tail)
        if batch is None:
            if node.pipe is None:
                return None
            batch = Entering(node, tail) if tail else Leaving(node)
            node.send(batch, batch)
            node.open_to_more[tail] = batch
        if fence:
            batch.fences.append(fence)
        batch.doors.append(door)
        batch.tickets.append(ticket)
        asked: asyncio.Future[Any] = get_running_loop().create_future()
        batch.asked.append(asked)
        if len(batch.asked) >= self._most:
            del node.open_to_more[tail]
            if self._most > 1:
                node.flush()  # the server may as well begin
        return asked
