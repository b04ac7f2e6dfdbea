"""One guarded connection to the database file: opening, statements, forks, and files that vanish.

A step is one autocommit statement. Nothing here waits: while another client writes, SQLite returns BUSY at once
(`timeout=0`) and the store above backs off in the runtime of its client; SQLite's own busy handler would block an event
loop, and its steps are so coarse that the 99th percentile was five times worse. In a tight loop of writes a snapshot is
kept between them: see `keep_snapshot`.

The settings, and why:
- WAL: readers never block; synchronous NORMAL: a commit survives every crash of a process, and a crash of the machine
  ends all holders on it anyway (FULL is ten times slower, OFF risks the file).
- page_size 2048: a commit writes one page.
- Checkpoints are done by `maintenance`, not by the client that happens to write the thousandth page.
- One connection per store with a lock around it: a statement's row count is a property of the connection.
- It is closed before each fork (`fork_hooks`) and opened again by its next use.

No code may open() and close() the database file itself in this process: that drops SQLite's locks. stat is fine.
"""

import os
import sqlite3
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

from ...errors import ConfigError, StoreError
from . import clock, errors, root_acts_as_file_owner
from .location import Place, prepare

APPLICATION = 0x66616972  # "fair", in the file's header: this database is ours
SCHEMA = 1
TABLES = (
    """CREATE TABLE fairlock_locks (
    key TEXT PRIMARY KEY,      -- namespace and name
    score INTEGER NOT NULL,    -- the last fence given out
    owner TEXT NOT NULL,       -- the current holders
    body TEXT NOT NULL,        -- the state of the lock, JSON
    version INTEGER NOT NULL   -- new with every write, never again the same
)""",
    """CREATE TABLE fairlock_meta (
    boot TEXT NOT NULL,        -- of which boot the base is
    base INTEGER NOT NULL      -- microseconds; now = base + time since boot
)""",
)
FEW, MANY, LASTED = 3, 1024, 16  # quick writes in a row: until a snapshot is kept, and with one
FORK = 10.0  # seconds; the most that a fork waits for the statements and the checkpoint of other threads
SETTINGS = ("PRAGMA synchronous=NORMAL", "PRAGMA wal_autocheckpoint=0")


class Closed(Exception):
    """There is no open connection at the moment: open one."""


