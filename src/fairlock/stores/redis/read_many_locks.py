"""Reads the state of many locks: of the busy ones by the index, or of all by a scan of the keys, in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redis.crc import key_slot

from ...errors import RecordDamaged
from ..base import SeenLock
from ..keys import glob
from . import encoding, errors
from .busy_name_index import LOCK, Name
from .lua_scripts import READ_STATE
from .send_many_renewals import BatchScript, Step, send_many

if TYPE_CHECKING:
    from .store import RedisBackend

SCRIPT = 128  # states in one script: all other clients of the server wait while it runs
MESSAGE = 2048  # states in one message
BATCH_READ = BatchScript(READ_STATE, 1 + len(encoding.PARTS), 0)


async def read_locks(
    backend: RedisBackend, pattern: str, idle: bool, namespaces: bool
) -> tuple[list[SeenLock], int]:
    """Read the locks whose names match, by namespace and name, and the server's time."""
    names = await find_names(backend, LOCK, pattern, idle, namespaces)
    found: list[SeenLock] = []
    now, many = 0, backend.topology.many
    for first in range(0, len(names), MESSAGE):
        some = names[first : first + MESSAGE]
        states = [encoding.state_key(one.namespace, one.name).encode() for one in some]
        packed = [state.join(encoding.around_state(len(state))) for state in states]
        steps = [Step(key_slot(state) if many else 0, keys, b"") for state, keys in zip(states, packed, strict=True)]
        for one, raw in zip(some, await send_many(backend, BATCH_READ, steps, SCRIPT), strict=True):
            try:
                if type(raw) is list:
                    state, now = encoding.decode_state(raw)
                else:  # an error, or no reply: that of the state alone says more
                    state, now = await backend.read_state(one.namespace, one.name)
            except errors.UNREADABLE as bad:
                error = errors.unreadable(bad, one.name, backend.where)
                if not isinstance(error, RecordDamaged):
                    raise error from None
                found.append(SeenLock(one.namespace, one.name, error))
                continue
            if state.fence or state.fixed:
                found.append(SeenLock(one.namespace, one.name, state))
    return found, now or await backend._time()


async def find_names(
    backend: RedisBackend, kind: str, pattern: str, idle: bool, namespaces: bool
) -> list[Name]:
    """Return the names of this kind that match: those of the index, or all."""
    matches = glob(pattern)
    names = await (backend.index.scan() if idle else backend.index.read())
    own = backend.namespace
    return [one for one in names if one.kind == kind and (namespaces or one.namespace == own) and matches(one.name)]
