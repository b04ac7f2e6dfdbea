"""Locks in a Redis server: the rules run there, as Lua, on native structures.

The commonest steps (acquire and release of an uncontended lock) are scripts with one key; everything else is the full
step. The client remembers for each name which of the two to send first. The dispatcher finds the server of a name and
handles its failures; the listeners receive the wake-ups.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ...errors import RecordDamaged, StoreError
from ...rules.locks import Acquire, Command, Detach, Granted, Release, Released, Renew
from ..base import NEVER, Accept, Answer, Backend, OutcomeUnknown, Pushed, Runtime, Soon
from ..shared_connections import Share
from . import encoding, errors
from .audit_lines import AuditLists
from .busy_name_index import LOCK, SLOT, NameIndex
from .encoding import PING, RELEASED, pack
from .lua_scripts import FAST_ACQUIRE, FAST_RELEASE, STEP
from .make_connections import RedisConnections
from .packed_commands import PackedByName, PackedCommands
from .reply_reader import NOT_YET, ReplyError, new
from .send_and_redirect import RoutedCommand
from .send_many_renewals import REPLICA_TIMEOUT_MS, BatchedRenewals, too_few_replicas
from .topology import SingleServer

if TYPE_CHECKING:
    from .pool_items import RedisPools

KNOWN = 4096  # names whose keys are kept at hand
CONFIRMED = (Acquire, Renew, Detach)
BRIEF = 0.2  # seconds; a wait that takes longer is written into the index of busy names
MANY_NAMES = 64  # of these a client of a cluster listens at every server, without searching for the server of each


class RedisBackend(BatchedRenewals, AuditLists):
    scope = "machines"
    has_index = True

    def __init__(
        self, where: str, runtime: Runtime, namespace: str, share: Share[RedisConnections], min_replicas: int = 0
    ) -> None:
        self.where = where
        self.runtime = runtime
        self.namespace = namespace
        self._share = share
        self.listener = share.of.listener
        self.listeners = share.of.listeners
        topology = self.topology = share.of.topology
        # A grant made by another client's step must still be confirmed by the replicas. And an event loop may be
        # blocked for longer than the short time for which a pushed grant is valid.
        self.pushes_grants = runtime.blocking and not min_replicas
        self.min_replicas = min_replicas
        self.database = share.of.database
        self._confirm = pack("WAIT", min_replicas, REPLICA_TIMEOUT_MS) if min_replicas else b""
        self._clock = runtime.clock
        self._node_of = topology.node
        self._only_node = topology.nodes()[0] if type(topology) is SingleServer else None
        self._nowait = runtime.blocking and not min_replicas
        self.wait_briefly = self.listeners.wait_for if runtime.blocking else None
        self._commands: PackedByName[PackedCommands] = PackedByName(KNOWN, partial(PackedCommands, self.namespace))
        self.skew, self.may_duplicate = Backend.skew, Backend.may_duplicate  # found sooner here than in the class
        self.keeper_key = None if topology.many else share.of  # a server of a cluster may hang while the others reply
        self._breaks = self.listeners.breaks + topology.breaks
        self.index = NameIndex(self)
        self.silent: dict[Any, float] = {}  # servers of a cluster that did not reply, and until when they are not asked

    def name_connections(self, owner: str) -> None:
        session = self._share.of.session
        session.owner = session.owner or owner

    # -- one step

    def acquire_soon(self, name: str, ticket: str, fields: tuple[Any, ...], hold: Any, accept: Accept) -> Soon | None:
        """Add it to the batch of the tasks: one message for each turn of the loop."""
        if self.runtime.blocking or self._confirm:
            return None
        from .async_batching import Batcher

        batcher = Batcher(self)
        self.acquire_soon, self.release_soon = batcher.acquire_soon, batcher.release_soon  # type: ignore[method-assign]
        return self.acquire_soon(name, ticket, fields, hold, accept)

    async def call(self, name: str, command: Command) -> Answer:
        try:
            commands = self._commands[name]
            at = self.runtime.clock()
            if not commands.contended:
                payload = commands.pack_fast(command)
                if payload is not None:
                    acquiring = type(command) is Acquire
                    after = self._confirm if acquiring else b""
                    script = FAST_ACQUIRE if acquiring else FAST_RELEASE
                    found = await self.send(RoutedCommand(commands.slot, payload, script, after=after))
                    if found[0] is not None:
                        if after:
                            await self._replicated(found[1], commands, command)
                        if acquiring:
                            return Answer(Granted(int(found[0]), command.lease), at)  # type: ignore[union-attr, arg-type]
                        return Answer(Released(True), at)
                    at = self.runtime.clock()
                commands.contended = True
            if type(command) is Acquire and command.wait:
                await self._listen(commands.slot)
            # PING first, and the server writes to the clients that a step has granted to before it replies to this one.
            before = PING if type(command) is Release else b""
            payload = commands.pack_step(command)
            after = self._confirm if type(command) in CONFIRMED else b""
            raw, *confirmed = await self.send(RoutedCommand(commands.slot, payload, STEP, before, after))
            reply, commands.contended = encoding.decode_step(raw, command)
            if type(reply) is Granted:
                if confirmed:
                    await self._replicated(confirmed[0], commands, command)
                if type(command) in (Detach, Renew) and (lease := command.lease):  # type: ignore[union-attr]
                    await self.index.put_ownerless(LOCK, name, lease / 1e6)  # perhaps no keeper lists it
            return Answer(reply, at)
        except errors.UNREADABLE as bad:
            error = errors.unreadable(bad, name, self.where)
            if isinstance(error, RecordDamaged):
                await self.index.put_ownerless(LOCK, name, 0.0)  # so that a look shows it
            raise error from None

    def call_nowait(self, name: str, command: Command) -> Answer | None:
        """Make the commonest steps for threads: one write, one read, no coroutine. OutcomeUnknown if no reply came."""
        commands = self._commands.get(name)
        if commands is None or not self._nowait:
            return None
        clock, node = self._clock, self._only_node
        at = clock()
        if node is None:
            try:
                node = self._node_of(commands.slot)
            except LookupError:
                return None
        kind: Any = type(command)
        reply: Any = None
        fields: Any = command
        if not commands.contended:
            payload = commands.pack_fast(command)
            found = NOT_YET if payload is None else node.request_one(payload)
            if type(found) is int:
                # tuple.__new__ instead of the constructor of the named tuple, which takes as long as all of the above.
                reply = new(Granted, (found, fields[3], None)) if kind is Acquire else RELEASED
            elif found is None:
                commands.contended = True
            else:
                return None  # nothing was sent, or the server reports about itself: that is for the dispatcher
        if reply is None:  # the full step
            if kind is Release:
                found = node.request_one(PING + commands.pack_step(command), True)
            elif kind is Acquire and (not fields[4] or node in self.listeners.connections):
                found = node.request_one(commands.pack_step(command))
            else:
                return None
            if type(found) is ReplyError:
                errors.raise_if_begun(found)
                return None
            if found is NOT_YET or not found:
                return None
            try:
                reply, commands.contended = encoding.decode_step(found, command)
            except errors.UNREADABLE as bad:
                raise errors.unreadable(bad, name, self.where) from None
        answer: Answer = new(Answer, (reply, at, False))
        return answer

    async def _replicated(self, count: Any, commands: PackedCommands, command: Command) -> None:
        """A grant counts only when enough replicas have it. Otherwise release a new one, and raise StoreError."""
        few = too_few_replicas(self, count)
        if few is None:
            return
        if type(command) is Acquire and type(count) is not ReplyError:
            await self.send(RoutedCommand(commands.slot, commands.pack_step(Release(command.ticket)), STEP))
        raise few

    def commands_for(self, name: str) -> PackedCommands:
        return self._commands[name]

    @cached_property
    def pools(self) -> RedisPools:
        from .pool_items import RedisPools  # most programs use none, and start-up time counts

        return RedisPools(self)

    # -- waiting

    async def _listen(self, slot: int) -> None:
        """Subscribe at the server of this lock or pool, so that its script finds a subscriber there."""
        try:
            await self.listeners.listen(await self.topology.find(slot))
        except StoreError as error:
            if not self.topology.moves or error.refused:
                raise
            await self.topology.learn()  # a client that only waits sends nothing else that would find the new server
            await self.listeners.listen(await self.topology.find(slot))

    def wait_for_wakeup(self, name: str, ticket: str, timeout: float) -> Coroutine[Any, Any, Pushed | None]:
        return self.wait_listed(LOCK, name, ticket, timeout)

    async def wait_listed(self, kind: str, name: str, ticket: str, timeout: float) -> Pushed | None:
        """Wait for a wake-up; a wait that takes longer than a moment is written into the index of busy names."""
        end = self.runtime.clock() + timeout
        pushed = await self._wait(ticket, min(timeout, BRIEF))
        if pushed is None and timeout > BRIEF:
            await self.index.wait(kind, name, timeout - BRIEF)
            pushed = await self._wait(ticket, max(end - self.runtime.clock(), 0.0))
        return pushed

    async def _wait(self, ticket: str, timeout: float) -> Pushed | None:
        listeners: Any = self.listeners
        if self.runtime.blocking:
            return listeners.wait_for(ticket, timeout)  # type: ignore[no-any-return]
        return await listeners.wait(ticket, self.runtime.event(), timeout)  # type: ignore[no-any-return]

    def notify_reset(self, call: Callable[[], None]) -> None:
        self._share.on_reset = call

    def wake_here(self, tickets: Collection[str]) -> None:
        self.listeners.wake_here(tickets)

    def take_wakeups(self, tickets: Iterable[str]) -> Collection[str]:
        self.listeners.drain()
        breaks = self.listeners.breaks + self.topology.breaks
        if breaks != self._breaks:
            # It may be another server now, or the same without its data: check each grant. That needs no right to read
            # the server's run_id, and notices a restart as well.
            self._breaks = breaks
            return list(tickets)
        found: Collection[str] = self.listeners.take_wakeups(tickets)
        return found

    async def attend(self, locks: Collection[str], pools: Collection[str]) -> float:
        """Subscribe at each server that has one of these. Returns since when; NEVER if that failed."""
        try:
            if not self.topology.many:
                await self._listen(SLOT)
            elif len(locks) + len(pools) > MANY_NAMES:
                for node in self.topology.nodes():
                    await self.listeners.listen(node)
            else:
                for name in locks:
                    await self._listen(self._commands[name].slot)
                for name in pools:
                    await self._listen(self.pools.known[name].slot)
        except (OutcomeUnknown, StoreError):
            return NEVER  # the keeper then reads the state, and that shows whether the server can be reached
        return float(self.listeners.since)

    # -- maintenance

    async def repair(self, name: str) -> list[str]:
        from .repair_keys import repair

        return await repair(self, name)

    async def list_names(self, locks: Mapping[str, float], pools: Mapping[str, float]) -> None:
        await self.index.keep(locks, pools)

    async def ping(self) -> None:
        await self._time()

    async def close(self) -> None:
        await self.index.clear()
        if self._share.leave():
            await self._share.of.close()

    def forked(self) -> None:
        self.index.forget()
        self._share.of.forked()
        self.listener = self._share.of.listener

    async def doctor(self) -> list[tuple[str, str]]:
        from .doctor import examine

        return await examine(self)

    def schema(self) -> str:
        from . import acl

        return acl.text(self)
