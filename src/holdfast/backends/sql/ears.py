"""Hearing hints from PostgreSQL: one connection and one channel per process and server, whatever the number of clients.

A channel for all would wake everybody for everybody: with 64 clients that took the rate down to a sixth. A thread
listens and gives each hint to the one who waits for it, a thread or a task. It starts when somebody first has to wait,
and ends when nobody has waited for a while.

What is heard is a hint and nothing more, for any role of the database may NOTIFY: it is looked into the table. Besides
tickets it names rows which somebody of this process is inside of and another one waits for now: they are read at once,
so that leaving starts from what is there. When the connection breaks, everybody is woken, for hints may have been
missed, and polls until there is a new one.
"""

import os
import select
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
from sqlalchemy.engine import URL

from ..contract import Event, Row, Seen
from .quick import Quick
from .tables import EAR, LOCKS, NEWS, Statement

IDLE = 30.0  # seconds without anybody who waits, after which the connection is given back
RETRY = 1.0  # seconds between two tries to listen
REMEMBERED = 5.0  # seconds for which a hint is kept for one who does not wait yet
MOST = 1000
READING = 5.0  # seconds for which a row is waited for
READ = Statement(f"SELECT version, body FROM {LOCKS.name} WHERE key = %(v_key)s", None, True, True)


class Ear:
    """The ear of this process at one server. Everything here may be called from any thread."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self.name = EAR + os.urandom(8).hex()
        self.listening = False
        self._connect = connect
        self._mutex = threading.Lock()
        self._waiting: dict[str, list[Event]] = {}
        self._heard: dict[str, float] = {}  # by ticket: when
        self.news: dict[str, tuple[float, int, str]] = {}  # by key: when, version and body of its row
        self._thread: threading.Thread | None = None
        self._poke: int = -1
        self._tried = 0.0

    def enter(self, ticket: str, event: Event) -> bool:
        """Begin to wait, and to listen if nobody does yet. Whether something was heard already."""
        with self._mutex:
            self._waiting.setdefault(ticket, []).append(event)
            if ticket in self._heard:
                return True
            if self._thread is None and time.monotonic() - self._tried > RETRY:
                self._tried = time.monotonic()
                self._thread = threading.Thread(target=self._listen, name="holdfast-ear", daemon=True)
                self._thread.start()
        return False

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

    def news_of(self, key: str, clock: float) -> Seen | None:
        """What was heard of this row, once. `clock`: the client's, now."""
        heard = self.news.pop(key, None)
        if heard is None:
            return None
        when, version, body = heard
        return Seen(Row(key, 0, "", body), version, 0, clock - (time.monotonic() - when))

    def _hear(self, hint: str) -> None:
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
        """A row has changed that somebody here may be about to write: have it at hand."""
        when = time.monotonic()
        try:
            found = quick.say(READ, {"v_key": key})
        except psycopg.Error as error:
            if error.sqlstate is None:
                raise  # it is the connection
            return
        if found:
            if len(self.news) > MOST:
                self.news.clear()
            self.news[key] = when, *found[0]

    def _wake_all(self) -> None:
        with self._mutex:
            events = [event for several in self._waiting.values() for event in several]
        for event in events:
            event.set()

    def _listen(self) -> None:
        connection = None
        try:
            connection = self._connect()
            connection.execute(f"LISTEN {self.name}")
            self.listening = True
            self._wake_all()  # each looks once: something may have been said before we listened
            self._read(connection)
        except Exception:
            pass  # they poll, and the next one who waits tries again
        finally:
            self.listening = False
            with self._mutex:
                self._thread = None
            if connection is not None:
                try:
                    connection.close()
                except Exception:
                    pass
            self._wake_all()

    def _read(self, connection: Any) -> None:
        pgconn = connection.pgconn
        quick = Quick(connection, READING, False)
        news: list[str] = []
        poll = select.poll()
        poll.register(pgconn.socket, select.POLLIN)
        quiet = time.monotonic()
        while True:
            poll.poll(1000)
            pgconn.consume_input()
            while True:
                while (heard := pgconn.notifies()) is not None:
                    hint = heard.extra.decode(errors="replace")
                    if hint.startswith(NEWS):
                        news.append(hint.removeprefix(NEWS))
                    else:
                        self._hear(hint)
                if not news:
                    break
                self._read_news(quick, news.pop())  # after those who wait; and hints may have come with the answer
            now = time.monotonic()
            if self._waiting:
                quiet = now
            elif now - quiet > IDLE:
                return


_ears: dict[Any, Ear] = {}
_mutex = threading.Lock()


def ear_at(direct: URL, timeout: float) -> Ear:
    """The ear of this process at this server."""

    def connect() -> Any:
        url = direct.set(drivername="postgresql").render_as_string(hide_password=False)
        return psycopg.connect(
            url, autocommit=True, connect_timeout=max(int(timeout), 2), application_name="holdfast ear",
            client_encoding="UTF8",
        )

    with _mutex:
        key = (os.getpid(), direct)
        ear = _ears.get(key)
        if ear is None:
            ear = _ears[key] = Ear(connect)
        return ear


def forked() -> None:
    """A child hears nothing of its parent's."""
    global _mutex
    _mutex = threading.Lock()


os.register_at_fork(after_in_child=forked)
