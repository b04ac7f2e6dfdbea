"""One poller for all readers: it takes a snapshot every second, and knows what changed since a sequence number.

Each row has the number of the snapshot in which it last changed. A reader that has seen number N gets the rows that are
newer, with the seconds of now. So a slow reader costs no memory, and one that reconnects catches up by the same rule.
Rejected alternative: a queue of deltas for each reader. It grows, and an old delta has seconds that are wrong by then.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ..engine.events import log_exception
from ..engine.find_deadlocks import Ring, find_rings, in_both
from ..engine.snapshots import Holder, Resource, Snapshot, describe_failure, unique_names
from ..errors import LockError
from .call_client import call
from .event_journal_file import Journal
from .event_journal_writer import WriterLock
from .events_from_snapshots import Happened, find_changes, find_eviction, find_gone
from .snapshot_rows import CHIPS, Json, advance_sparks, figures, identity, make_row, only, ring_as_json

if TYPE_CHECKING:
    from .. import AuditLine, Locks
    from ..aio import Locks as AsyncLocks

EVERY, WHEN_NOBODY_LOOKS = 1.0, 10.0  # seconds
EVERY_BY_INDEX = 0.6  # where clients write up to 1.2 s late what they hold: the page shows it within two seconds
BUCKET = 10.0  # of a sparkline
SHOWN_RINGS = 20  # the certain ones come first
TAIL = 200  # events that a page gets at first
FORGOTTEN = 5_000  # names that went away and are remembered for readers that reconnect
HOUR = 3600.0
ASKED_ABOUT = 10  # holders that are gone, of which a look finds out whether they were evicted


class Row(NamedTuple):
    resource: Resource
    identity: object
    changed: int


class View(NamedTuple):
    """All that is known after one snapshot. It is never changed, so that a thread can read it."""

    look: int = 0
    looked_at: float = 0.0
    snapshot: Snapshot | None = None
    rows: dict[str, Row] = {}
    gone: dict[str, int] = {}
    leases: dict[tuple[str, str], float] = {}
    sparks: dict[str, tuple[int, ...]] = {}
    bucket: int = 0
    found: tuple[Ring, ...] = ()
    rings: tuple[Ring, ...] = ()
    figures: Json = {}
    event: int = 0
    error: str = ""

    def as_json(self, name: str, limit: int | None = CHIPS) -> Json | None:
        """Return the row of one name; None if it is idle. `limit`: how many waiters are listed; None: all."""
        if (row := self.rows.get(name)) is None:
            return None
        return make_row(row.resource, self.sparks.get(name, ()), lambda one: self._lease(name, one), limit)

    def _lease(self, name: str, one: Holder) -> float:
        """Return the length of a lease, which is the longest that was ever left of it."""
        return round(max(self.leases.get((name, one.ticket), 0.0), one.expires_in), 1)


class Reader(NamedTuple):
    """How far a reader has read: which server, which look, which event."""

    epoch: str = ""
    look: int = -1
    event: int = 0

    @classmethod
    def parse(cls, text: str) -> Reader:
        """Return the reader of a Last-Event-ID. One that is not ours starts from the beginning."""
        words = text.split(".")
        if len(words) == 3 and all(word.isascii() and word.isdecimal() and len(word) < 16 for word in words[1:]):
            return cls(words[0], int(words[1]), int(words[2]))
        return cls()

    def __str__(self) -> str:
        return f"{self.epoch}.{self.look}.{self.event}"


class Poller:
    """Looks at the store while the application runs. `state_since` is what a reader gets."""

    def __init__(self, locks: Locks | AsyncLocks, journal: Journal, namespaces: bool = False) -> None:
        self.locks = locks
        self._namespaces = namespaces
        self.journal = journal
        self._every = EVERY_BY_INDEX if locks.session.backend.has_index else EVERY
        self.on_lost: Callable[[str, str], None] | None = None  # gets name and reason of what a look finds lost
        self.readers = 0
        self.epoch = secrets.token_hex(4)
        self.view = View()
        self._writer = WriterLock(journal.file) if journal.file else None
        self._frames: dict[Reader, asyncio.Task[tuple[Reader, bytes]]] = {}
        self.next_look = asyncio.Event()
        """Is set by the next look. Take it before you read the state, and no look is missed."""
        self._hurry = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look, unless it does. Called by each request: a mounted application gets no start-up event."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._writer is not None:
            await asyncio.to_thread(self._writer.close)

    @property
    def is_old(self) -> bool:
        """True if the last snapshot is older than one that is taken for a reader."""
        return time.monotonic() - self.view.looked_at > 2 * EVERY

    def hurry(self) -> None:
        """Look now: a reader came, or the page changed something."""
        self._hurry.set()

    async def _run(self) -> None:
        pruned = 0.0
        while True:
            begun = time.monotonic()
            self._hurry.clear()
            took = await self._look()
            if begun - pruned > HOUR / 4:
                pruned = begun
                with suppress(sqlite3.Error):  # a look says so if the journal cannot be written
                    await asyncio.to_thread(self.journal.prune, time.time())
            # A store that takes long is looked at less often: it spends at most a tenth of its time for us.
            pause = max((self._every if self.readers else WHEN_NOBODY_LOOKS) - (time.monotonic() - begun), 9 * took)
            try:
                await asyncio.wait_for(self._hurry.wait(), pause)
            except TimeoutError:
                pass

    async def _look(self) -> float:
        """Look once, and return how many seconds the store took; 0 if it could not be read, because nothing is spared
        by waiting longer than its timeout, and the page must show soon that it is back. Whatever fails, the page shows
        it, and the next look follows."""
        snapshot: Snapshot | None = None
        problem = ""
        begun = time.monotonic()
        evicted: dict[tuple[str, str], str] = {}
        try:
            snapshot = unique_names(await call(self.locks.snapshot, namespaces=self._namespaces), self._namespaces)
            evicted = await self._find_evicted(snapshot)
        except Exception as error:
            problem = self._failure(error)
        took = time.monotonic() - begun
        try:
            # In a thread: ten thousand names cost half a second, in which pages must still be served.
            view = await asyncio.to_thread(self._compare, self.view, snapshot, problem, evicted)
        except Exception as error:
            problem = self._failure(error)
            view = self.view._replace(look=self.view.look + 1, error=problem)
        if len(view.gone) > FORGOTTEN:
            self.epoch = secrets.token_hex(4)  # a reader that missed one of them starts again
            view = view._replace(gone={})
        self.view = view
        self._frames = {}
        self.next_look.set()
        self.next_look = asyncio.Event()
        return 0.0 if problem else took

    def _failure(self, error: Exception) -> str:
        """Return what the page shows. A defect, of ours or of a driver, is logged, too, when it is new."""
        sentence = describe_failure(error)
        if not isinstance(error, LockError) and sentence != self.view.error:
            log_exception("The page cannot read the store; it tries again")
        return sentence

    async def _find_evicted(self, snapshot: Snapshot) -> dict[tuple[str, str], str]:
        """Return the operator and the reason of evictions since the last snapshot, by name and ticket."""
        before, found = self.view.snapshot, dict[tuple[str, str], str]()
        if before is None or self._namespaces:  # a client reads the audit lines of its own namespace
            return found
        for name, ticket in await asyncio.to_thread(find_gone, before, snapshot, ASKED_ABOUT):
            try:
                lines: tuple[AuditLine, ...] = await call(self.locks.audit, name)
            except LockError:
                break  # the next look says so
            if sentence := find_eviction(lines, ticket):
                found[name, ticket] = sentence
        return found

    def _compare(
        self, old: View, snapshot: Snapshot | None, problem: str, evicted: dict[tuple[str, str], str]
    ) -> View:
        """Return the next view: each row that changed gets the number of this look."""
        wall = time.time()
        view = old._replace(look=old.look + 1, error=problem)
        events: list[Happened] = []
        if snapshot is not None:
            bucket = int(time.monotonic() / BUCKET)
            sparks = advance_sparks(old.sparks, bucket - old.bucket, snapshot)
            rows, leases = compare_rows(old, snapshot, view.look)
            changed = {name for name, row in rows.items() if row.changed == view.look} | (old.rows.keys() - rows.keys())
            events = find_changes(
                old.snapshot and only(old.snapshot, changed), only(snapshot, changed), wall, evicted
            )
            for one in events:
                if self.on_lost is not None and one.kind in ("lost", "evicted"):
                    self.on_lost(one.name, "expired" if one.kind == "lost" else "evicted")
            gone = {name: look for name, look in old.gone.items() if name not in rows}
            gone |= dict.fromkeys(old.rows.keys() - rows.keys(), view.look)
            found = find_rings(snapshot)
            view = view._replace(
                looked_at=time.monotonic(), snapshot=snapshot, rows=rows, gone=gone, leases=leases, sparks=sparks,
                bucket=bucket, found=found, rings=in_both(old.found, found), figures=figures(snapshot),
            )  # fmt: skip
        if bool(problem) != bool(old.error):
            events.append(Happened(wall, "store_down" if problem else "store_up", detail=problem))
        try:
            lost = self._record(events, wall)
            return view._replace(event=self.journal.last_id(), figures={**view.figures, "lost": lost})
        except sqlite3.Error as error:
            lost = old.figures.get("lost", {})
            sentence = problem or f"The journal cannot be written: {error}."
            return view._replace(error=sentence, figures={**view.figures, "lost": lost})

    def _record(self, events: list[Happened], wall: float) -> dict[str, int]:
        """Write what was seen, if this process is the writer. Return the names that were lost in the last hour."""
        if self._writer is None or self._writer.held():
            self.journal.add(events)
        return {row["name"]: row["times"] for row in self.journal.lost_since(wall - HOUR)}

    async def state_since(self, reader: Reader) -> tuple[Reader, bytes]:
        """Return what is new for a reader, as JSON, and how far it has read then. It is the same for all that have
        read as far, so a hundred readers cost one serialization."""
        if (made := self._frames.get(reader)) is None:
            work = asyncio.to_thread(self._make_state, self.view, reader)
            made = self._frames[reader] = asyncio.get_running_loop().create_task(work)
        return await asyncio.shield(made)

    def _make_state(self, view: View, reader: Reader) -> tuple[Reader, bytes]:
        whole = reader.epoch != self.epoch or not 0 <= reader.look <= view.look
        seen, known = (-1, 0) if whole else (reader.look, reader.event)
        error, events = view.error, list[Json]()
        try:
            events = self.journal.after(known, TAIL) if view.event > known else []
        except sqlite3.Error as problem:
            error = error or f"The journal cannot be read: {problem}."
        state: Json = {
            "look": view.look,
            "whole": whole,
            "at": time.time(),
            "age": round(time.monotonic() - view.looked_at, 3) if view.snapshot else None,
            "rows": [view.as_json(name) for name, row in view.rows.items() if row.changed > seen],
            "gone": [] if whole else [name for name, number in view.gone.items() if number > seen],
            "figures": view.figures,
            "rings": [ring_as_json(ring) for ring in view.rings[:SHOWN_RINGS]],
            "deadlocks": len(view.rings),
            "error": error,
            "events": events,
        }
        reached = events[-1]["id"] if events else known
        return Reader(self.epoch, view.look, reached), json.dumps(state, separators=(",", ":")).encode()


def compare_rows(
    old: View, snapshot: Snapshot, number: int
) -> tuple[dict[str, Row], dict[tuple[str, str], float]]:
    """Return the rows of the busy names, and the length of each lease."""
    rows: dict[str, Row] = {}
    leases: dict[tuple[str, str], float] = {}
    for resource in snapshot.resources:
        if not resource.busy:
            continue
        name = resource.name
        for one in (*resource.holders, *resource.expired):
            leases[name, one.ticket] = max(old.leases.get((name, one.ticket), 0.0), one.expires_in)
        was, same = old.rows.get(name), identity(resource, snapshot.now)
        rows[name] = Row(resource, same, was.changed if was is not None and was.identity == same else number)
    return rows, leases
