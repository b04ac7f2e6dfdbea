"""Wake-ups from PostgreSQL: one connection and one channel per process and server, for any number of clients.

One channel for all would wake all clients for each wake-up: with 64 clients the rate fell to a sixth. A thread listens
and gives each wake-up to its waiter, a thread or a task. It starts when a client first waits or holds a lock for longer
than a moment (its holder may be evicted). It ends when no client has needed it for a while, or when the last client is
closed.

A wake-up proves nothing, because any role of the database may NOTIFY: the client reads the table. Besides tickets, a
wake-up may name a row that a client of this process holds and another one now waits for. It is read at once, for each
client, so that the release starts from the current row. When the connection breaks, all waiters are woken, because
wake-ups may have been missed, and they poll until there is a new connection.
"""

import os
import select
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import psycopg
from sqlalchemy.engine import URL

from ...forks import reset_in_child
from ..base import Pushed
from ..polling import PollingStore
from ..row_cache import KnownRow, decode
from ..wakeups import Waiter, WakeupInbox
from .libpq_executor import LibpqExecutor, wait_on
from .schema import LISTENER, LOCKS, ROW_CHANGED, Statement

IDLE = 30.0  # seconds without a waiter or a holder, after which the connection is given back
HELD = 5.0  # seconds for which a holder counts after its keeper has last called `attend`
RETRY = 1.0  # seconds between two tries to listen
READING = 5.0  # seconds for which a row is waited for
READ = Statement(f"SELECT version, body FROM {LOCKS.name} WHERE key = $1", ("v_key",), True, True, False)


class NotifyListener(WakeupInbox):
    """The listener of this process at one server, and the inbox of its clients. To be called from any thread."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        super().__init__(threading.Lock)
        self.name = LISTENER + os.urandom(8).hex()
        self.listening = False
        self.readers: weakref.WeakSet[PollingStore] = weakref.WeakSet()
        self._since = 0.0  # when it began to listen
        self._attended = -HELD
        self._connect = connect
        self._thread: threading.Thread | None = None
        self._poke: tuple[int, int] | None = None  # a pipe that makes the thread look up
        self._tried = -RETRY

    def start_waiting(self, waiter: Waiter) -> bool:
        """Begin to wait, and to listen if no thread does yet. Return True if a wake-up has already arrived."""
        arrived = super().start_waiting(waiter)
        if not arrived and self._thread is None:
            with self._mutex:
                self._begin()
        return arrived

    def attend(self) -> float:
        """There is a holder: listen from now on. Return for how many seconds it has listened; -1: not yet."""
        with self._mutex:
            self._attended = time.monotonic()
            self._begin()
            return time.monotonic() - self._since if self.listening else -1.0

    def _begin(self) -> None:
        """Call this under the mutex."""
        if self._thread is None and time.monotonic() - self._tried > RETRY:
            self._tried = time.monotonic()
            thread = threading.Thread(target=self._listen, name="fairlock-listener", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return  # there are too many threads: all poll, and the next waiter tries again
            self._thread = thread

    def _read_changed_row(self, libpq: LibpqExecutor, key: str) -> None:
        """Read a row that a client may be about to write, and give it to every client that knows it."""
        when = time.monotonic()
        try:
            found = libpq.execute(READ, {"v_key": key})
        except psycopg.Error as error:
            if error.sqlstate is None:
                raise  # it is the connection
            return
        if not found:
            return
        version, body = found[0]
        try:
            state = decode(key, body)
        except ValueError:
            return  # it is damaged: the next step raises that
        with _mutex:
            readers = list(self.readers)
        for reader in readers:
            if reader.row_cache.get(key) is not None:  # it has used this row, and may hold the lock
                at = reader.client_clock() - (time.monotonic() - when)
                reader.row_cache.put(key, KnownRow(state, version, at))

    def _listen(self) -> None:
        connection = None
        poke = os.pipe()
        try:
            with self._mutex:
                self._poke = poke
            connection = self._connect()
            connection.execute(f"LISTEN {self.name}")
            with self._mutex:
                self._since = time.monotonic()
                self.listening = True
            self.wake_all()  # each reads once: a wake-up may have been sent before we listened
            self._read(connection, poke[0])
        except Exception:
            pass  # they poll, and the next waiter tries again
        finally:
            with self._mutex:
                self.listening = False
                self._thread = self._poke = None
            for fd in poke:
                os.close(fd)
            if connection is not None:
                try:
                    connection.close()
                except Exception:
                    pass
            self.wake_all()

    def end(self) -> threading.Thread | None:
        """No client is left: end the thread. Return it if there is one."""
        with self._mutex:
            if self._poke is not None:
                os.write(self._poke[1], b".")
            return self._thread

    def _read(self, connection: Any, poke: int) -> None:
        pgconn = connection.pgconn
        libpq = LibpqExecutor(connection, READING, False)
        changed_rows: list[str] = []
        poll = select.poll()
        poll.register(pgconn.socket, select.POLLIN)
        poll.register(poke, select.POLLIN)
        quiet = time.monotonic()
        while self.readers:
            poll.poll(1000)
            pgconn.consume_input()
            while True:
                while (found := pgconn.notifies()) is not None:
                    wakeup = found.extra.decode(errors="replace")
                    if wakeup.startswith(ROW_CHANGED):
                        changed_rows.append(wakeup.removeprefix(ROW_CHANGED))
                    else:
                        self.deliver(Pushed(wakeup.partition(" ")[0]))
                if not changed_rows:
                    break
                # Waiters come first; and wake-ups may arrive together with the reply.
                self._read_changed_row(libpq, changed_rows.pop())
            now = time.monotonic()
            if self._waiters or now - self._attended < HELD:
                quiet = now
            elif now - quiet > IDLE:
                return


_listeners: dict[URL, NotifyListener] = {}
_mutex = threading.Lock()


def listener_at(direct: URL, timeout: float, reader: PollingStore) -> NotifyListener:
    """Return the listener of this process at this server, for this client until it is closed or forgotten."""

    def connect() -> Any:
        url = direct.set(drivername="postgresql").render_as_string(hide_password=False)
        connection = psycopg.connect(
            url, autocommit=True, connect_timeout=max(int(timeout), 2), application_name="fairlock listener",
            client_encoding="UTF8",
        )
        connection.wait = wait_on(connection, timeout)  # type: ignore[method-assign]
        return connection

    with _mutex:
        listener = _listeners.get(direct)
        if listener is None:
            listener = _listeners[direct] = NotifyListener(connect)
        listener.readers.add(reader)
        return listener


def remove_reader(listener: NotifyListener, reader: PollingStore) -> threading.Thread | None:
    """Remove a client that is closed. Return the thread that ends with it, if it was the last one."""
    with _mutex:
        listener.readers.discard(reader)
        if listener.readers:
            return None
        for key in [key for key, each in _listeners.items() if each is listener]:
            del _listeners[key]
    return listener.end()


def forked() -> None:
    """A child process does not receive its parent's wake-ups."""
    global _mutex
    _mutex = threading.Lock()
    _listeners.clear()


reset_in_child(forked)
