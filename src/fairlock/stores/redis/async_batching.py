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

from ...rules.locks import Acquire, Granted, Release, Released
from ..base import Answer
from .async_connection import AsyncNode, PendingRequest, fail
from .encoding import pack, sized
from .lua_scripts import FAST_ACQUIRE, FAST_RELEASE, Script, make_batch
from .packed_commands import PackedCommands
from .reply_reader import ReplyError

if TYPE_CHECKING:
    from ...rules.locks import Command
    from .store import RedisBackend

MOST = 128  # locks in one script: all other clients wait while it runs, and more gain nothing
RELEASED = Released(True)
new: Any = tuple.__new__
Future = asyncio.Future
BATCH_ACQUIRE, BATCH_RELEASE = make_batch(FAST_ACQUIRE), make_batch(FAST_RELEASE)


class Batch:
    """Many locks, one script, one reply. A future with None: the caller must use the dispatcher."""

    __slots__ = ("again", "at", "fences", "futures", "lease", "locks", "node", "tail", "tickets")
    alone: Script
    batch: Script
    own: int  # how many arguments each lock has for itself
    shared: int  # how many are the same for all

    def __init__(self, node: AsyncNode, tail: bytes, at: float, command: Any) -> None:
        self.node = node
        self.tail = tail  # the arguments that are the same for all, packed
        self.at = at  # the client's clock before the first of them: a lease counts from then
        self.lease = command[3]  # of an Acquire: the same for all
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
        at, lease = self.at, self.lease
        released = new(Answer, (RELEASED, at, False)) if self.fences else None
        for number, (future, found) in enumerate(zip(self.futures, reply, strict=True)):
            if type(found) is int:
                answer = released or new(Answer, (new(Granted, (found, lease, None)), at, False))
            else:
                answer = None
                if found is None:
                    self.locks[number].contended = True
            if not future.done():
                future.set_result(answer)
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
    """Acquires and releases of tasks, by batches."""

    __slots__ = ("_backend", "_commands", "_node", "_topology")

    def __init__(self, backend: RedisBackend) -> None:
        self._backend = backend
        self._commands = backend._commands
        self._topology = backend.topology
        self._node: AsyncNode | None = None if backend.topology.many else backend.topology.nodes()[0]

    def call_soon(self, name: str, command: Command) -> asyncio.Future[Answer | None] | None:
        """Return a future of the answer, or of None. None instead of a future: nothing was sent."""
        commands = self._commands.get(name) or self._backend.commands_for(name)
        if commands.contended:
            return None
        if type(command) is Acquire:
            fields, tail = commands.last
            if command[1:] != fields:
                tail = commands.pack_tail(command)
            if not tail:
                return None
        elif type(command) is not Release or command[1] or not command[2] or command[3]:
            return None
        else:
            tail = b""
        node = self._node or self._node_of(commands)
        if node is None:
            return None
        batch: Batch | None = node.open_batches.get(tail)
        at = batch.at if batch is not None else self._backend.runtime.clock()
        batch = batch or self._open(node, tail, at, command)
        if batch is None:
            return None
        future: asyncio.Future[Answer | None] = Future(loop=node.loop)
        batch.futures.append(future)
        batch.tickets.append(command[0])
        if not tail:
            batch.fences.append(str(command[2]))
        locks = batch.locks
        locks.append(commands)
        if len(locks) == MOST:
            node.flush()  # the server can begin
        return future

    def _open(self, node: AsyncNode, tail: bytes, at: float, command: Command) -> Batch | None:
        """Begin a batch. It is sent at the end of this turn of the loop, or when it is full."""
        if node.pipe is None:
            return None
        batch = (AcquireBatch if tail else ReleaseBatch)(node, tail, at, command)
        node.send(batch, batch)
        if self._node is not None:  # in a cluster no script may use keys of two slots
            node.open_batches[tail] = batch
        return batch

    def _node_of(self, commands: PackedCommands) -> AsyncNode | None:
        """In a cluster: the server of this lock, if it is known."""
        try:
            node: AsyncNode = self._topology.node(commands.slot)
        except LookupError:
            return None
        return node
