"""The listener of threads: which waiter gets which wake-up, however these arrive. The server is one end of a socket.
"""

import socket
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fairlock.engine.run_sync import run
from fairlock.stores.base import Pushed
from fairlock.stores.redis.blocking_listener import ThreadListener
from fairlock.stores.redis.thread_connections import ThreadConnection, ThreadNode
from fairlock.sync.runtime import ThreadRuntime
from tests.servers.server import until

SUBSCRIBED = b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
LONG = 20.0
MOMENT = 0.02


class Subscription:
    """A listener, and the server's end of its subscription."""

    def __init__(self, waited_before: bool) -> None:
        ours, self.server = socket.socketpair()
        self.listener = ThreadListener(ThreadRuntime(), "c")
        connection = SimpleNamespace(_sock=ours, disconnect=ours.close)
        node: Any = ThreadNode(lambda: None, "the server")
        node.connect = lambda: ThreadConnection(connection, 5.0)
        self.server.sendall(SUBSCRIBED)
        run(self.listener.listen(node))
        self.results: dict[str, Any] = {}
        if waited_before:
            assert self.listener.wait_for("before", 0.001) is None

    def send(self, *texts: str) -> None:
        self.server.sendall(b"".join(message(text) for text in texts))

    def start(self, ticket: str) -> threading.Thread:
        def work() -> None:
            try:
                self.results[ticket] = self.listener.wait_for(ticket, LONG)
            except KeyboardInterrupt:
                self.results[ticket] = "interrupted"

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        until(lambda: ticket in self.listener._waiters or ticket in self.results, "it waits")
        return thread

    def result(self, thread: threading.Thread, ticket: str) -> Any:
        thread.join(LONG / 2)
        return self.results.get(ticket)


def message(text: str) -> bytes:
    return b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$%d\r\n%b\r\n" % (len(text), text.encode())


@pytest.fixture(params=[False, True], ids=["at first", "waited before"])
def it(request: pytest.FixtureRequest) -> Iterator[Subscription]:
    it = Subscription(request.param)
    yield it
    run(it.listener.close())
    it.server.close()
    assert it.listener._reader is None and not it.listener._waiters


def test_the_only_waiter_gets_its_wakeup(it: Subscription) -> None:
    for number in range(3):
        thread = it.start(f"t{number}")
        it.send(f"t{number} 4 7{number}")
        assert it.result(thread, f"t{number}") == Pushed(f"t{number}", 4, 70 + number)
    assert not it.listener._wakeups


def test_a_wakeup_that_comes_before_the_wait_is_read(it: Subscription) -> None:
    it.send("t 4 7")
    assert it.listener.wait_for("t", LONG) == Pushed("t", 4, 7)


def test_a_wakeup_in_pieces_is_the_same(it: Subscription) -> None:
    thread = it.start("t")
    text = message("t 4 7")
    for piece in (text[:5], text[5:-1], text[-1:]):
        it.server.sendall(piece)
        time.sleep(0.005)
    assert it.result(thread, "t") == Pushed("t", 4, 7)


def test_the_same_grant_counts_once(it: Subscription) -> None:
    it.send("t 4 7")
    assert it.listener.wait_for("t", LONG) == Pushed("t", 4, 7)
    it.send("t 4 7")
    assert it.listener.wait_for("t", 2 * MOMENT) is None
    it.send("t 5 8")
    assert it.listener.wait_for("t", LONG) == Pushed("t", 5, 8)


def test_an_eviction_that_follows_the_grant_counts(it: Subscription) -> None:
    it.send("t 4 7", "t 0 0")
    assert it.listener.wait_for("t", LONG) == Pushed("t")


def test_a_wakeup_for_another_one_is_kept_for_it(it: Subscription) -> None:
    it.send("other 4 7", "t 5 8", "third 6 9")
    assert it.listener.wait_for("t", LONG) == Pushed("t", 5, 8)
    it.send("fourth 7 10")
    assert it.listener.wait_for("t", 2 * MOMENT) is None
    found = [it.listener.wait_for(ticket, LONG) for ticket in ("other", "third", "fourth")]
    assert found == [Pushed("other", 4, 7), Pushed("third", 6, 9), Pushed("fourth", 7, 10)]


def test_one_that_comes_later_is_woken_by_the_first_and_then_reads_itself(it: Subscription) -> None:
    threads = {ticket: it.start(ticket) for ticket in "abc"}
    for number, ticket in enumerate("bac"):
        it.send(f"{ticket} 1 {number + 1}")
        assert it.result(threads[ticket], ticket) == Pushed(ticket, 1, number + 1)


def test_a_wait_is_ended_by_its_own_client_within_a_moment(it: Subscription) -> None:
    thread = it.start("t")
    began = time.monotonic()
    it.listener.wake_here(["t"])
    assert it.result(thread, "t") == Pushed("t")
    assert time.monotonic() - began < LONG / 4


def test_a_short_wait_is_not_longer(it: Subscription) -> None:
    began = time.monotonic()
    assert it.listener.wait_for("t", 0.0) is None
    assert it.listener.wait_for("t", 2 * MOMENT) is None
    assert 2 * MOMENT <= time.monotonic() - began < LONG / 4


def test_a_subscription_that_is_closed_wakes_the_waiter(it: Subscription) -> None:
    thread = it.start("t")
    it.server.close()
    assert it.result(thread, "t") == Pushed("t")
    assert it.listener.breaks == 1 and not it.listener.connections


def test_a_ctrl_c_leaves_no_reader_behind(it: Subscription, monkeypatch: pytest.MonkeyPatch) -> None:
    [connection] = it.listener.connections.values()
    recv = connection.recv

    def interrupted(size: int) -> bytes:
        recv(size)
        raise KeyboardInterrupt

    monkeypatch.setattr(connection, "recv", interrupted)
    thread = it.start("a")
    other = it.start("b")
    it.send("a 1 1")
    assert it.result(thread, "a") == "interrupted"
    monkeypatch.setattr(connection, "recv", recv)
    it.send("b 1 2")
    assert it.result(other, "b") == Pushed("b", 1, 2)
