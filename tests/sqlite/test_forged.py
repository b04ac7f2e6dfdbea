"""Datagrams that somebody with rights to the file forges, as well as that can be done: with what stands in the row."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.doorman import Entrant, Record
from holdfast.flow.run import run
from tests.sqlite.plumbing import until


class Waiter:
    """A client of its own that waits for 'x' in a thread, and keeps it until it is told to go."""

    def __init__(self, url: str) -> None:
        self.locks = holdfast.connect(url)
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
        except holdfast.LeaseLost:
            self.evicted = True

    def end(self) -> None:
        self.go.set()
        self.thread.join(20)
        self.locks.close()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/locks.db"


@pytest.fixture
def holder(url: str) -> Iterator[holdfast.Locks]:
    with holdfast.connect(url) as locks:
        yield locks


def record(locks: holdfast.Locks) -> Record:
    return run(locks._desk.backend.look("x"))[0]


def standing(locks: holdfast.Locks) -> Entrant:
    until(lambda: record(locks).line)
    return record(locks).line[0]


def forge(waiter: Waiter, *texts: str) -> None:
    ears = waiter.locks._desk.backend.store._ears  # type: ignore[attr-defined]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as forger:
        for text in texts:
            try:
                forger.sendto(text.encode(), socket.MSG_DONTWAIT, ears._prefix + ears.name)
            except BlockingIOError:
                time.sleep(0.001)  # its queue holds about ten


def test_right_ticket_and_place_with_any_fence_let_nobody_in(url: str, holder: holdfast.Locks) -> None:
    with holder.lock("x") as lease:
        waiter = Waiter(url)
        it = standing(holder)
        for _ in range(20):
            fences = (lease.fence, lease.fence + 1, lease.fence + 10**9, 2**62)
            forge(waiter, *[f"{it.ticket} {it.place} {fence}" for fence in fences])
            time.sleep(0.01)
        assert waiter.lease is None
        assert [e.ticket for e in record(holder).inside] == [lease.ticket]
    until(lambda: waiter.lease)
    assert waiter.lease.fence == record(holder).inside[0].fence < 2**60
    waiter.end()


def test_a_greater_fence_beside_the_real_one_does_not_count(url: str, holder: holdfast.Locks) -> None:
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
        assert waiter.lease.fence == record(holder).inside[0].fence < lease.fence + 10**9
        waiter.end()


def test_a_grant_that_is_sent_once_more_lets_nobody_in(
    url: str, holder: holdfast.Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was evicted meanwhile, and the old datagram names a grant that was true once."""
    sent: list[str] = []
    ears = holder._desk.backend.store._ears  # type: ignore[attr-defined]
    monkeypatch.setattr(ears, "send", lambda ear, text: sent.append(text))  # and so it arrives only when replayed
    monkeypatch.setattr("holdfast.backends.sqlite.waiting.LOOK", 60.0)
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
