"""Batches for asyncio: the requests of one turn of the event loop are one script for many locks, and one message.

Each lock has its own reply and its own error: a lock that another client holds, or whose key has another type, does not
affect the others. A request without a reply here (None) goes to the dispatcher, which handles what the server reports
about itself. In a cluster each lock has its own script, because no script may use keys of two slots; all of them still
go out in one write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .async_connection import AsyncNode, PendingRequest, fail
from .encoding import pack, sized
from .packed_commands import PackedCommands, fast_tail
from .reply_reader import ReplyError
from .scripts import FAST_ACQUIRE, FAST_RELEASE, Script, make_batch

if TYPE_CHECKING:
    from ...rules.locks import Acquire
    from .store import RedisBackend

MOST = 128  # locks in one script: all other clients wait while it runs, and more gain nothing
LIST_AGAIN = 3600.0
BATCH_ACQUIRE, BATCH_RELEASE = make_batch(FAST_ACQUIRE), make_batch(FAST_RELEASE)


class Batch:
    """Many locks, one script, one reply. A future with None: the caller must use the dispatcher."""

    __slots__ = ("again", "fences", "futures", "locks", "node", "tail", "tickets")
    alone: Script
    batch: Script
    own: int  # how many arguments each lock has for itself
    shared: int  # how many are the same for all

    def __init__(self, node: AsyncNode, tail: bytes) -> None:
        self.node = node
        self.tail = tail  # the arguments that are the same for all, packed
        self.locks: list[PackedCommands] = []
        self.futures: list[asyncio.Future[Any]] = []
        self.tickets: list[str] = []
        self.fences: list[str] = []  # of releases
        self.again = False

    def payload(self) -> bytes:
        count = len(self.locks)
        words = b"".join([commands.packed_key for commands in self.locks])
        if count == 1:
            script, size = self.alone, 4 + self.own + self.shared
        else:
            script, size = self.batch, 4 + (1 + self.own) * count + self.shared
            words += b"$1\r\n%d\r\n" % self.own
        keys = b"%d" % count
        start = b"*%d\r\n$7\r\nEVALSHA\r\n$40\r\n%b\r\n$%d\r\n%b\r\n" % (size, script.sha.encode(), len(keys), keys)
        fences = column(self.fences) if self.fences else b""
        return b"".join((start, words, column(self.tickets, sized), fences, self.tail))

    def receive(self, reply: Any) -> bool:
        if type(reply) is ReplyError and str(reply).startswith("NOSCRIPT") and not self.again:
            self.again = True
            load = pack("SCRIPT", "LOAD", (self.alone if len(self.futures) == 1 else self.batch).text)
            self.node.send(PendingRequest(self.node.loop.create_future(), 1), load)
            self.node.send(self, self)
            return True
        if type(reply) is not list:
            reply = [reply] * len(self.futures)
        for number, (future, found) in enumerate(zip(self.futures, reply, strict=True)):
            if type(found) is not int:
                if found is None:
                    self.locks[number].contended = True
                found = None
            if not future.done():
                future.set_result(found)
        return True

    def end(self, error: Callable[[], Exception]) -> None:
        for future in self.futures:
            fail(future, error())


class AcquireBatch(Batch):
    __slots__ = ()
    alone, batch, own, shared = FAST_ACQUIRE, BATCH_ACQUIRE, 1, 3


class ReleaseBatch(Batch):
    __slots__ = ()
    alone, batch, own, shared = FAST_RELEASE, BATCH_RELEASE, 2, 0


def column(words: Sequence[str], whole: Callable[[bytes], bytes] = bytes) -> bytes:
    """Pack these arguments, each after what `whole` puts before it.

    Nearly always all have the same size, and then the bytes between them are the same: one call joins them all.
    """
    size = len(words[0])
    if {*map(len, words)} == {size} and "".join(words).isascii():
        first = whole(words[0].encode())
        before = f"${len(first)}\r\n{first[:-size].decode('latin-1')}"
        return (before + ("\r\n" + before).join(words) + "\r\n").encode("latin-1")
    return b"".join([b"$%d\r\n%b\r\n" % (len(one), one) for one in [whole(word.encode()) for word in words]])


class Batcher:
    """Acquires and releases of one request, by batches. Keeps what does not change between them."""

    __slots__ = ("_commands", "_name", "_node", "_tail", "of")

    def __init__(self, of: RedisBackend, node: Any, name: str, commands: PackedCommands, tail: bytes) -> None:
        self.of = of
        self._node: AsyncNode = node
        self._name = name
        self._commands = commands
        self._tail = tail

    def enter(self, ticket: str, at: float) -> asyncio.Future[Any] | None:
        """Return a future of the fence, or of None. None instead of a future: nothing was sent."""
        commands = self._commands
        if commands.contended or at - commands.listed > LIST_AGAIN:
            commands = self._refresh()
            if commands.contended or at - commands.listed > LIST_AGAIN:
                return None
        node = self._node
        batch = node.open_batches.get(self._tail)
        if batch is None:
            if node.pipe is None:
                return None
            batch = begin(AcquireBatch(node, self._tail))
        future: asyncio.Future[Any] = asyncio.Future(loop=node.loop)
        batch.futures.append(future)
        batch.tickets.append(ticket)
        locks = batch.locks
        locks.append(commands)
        if len(locks) == MOST:
            node.flush()  # the server can begin
        return future

    def leave(self, ticket: str, fence: int) -> asyncio.Future[Any] | None:
        """Return a future of 1, or of None. None instead of a future: nothing was sent."""
        commands = self._commands
        if commands.contended:
            return None
        node = self._node
        batch = node.open_batches.get(b"")
        if batch is None:
            if node.pipe is None:
                return None
            batch = begin(ReleaseBatch(node, b""))
        future: asyncio.Future[Any] = asyncio.Future(loop=node.loop)
        batch.futures.append(future)
        batch.tickets.append(ticket)
        batch.fences.append(str(fence))
        locks = batch.locks
        locks.append(commands)
        if len(locks) == MOST:
            node.flush()
        return future

    def _refresh(self) -> PackedCommands:
        """Return the commands of this lock again: the store does not keep those of every name."""
        commands = self._commands = self.of.commands_for(self._name)
        return commands


def begin(batch: Batch) -> Batch:
    """Send it at the end of this turn, or when it is full."""
    batch.node.send(batch, batch)
    batch.node.open_batches[batch.tail] = batch
    return batch


class ClusterBatcher(Batcher):
    """In a cluster: a script for each lock, at its own server."""

    __slots__ = ()

    def enter(self, ticket: str, at: float) -> asyncio.Future[Any] | None:
        commands = self._refresh()
        if commands.contended or at - commands.listed > LIST_AGAIN:
            return None
        return self._send(commands, AcquireBatch, self._tail, ticket)

    def leave(self, ticket: str, fence: int) -> asyncio.Future[Any] | None:
        commands = self._commands
        return None if commands.contended else self._send(commands, ReleaseBatch, b"", ticket, str(fence))

    def _send(
        self, commands: PackedCommands, kind: type[Batch], tail: bytes, ticket: str, *fence: str
    ) -> asyncio.Future[Any] | None:
        try:
            node = self.of.topology.node(commands.slot)
        except LookupError:
            return None
        if node.pipe is None:
            return None
        batch = kind(node, tail)
        future: asyncio.Future[Any] = asyncio.Future(loop=node.loop)
        batch.locks.append(commands)
        batch.futures.append(future)
        batch.tickets.append(ticket)
        batch.fences.extend(fence)
        node.send(batch, batch)
        return future


def make_batcher(backend: RedisBackend, name: str, command: Acquire) -> Batcher | None:
    """Return a batcher for such a command; None: the fast scripts do not support it."""
    tail = fast_tail(command)
    if not tail:
        return None
    topology = backend.topology
    if topology.many:
        return ClusterBatcher(backend, None, name, backend.commands_for(name), tail)
    return Batcher(backend, topology.nodes()[0], name, backend.commands_for(name), tail)
