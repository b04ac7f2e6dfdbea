"""The index of busy names: what is held or waited for, so that a snapshot costs nothing for idle names.

One sorted set for all namespaces. Each client has members of its own (`member`), and removes only these: so a client
that stops holding a semaphore does not hide its other holders. The keeper writes what is held for longer than a moment,
a waiter itself after a moment: acquiring and releasing cost nothing. A member counts for as long as the state is kept
after the end of the lease: an expired lease is shown, too, and nothing has to be cleaned up after a client that has
died.

A member is a hint. A snapshot reads the state of each name that it finds here, and leaves out what is idle.

Rejected alternatives: the steps write it (in a cluster it is in another slot, and an uncontended cycle would take
a third longer); a list of all names that were ever used (a snapshot reads 100,000 states to show fifty).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from redis.crc import key_slot

from ...errors import LockError
from ..base import OutcomeUnknown
from . import encoding
from .encoding import pack
from .errors import Garbage
from .lua_scripts import load
from .send_and_redirect import RoutedCommand, script_command

if TYPE_CHECKING:
    from .store import RedisBackend

BUSY = encoding.PREFIX + "busy"
SLOT = key_slot(BUSY.encode())
LIST_NAMES = load("write_busy_names.lua")

LOCK, POOL = "l", "p"
LASTS = encoding.IDLE / 1e6  # seconds for which a member counts after the end of the lease
GRACE = 2.0  # seconds after a hold was last seen, or a wait has ended, until the member is removed: it may go on
MESSAGE = 500  # members
PAGE = 10_000  # members, or keys of a scan
SCANNED = 1000  # keys that the server looks at for one page of a scan
PATTERN = encoding.PREFIX + "{*}"


class Name(NamedTuple):
    """A lock or a pool."""

    kind: str
    namespace: str
    name: str


class NameIndex:
    """The members of one client in the index."""

    _missing: bool  # something that is held could not be written, or was removed
    _kept_at: float

    def __init__(self, backend: RedisBackend) -> None:
        self._backend = backend
        self.forget()

    # -- writing

    async def keep(self, locks: Mapping[str, float], pools: Mapping[str, float]) -> None:
        """Let these be listed, each with the seconds of its lease, and no others of this client but what it waits for.
        The same mapping as the last time is not read again. Raises nothing: the next round tries again."""
        clock = self._backend.runtime.clock()
        put: list[tuple[tuple[str, str], float]] = []
        with self._mutex:
            missing, end = self._missing, self._kept_at + GRACE
            self._missing, self._kept_at = False, clock
            for kind, names in ((LOCK, locks), (POOL, pools)):
                before, self._held[kind] = self._held[kind], names
                for name in before if names is not before else ():
                    if name not in names:
                        self._ends[kind, name] = max(self._ends.get((kind, name), 0.0), end)
                if names is not before or missing:
                    until, old = self._listed[kind].get, clock + LASTS / 2
                    put += [((kind, name), lease) for name, lease in names.items() if until(name, 0.0) < old + lease]
            over = [key for key, end in self._ends.items() if end <= clock]
            drop = [(kind, name) for kind, name in over if name not in self._held[kind]]
            for key in over if len(drop) < len(over) else ():
                if key[1] in self._held[key[0]]:
                    del self._ends[key]  # it goes on, and has another end
        if put or drop:
            await self._write(put, drop)

    async def wait(self, kind: str, name: str, seconds: float) -> None:
        """Let this be listed while this client waits for it, for this long at most."""
        clock = self._backend.runtime.clock()
        with self._mutex:
            self._ends[kind, name] = max(self._ends.get((kind, name), 0.0), clock + seconds + GRACE)
            until = self._listed[kind].get(name, 0.0)
        if until < clock + LASTS / 2:
            await self._write([((kind, name), 0.0)], ())

    async def put_ownerless(self, kind: str, name: str, lease: float) -> None:
        """List a name for the time of this lease, whatever becomes of this client."""
        await self._send([self._pair(kind, name, "", lease)], ())

    async def clear(self) -> None:
        """Remove all members of this client: it is closed."""
        keys = [(kind, name) for kind, names in self._listed.items() for name in names]
        if keys:
            await self._write((), keys)

    def forget(self) -> None:
        """Know of no members: they belong to the parent process."""
        self._mutex = self._backend.runtime.mutex()
        self._client = os.urandom(6).hex()
        # By kind and name: until when a member counts, by the client's clock; 0.0: perhaps it is not there.
        self._listed: dict[str, dict[str, float]] = {LOCK: {}, POOL: {}}
        self._held: dict[str, Mapping[str, float]] = {LOCK: {}, POOL: {}}  # what `keep` was called with, at _kept_at
        self._ends: dict[tuple[str, str], float] = {}  # when to remove what is not held any more, or only waited for
        self._missing, self._kept_at = False, 0.0

    async def _write(self, put: Sequence[tuple[tuple[str, str], float]], drop: Sequence[tuple[str, str]]) -> None:
        clock, client = self._backend.runtime.clock(), self._client
        for first in range(0, max(len(put), len(drop)), MESSAGE):
            some, others = put[first : first + MESSAGE], drop[first : first + MESSAGE]
            with self._mutex:
                for (kind, name), _ in some:
                    self._listed[kind].setdefault(name, 0.0)  # or a write that seems to fail would leave it forever
            pairs = [self._pair(*key, client, lease) for key, lease in some]
            written = await self._send(pairs, [self._member(*key, client) for key in others])
            with self._mutex:
                if client != self._client:
                    return  # it was forgotten meanwhile
                if not written:
                    self._missing = True
                    return
                for (kind, name), lease in some:
                    self._listed[kind][name] = clock + lease + LASTS
                for kind, name in others:
                    self._listed[kind].pop(name, None)
                    if self._ends.get((kind, name), 0.0) <= clock:
                        self._ends.pop((kind, name), None)
                    if name in self._held[kind]:
                        self._missing = True  # it began again: list it again

    def _pair(self, kind: str, name: str, client: str, lease: float) -> tuple[int, str]:
        return int(lease + LASTS), self._member(kind, name, client)

    def _member(self, kind: str, name: str, client: str) -> str:
        return "\x1f".join((kind, self._backend.namespace, name, client))

    async def _send(self, pairs: Iterable[tuple[int, str]], drop: Sequence[str]) -> bool:
        words: list[str | int] = [len(drop), *drop]
        for pair in pairs:
            words += pair
        try:
            await self._backend.send(script_command(LIST_NAMES, [BUSY], *words))
        except (OutcomeUnknown, LockError):
            return False
        return True

    # -- reading

    async def read(self) -> list[Name]:
        """Return the names that are in the index, each once; all names if another program has overwritten it."""
        found: set[Name] = set()
        first = 0
        while True:
            words = pack("ZRANGE", BUSY, first, first + PAGE - 1)
            try:
                members = (await self._backend._read(RoutedCommand(SLOT, words)))[0]
            except Garbage:  # of another type; the next client that writes it makes it again
                return await self.scan()
            for member in members:
                parts = member.decode("utf-8", "replace").split("\x1f")
                if len(parts) == 4:
                    found.add(Name(*parts[:3]))
            if len(members) < PAGE:
                return sorted(found)
            first += PAGE

    async def scan(self) -> list[Name]:
        """Return all names that the store knows, also idle ones, by a scan of its keys in pages."""
        backend = self._backend
        await backend._time()  # by now the servers are known
        found: set[Name] = set()
        for node in backend.topology.masters():
            cursor = "0"
            while True:
                words = pack("SCAN", cursor, "MATCH", PATTERN + "*", "COUNT", SCANNED)
                following, keys = (await backend._read_from(node, words))[0]
                found.update(_names(keys))
                cursor = following.decode()
                if cursor == "0":
                    break
        return sorted(found)


def _names(keys: Iterable[bytes]) -> Iterator[Name]:
    """Return the locks and pools that have one of these keys."""
    for key in keys:
        tag, _, rest = key.decode("utf-8", "replace").removeprefix(PATTERN[:-2]).partition("}")
        kind = {"": LOCK, ":pool:items": POOL}.get(rest)
        if kind is not None:
            namespace, _, name = tag.rpartition("\x1f")
            yield Name(kind, _decode(namespace), _decode(name))


def _decode(text: str) -> str:
    return text.replace("%7B", "{").replace("%7D", "}").replace("%25", "%")
