"""Datagrams that somebody with rights to the file forges, as well as that can be done: with what stands in the row."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fairlock
from fairlock.engine.run_sync import run
from fairlock.rules.locks import Entry, LockState
from tests.sqlite.processes import until


class Waiter:
    """A client of its own that waits for 'x' in a thread, and holds it until `go` is set."""

    def __init__(self, url: str) -> None:
        self.locks = fairlock.connect(url)
        self.lease: Any = None
        self.evicted = False
        self.go = threading.Event()
        self.thread = threading.Thread(target=self._wait, daemon=True)
        self.thread.start()

    def _wait(self) -> None:
        try:
            with self.locks.lock("x") as lease:
                self.lease = lease
                self.go.wait(30)
        except fairlock.LeaseLost:
            self.evicted = True

    def end(self) -> None:
        self.go.set()
        self.thread.join(20)
        self.locks.close()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/locks.db"


@pytest.fixture
def holder(url: str) -> Iterator[fairlock.Locks]:
    with fairlock.connect(url) as locks:
        yield locks


def record(locks: fairlock.Locks) -> LockState:
    return run(locks._session.backend.look("x"))[0]


def standing(locks: fairlock.Locks) -> Entry:
    until(lambda: record(locks).queue)
    return record(locks).queue[0]


def forge(waiter: Waiter, *texts: str) -> None:
    listeners = waiter.locks._session.backend.store._listeners  # type: ignore[attr-defined]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as forger:
        for text in texts:
            try:
                forger.sendto(text.encode(), socket.MSG_DONTWAIT, listeners._prefix + listeners.name)
            except BlockingIOError:
                time.sleep(0.001)  # its queue holds about ten


def test_right_ticket_and_place_with_any_fence_grant_nothing(url: str, holder: fairlock.Locks) -> None:
    with holder.lock("x") as lease:
        waiter = Waiter(url)
        it = standing(holder)
        for _ in range(20):
            fences = (lease.fence, lease.fence + 1, lease.fence + 10**9, 2**62)
            forge(waiter, *[f"{it.ticket} {it.place} {fence}" for fence in fences])
            time.sleep(0.01)
        assert waiter.lease is None
        assert [e.ticket for e in record(holder).holders] == [lease.ticket]
    until(lambda: waiter.lease)
    assert waiter.lease.fence == record(holder).holders[0].fence < 2**60
    waiter.end()


def test_a_greater_fence_beside_the_real_one_does_not_count(url: str, holder: fairlock.Locks) -> None:
    for _ in range(5):
        lease = holder.lock("x").acquire()
        assert lease is not None
        waiter = Waiter(url)
        it = standing(holder)
        lies = [f"{it.ticket} {it.place} {lease.fence + 10**9}"] * 3
        forge(waiter, *lies)
        lease.release()
        forge(waiter, *lies)
        until(lambda: waiter.lease)  # noqa: B023
        assert waiter.lease.fence == record(holder).holders[0].fence < lease.fence + 10**9
        waiter.end()


def test_a_grant_that_is_sent_again_grants_nothing(
    url: str, holder: fairlock.Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was evicted meanwhile, and the old datagram names a grant that was true once."""
    sent: list[str] = []
    listeners = holder._session.backend.store._listeners  # type: ignore[attr-defined]
    monkeypatch.setattr(listeners, "send", lambda listener, text: sent.append(text))  # it arrives only by replay
    monkeypatch.setattr("fairlock.stores.sqlite.wait_for_wakeup.LOOK", 60.0)
    lease = holder.lock("x").acquire()
    assert lease is not None
    waiter = Waiter(url)
    it = standing(holder)
    lease.release()
    (grant,) = [text for text in sent if text.startswith(it.ticket)]
    holder.evict("x", reason="test", at_once=True)
    second = holder.lock("x").acquire()
    assert second is not None
    for _ in range(5):
        forge(waiter, grant)
        time.sleep(0.01)
    until(lambda: waiter.evicted)
    assert waiter.lease is None
    assert second.held
    second.release()
    waiter.end()
