"""Batches for asyncio: the requests of one turn of the event loop are one script for many locks, and one message.

Each lock has its own reply and its own error: a lock that another client holds, or whose key has another type, does not
affect the others. A request without a reply here (None) goes to the dispatcher, which handles what the server reports
about itself. In a cluster each lock has its own script, because no script may use keys of two slots; all of them still
go out in one write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..base import Accept
from ..task_futures import TaskFuture, wake
from .async_connection import AsyncNode, PendingRequest, fail
from .encoding import pack, sized
from .lua_scripts import FAST_ACQUIRE, FAST_RELEASE, Script, make_batch
from .packed_commands import PackedCommands
from .reply_reader import ReplyError

if TYPE_CHECKING:
    from .store import RedisBackend

MOST = 128  # locks in one script: all other clients wait while it runs, and more gain nothing
BATCH_ACQUIRE, BATCH_RELEASE = make_batch(FAST_ACQUIRE), make_batch(FAST_RELEASE)


class Batch:
    """Many locks, one script, one reply. A future with None: the caller must use the dispatcher."""

    __slots__ = ("accept", "again", "at", "clock", "entries", "lease", "node", "tail")
    alone: Script
    batch: Script
    own: int  # how many arguments each lock has for itself
    shared: int  # how many are the same for all

    def __init__(
        self, node: AsyncNode, clock: Callable[[], float], accept: Accept, tail: bytes = b"", lease: int = 0
    ) -> None:
        self.node = node
        self.clock = clock
        self.at = clock()  # before the first of them: a lease counts from then
        self.accept = accept
        self.tail = tail  # the arguments that are the same for all, packed
        self.lease = lease  # of acquires: the same for all
        # Of each lock: its future, its hold, its packed commands, its ticket and, for a release, its fence. One list of
        # them all: it is built, and taken apart, with fewer steps than one list of each, or one object for each lock.
        self.entries: list[Any] = []
        self.again = False

    def payload(self) -> bytes:
        width = 3 + self.own
        locks, tickets = self.entries[2::width], self.entries[3::width]
        count = len(locks)
        words = b"".join([commands.packed_key for commands in locks])
        if count == 1:
            script, size = self.alone, 4 + self.own + self.shared
        else:
            script, size = self.batch, 4 + (1 + self.own) * count + self.shared
            words += b"$1\r\n%d\r\n" % self.own
        keys = b"%d" % count
        start = b"*%d\r\n$7\r\nEVALSHA\r\n$40\r\n%b\r\n$%d\r\n%b\r\n" % (size, script.sha.encode(), len(keys), keys)
        fences = column([*map(str, self.entries[4::width])]) if self.own == 2 else b""
        return b"".join((start, words, column(tickets, sized), fences, self.tail))

    def receive(self, reply: Any) -> bool:
        if type(reply) is ReplyError and str(reply).startswith("NOSCRIPT") and not self.again:
            self.again = True
            load = pack("SCRIPT", "LOAD", (self.alone if len(self.entries) == 3 + self.own else self.batch).text)
            self.node.send(PendingRequest(self.node.loop.create_future(), 1), load)
            self.node.send(self, self)
            return True
        width = 3 + self.own
        futures, holds = self.entries[::width], self.entries[1::width]
        replies = reply if type(reply) is list else [reply] * len(futures)
        granted: Iterable[Any] = zip(futures, holds, replies, strict=True)
        if {*map(type, replies)} != {int} or True in map(TaskFuture.done, futures):
            # Those that are done were cancelled: a request gives back what it may have, a release is sent again.
            rest = [each for each in zip(granted, self.entries[2::width], strict=True) if not each[0][0].done()]
            futures, granted = [each[0][0] for each in rest], [each[0] for each in rest if type(each[0][2]) is int]
            for (future, _, found), commands in rest:
                if type(found) is not int:
                    commands.contended |= found is None
                    future.set_result(None)
        self.accept(granted, self.lease, self.at, self.clock())
        wake(futures, self.node.loop)
        return True

    def end(self, error: Callable[[], Exception]) -> None:
        futures = [future for future in self.entries[:: 3 + self.own] if not future.done()]
        for future in futures:
            fail(future, error())
        wake(futures, self.node.loop)


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

    __slots__ = ("_backend", "_clock", "_commands", "_node", "_topology")

    def __init__(self, backend: RedisBackend) -> None:
        self._backend = backend
        self._commands = backend._commands
        self._clock = backend.runtime.clock
        self._topology = backend.topology
        self._node: AsyncNode | None = None if backend.topology.many else backend.topology.nodes()[0]

    def acquire_soon(
        self, name: str, ticket: str, fields: tuple[Any, ...], hold: Any, accept: Accept
    ) -> TaskFuture[bool | None] | None:
        """See Backend.acquire_soon."""
        commands = self._commands.get(name)
        if commands is None:
            commands = self._backend.commands_for(name)
        last, tail = commands.last
        if fields is not last and fields != last:
            tail = commands.pack_tail(fields)
        node = self._node or self._node_of(commands)
        if commands.contended or not tail or node is None or node.pipe is None:
            return None
        batch: Batch | None = node.open_batches.get(tail)
        if batch is None:
            batch = AcquireBatch(node, self._clock, accept, tail, fields[2])
            self._open(batch)
        future: TaskFuture[bool | None] = TaskFuture(loop=node.loop)
        entries = batch.entries
        entries += future, hold, commands, ticket
        if len(entries) == 4 * MOST:
            node.flush()  # the server can begin
        return future

    def release_soon(
        self, name: str, ticket: str, fence: int, hold: Any, accept: Accept
    ) -> TaskFuture[bool | None] | None:
        """See Backend.release_soon."""
        commands = self._commands.get(name)
        if commands is None:
            commands = self._backend.commands_for(name)
        node = self._node or self._node_of(commands)
        if commands.contended or node is None or node.pipe is None:
            return None
        batch: Batch | None = node.open_batches.get(b"")
        if batch is None:
            batch = ReleaseBatch(node, self._clock, accept)
            self._open(batch)
        future: TaskFuture[bool | None] = TaskFuture(loop=node.loop)
        entries = batch.entries
        entries += future, hold, commands, ticket, fence
        if len(entries) == 5 * MOST:
            node.flush()
        return future

    def _open(self, batch: Batch) -> None:
        """Begin a batch. It is sent at the end of this turn of the loop, or when it is full."""
        node = batch.node
        node.send(batch, batch)
        if self._node is not None:  # in a cluster no script may use keys of two slots
            node.open_batches[batch.tail] = batch

    def _node_of(self, commands: PackedCommands) -> AsyncNode | None:
        """Return the server of this lock in a cluster, if it is known."""
        try:
            node: AsyncNode = self._topology.node(commands.slot)
        except LookupError:
            return None
        return node
