"""Sends the renewals of many leases as one message, for locks and for items alike.

The full step of up to SCRIPT leases is one script. A message has several of them: the server serves other clients in
between, and a keeper that has to wait for the other threads of its interpreter at each read and write does so less
often. In a cluster a script may only use keys of one slot: there each slot has its own script, and all
scripts for one server are one message.

Each step has its own result. A step without one (its keys are damaged, or the server reports about itself: a slot has
moved, a server is loading or has become a replica) is made by `call`, which handles all that. So the errors of a
renewal are the same as those of any other command.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from redis.crc import key_slot

from ...errors import LockError, StoreError
from ...rules.locks import Command, Renew
from ..base import Answer, OutcomeUnknown, fill_gaps
from . import encoding, errors
from .encoding import pack, pack_args
from .lua_scripts import STEP, Script, make_batch, read
from .packed_commands import PackedCommands
from .reply_reader import ReplyError
from .send_and_redirect import Dispatcher

if TYPE_CHECKING:
    from .store import RedisBackend

MESSAGE = 512  # leases
SCRIPT = 32  # leases: all other clients of the server wait while a script runs
REPLICA_TIMEOUT_MS = 500  # how long WAIT waits for replicas; a try waits no longer than 0.7 s for a reply
SILENT = 3.0  # seconds for which a server of a cluster is not asked again after it has not replied


class Step(NamedTuple):
    """One step: the keys of its lock or pool, packed, their slot, and the arguments of the script, packed."""

    slot: int
    keys: bytes
    args: bytes


class BatchScript:
    """The script of one step, and the same for many."""

    def __init__(self, alone: Script, key_count: int, arg_count: int) -> None:
        self.scripts = alone, make_batch(alone, read("batch_full_steps.lua"))
        self._key_count = key_count
        self._arg_count = arg_count

    def pack(self, steps: Sequence[Step]) -> bytes:
        """Pack the script for these steps, whose keys are at one server, in a cluster in one slot."""
        alone, batch = self.scripts
        count = len(steps)
        keys, args = self._key_count * count, self._arg_count * count
        words = b"".join([step.keys for step in steps]), b"".join([step.args for step in steps])
        if count == 1:
            head = pack_args("EVALSHA", alone.sha, keys)
            return b"*%d\r\n%b%b%b" % (3 + keys + args, head, *words)
        head = pack_args("EVALSHA", batch.sha, keys)
        sizes = pack_args(self._key_count, self._arg_count)
        return b"*%d\r\n%b%b%b%b" % (5 + keys + args, head, words[0], sizes, words[1])


PLAIN = b"$5\r\nrenew\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n$0\r\n\r\n$0\r\n\r\n"  # a Renew with a ticket and a fence, packed
BATCH_STEP = BatchScript(STEP, 1 + len(encoding.PARTS), 1 + len(Renew._fields))


class BatchedRenewals(Dispatcher):
    """The part of the backend that renews."""

    batch_size = MESSAGE
    _commands: dict[str, PackedCommands]

    async def call_many(self, calls: Sequence[tuple[str, Command]]) -> list[Answer | OutcomeUnknown | LockError]:
        """Renew many leases by one message; in a cluster by one for each server."""
        if len(calls) == 1 or not all(type(command) is Renew for _, command in calls):
            return await super().call_many(calls)
        at = self.runtime.clock()
        steps = [self._renewal(name, command) for name, command in calls]  # type: ignore[arg-type]
        replies = await send_many(self, BATCH_STEP, steps)  # type: ignore[arg-type]
        outcomes = [self._read_renewal(*call, raw, at) for call, raw in zip(calls, replies, strict=True)]
        return await fill_gaps(self.call, calls, outcomes)

    def _renewal(self, name: str, command: Renew) -> Step:
        """Return the renewal as a step. The keys are not remembered: a client may have many more names than KNOWN."""
        state = encoding.state_key(self.namespace, name).encode()
        text, fence, weight, lease = command
        if fence is not None and weight is None and lease is None:  # the usual one, packed at once
            ticket, number = text.encode(), b"%d" % fence
            args = PLAIN % (len(ticket), ticket, len(number), number)
        else:
            args = pack_args(*encoding.message_args(command))
        return Step(key_slot(state) if self.topology.many else 0, state.join(encoding.around_state(len(state))), args)

    def _read_renewal(
        self, name: str, command: Command, raw: Any, at: float
    ) -> Answer | OutcomeUnknown | LockError | None:
        """Return the answer in this reply; None if there is none."""
        if type(raw) is not int and type(raw) is not list:
            return raw  # type: ignore[no-any-return]
        try:
            reply, contended = encoding.decode_step(raw, command)
        except errors.UNREADABLE:
            return None
        commands = self._commands.get(name)
        if commands is not None:
            commands.contended = contended
        return Answer(reply, at)


async def send_many(
    backend: RedisBackend, batch: BatchScript, steps: Sequence[Step], size: int = SCRIPT
) -> list[Any]:
    """Make these steps, at most `size` in one script. Return for each the reply of its script; None: use `call`;
    OutcomeUnknown: no reply came.

    With min_replicas a StoreError instead of each reply, if too few replicas have confirmed the message.
    """
    results: list[Any] = [None] * len(steps)
    for node, by_slot in _by_server(backend, steps).items():
        if backend.silent.get(node, 0.0) > backend.runtime.clock():
            for number in chain(*by_slot.values()):
                results[number] = OutcomeUnknown("its server has not replied a moment ago")
            continue
        scripts = [part[n : n + size] for part in by_slot.values() for n in range(0, len(part), size)]
        try:
            replies = await _request(backend, node, batch, [[steps[n] for n in part] for part in scripts])
        except StoreError:
            continue  # nothing was sent: `call` knows what helps
        except OutcomeUnknown as doubt:
            replies = [[doubt] * len(part) for part in scripts]
            if backend.topology.many:
                backend.silent[node] = backend.runtime.clock() + SILENT
        for part, reply in zip(scripts, replies, strict=True):
            for number, result in zip(part, reply, strict=True):
                results[number] = None if type(result) is ReplyError else result
    return results


def _by_server(backend: RedisBackend, steps: Sequence[Step]) -> dict[Any, dict[int, list[int]]]:
    """Return the numbers of the steps of each server, and there of each slot; the only server has them all in one
    list. A step whose server is not known is left out."""
    topology = backend.topology
    found: dict[Any, dict[int, list[int]]] = {}
    for number, step in enumerate(steps):
        try:
            by_slot = found.setdefault(topology.node(step.slot), {})
        except LookupError:
            continue
        by_slot.setdefault(step.slot if topology.many else 0, []).append(number)
    return found


async def _request(
    backend: RedisBackend, node: Any, batch: BatchScript, scripts: Sequence[Sequence[Step]]
) -> list[Sequence[Any]]:
    """Send these scripts in one write, once more if the server does not have them. Return the results of each."""
    confirm = backend._confirm
    payload = b"".join([batch.pack(steps) for steps in scripts]) + confirm
    wanted = len(scripts) + bool(confirm)
    replies: list[Any] = await node.request(payload, wanted)
    if any(type(one) is ReplyError and str(one).startswith("NOSCRIPT") for one in replies):
        loads = [pack("SCRIPT", "LOAD", each.text) for each in batch.scripts]
        replies = (await node.request(b"".join(loads) + payload, len(loads) + wanted))[len(loads) :]
    few: OutcomeUnknown | LockError | None = None
    if confirm:
        few = too_few_replicas(backend, replies.pop())
    found: list[Sequence[Any]] = []
    for steps, reply in zip(scripts, replies, strict=True):
        if type(reply) is ReplyError:
            found.append([reply] * len(steps))
        else:
            results = reply if len(steps) > 1 else [reply]
            found.append(results if few is None else [one if type(one) is ReplyError else few for one in results])
    return found


def too_few_replicas(backend: RedisBackend, count: Any) -> OutcomeUnknown | LockError | None:
    """Return the error if this reply to WAIT means that a step does not count."""
    if type(count) is ReplyError:
        return errors.error_for(backend.where, count)
    if count >= backend.min_replicas:
        return None
    few = f"{count} of {backend.min_replicas} replicas have" if count else "no replica has"
    return StoreError(
        f"{backend.where}: {few} confirmed it in {REPLICA_TIMEOUT_MS / 1000:g} s, so it does not count "
        "(min_replicas). Are the replicas running and connected?"
    )
