"""Writers of a journal: a program that reports its own events, and the one `fairlock ui` that writes what it sees."""

from __future__ import annotations

import atexit
import os
import queue
import threading
import time
from os import PathLike, fspath
from typing import TYPE_CHECKING

from ..engine.events import Event, warn
from .event_journal_file import REPORTED, Journal
from .events_from_snapshots import Happened

if TYPE_CHECKING:
    from ..sync import Lease, Locks

WAITING_TO_BE_WRITTEN = 10_000  # events; more are dropped, so that a full disk costs no memory
NOT_KEPT = {"renewed"}  # every ten seconds for each lease, and of no interest afterwards
MEASURED = {"acquired", "given_up", "released", "lost", "evicted"}
ATTEMPTS, PAUSE = 20, 0.2  # of a file that is locked: SQLite itself waits only for some locks
AT_EXIT = 2.0  # seconds that the end of a program may wait for its last events


# In a process that is forked while a thread is inside SQLite, its mutexes stay locked forever. So a fork waits for it.
IN_SQLITE = threading.Lock()
os.register_at_fork(before=IN_SQLITE.acquire, after_in_parent=IN_SQLITE.release, after_in_child=IN_SQLITE.release)


class JournalWriter:
    """A callback for `on_event`. A thread of its own writes, which starts with the first event of a process."""

    def __init__(self, file: str | PathLike[str]) -> None:
        self.file = os.path.abspath(fspath(file))
        Journal(self.file).close()  # a file that cannot be written is an error here, not in a thread
        self._mutex = threading.Lock()
        self._pid = 0
        self._warned = False

    def __call__(self, event: Event) -> None:
        if event.kind in NOT_KEPT:
            return
        if self._pid != os.getpid():  # also after a fork, which takes no thread along
            self._start()
        if self._events.qsize() < WAITING_TO_BE_WRITTEN:
            self._events.put(happened(event, time.time()))
        else:
            self._warn("too many events are waiting to be written")

    def flush(self, timeout: float = AT_EXIT) -> None:
        """Wait until what was reported so far is written, at most for this many seconds."""
        if self._pid == os.getpid():
            done = threading.Event()
            self._events.put(done)
            done.wait(timeout)

    def _start(self) -> None:
        with self._mutex:
            if self._pid != os.getpid():
                self._events: queue.SimpleQueue[Happened | threading.Event] = queue.SimpleQueue()
                threading.Thread(target=self._write, name="fairlock-journal", daemon=True).start()
                atexit.register(self.flush)
                self._pid = os.getpid()

    def _write(self) -> None:
        events = self._events
        journal: Journal | None = None
        while True:
            batch = [events.get()]
            while not events.empty() and len(batch) < 500:
                batch.append(events.get())
            for attempt in range(ATTEMPTS):
                try:
                    with IN_SQLITE:
                        journal = journal or Journal(self.file, wait=PAUSE)
                        journal.add([one for one in batch if isinstance(one, Happened)], REPORTED)
                    break
                except Exception as error:  # a full disk, a file that was removed: the program goes on
                    if "locked" not in str(error) or attempt == ATTEMPTS - 1:
                        self._warn(str(error))
                        break
                    time.sleep(PAUSE)  # another process writes, or opens the file for the first time
            for one in batch:
                if isinstance(one, threading.Event):
                    one.set()

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            warn(f"Events are missing in the journal {self.file!r}: {why}.")


def happened(event: Event, now: float) -> Happened:
    seconds = event.seconds if event.kind in MEASURED else None
    detail = event.detail or event.reason or (event.outcome if event.kind == "given_up" else "")
    return Happened(now, event.kind, event.name, event.owner, "", event.ticket, event.fence, seconds, detail)


class WriterLock:
    """Makes one process the writer of what is seen. The lock lies beside the journal, in a store of our own."""

    def __init__(self, file: str) -> None:
        self.file = os.path.abspath(file)
        self._locks: Locks | None = None
        self._lease: Lease | None = None

    def held(self) -> bool:
        """Return True if this process is the writer; try to become it if there is none."""
        import fairlock

        if self._lease is None or not self._lease.held:
            try:
                if self._locks is None:
                    self._locks = fairlock.connect(f"sqlite:///{self.file}-lock", lease=10)
                self._lease = self._locks.lock("journal", note="writes the journal").acquire(blocking=False) or None
            except fairlock.LockError:
                self._lease = None
        return self._lease is not None

    def close(self) -> None:
        if self._locks is not None:
            self._locks.close()
            self._locks = None
