"""Shared by the tests of the SQLite store: the runtime of a thread, one step of the rules, another process."""

import os
import select
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from fairlock.rules.locks import EMPTY, EXCLUSIVE, Acquire, Command, Release, Reply, apply, codec
from fairlock.stores.base import Row, RowSnapshot, Written
from fairlock.stores.sqlite import SqliteStore

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("it suspended")


class ThreadEvent:
    def __init__(self) -> None:
        self._event = threading.Event()
        self.set = self._event.set
        self.clear = self._event.clear

    async def wait(self, timeout: float | None) -> bool:
        return self._event.wait(timeout)


class ThreadRuntime:
    blocking = True
    clock = staticmethod(lambda: time.clock_gettime(time.CLOCK_BOOTTIME))

    def mutex(self) -> Any:
        return threading.Lock()

    def event(self) -> ThreadEvent:
        return ThreadEvent()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def call(self, fn: Callable[..., T], *args: Any) -> T:
        return fn(*args)

    async def readable(self, fds: Sequence[int], timeout: float | None) -> list[int]:
        poll = select.poll()
        for fd in fds:
            poll.register(fd, select.POLLIN)
        return [fd for fd, _ in poll.poll(None if timeout is None else timeout * 1000)]

    async def shield(self, work: Coroutine[Any, Any, T]) -> T:
        return await work

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        threading.Thread(target=run, args=(work,), name=name, daemon=True).start()

    def current(self) -> int:
        return threading.get_ident()


def store_at(path: Any, **options: Any) -> SqliteStore:
    return SqliteStore(str(path), ThreadRuntime(), **options)


def enter(ticket: str, listener: str, lease: float = 30, **more: Any) -> Acquire:
    owner = f"owner of {ticket}"
    return Acquire(ticket, EXCLUSIVE, EXCLUSIVE, int(lease * 1e6), listener=listener, owner=owner, **more)


def step(store: SqliteStore, key: str, command: Command) -> Reply:
    """One step as the engine makes it: read, apply, write, again on conflict."""
    for _ in range(1000):
        seen = run(store.read(key))
        record = codec.decode(seen.row.body) if seen.row else EMPTY
        everyone = [*record.holders, *record.queue]
        _, gone = store.liveness({e.listener for e in everyone if e.listener})
        dead = {e.ticket for e in everyone if e.listener in gone}
        after, reply, woken = apply(record, command, seen.now, (), dead)
        row = Row(key, after.fence, codec.owners(after), codec.encode(after))
        if isinstance(run(store.write(row, seen.version, seen.now, woken)), Written):
            return reply
    raise AssertionError("conflicts without end")


def leave(ticket: str) -> Release:
    return Release(ticket)


def put(store: SqliteStore, key: str, body: str = "{}", score: int = 1) -> Written:
    """Write a row whatever is there."""
    seen = run(store.read(key))
    done = run(store.write(Row(key, score, "", body), seen.version, seen.now, ()))
    assert isinstance(done, Written)
    return done


def get(store: SqliteStore, key: str) -> RowSnapshot:
    return run(store.read(key))


def stop(pid: int) -> None:
    """Stop a child of ours, and wait until it is."""
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)


PREAMBLE = "from tests.sqlite.processes import *\nimport os, sys, time, signal, sqlite3\n"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def python(code: str, *args: Any, before: Sequence[str] = (), **more: Any) -> "subprocess.Popen[str]":
    """Another Python process that runs this text, with everything of this file at hand."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([ROOT, os.environ.get("PYTHONPATH", "")]))
    environment.update(more.pop("env", {}))
    return subprocess.Popen(
        [*before, sys.executable, "-c", PREAMBLE + textwrap.dedent(code), *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        **more,
    )


def dead_socket(path: Path) -> None:
    """A socket's file without the socket. The directory may be deeper than a socket's path can be."""
    folder = os.open(os.path.dirname(path), os.O_PATH)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
    os.close(folder)


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.001)
