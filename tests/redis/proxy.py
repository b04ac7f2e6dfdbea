"""A wire that fails on purpose: a TCP proxy in front of a server, with two threads for each connection.

    with Proxy(server.port) as proxy:
        proxy.fate = lambda request: "cut" if kind_of(request) == "release" else ""

A request is what arrives in one piece. Its fate: '' passes; 'cut' is carried out, and the connection breaks before the
reply, as if the cable were pulled just then; 'drop' breaks before the server receives it; 'mute' is carried out and the
reply never comes; 'swallow' disappears, and so does all that follows; 'half' is carried out, and the connection breaks
in the middle of the reply; a number holds the request back for that many seconds.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from fairlock.stores.redis.async_batching import BATCH_ACQUIRE, BATCH_RELEASE
from fairlock.stores.redis.lua_scripts import FAST_ACQUIRE, FAST_RELEASE

Fate = Callable[[bytes], "str | float"]
KINDS = ("acquire", "release", "renew", "detach", "evict", "ask", "resize")


def kind_of(request: bytes) -> str:
    """Return acquire, release, renew, detach … as far as this piece shows it; '' if it is none of these."""
    for kind, scripts in {"acquire": (FAST_ACQUIRE, BATCH_ACQUIRE), "release": (FAST_RELEASE, BATCH_RELEASE)}.items():
        if any(script.sha.encode() in request for script in scripts):
            return kind
    return next((kind for kind in KINDS if f"\r\n{kind}\r\n".encode() in request), "")


class Proxy:
    def __init__(self, port: int) -> None:
        self.fate: Fate = lambda request: ""
        self.cuts = 0  # how many requests did not pass
        self._target = port
        self._open: set[socket.socket] = set()
        self._mutex = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port: int = self._listening.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._listening.close()
        self.sever()

    def sever(self) -> None:
        """Break every connection."""
        with self._mutex:
            every = list(self._open)
        for one in every:
            _break(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target), 5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            line = WorkerQueue(self, client, server)
            with self._mutex:
                self._open |= {client, server}
            for work in (line.requests, line.replies):
                threading.Thread(target=work, daemon=True).start()

    def closed(self, *ends: socket.socket) -> None:
        with self._mutex:
            self._open -= set(ends)
        for end in ends:
            _break(end)


class WorkerQueue:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self.proxy, self.client, self.server = proxy, client, server
        self.doomed = threading.Event()  # the next reply breaks it
        self.halved = threading.Event()  # the next reply breaks it in its middle
        self.muted = threading.Event()
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def requests(self) -> None:
        try:
            while request := self.client.recv(1 << 20):
                fate = self.proxy.fate(request)
                if isinstance(fate, float):
                    time.sleep(fate)
                elif fate:
                    with self.proxy._mutex:
                        self.proxy.cuts += 1
                    if fate == "drop":
                        break
                    if fate == "swallow":
                        while self.client.recv(1 << 20):
                            pass
                        break
                    {"cut": self.doomed, "half": self.halved, "mute": self.muted}[fate].set()
                self.server.sendall(request)
        except OSError:
            pass
        if not self.doomed.is_set():
            self.proxy.closed(self.client, self.server)

    def replies(self) -> None:
        try:
            while reply := self.server.recv(1 << 20):
                if self.doomed.is_set():
                    break
                if self.halved.is_set():
                    self.client.sendall(reply[: len(reply) // 2])
                    break
                if not self.muted.is_set():
                    self.client.sendall(reply)
        except OSError:
            pass
        self.proxy.closed(self.client, self.server)


def _break(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()
