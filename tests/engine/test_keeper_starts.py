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

import fairlock
from fairlock import aio
from fairlock.recipes import RemoteLocks
from fairlock.sync.runtime import ThreadRuntime


class Limit:
    """Threads whose name begins so cannot be started, as often as this says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, times: int) -> None:
        self.times = times
        start = ThreadRuntime.spawn

        def spawn(runtime: ThreadRuntime, work: Any, called: str) -> None:
            if called.startswith(name) and self.times:
                self.times -= 1
                raise RuntimeError("can't start new thread")
            start(runtime, work, called)

        monkeypatch.setattr(ThreadRuntime, "spawn", spawn)


def test_an_acquire_whose_keeper_cannot_start_holds_nothing_and_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    Limit(monkeypatch, "fairlock-keeper", 100)
    with fairlock.connect("memory://unkept", lease=1) as locks:
        with pytest.raises(fairlock.LockError, match="cannot be started: can't start new thread"):
            locks.lock("x").acquire()
        with pytest.raises(fairlock.LockError, match="cannot be started"), locks.lock("y"):
            raise AssertionError("the body must not run")
        assert not [r for r in locks.snapshot().resources if r.holders or r.queue]


def test_after_one_failed_start_leases_are_renewed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    Limit(monkeypatch, "fairlock-keeper", 1)
    with fairlock.connect("memory://", lease=1.5) as locks:
        with pytest.raises(fairlock.LockError):
            locks.lock("x").acquire()
        lease = locks.lock("x").acquire()
        assert lease is not None
        time.sleep(2.2)
        lease.ensure_held()


def test_a_watch_that_cannot_start_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    Limit(monkeypatch, "fairlock-watch", 1)
    with fairlock.connect("memory://") as locks:
        with pytest.raises(fairlock.LockError, match="cannot be started"):
            locks.lock("x", on_lost=print).acquire()
        lease = locks.lock("x", on_lost=print).acquire(timeout=1)
        assert lease


def test_an_on_event_that_exits_ends_neither_the_keeper_nor_the_acquire() -> None:
    told: list[str] = []

    def exits(event: fairlock.Event) -> None:
        told.append(event.kind)
        sys.exit(3)

    with fairlock.connect("memory://", lease=1.5, on_event=exits) as locks:
        lease = locks.lock("x").acquire()
        assert lease is not None
        limit = time.monotonic() + 20
        while told.count("renewed") < 2:
            assert time.monotonic() < limit
            time.sleep(0.01)
        lease.ensure_held()
    assert not [t for t in threading.enumerate() if t.name.startswith("fairlock-keeper") and not t.daemon]


def test_an_on_lost_that_exits_does_no_harm() -> None:
    called = threading.Event()

    def exits(lease: fairlock.Lease) -> None:
        called.set()
        sys.exit(3)

    with fairlock.connect("memory://") as locks:
        lease = locks.lock("x", on_lost=exits).acquire()
        assert lease is not None
        locks.evict("x", reason="a test", at_once=True)
        assert called.wait(10)
        assert locks.lock("x").acquire(timeout=5)


def test_a_writer_of_remote_locks_without_a_thread_gets_an_error_and_may_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with fairlock.connect("memory://") as locks:
        remote = RemoteLocks(locks)
        assert remote.acquire_readers_lock("order", 1, "r")
        Limit(monkeypatch, "fairlock-writers", 1)
        with pytest.raises(fairlock.LockError, match="cannot be started: can't start new thread"):
            remote.acquire_writer_lock("order", 1, "w")
        assert not locks.snapshot("order*").resources[0].queue
        assert remote.release_readers_lock("order", 1, "r")
        assert remote.acquire_writer_lock("order", 1, "w")


def test_a_worker_thread_of_a_loop_that_cannot_be_started_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    async def main() -> None:
        async with aio.connect("memory://") as locks:
            call = locks._session.runtime.call
            with monkeypatch.context() as limit:
                limit.setattr(ThreadPoolExecutor, "submit", limited)
                with pytest.raises(fairlock.LockError, match="cannot be started: can't start new thread"):
                    await call(int, "5")
            assert await call(int, "5") == 5

    asyncio.run(main())


SIGNAL_WAITER = """
import os, signal, time
from fairlock.cli import signal_handling, signals_while_waiting as waiting
start, failed = waiting.start_new_thread, []

def limited(*work):
    if len(failed) < 3:
        failed.append(work)
        raise RuntimeError("can't start new thread")
    return start(*work)

waiting.start_new_thread = limited
signal_handling.block()
with waiting.SignalWaiter(60, lambda: 60.0, lambda: None) as door:
    try:
        print("waits", flush=True)
        time.sleep(30)
    except waiting.Called:
        print("called off by", door.signum, "after", len(failed))
"""


def test_a_run_that_waits_and_cannot_start_its_thread_tries_again() -> None:
    """The thread that receives the signals meanwhile: the alarm that starts it comes again."""
    command = [sys.executable, "-c", SIGNAL_WAITER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as waits:
        assert waits.stdout is not None
        assert waits.stdout.readline() == "waits\n"
        waits.send_signal(signal.SIGTERM)
        assert waits.communicate(timeout=20)[0] == f"called off by {int(signal.SIGTERM)} after 3\n"
