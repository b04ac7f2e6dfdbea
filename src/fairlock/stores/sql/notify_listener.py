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
from typing import Any, Protocol

import psycopg
from sqlalchemy.engine import URL

from ..base import Event, Row, RowSnapshot
from .libpq_executor import LibpqExecutor, wait_on
from .schema import LISTENER, LOCKS, ROW_CHANGED, Statement

IDLE = 30.0  # seconds without a waiter or a holder, after which the connection is given back
HELD = 5.0  # seconds for which a holder counts after its keeper has last called `attend`
RETRY = 1.0  # seconds between two tries to listen
REMEMBERED = 5.0  # seconds for which a wake-up is kept for a ticket that does not wait yet
MOST = 1000
READING = 5.0  # seconds for which a row is waited for
READ = Statement(f"SELECT version, body FROM {LOCKS.name} WHERE key = %(v_key)s", None, True, True)


class Reader(Protocol):
    """A client, as this module sees it: it is given the rows that were read for it."""

    def remember_row(self, key: str, seen: RowSnapshot) -> None: ...

    def client_clock(self) -> float: ...


class NotifyListener:
    """The listener of this process at one server. Everything here may be called from any thread."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self.name = LISTENER + os.urandom(8).hex()
        self.listening = False
        self.readers: weakref.WeakSet[Reader] = weakref.WeakSet()
        self._since = 0.0  # when it began to listen
        self._attended = -HELD
        self._connect = connect
        self._mutex = threading.Lock()
        self._waiting: dict[str, list[Event]] = {}
        self._notified: dict[str, float] = {}  # by ticket: when
        self._thread: threading.Thread | None = None
        self._poke: tuple[int, int] | None = None  # a pipe that makes the thread look up
        self._tried = -RETRY

    def start_waiting(self, ticket: str, event: Event) -> bool:
        """Begin to wait, and to listen if no thread does yet. Whether a wake-up has already arrived."""
        with self._mutex:
            self._waiting.setdefault(ticket, []).append(event)
            if ticket in self._notified:
                return True
            self._begin()
        return False

    def attend(self) -> float:
        """There is a holder: listen from now on. Return for how many seconds it has listened; -1: not yet."""
        with self._mutex:
            self._attended = time.monotonic()
            self._begin()
            return time.monotonic() - self._since if self.listening else -1.0

    def _begin(self) -> None:
        """Under the mutex."""
        if self._thread is None and time.monotonic() - self._tried > RETRY:
            self._tried = time.monotonic()
            thread = threading.Thread(target=self._listen, name="fairlock-listener", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return  # there are too many threads: all poll, and the next waiter tries again
            self._thread = thread

    def stop_waiting(self, ticket: str, event: Event) -> bool:
        """Stop waiting. Whether a wake-up has arrived."""
        with self._mutex:
            events = self._waiting.get(ticket, [])
            if event in events:
                events.remove(event)
            if not events:
                self._waiting.pop(ticket, None)
            return self._notified.pop(ticket, None) is not None

    def take_wakeups(self, tickets: Any) -> list[str]:
        if not self._notified:
            return []
        with self._mutex:
            return [ticket for ticket in tickets if self._notified.pop(ticket, None) is not None]

    def notify(self, wakeup: str) -> None:
        ticket = wakeup.partition(" ")[0]
        with self._mutex:
            if len(self._notified) > MOST:
                limit = time.monotonic() - REMEMBERED
                self._notified = {t: at for t, at in self._notified.items() if at > limit}
            self._notified[ticket] = time.monotonic()
            events = list(self._waiting.get(ticket, ()))
        for event in events:
            event.set()

    def _read_changed_row(self, libpq: LibpqExecutor, key: str) -> None:
        """Read a row that a client may be about to write, and give it to every client."""
        when = time.monotonic()
        try:
            found = libpq.execute(READ, {"v_key": key})
        except psycopg.Error as error:
            if error.sqlstate is None:
                raise  # it is the connection
            return
        if found:
            version, body = found[0]
            with _mutex:
                readers = list(self.readers)
            for reader in readers:
                at = reader.client_clock() - (time.monotonic() - when)
                reader.remember_row(key, RowSnapshot(Row(key, 0, "", body), version, 0, at))

    def _wake_all(self) -> None:
        with self._mutex:
            events = [event for several in self._waiting.values() for event in several]
        for event in events:
            event.set()

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
            self._wake_all()  # each reads once: a wake-up may have been sent before we listened
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
            self._wake_all()

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
                        self.notify(wakeup)
                if not changed_rows:
                    break
                # Waiters come first; and wake-ups may arrive together with the reply.
                self._read_changed_row(libpq, changed_rows.pop())
            now = time.monotonic()
            if self._waiting or now - self._attended < HELD:
                quiet = now
            elif now - quiet > IDLE:
                return


_listeners: dict[URL, NotifyListener] = {}
_mutex = threading.Lock()


def listener_at(direct: URL, timeout: float, reader: Reader) -> NotifyListener:
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


def remove_reader(listener: NotifyListener, reader: Reader) -> threading.Thread | None:
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


os.register_at_fork(after_in_child=forked)
