"""The page as a user meets it: `fairlock ui` in a process of its own, other processes that use locks, and a browser."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from email.message import Message
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fairlock
from tests.cli.conftest import TOOL
from tests.web.browser import chromium, open_page  # noqa: F401


def until(what: Callable[[], object], seconds: float = 60) -> float:
    """Wait for it and return how long that took. `seconds` is for what never happens, and not what it may take: on a
    busy machine a step may take a hundred times longer than alone."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < seconds, "it did not happen in time"
        time.sleep(0.02)
    return time.monotonic() - began


HOLDER = """
import sys, time, fairlock
locks = fairlock.connect(sys.argv[1], owner=sys.argv[2])
for name in sys.argv[4:]:
    locks.lock(name, lease=float(sys.argv[3]), note="as a test").acquire()
    print(name, flush=True)
    sys.stdin.readline()
time.sleep(60)
"""


class UI:
    """A running `fairlock ui` and the processes that use its store."""

    def __init__(self, folder: Path, *options: str, url: str = "") -> None:
        self.store = url or f"sqlite:///{folder}/locks.db"
        env = {key: value for key, value in os.environ.items() if not key.startswith("FAIRLOCK_")}
        self.env = {**env, "HOME": str(folder)}
        self.started: list[subprocess.Popen[str]] = []
        self.process = self.start(*TOOL, "-u", self.store, "ui", "--port", "0", "--json", *options)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr and self.process.stderr.read()
        self.told = json.loads(line)
        self.url: str = self.told["url"]
        self.token: str = self.told["token"]
        self.base, _, _ = self.url.partition("#")
        self.netloc = self.base.split("/")[2]
        self.locks = fairlock.connect(self.store, owner="the-test")

    def start(self, *command: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        it = subprocess.Popen(command, env=self.env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self.started.append(it)
        return it

    def holder(self, owner: str, *names: str, lease: float = 30, wait: bool = True) -> subprocess.Popen[str]:
        """Start another process that acquires the first name, and each further one when it gets a line of text. `wait`
        until it holds the first."""
        it = self.start(sys.executable, "-c", HOLDER, self.store, owner, str(lease), *names)
        assert it.stdout is not None
        if wait:
            assert it.stdout.readline() == f"{names[0]}\n"
        return it

    def ask(self, path: str, method: str = "GET", body: object = None, **headers: str | None) -> Reply:
        """Send one request. Headers replace ours; None leaves one out. Of a stream only the head is read."""
        connection, reply = self._send(path, method, body, headers)
        try:
            streams = reply.headers.get("Content-Type", "").startswith("text/event-stream")
            return Reply(reply.status, reply.headers, b"" if streams else reply.read())
        finally:
            reply.close()
            connection.close()

    def _send(
        self, path: str, method: str, body: object, headers: dict[str, str | None]
    ) -> tuple[HTTPConnection, HTTPResponse]:
        sent: dict[str, str | None] = {"Host": self.netloc, "Authorization": f"Bearer {self.token}"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        connection = HTTPConnection(self.netloc, timeout=10)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            if value is not None:
                connection.putheader(name, value)
        if data is not None:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        return connection, connection.getresponse()

    def post(self, body: object, path: str = "/api/evict", **headers: str | None) -> Reply:
        """Send an eviction, or a request to release, as the page does, with headers that differ."""
        hello, _ = next(messages(*self._send("/api/stream", "GET", None, {})))
        ours: dict[str, str | None] = {
            "Origin": f"http://{self.netloc}", "Content_Type": "application/json", "X_Fairlock_CSRF": hello["csrf"],
        }  # fmt: skip
        return self.ask(path, "POST", body, **{**ours, **headers})

    def stream(self, last_id: str | None = None) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield the messages of a stream after the hello, each with its id."""
        found = messages(*self._send("/api/stream", "GET", None, {"Last-Event-ID": last_id}))
        next(found)
        return found

    def resource(self, name: str) -> fairlock.Resource | None:
        return next((one for one in self.locks.snapshot(name).resources if one.name == name), None)

    def holders(self, name: str) -> list[fairlock.Holder]:
        found = self.resource(name)
        return list(found.holders) if found else []

    def end(self) -> None:
        self.locks.close()
        for it in self.started:
            it.kill()
            it.wait()
            for end in (it.stdin, it.stdout, it.stderr):
                if end is not None:
                    end.close()


class Reply(NamedTuple):
    status: int
    headers: Message
    body: bytes


def messages(connection: HTTPConnection, reply: HTTPResponse) -> Iterator[tuple[dict[str, Any], str]]:
    """Read server-sent events: the JSON of each, and its id."""
    assert reply.status == 200, reply.read()
    number = ""
    try:
        for line in reply:
            if line.startswith(b"id: "):
                number = line[4:].strip().decode()
            if line.startswith(b"data: "):
                yield json.loads(line[6:]), number
    finally:
        reply.close()
        connection.close()


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UI]:
    """A page that may evict, shared by the tests of a file: each uses names of its own."""
    folder = tmp_path_factory.mktemp("ui")
    it = UI(folder, "--admin", "--metrics-token", "for-prometheus")
    yield it
    it.end()


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UI]:
    it = UI(tmp_path_factory.mktemp("read_only"))
    yield it
    it.end()
