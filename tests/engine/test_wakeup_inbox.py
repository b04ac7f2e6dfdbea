"""The inbox of wake-ups, which every store uses, and the one waiter that reads for all."""

import threading
import time
from typing import Any

import pytest

from fairlock.engine.run_sync import run
from fairlock.stores.base import Pushed
from fairlock.stores.wakeups import CAPACITY, AwaitedReader, Waiter, WakeupInbox
from fairlock.sync.runtime import ThreadEvent, ThreadRuntime


@pytest.fixture
def inbox() -> WakeupInbox:
    return WakeupInbox(threading.Lock)


def wait(inbox: WakeupInbox, ticket: str, timeout: float = 0.0) -> Pushed | None:
    return run(inbox.wait(ticket, ThreadEvent(), timeout))


def test_a_wakeup_that_comes_before_the_wait_is_kept_and_counts_once(inbox: WakeupInbox) -> None:
    inbox.deliver(Pushed("a", 1, 7))
    assert wait(inbox, "b") is None
    assert wait(inbox, "a") == Pushed("a", 1, 7)
    assert wait(inbox, "a") is None


def test_the_same_grant_is_delivered_once(inbox: WakeupInbox) -> None:
    inbox.deliver(Pushed("a", 1, 7))
    assert wait(inbox, "a") == Pushed("a", 1, 7)
    inbox.deliver(Pushed("a", 1, 7))
    assert wait(inbox, "a") is None
    inbox.deliver(Pushed("a", 2, 8))
    assert wait(inbox, "a") == Pushed("a", 2, 8)


def test_the_last_wakeup_counts(inbox: WakeupInbox) -> None:
    """An eviction that follows a grant must not be hidden by it."""
    inbox.deliver(Pushed("a", 1, 7))
    inbox.deliver(Pushed("a"))
    assert inbox.take_wakeups(["a", "b"]) == ["a"]


def test_a_grant_that_nothing_waited_for_is_no_eviction(inbox: WakeupInbox) -> None:
    inbox.deliver(Pushed("a", 1, 7))
    assert not inbox.take_wakeups(["a"])
    assert wait(inbox, "a") is None, "and it is removed"


def test_it_is_bounded_and_drops_the_oldest(inbox: WakeupInbox) -> None:
    for number in range(CAPACITY + 5):
        inbox.deliver(Pushed(f"t{number}"))
    assert len(inbox._wakeups) == CAPACITY
    assert wait(inbox, "t4") is None
    assert wait(inbox, f"t{CAPACITY + 4}") is not None


def test_all_waiters_of_a_ticket_are_woken_and_all_waiters_at_all(inbox: WakeupInbox) -> None:
    waiters = [Waiter(ticket, ThreadEvent()) for ticket in "aab"]
    for waiter in waiters:
        assert not inbox.start_waiting(waiter)
    inbox.deliver(Pushed("a", 1, 7))
    assert [waiter.woken for waiter in waiters] == [True, True, False]
    assert inbox.take(waiters[0]) == Pushed("a", 1, 7)
    assert inbox.take(waiters[1]) == Pushed("a"), "it must ask the store"
    inbox.wake_all()
    assert inbox.take(waiters[2]) == Pushed("b")
    for waiter in waiters:
        inbox.stop_waiting(waiter)
    assert not inbox._waiters


class Pipe(AwaitedReader):
    """Reads from a list; counts how many read at the same time."""

    def __init__(self) -> None:
        super().__init__(ThreadRuntime())
        self.texts: list[Pushed] = []
        self.arrived = threading.Event()
        self.reading = 0
        self.most = 0
        self.fails = ""

    async def read(self, reader: Waiter, timeout: float) -> None:
        self.reading += 1
        self.most = max(self.most, self.reading)
        try:
            self.arrived.wait(min(timeout, 5))
            self.arrived.clear()
            if reader.ticket == self.fails:
                raise KeyboardInterrupt
            while self.texts:
                self.deliver(self.texts.pop())
        finally:
            self.reading -= 1

    async def wait_for(self, ticket: str, timeout: float) -> Pushed | None:
        end = time.monotonic() + timeout
        me = Waiter(ticket)
        try:
            self.start_waiting(me)
            while not me.woken and (left := end - time.monotonic()) > 0:
                await self.pause(me, left)
            return self.take(me)
        finally:
            self.stop_waiting(me)

    def interrupt_reader(self) -> None:
        self.arrived.set()

    def send(self, pushed: Pushed) -> None:
        self.texts.append(pushed)
        self.arrived.set()


def start(pipe: Pipe, ticket: str, results: dict[str, Any]) -> threading.Thread:
    def work() -> None:
        try:
            results[ticket] = run(pipe.wait_for(ticket, 20))
        except KeyboardInterrupt:
            results[ticket] = "interrupted"

    thread = threading.Thread(target=work)
    thread.start()
    end = time.monotonic() + 10
    while ticket not in pipe._waiters and time.monotonic() < end:
        time.sleep(0.001)
    return thread


def test_one_reads_for_all_and_the_next_one_after_it() -> None:
    pipe, results = Pipe(), {}
    threads = {ticket: start(pipe, ticket, results) for ticket in "abcd"}
    for ticket in "cadb":  # the first reader is a
        pipe.send(Pushed(ticket, 1, ord(ticket)))
        threads[ticket].join(10)
        assert results[ticket] == Pushed(ticket, 1, ord(ticket))
    assert pipe.most == 1
    assert pipe._reader is None and not pipe._waiters


def test_a_reader_that_is_interrupted_passes_the_reading_on() -> None:
    pipe, results = Pipe(), {}
    pipe.fails = "a"
    threads = {ticket: start(pipe, ticket, results) for ticket in "ab"}
    pipe.arrived.set()
    threads["a"].join(10)
    assert results == {"a": "interrupted"}
    pipe.send(Pushed("b", 1, 2))
    threads["b"].join(10)
    assert results["b"] == Pushed("b", 1, 2)


def test_the_reader_itself_is_woken_by_its_own_client() -> None:
    pipe, results = Pipe(), {}
    threads = [start(pipe, ticket, results) for ticket in "ab"]
    pipe.wake_here(["a"])
    threads[0].join(10)
    pipe.wake_all()
    threads[1].join(10)
    assert results == {"a": Pushed("a"), "b": Pushed("b")}
