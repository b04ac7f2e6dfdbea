"""Hearing hints from PostgreSQL: one connection and one channel per process and server, whatever the number of clients.

A channel for all would wake everybody for everybody: with 64 clients that took the rate down to a sixth. A thread
listens and gives each hint to the one who waits for it, a thread or a task. It starts when a client first has to wait
or holds a lock for longer than a moment (its holder may be evicted), and ends when no client needs it for a while, or
when the last client is closed.

What is heard is a hint and nothing more, for any role of the database may NOTIFY: it is looked into the table. Besides
tickets it names rows which a client of this process is inside of and another one waits for now: they are read at once,
for each client, so that leaving starts from what is there. When the connection breaks, everybody is woken, for hints
may have been missed, and polls until there is a new one.
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

from ..contract import Event, Row, Seen
from .quick import Quick, wait_on
from .tables import EAR, LOCKS, NEWS, Statement

IDLE = 30.0  # seconds without a waiter or a holder, after which the connection is given back
HELD = 5.0  # seconds for which a holder counts after its keeper has last said so
RETRY = 1.0  # seconds between two tries to listen
REMEMBERED = 5.0  # seconds for which a hint is kept for one who does not wait yet
MOST = 1000
READING = 5.0  # seconds for which a row is waited for
READ = Statement(f"SELECT version, body FROM {LOCKS.name} WHERE key = %(v_key)s", None, True, True)


class Reader(Protocol):
    """A client: what is given the rows that were read for it."""

    def tell(self, key: str, seen: Seen) -> None: ...

    def client_clock(self) -> float: ...


class Ear:
    """The ear of this process at one server. Everything here may be called from any thread."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self.name = EAR + os.urandom(8).hex()
        self.listening = False
        self.readers: weakref.WeakSet[Reader] = weakref.WeakSet()
        self._since = 0.0  # when it began to listen
        self._attended = -HELD
        self._connect = connect
        self._mutex = threading.Lock()
        self._waiting: dict[str, list[Event]] = {}
        self._heard: dict[str, float] = {}  # by ticket: when
        self._thread: threading.Thread | None = None
        self._poke: tuple[int, int] | None = None  # a pipe that makes the thread look up
        self._tried = -RETRY

    def enter(self, ticket: str, event: Event) -> bool:
        """Begin to wait, and to listen if nobody does yet. Whether something was heard already."""
        with self._mutex:
            self._waiting.setdefault(ticket, []).append(event)
            if ticket in self._heard:
                return True
            self._begin()
        return False

    def attend(self) -> float:
        """There is a holder: listen from here on. For how many seconds it has; -1: not yet."""
        with self._mutex:
            self._attended = time.monotonic()
            self._begin()
            return time.monotonic() - self._since if self.listening else -1.0

    def _begin(self) -> None:
        """Under the mutex."""
        if self._thread is None and time.monotonic() - self._tried > RETRY:
            self._tried = time.monotonic()
            thread = threading.Thread(target=self._listen, name="holdfast-ear", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return  # there are too many threads: everybody polls, and the next one tries it again
            self._thread = thread

    def leave(self, ticket: str, event: Event) -> bool:
        """No longer wait. Whether a hint has come."""
        with self._mutex:
            events = self._waiting.get(ticket, [])
            if event in events:
                events.remove(event)
            if not events:
                self._waiting.pop(ticket, None)
            return self._heard.pop(ticket, None) is not None

    def hinted(self, tickets: Any) -> list[str]:
        if not self._heard:
            return []
        with self._mutex:
            return [ticket for ticket in tickets if self._heard.pop(ticket, None) is not None]

    def hear(self, hint: str) -> None:
        ticket = hint.partition(" ")[0]
        with self._mutex:
            if len(self._heard) > MOST:
                limit = time.monotonic() - REMEMBERED
                self._heard = {t: heard for t, heard in self._heard.items() if heard > limit}
            self._heard[ticket] = time.monotonic()
            events = list(self._waiting.get(ticket, ()))
        for event in events:
            event.set()

    def _read_news(self, quick: Quick, key: str) -> None:
        """A row has changed that a client may be about to write: give it to each, whichever it is."""
        when = time.monotonic()
        try:
            found = quick.say(READ, {"v_key": key})
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
                reader.tell(key, Seen(Row(key, 0, "", body), version, 0, at))

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
            self._wake_all()  # each looks once: something may have been said before we listened
            self._read(connection, poke[0])
        except Exception:
            pass  # they poll, and the next one who waits tries again
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
        """No client is left. The thread that ends now, if there is one."""
        with self._mutex:
            if self._poke is not None:
                os.write(self._poke[1], b".")
            return self._thread

    def _read(self, connection: Any, poke: int) -> None:
        pgconn = connection.pgconn
        quick = Quick(connection, READING, False)
        news: list[str] = []
        poll = select.poll()
        poll.register(pgconn.socket, select.POLLIN)
        poll.register(poke, select.POLLIN)
        quiet = time.monotonic()
        while self.readers:
            poll.poll(1000)
            pgconn.consume_input()
            while True:
                while (heard := pgconn.notifies()) is not None:
                    hint = heard.extra.decode(errors="replace")
                    if hint.startswith(NEWS):
                        news.append(hint.removeprefix(NEWS))
                    else:
                        self.hear(hint)
                if not news:
                    break
                self._read_news(quick, news.pop())  # after those who wait; and hints may have come with the answer
            now = time.monotonic()
            if self._waiting or now - self._attended < HELD:
                quiet = now
            elif now - quiet > IDLE:
                return


_ears: dict[URL, Ear] = {}
_mutex = threading.Lock()


def ear_at(direct: URL, timeout: float, reader: Reader) -> Ear:
    """The ear of this process at this server, for this client until it is closed or forgotten."""

    def connect() -> Any:
        url = direct.set(drivername="postgresql").render_as_string(hide_password=False)
        connection = psycopg.connect(
            url, autocommit=True, connect_timeout=max(int(timeout), 2), application_name="holdfast ear",
            client_encoding="UTF8",
        )
        connection.wait = wait_on(connection, timeout)  # type: ignore[method-assign]
        return connection

    with _mutex:
        ear = _ears.get(direct)
        if ear is None:
            ear = _ears[direct] = Ear(connect)
        ear.readers.add(reader)
        return ear


def part(ear: Ear, reader: Reader) -> threading.Thread | None:
    """This client is closed. The thread that ends with it, if it was the last one."""
    with _mutex:
        ear.readers.discard(reader)
        if ear.readers:
            return None
        for key in [key for key, each in _ears.items() if each is ear]:
            del _ears[key]
    return ear.end()


def forked() -> None:
    """A child hears nothing of its parent's."""
    global _mutex
    _mutex = threading.Lock()
    _ears.clear()


os.register_at_fork(after_in_child=forked)
