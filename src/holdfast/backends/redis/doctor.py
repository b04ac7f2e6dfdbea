"""What there is to know about a Redis server as a place for locks, and how a lock could be lost there.

It asks with INFO and CONFIG GET what it may ask, and tries the rest: every command that locks and pools use, on a key
of its own, and a lock of its own is entered, kept and left.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from ...doorman import ALL, Enter, Keep, Leave
from ...errors import LockError
from ..contract import Unknown, unanswered
from . import layout, rights, scripts, trouble
from .layout import pack

Finding = tuple[str, str]  # ok, note, warning or error; a sentence
Talk = Callable[[bytes, int], Awaitable[list[Any]]]
Listen = Callable[[], Awaitable[None]]

OLDEST = (7, 0)
SAMPLES = 5
FAR = 1.0  # seconds between two clocks that are worth a word
FULL = 0.9

TOLD = "Holders are told at their next renewal; until then two may be inside. A checked fence refuses the older one"


async def examine(
    where: str, talk: Talk, listen: Listen, extra: tuple[str, ...] = (), database: int = 0, min_replicas: int = 0
) -> list[Finding]:
    try:
        server = Server(where, talk)
        found = await server.about()
        found.append(await _clock(talk))
        found += [finding async for finding in _persistence(server)]
        found += [finding async for finding in _memory(server)]
        found += [finding async for finding in _replicas(server, min_replicas)]
        found += await _rights(where, talk, listen, extra, database)
    except Unknown as doubt:
        return [("error", str(unanswered(where, doubt)))]
    return [*found, *_losses()]


class Server:
    """What it says about itself. What it does not tell this user is missing."""

    def __init__(self, where: str, talk: Talk) -> None:
        self.where = where
        self._talk = talk
        self._info: dict[str, str] = {}

    async def ask(self, *words: str) -> Any:
        return (await self._talk(pack(*words), 1))[0]

    async def about(self) -> list[Finding]:
        said = await self.ask("INFO")
        if isinstance(said, Exception):
            if trouble.code_of(said) != "NOPERM":
                raise trouble.said_no(self.where, said)
            return [("note", "It does not tell this user about itself. With +info +config|get there is more to say.")]
        lines = said.decode(errors="replace").splitlines()
        self._info = dict(line.split(":", 1) for line in lines if ":" in line)
        name = "Valkey" if self["server_name"] == "valkey" else "Redis"
        version = self["valkey_version"] or self["redis_version"]
        number = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
        hours = self.number("uptime_in_seconds") / 3600
        since = f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.1f} h"
        found = [("ok", f"{name} {version}, up for {since}.")]
        if number < OLDEST:
            found = [("warning", f"{name} {version} is older than 7.0: holdfast is not tested with it.")]
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
        """None if it is not told."""
        said = await self.ask("CONFIG", "GET", name)
        if isinstance(said, Exception):
            return None
        pairs = said if isinstance(said, dict) else dict(zip(said[::2], said[1::2], strict=True))
        value = pairs.get(name.encode())
        return None if value is None else value.decode(errors="replace")


async def _clock(talk: Talk) -> Finding:
    best, difference = float("inf"), 0.0
    for _ in range(SAMPLES):
        before = time.time()
        said = (await talk(pack("TIME"), 1))[0]
        after = time.time()
        if isinstance(said, Exception):
            return "note", "It does not tell this user the time."
        if after - before < best:
            best = after - before
            difference = int(said[0]) + int(said[1]) / 1e6 - (before + after) / 2
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
        yield "note", "It does not tell this user whether it keeps its data: a restart may lose locks."
    elif log == "yes" and sync == "always":
        yield "ok", "It writes to disk before it answers (appendfsync always): a restart loses nothing."
    elif log == "yes" and sync == "no":
        yield "warning", f"A lock here can be lost when its machine crashes: half a minute is not on disk. {TOLD}."
    elif log == "yes":
        end = "" if sync else " (or more: it does not tell this user its appendfsync)"
        yield (
            "note",
            f"A lock here can be lost when its machine crashes: the last second may not be on disk{end}. {TOLD}. With "
            "appendfsync always nothing is lost.",
        )
    elif save:
        yield (
            "warning",
            f"A lock here can be lost when the server restarts: it goes back to its last snapshot (save {save}). "
            f"{TOLD}. With appendonly yes and appendfsync always nothing is lost.",
        )
    else:
        what = "it keeps nothing on disk" if save == "" else "it has no log of its writes"
        yield (
            "warning",
            f"A lock here can be lost when the server restarts: {what}. {TOLD}. With appendonly yes and appendfsync "
            "always nothing is lost.",
        )
    if "err" in (server["aof_last_write_status"], server["rdb_last_bgsave_status"]):
        yield "error", "Its last try to write to disk failed. Its log says why; it may take no more writes meanwhile."
    if server["loading"] == "1":
        yield "error", "It is still loading its data. Try again in a moment."


async def _memory(server: Server) -> AsyncIterator[Finding]:
    if not server.speaks:
        return
    limit, used, policy = server.number("maxmemory"), server.number("used_memory"), server["maxmemory_policy"]
    if not limit:
        yield "ok", "It has no limit of memory (maxmemory), so it throws nothing away."
    elif policy == "noeviction":
        yield "ok", "When its memory is full it throws nothing away (noeviction): nobody new gets in, releases go on."
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


async def _replicas(server: Server, wanted: int) -> AsyncIterator[Finding]:
    if not server.speaks:
        return
    count = server.number("connected_slaves")
    replicas = f"{count} replica{'s' * (count != 1)}"
    if server["role"] == "slave":
        yield "error", "It is a replica and gives no locks. Give the URL of its master, or redis+sentinel://…"
    elif wanted > count:
        yield "error", f"min_replicas={wanted}, but it has {replicas}: no acquire and no renewal will be confirmed."
    elif wanted:
        yield "ok", f"It has {replicas}, and an acquire counts only when {wanted} of them have it (min_replicas)."
    elif count:
        yield (
            "warning",
            f"A lock here can be lost when a replica takes over: it has {replicas}, and what has not reached them by "
            f"then is gone. {TOLD}. With min_replicas=1 an acquire or renewal counts only when a replica has it.",
        )
    else:
        yield "note", "It has no replica: while it is down nobody gets in, and leases end."


async def _rights(
    where: str, talk: Talk, listen: Listen, extra: tuple[str, ...], database: int
) -> list[Finding]:
    """Each command by itself, so that what is missing has a name; then a whole life of a lock, by the same scripts."""
    name = f"doctor-{os.urandom(6).hex()}"
    missing = []
    for words in rights.tries(extra, layout.keys("", name)[0], layout.EARS + name, database):
        said = (await talk(pack(*words), 1))[0]
        if isinstance(said, Exception) and trouble.code_of(said) == "NOPERM":
            missing.append(str(trouble.refusal(where, said)))
    missing += await _life(where, talk, layout.keys("", name)) if not missing else []
    try:
        await listen()
    except LockError as error:
        missing.append(str(error))
    if missing:
        return [("error", sentence) for sentence in dict.fromkeys(missing)]
    return [("ok", "This user may do all that locks need, and waiters are woken by a push.")]


async def _life(where: str, talk: Talk, keys: list[str]) -> list[str]:
    """What goes wrong with a lock of our own."""
    ticket, lease = os.urandom(8).hex(), 5_000_000
    enter = Enter(ticket, ALL, ALL, lease, False, True, 1, "", "holdfast doctor", "")
    say: list[tuple[scripts.Script, list[str], list[str | int]]] = [
        (scripts.ENTER, keys[:1], [ticket, ALL, ALL, lease, 1, "", "holdfast doctor", ""]),
        (scripts.LEAVE, keys[:1], [ticket, ""]),
        (scripts.STEP, keys, [layout.EARS, *layout.words(enter)]),
        (scripts.STEP, keys, [layout.EARS, *layout.words(Keep(ticket, None, lease))]),
        (scripts.LOOK, keys, []),
        (scripts.STEP, keys, [layout.EARS, *layout.words(Leave(ticket, True, None))]),
    ]
    wrong: list[str] = []
    for script, on, args in say:
        loaded, said = await talk(
            pack("SCRIPT", "LOAD", script.text) + pack("EVALSHA", script.sha, len(on), *on, *args), 2
        )
        bad = next((one for one in (loaded, said) if isinstance(one, Exception)), None)
        if bad is not None:
            wrong.append(str(trouble.refusal(where, bad)))
    await talk(pack("DEL", *keys), 1)
    said = (await talk(pack("ZRANGE", layout.PREFIX + "names", 0, 0), 1))[0]
    if isinstance(said, Exception):
        wrong.append(str(trouble.refusal(where, said)))
    return wrong


def _losses() -> list[Finding]:
    return [
        (
            "note",
            "Could a lock be lost here otherwise? Yes: when a holder is stopped for longer than its lease, when the "
            "server's clock is set forward, and when somebody deletes keys that begin with holdfast: (FLUSHALL).",
        )
    ]
