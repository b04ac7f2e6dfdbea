"""The renewals of many locks by one message: see send_many_renewals.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis.crc import key_slot

from ...errors import LockError
from ...rules.locks import Command, Renew
from ..base import Answer, OutcomeUnknown, fill_gaps
from . import encoding, errors
from .encoding import pack_args
from .lua_scripts import STEP
from .packed_commands import PackedCommands
from .send_and_redirect import Dispatcher
from .send_many_renewals import MESSAGE, BatchScript, Step, send_many

PLAIN = b"$5\r\nrenew\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n$0\r\n\r\n$0\r\n\r\n"  # a Renew with a ticket and a fence, packed
BATCH_STEP = BatchScript(STEP, 1 + len(encoding.PARTS), 1 + len(Renew._fields))


class BatchedRenewals(Dispatcher):
    """The part of the backend that renews."""

    batch_size = MESSAGE
    _commands: dict[str, PackedCommands]

    async def call_many(self, calls: Sequence[tuple[str, Command]]) -> list[Answer | OutcomeUnknown | LockError]:
        """Renew many leases by one message; in a cluster by one for each server. See send_many_renewals.py."""
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
        return Step(key_slot(state) if self.topology.many else 0, encoding.pack_keys(state), args)

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
