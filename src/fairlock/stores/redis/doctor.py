"""Checks a Redis server as a store for locks, and reports how a lock could be lost there.

It reads INFO and CONFIG GET if it may, and tries the rest: every command that locks and pools use, on its own key, and
the whole life of its own lock.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import LockError
from ...rules.locks import EXCLUSIVE, Acquire, Detach, Release
from ..base import OutcomeUnknown, unanswered
from . import acl, busy_name_index, encoding, errors, lua_scripts
from .encoding import pack
from .packed_commands import PackedCommands
from .send_and_redirect import script_command

if TYPE_CHECKING:
    from .store import RedisBackend

Finding = tuple[str, str]  # ok, note, warning or error; a sentence
OLDEST = (7, 0)
SAMPLES = 5
FAR = 1.0  # seconds between two clocks from which on it is reported
FULL = 0.9

NOTICED = "Its holder notices at its next renewal; until then two may hold it. A checked fence refuses the older one"


async def examine(backend: RedisBackend) -> list[Finding]:
    try:
        home = await backend.topology.find(busy_name_index.SLOT)
        server = Server(backend.where, home)
        found = await server.about()
        found.append(await _clock(server))
        found += [finding async for finding in _persistence(server)]
        if server.speaks:
            found += [*_memory(server), *_replicas(server, backend.min_replicas)]
        found += await _rights(backend, home)
    except OutcomeUnknown as doubt:
        return [("error", str(unanswered(backend.where, doubt)))]
    found.append((
        "note",
        "Could a lock be lost here otherwise? Yes: when a holder is stopped for longer than its lease, when the "
        "server's clock is set forward, and when a program deletes keys that begin with fairlock: (FLUSHALL).",
    ))
    return found


class Server:
    """The INFO of a server. What this user may not read is missing."""

    def __init__(self, where: str, node: Any) -> None:
        self.where = where
        self._node = node
        self._info: dict[str, str] = {}

    async def call(self, *args: str) -> Any:
        return (await self._node.request(pack(*args), 1))[0]

    async def about(self) -> list[Finding]:
        reply = await self.call("INFO")
        if isinstance(reply, Exception):
            if errors.error_code(reply) != "NOPERM":
                raise errors.error_for(self.where, reply)
            return [("note", "This user may not read INFO. With +info +config|get the doctor checks more.")]
        lines = reply.decode(errors="replace").splitlines()
        self._info = dict(line.split(":", 1) for line in lines if ":" in line)
        name = "Valkey" if self["server_name"] == "valkey" else "Redis"
        version = self["valkey_version"] or self["redis_version"]
        number = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
        hours = self.number("uptime_in_seconds") / 3600
        since = f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.1f} h"
        found = [("ok", f"{name} {version}, up for {since}.")]
        if number < OLDEST:
            found = [("warning", f"{name} {version} is older than 7.0: fairlock is not tested with it.")]
        if self["redis_mode"] == "cluster" and "+cluster" not in self.where:
            found.append(("error", "It belongs to a Cluster, and has only some of the names. Use redis+cluster://…"))
        return found

    def __getitem__(self, key: str) -> str:
        return self._info.get(key, "")

    def number(self, key: str) -> int:
        return int(self[key]) if self[key].isdecimal() else 0

    @property
    def speaks(self) -> bool:
        return bool(self._info)

    async def setting(self, name: str) -> str | None:
        """Return a setting; None if this user may not read it."""
        reply = await self.call("CONFIG", "GET", name)
        if isinstance(reply, Exception):
            return None
        pairs = reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))
        value = pairs.get(name.encode())
        return None if value is None else value.decode(errors="replace")


async def _clock(server: Server) -> Finding:
    best, difference = float("inf"), 0.0
    for _ in range(SAMPLES):
        before = time.time()
        reply = await server.call("TIME")
        after = time.time()
        if isinstance(reply, Exception):
            return "note", "This user may not run TIME."
        if after - before < best:
            best = after - before
            difference = int(reply[0]) + int(reply[1]) / 1e6 - (before + after) / 2
    if abs(difference) <= best / 2 + 0.001:
        return "ok", "Its clock and the one of this machine agree."
    size = f"{abs(difference):.1f} s" if abs(difference) >= 0.95 else f"{abs(difference) * 1000:.0f} ms"
    sentence = f"Its clock is {size} {'ahead of' if difference > 0 else 'behind'} the one of this machine."
    why = " Leases go by its clock alone, so that is no danger; a clock that is set while locks are held is one."
    return ("note", sentence + why) if abs(difference) >= FAR else ("ok", sentence)


async def _persistence(server: Server) -> AsyncIterator[Finding]:
    log, sync, save = [await server.setting(name) for name in ("appendonly", "appendfsync", "save")]
    if log is None and server.speaks:
        log = "yes" if server["aof_enabled"] == "1" else "no"
    if log is None:
        yield "note", "This user may not read whether it keeps its data: a restart may lose locks."
    elif log == "yes" and sync == "always":
        yield "ok", "It writes to disk before it replies (appendfsync always): a restart loses nothing."
    elif log == "yes" and sync == "no":
        yield "warning", f"A lock here can be lost when its machine crashes: half a minute is not on disk. {NOTICED}."
    elif log == "yes":
        end = "" if sync else " (or more: this user may not read its appendfsync)"
        yield (
            "note",
            f"A lock here can be lost when its machine crashes: the last second may not be on disk{end}. {NOTICED}. "
            "With appendfsync always nothing is lost.",
        )
    elif save:
        yield (
            "warning",
            f"A lock here can be lost when the server restarts: it goes back to its last snapshot (save {save}). "
            f"{NOTICED}. With appendonly yes and appendfsync always nothing is lost.",
        )
    else:
        what = "it keeps nothing on disk" if save == "" else "it has no log of its writes"
        yield (
            "warning",
            f"A lock here can be lost when the server restarts: {what}. {NOTICED}. With appendonly yes and appendfsync "
            "always nothing is lost.",
        )
    if "err" in (server["aof_last_write_status"], server["rdb_last_bgsave_status"]):
        yield "error", "Its last try to write to disk failed. Its log says why; it may take no more writes meanwhile."
    if server["loading"] == "1":
        yield "error", "It is still loading its data. Try again in a moment."


def _memory(server: Server) -> Iterator[Finding]:
    limit, used, policy = server.number("maxmemory"), server.number("used_memory"), server["maxmemory_policy"]
    if not limit:
        yield "ok", "It has no limit of memory (maxmemory), so it throws nothing away."
    elif policy == "noeviction":
        yield "ok", "When its memory is full it throws nothing away (noeviction): no new lock, and releases go on."
    else:
        which = "any key" if policy.startswith("allkeys") else "keys that have an end, and those of locks have one"
        yield (
            "warning",
            f"A lock here can be lost when its memory is full: it then throws away {which} (maxmemory-policy "
            f"{policy}). Use noeviction, or a server for locks alone.",
        )
    if limit and used > FULL * limit:
        yield "warning", f"Its memory is full to {used / limit:.0%}."
    clients, most = server.number("connected_clients"), server.number("maxclients")
    if most and clients > FULL * most:
        yield "warning", f"{clients} of at most {most} connections are in use (maxclients)."
    if server.number("evicted_keys") and policy != "noeviction":
        yield "warning", f"It has thrown away {server['evicted_keys']} keys since it was started."


def _replicas(server: Server, wanted: int) -> Iterator[Finding]:
    count = server.number("connected_slaves")
    replicas = f"{count} replica{'s' * (count != 1)}"
    if server["role"] == "slave":
        yield "error", "It is a replica and grants no locks. Give the URL of its master, or redis+sentinel://…"
    elif wanted > count:
        yield "error", f"min_replicas={wanted}, but it has {replicas}: no acquire and no renewal will be confirmed."
    elif wanted:
        yield "ok", f"It has {replicas}, and an acquire counts only when {wanted} of them have it (min_replicas)."
    elif count:
        yield (
            "warning",
            f"A lock here can be lost when a replica takes over: it has {replicas}, and what has not reached them by "
            f"then is gone. {NOTICED}. With min_replicas=1 an acquire or renewal counts only when a replica has it.",
        )
    else:
        yield "note", "It has no replica: while it is down no lock can be acquired, and leases end."


async def _rights(backend: RedisBackend, home: Any) -> list[Finding]:
    """Try each command by itself, so that a missing right has a name; then the whole life of a lock, by the scripts."""
    where, name = backend.where, f"doctor-{os.urandom(6).hex()}"
    commands = PackedCommands("", name)
    node = await backend.topology.find(commands.slot)
    missing = []
    for args in acl.tries(acl.extra(backend), commands.keys[0], encoding.LISTENERS + name, backend.database):
        reply = (await node.request(pack(*args), 1))[0]
        if isinstance(reply, Exception) and errors.error_code(reply) == "NOPERM":
            missing.append(str(errors.refusal(where, reply)))
    missing += [] if missing else [*await _life(where, node, commands), *await _index(where, home)]
    try:
        await backend.listeners.listen(home)
    except LockError as error:
        missing.append(str(error))
    if missing:
        return [("error", sentence) for sentence in dict.fromkeys(missing)]
    return [("ok", "This user may do all that locks need, and waiters are woken by a push.")]


async def _life(where: str, node: Any, commands: PackedCommands) -> list[str]:
    """Acquire, detach, read and release a lock of our own. Returns the errors."""
    ticket, lease = os.urandom(8).hex(), 5_000_000
    acquire = Acquire(ticket, EXCLUSIVE, EXCLUSIVE, lease, False, True, 1, "", "fairlock doctor", "")
    state, keys = commands.keys[:1], commands.keys
    steps: list[tuple[lua_scripts.Script, list[str], Sequence[str | bytes]]] = [
        (lua_scripts.FAST_ACQUIRE, state, encoding.fast_args(acquire)),
        (lua_scripts.FAST_RELEASE, state, encoding.fast_args(Release(ticket))),
        (lua_scripts.STEP, keys, encoding.message_args(acquire)),
        (lua_scripts.STEP, keys, encoding.message_args(Detach(ticket, None, lease))),
        (lua_scripts.READ_STATE, keys, ()),
        (lua_scripts.STEP, keys, encoding.message_args(Release(ticket, True, None))),
    ]
    wrong: list[str] = []
    for script, on, args in steps:
        load, run = pack("SCRIPT", "LOAD", script.text), script_command(script, on, *args).command
        replies = await node.request(load + run, 2)
        wrong += [str(errors.refusal(where, bad)) for bad in replies if isinstance(bad, Exception)][:1]
    await node.request(pack("DEL", *keys), 1)
    return wrong


async def _index(where: str, home: Any) -> list[str]:
    """Read the index of busy names. Returns the errors."""
    (reply,) = await home.request(pack("ZRANGE", busy_name_index.BUSY, 0, 0), 1)
    if not isinstance(reply, Exception):
        return []
    bad = errors.refusal(where, reply)
    if not isinstance(bad, errors.Garbage):
        return [str(bad)]
    index = f"{busy_name_index.BUSY}, the index of busy names, was overwritten by another program"
    return [f"{index}. Until a client writes it again, within a second of its next hold, ls reads all keys."]
