"""Checkpoints, and the removal of rows unused for a day, of old audit lines, and of sockets of dead clients.

Checkpoints are not left to SQLite: under constant writes its own never came to reset the log (100 MB in 4 s). One
client at a time does it, elected by a lock on the directory of the sockets, right after a commit of its own: then no
other client can be in the middle of resetting the log, which also avoids a bug of SQLite 3.7.0 to 3.51.2 there.

It runs on a second connection, and a log that has grown long is cut by a thread of its own, so that neither writers nor
an event loop wait for the disk.

A client that lives for a moment, as those of `run` do, does its share when it ends: it cuts a log that has grown long,
and one of sixteen sweeps some rows and sockets. A client leaves at most one row and one socket on average, so these
clients alone keep the file small, beside a holder that does nothing for hours as well.
"""

import fcntl
import os
import sqlite3
import threading
import time

from ..base import Row
from ..row_cache import is_unused
from . import errors
from .connection import SETTINGS, Closed, Connection, connect
from .listener_sockets import WakeupSockets
from .root_acts_as_file_owner import use_rights

DUE = 250  # commits of our own since our last checkpoint
TRUNCATE = 4 << 20  # bytes; a longer log is cut, not only emptied, and by any writer if no other client does it
SMALL = 64 << 10  # bytes; a log below this is no reason why a disk is full
SHORT = 256 << 10  # bytes; the next client that opens the database reads it in a millisecond
GLANCE = 64  # commits of our own between two checks of its size
RETRY_FOR = 50  # milliseconds until all others pause for the cut
IDLE = 24 * 3600 * 1_000_000  # microseconds
NOBODY_KNOWS = 1 << 62
SWEEP_EVERY = 30.0  # seconds
SWEEP_ROWS = 200
SHARE = 16  # one of this many clients sweeps when it ends

NEXT_ROWS = "SELECT rowid, key, body, version FROM fairlock_locks WHERE rowid > ? ORDER BY rowid LIMIT ?"
DELETE = "DELETE FROM fairlock_locks WHERE key=? AND version=?"
LAST_ROW = "SELECT max(rowid) FROM fairlock_locks"
COMMIT = "UPDATE fairlock_meta SET rowid=-rowid"  # a row that stays as it was would not be written at all


class Maintenance:
    def __init__(self, db: Connection, listeners: WakeupSockets) -> None:
        self.commits = 0  # since the last checkpoint of ours
        self._db = db
        self._rest_until = 0.0
        self._cutter: threading.Thread | None = None
        self._listeners = listeners
        self._sweep_at = time.monotonic() + SWEEP_EVERY
        self._rowid = -1  # where the next sweep begins; -1: at a random row

    def is_urgent(self) -> bool:
        """Return whether the log is long, and we have not tried to cut it just now."""
        return time.monotonic() >= self._rest_until and self._is_long()

    def _is_long(self) -> bool:
        """Above its limit, or of half the size of what is left on the disk: the database needs room to take it in."""
        log = self._log()
        return log > TRUNCATE or (log > SMALL and log > free_space(self._db.real) // 2)

    def start_checkpoint(self) -> bool:
        """Begin to cut the log in a thread of its own. False: the one before is not done, or no thread can start."""
        if self._cutter is not None and self._cutter.is_alive():
            return False
        self._rest_until = time.monotonic() + 0.1
        thread = threading.Thread(target=self.checkpoint, name="fairlock-checkpoint", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._cutter = thread
        return True

    def wait_for_checkpoint(self) -> None:
        if self._cutter is not None:
            self._cutter.join()

    def is_short(self) -> bool:
        """Return whether the log may be left to the next client."""
        return self._log() < SHORT

    def tidy(self) -> None:
        """Do what is due. Never raises: the next step reports the same problem."""
        self._db.let_checkpoints_pass()
        try:
            if self.commits >= DUE:
                self.checkpoint()
            if time.monotonic() >= self._sweep_at:
                self._sweep_at = time.monotonic() + SWEEP_EVERY
                self._listeners.clean()
                self.sweep()
        except (sqlite3.Error, OSError, Closed):
            pass

    def is_due_at_the_end(self) -> bool:
        """Return whether a client that ends now has something to `finish`: the log is long, or chance has chosen it."""
        return self._is_long() or os.urandom(1)[0] % SHARE == 0

    def finish(self) -> None:
        """Do the last work of a client. Never raises."""
        if self._is_long():
            self.checkpoint()
        self._sweep_at = 0.0
        self.tidy()

    def _log(self) -> int:
        return file_size(self._db.real + "-wal")

    def checkpoint(self) -> bool:
        """Move the log into the database, unless another client is doing it. True if it was done."""
        self.commits = 0
        self._rest_until = time.monotonic() + 0.1
        self._db.let_checkpoints_pass()
        with self._db.aside:
            place = self._db.place  # once: close() in another thread forgets it
            if self._db.cursor is None or place is None:
                return False
            try:
                elected = _elect(self._listeners.reopen())
                if elected is None:
                    return False
                try:
                    with use_rights(place.owner):
                        return self._checkpoint(place.real)
                finally:
                    if elected >= 0:
                        os.close(elected)
            except (sqlite3.Error, OSError):
                return False  # busy, or a disk that is full: later

    def _checkpoint(self, path: str) -> bool:
        connection = connect(path)
        try:
            for setting in SETTINGS:
                connection.execute(setting)
            for _ in range(20):
                try:
                    connection.execute(COMMIT)
                    break
                except sqlite3.OperationalError as error:
                    if errors.is_full(error):
                        break  # then no other client commits, and what follows frees space
                    time.sleep(0.0002)
            else:
                return False
            busy = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[0]
            if self._is_long():  # the cut needs a moment without writers; most of the work is done by now
                connection.execute(f"PRAGMA busy_timeout={RETRY_FOR}")
                busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            return not busy
        finally:
            connection.close()

    def sweep(self) -> int:
        """Delete rows that were not used for a day, some at a time. Return how many."""
        if self._rowid < 0:
            last = self._db.rows(LAST_ROW)[0][0] or 0
            self._rowid = 0
            if last > SWEEP_ROWS:  # so that the first rows get their turn, too
                self._rowid = max(int.from_bytes(os.urandom(8)) % last - SWEEP_ROWS // 2, 0)
        rows = self._db.rows(NEXT_ROWS, (self._rowid, SWEEP_ROWS))
        self._rowid = rows[-1][0] if len(rows) == SWEEP_ROWS else 0
        now = self._db.now()
        gone = 0
        for _, key, body, version in rows:
            if is_unused(Row(key, 0, "", body), now, IDLE):
                gone += self._db.change(DELETE, (key, version))
        return gone


def file_size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def free_space(path: str) -> int:
    """Return how many bytes are free on the disk that holds this file."""
    try:
        disk = os.statvfs(path)
    except (OSError, AttributeError):
        return NOBODY_KNOWS
    return disk.f_bavail * disk.f_frsize


def _elect(directory: int) -> int | None:
    """Lock this directory and return it; None if another client has it. Only users of the database can open it."""
    if directory < 0:
        return directory  # there is no such directory: SQLite's own lock on checkpoints must do
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(directory)
        return None
    return directory
