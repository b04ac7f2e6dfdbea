"""A keeper that cannot start, or is attacked by a callback: no lease may go unrenewed in silence."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import holdfast
from holdfast import aio
from holdfast.client.colour import ThreadColour
from holdfast.recipes import RemoteLocks


class Limit:
    """Threads whose name begins so cannot be started, as often as this says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, times: int) -> None:
        self.times = times
        start = ThreadColour.spawn

        def spawn(colour: ThreadColour, work: Any, called: str) -> None:
            if called.startswith(name) and self.times:
                self.times -= 1
                raise RuntimeError("can't start new thread")
            start(colour, work, called)

        monkeypatch.setattr(ThreadColour, "spawn", spawn)


def test_an_acquire_whose_keeper_cannot_start_holds_nothing_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    Limit(monkeypatch, "holdfast-keeper", 100)
    with holdfast.connect("memory://unkept", lease=1) as locks:
        with pytest.raises(holdfast.LockError, match="cannot be started: can't start new thread"):
            locks.lock("x").acquire()
        with pytest.raises(holdfast.LockError, match="cannot be started"), locks.lock("y"):
            raise AssertionError("the body must not run")
        assert not [r for r in locks.snapshot().resources if r.inside or r.line]


def test_after_one_failed_start_leases_are_renewed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    Limit(monkeypatch, "holdfast-keeper", 1)
    with holdfast.connect("memory://", lease=0.5) as locks:
        with pytest.raises(holdfast.LockError):
            locks.lock("x").acquire()
        lease = locks.lock("x").acquire()
        assert lease is not None
        time.sleep(1.2)
        lease.ensure_held()


def test_a_watch_that_cannot_start_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    Limit(monkeypatch, "holdfast-watch", 1)
    with holdfast.connect("memory://") as locks:
        with pytest.raises(holdfast.LockError, match="cannot be started"):
            locks.lock("x", on_lost=print).acquire()
        lease = locks.lock("x", on_lost=print).acquire(timeout=1)
        assert lease


def test_an_on_event_that_exits_ends_neither_the_keeper_nor_the_acquire() -> None:
    told: list[str] = []

    def exits(event: holdfast.Event) -> None:
        told.append(event.kind)
        sys.exit(3)

    with holdfast.connect("memory://", lease=0.5, on_event=exits) as locks:
        lease = locks.lock("x").acquire()
        assert lease is not None
        time.sleep(1.2)
        lease.ensure_held()
        assert told.count("renewed") >= 2
    assert not [t for t in threading.enumerate() if t.name.startswith("holdfast-keeper") and not t.daemon]


def test_an_on_lost_that_exits_does_no_harm() -> None:
    called = threading.Event()

    def exits(lease: holdfast.Lease) -> None:
        called.set()
        sys.exit(3)

    with holdfast.connect("memory://") as locks:
        lease = locks.lock("x", on_lost=exits).acquire()
        assert lease is not None
        locks.evict("x", reason="a test", at_once=True)
        assert called.wait(10)
        assert locks.lock("x").acquire(timeout=5)


def test_a_writer_of_remote_locks_that_cannot_be_tended_is_told_and_may_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with holdfast.connect("memory://") as locks:
        remote = RemoteLocks(locks)
        assert remote.acquire_readers_lock("order", 1, "r")
        Limit(monkeypatch, "holdfast-writers", 1)
        with pytest.raises(holdfast.LockError, match="cannot be started: can't start new thread"):
            remote.acquire_writer_lock("order", 1, "w")
        assert not locks.snapshot("order*").resources[0].line
        assert remote.release_readers_lock("order", 1, "r")
        assert remote.acquire_writer_lock("order", 1, "w")


def test_a_worker_thread_of_a_loop_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    async def main() -> None:
        async with aio.connect("memory://") as locks:
            call = locks._desk.colour.call
            with monkeypatch.context() as limit:
                limit.setattr(ThreadPoolExecutor, "submit", limited)
                with pytest.raises(holdfast.LockError, match="cannot be started: can't start new thread"):
                    await call(int, "5")
            assert await call(int, "5") == 5

    asyncio.run(main())


PORTER = """
import os, signal, time
from holdfast.cli import porter, signals
start, failed = porter.start_new_thread, []

def limited(*work):
    if len(failed) < 3:
        failed.append(work)
        raise RuntimeError("can't start new thread")
    return start(*work)

porter.start_new_thread = limited
signals.block()
with porter.Porter(60, lambda: 60.0, lambda halt: halt()) as door:
    try:
        print("waits", flush=True)
        time.sleep(30)
    except porter.Called:
        print("called off by", door.signum, "after", len(failed))
"""


def test_a_run_that_waits_and_cannot_start_its_thread_tries_again() -> None:
    """The thread that receives the signals meanwhile: the alarm that starts it comes again."""
    command = [sys.executable, "-c", PORTER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as waits:
        assert waits.stdout is not None
        assert waits.stdout.readline() == "waits\n"
        waits.send_signal(signal.SIGTERM)
        assert waits.communicate(timeout=20)[0] == f"called off by {int(signal.SIGTERM)} after 3\n"
