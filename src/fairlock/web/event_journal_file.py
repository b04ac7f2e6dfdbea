"""The journal: a table of events in an SQLite file, or in memory if there is no file.

The same event may arrive twice, from a program that reports it and from the poller that sees its effect. Events of one
ticket therefore have a phase (wait, hold, end), each of which has one line. What a program or the page reports replaces
what was only seen. Two clients can share a shortened ticket, so only events within an hour of each other are the same.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable
from os import PathLike, fspath
from typing import Any

from ..errors import ConfigError
from .events_from_snapshots import Happened

KEPT = 7 * 86400.0  # seconds
KEPT_IN_MEMORY = 20_000  # events
SAME = 3600.0  # seconds

PHASES = {
    "waiting": "wait", "acquired": "hold", "released": "end", "lost": "end", "evicted": "end", "given_up": "left",
}  # fmt: skip
SEEN, REPORTED = 0, 1
"""The source of an event: seen by the poller, or reported by a program or the page."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, kind TEXT NOT NULL, phase TEXT NOT NULL,
    name TEXT NOT NULL, owner TEXT NOT NULL, note TEXT NOT NULL, ticket TEXT NOT NULL, fence INTEGER NOT NULL,
    seconds REAL, detail TEXT NOT NULL, source INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS events_by_time ON events (at);
CREATE INDEX IF NOT EXISTS events_by_ticket ON events (ticket, name, phase);
CREATE INDEX IF NOT EXISTS events_by_name ON events (name, at);
"""
COLUMNS = "id, at, kind, name, owner, note, ticket, fence, seconds, detail"
KNOWN = "ticket = :ticket AND name = :name AND phase = :phase AND at BETWEEN :at - :same AND :at + :same"
INSERT = f"""
INSERT INTO events (at, kind, phase, name, owner, note, ticket, fence, seconds, detail, source)
SELECT :at, :kind, :phase, :name, :owner, :note, :ticket, :fence, :seconds, :detail, :source
WHERE :phase = '' OR :ticket = '' OR NOT EXISTS (SELECT 1 FROM events WHERE {KNOWN})
"""
REPLACE = f"""
UPDATE events SET kind = :kind, detail = :detail, source = :source, seconds = coalesce(:seconds, seconds),
    at = CASE WHEN :phase = 'end' THEN :at ELSE at END, fence = max(fence, :fence),
    owner = CASE WHEN :owner = '' THEN owner ELSE :owner END
WHERE source = 0 AND :phase != '' AND :ticket != '' AND {KNOWN}
"""

Row = dict[str, Any]


class Journal:
    """Adds events and finds them again. Safe for threads; an SQLite error is raised as it is."""

    def __init__(self, file: str | PathLike[str] | None = None, *, wait: float = 5.0) -> None:
        self.file = fspath(file) if file is not None else None
        self._mutex = threading.Lock()
        try:
            self._db = sqlite3.connect(
                self.file or ":memory:", timeout=wait, check_same_thread=False, isolation_level=None
            )
            if self.file:
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(SCHEMA)
            self._db.row_factory = sqlite3.Row
        except sqlite3.Error as error:
            raise ConfigError(
                f"The journal {self.file!r} cannot be opened: {error}. Name a file that you may write, or a new one."
            ) from None

    def add(self, events: Iterable[Happened], source: int = SEEN) -> None:
        rows = [
            {**one._asdict(), "phase": PHASES.get(one.kind, ""), "source": source, "same": SAME} for one in events
        ]
        if not rows:
            return
        with self._mutex, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            for row in rows:
                if not (source == REPORTED and self._db.execute(REPLACE, row).rowcount):
                    self._db.execute(INSERT, row)

    def prune(self, now: float) -> None:
        """Forget what is older than 7 days or, in memory, all but the newest events."""
        with self._mutex, self._db:
            if self.file:
                self._db.execute("DELETE FROM events WHERE at < ?", (now - KEPT,))
            else:
                self._db.execute("DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?", (KEPT_IN_MEMORY,))

    def last_id(self) -> int:
        return int(self._read("SELECT coalesce(max(id), 0) AS id FROM events")[0]["id"])

    def after(self, number: int, limit: int) -> list[Row]:
        """Return the newest events after this id, oldest first."""
        return self._read(f"SELECT {COLUMNS} FROM events WHERE id > ? ORDER BY id DESC LIMIT ?", number, limit)[::-1]

    def of_name(self, name: str, limit: int) -> list[Row]:
        """Return the newest events of one name, newest first."""
        return self._read(f"SELECT {COLUMNS} FROM events WHERE name = ? ORDER BY at DESC LIMIT ?", name, limit)

    def lost_since(self, at: float) -> list[Row]:
        """Return how often each name was lost or evicted since then."""
        kinds = "kind IN ('lost', 'evicted') AND phase = 'end'"
        return self._read(f"SELECT name, count(*) AS times FROM events WHERE at >= ? AND {kinds} GROUP BY name", at)

    def spans(self, begin: float, end: float, limit: int) -> list[Row]:
        """Return the holds and waits that ended at a known length and touch this time, newest first."""
        return self._read(
            f"""SELECT {COLUMNS} FROM events WHERE at >= ? AND at - seconds <= ? AND (phase = 'end'
            OR phase IN ('hold', 'left') AND seconds > 0.05) ORDER BY at DESC LIMIT ?""",
            begin, end, limit,
        )  # fmt: skip

    def _read(self, statement: str, *values: object) -> list[Row]:
        with self._mutex:
            return [dict(row) for row in self._db.execute(statement, values)]

    def close(self) -> None:
        with self._mutex:
            self._db.close()