class Connection:
    """The database at `path`. `open` makes or checks it; `change` and `rows` run one statement each."""

    def __init__(self, path: str, boot: Callable[[], str], another_boot_lives: Callable[[], bool]) -> None:
        self.path = path
        self.real = path  # without symbolic links, once it is open
        self.place: Place | None = None  # once it is open, and until the next opening
        self.shift = 0  # microseconds; the store's now = microseconds since boot + shift
        self.guard = threading.Lock()
        self.aside = threading.Lock()  # guards the second, short-lived connection of `maintenance`
        self._boot = boot
        self._another_boot_lives = another_boot_lives
        self.cursor: sqlite3.Cursor | None = None  # None: not open
        self.snapshot: sqlite3.Cursor | None = None  # a half-read statement; see `keep_snapshot`
        self.writes_in_row = self._kept_from = 0  # quick ones, without a read between them
        self.enough = FEW  # of them, to keep a snapshot
        self.version = _versions()  # returns a new one at each call
        self._files: tuple[tuple[int, int] | None, ...] = ()
        self._leaked = False

    def now(self) -> int:
        """Return the store's time. Only while it is open."""
        return clock.nanoseconds() // 1000 + self.shift

    # -- statements

    def change(self, sql: str, values: tuple[Any, ...] | dict[str, Any]) -> int:
        """Run a statement that writes. Return how many rows it changed."""
        with self.guard:
            cursor = self.cursor
            if cursor is None:
                raise Closed
            self.end_snapshot()
            try:
                return cursor.execute(sql, values).rowcount
            except UnicodeDecodeError:
                raise errors.corrupt("its schema is unreadable") from None

    def rows(self, sql: str, values: tuple[Any, ...] | dict[str, Any] = ()) -> list[Any]:
        """Run a statement that reads. Return all its rows: a half-read statement would block checkpoints."""
        with self.guard:
            cursor = self.cursor
            if cursor is None:
                raise Closed
            self.end_snapshot()
            try:
                return cursor.execute(sql, values).fetchall()
            except UnicodeDecodeError:
                raise errors.corrupt("its schema is unreadable") from None

    def prepare(self, setting: Callable[[sqlite3.Connection], None]) -> None:
        """Set something up in the open connection."""
        with self.guard:
            if self.cursor is None:
                raise Closed
            self.end_snapshot()
            setting(self.cursor.connection)

    # -- a snapshot that is kept between two writes

    def keep_snapshot(self) -> None:
        """Under the guard, in a tight loop of writes: begin to read, and do not finish.

        While a statement is half read, SQLite keeps the snapshot of the connection, and a write takes two locks on the
        files instead of six. A write of another client makes the snapshot stale: SQLite then refuses ours, and we do
        without one for a while. A statement that reads would see the past, so it ends the snapshot first.
        No checkpoint can pass a snapshot. So it is ended after a few dozen writes, and by the keeper when they stop.
        """
        snapshot = self.cursor.connection.cursor()  # type: ignore[union-attr]
        try:
            snapshot.execute("SELECT boot FROM fairlock_meta")
        except (sqlite3.Error, UnicodeDecodeError):
            snapshot.close()
            self.refused()
        else:
            self.snapshot, self._kept_from = snapshot, self.writes_in_row

    def end_snapshot(self) -> None:
        """Under the guard: end the snapshot, if there is one."""
        if self.snapshot is not None:
            self.snapshot.close()
            self.snapshot = None
            if self.writes_in_row - self._kept_from >= LASTED:
                self.enough = max(self.enough // 2, FEW)

    def let_checkpoints_pass(self) -> None:
        with self.guard:
            self.end_snapshot()

    def refused(self) -> None:
        """Under the guard: SQLite refused a write, because others write, too."""
        if self.snapshot is not None:
            self.enough = min(4 * self.enough, MANY)
        self.writes_in_row = 0
        self.end_snapshot()

    # -- opening and closing

    def open(self) -> None:
        """Open the database, and make it if there is none. LockError, or sqlite3.Error for the caller to explain."""
        with self.guard:
            if self.cursor is not None:
                return
            if self._leaked:
                raise StoreError(
                    f"This process was forked while {self.path} was in use, in a way that Python could not prepare "
                    "for; SQLite would lose writes. Connect after the fork."
                )
            self.place = place = prepare(self.path)
            self.real = place.real
            self.version = _versions()
            with root_acts_as_file_owner.use_rights(place.owner):
                self.cursor = self._open(place)

    def _open(self, place: Place) -> sqlite3.Cursor:
        connection = connect(self.real)
        cursor = connection.cursor()
        try:
            self._check(cursor.execute)
            elapsed = clock.nanoseconds() // 1000 - clock.namespace_offset()
            base = clock.settle(cursor.execute, self._boot(), elapsed, self.version, self._another_boot_lives)
            self.shift = base - clock.namespace_offset()
            self._files = self._inodes()
            if [self._files[0], self._files[-1]] != [_inode(place.stat()), _inode(os.fstat(place.directory.fd))]:
                raise errors.exchanged(self.path)
        except BaseException as error:
            cursor.close()  # first: a statement that was interrupted would keep the database open, and locked
            connection.close()
            if isinstance(error, UnicodeDecodeError):
                raise errors.corrupt("its schema is unreadable") from None
            raise
        return cursor

    def _check(self, execute: Callable[..., sqlite3.Cursor]) -> None:
        """Make sure that this is a database of ours, without changing one that is not."""
        tables = execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        application = execute("PRAGMA application_id").fetchone()[0]  # in this order: both appear at once
        if application != APPLICATION:
            if application or tables:
                whose = f"another application (id {application})" if application else "another application"
                raise ConfigError(f"{self.real} is a database of {whose}. Give the locks a file of their own.")
            self._make(execute)
        found = execute("PRAGMA user_version").fetchone()[0]
        if found > SCHEMA:
            raise ConfigError(
                f"{self.real} was made by a newer fairlock (schema {found}; this one knows {SCHEMA}). "
                "Upgrade fairlock here, or use another file."
            )
        use_wal(execute, self.real)
        for setting in SETTINGS:
            execute(setting)

    def _make(self, execute: Callable[..., sqlite3.Cursor]) -> None:
        execute("PRAGMA page_size=2048")
        use_wal(execute, self.real)
        with clock.transaction(execute):
            if execute("PRAGMA application_id").fetchone()[0] != APPLICATION:  # else another client was faster
                for table in TABLES:
                    execute(table)
                execute(f"PRAGMA application_id={APPLICATION}")
                execute(f"PRAGMA user_version={SCHEMA}")

    def close(self) -> None:
        with self.guard:
            self._close()

    def drop(self) -> None:
        """Close without asking: no other thread has this object any more."""
        self._close()
        self.place = None

    def _close(self) -> None:
        self.end_snapshot()  # first: it would keep the database open
        cursor, self.cursor = self.cursor, None
        if cursor is not None:
            owner = self.place.owner if self.place is not None else None
            with root_acts_as_file_owner.use_rights(owner):  # the last one removes the log, by its path
                cursor.connection.close()

    @property
    def file(self) -> tuple[int, int] | None:
        """Device and inode of the database, as it was last opened."""
        return self._files[0] if self._files else None

    def replaced(self) -> bool:
        """Return whether the files were deleted or replaced under us, or the path leads to others: then what is written
        here is lost."""
        return self.cursor is not None and self._inodes() != self._files

    def _inodes(self) -> tuple[tuple[int, int] | None, ...]:
        found: list[tuple[int, int] | None] = []
        for path in (self.path, self.real + "-wal", self.real + "-shm", os.path.dirname(self.real)):
            try:
                found.append(_inode(os.stat(path)))
            except OSError:
                found.append(None)
        return tuple(found)

    # -- forks

    def before_fork(self) -> bool:
        """Close, and let no thread open it until the fork is over. False if that cannot be done in time."""
        if not self.aside.acquire(timeout=FORK):
            return False  # a signal handler forks in the middle of a statement of this very thread
        if not self.guard.acquire(timeout=FORK):
            self.aside.release()
            return False
        self._close()
        return True

    def after_fork(self) -> None:
        self.guard.release()
        self.aside.release()

    def in_child(self) -> None:
        self.version = _versions()  # or parent and child would count through the same numbers
        self.guard = threading.Lock()
        self.aside = threading.Lock()
        if self.cursor is not None:  # it was not closed before the fork: not even its destructor may run
            _leaked.extend((self.cursor, self.snapshot))
            self.cursor = self.snapshot = None
            self._leaked = True


def _inode(there: os.stat_result) -> tuple[int, int]:
    return there.st_dev, there.st_ino


def _versions() -> Callable[[], int]:
    """Versions never recur: each opening counts up from 62 random bits, whatever is done to the seed of `random`."""
    return count(int.from_bytes(os.urandom(8)) >> 2).__next__


def connect(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)


def use_wal(execute: Callable[..., sqlite3.Cursor], path: str) -> None:
    mode = execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        raise ConfigError(
            f"{path} cannot be used with a write-ahead log (SQLite stays with '{mode}'), which fairlock needs. "
            "Put it on a local file system."
        )


_leaked: list[sqlite3.Cursor | None] = []
