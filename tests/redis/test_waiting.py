"""Waiters when something happens to the server or to their listeners: they lose at most about a second, and no place
that the server still knows.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import fairlock
from fairlock import aio
from tests.servers.server import Server, until

LATE = 1.5  # seconds; about one, on a busy machine
FACES = ["threads", "tasks"]


class Waiter:
    """One client that acquires the lock, holds it for a moment, and records the events it gets."""

    def __init__(self, face: str, url: str, holders: "queue.Queue[Waiter]") -> None:
        self.events: list[str] = []
        self.since = self.fence = 0.0
        self._inside = holders
        self.go_on = threading.Event()
        work = self._thread if face == "threads" else lambda url: asyncio.run(self._task(url))
        self._thread_of = threading.Thread(target=work, args=[url])
        self._thread_of.start()

    def _told(self, event: fairlock.Event) -> None:
        self.events.append(event.kind)

    def _in(self, fence: int) -> None:
        self.since, self.fence = time.monotonic(), fence
        self._inside.put(self)

    def _thread(self, url: str) -> None:
        with fairlock.connect(url, lease=10, on_event=self._told) as locks, locks.lock("x", timeout=40) as lease:
            self._in(lease.fence)
            self.go_on.wait(40)

    async def _task(self, url: str) -> None:
        async with aio.connect(url, lease=10, on_event=self._told) as locks:
            async with locks.lock("x", timeout=40) as lease:
                self._in(lease.fence)
                await asyncio.to_thread(self.go_on.wait, 40)

    def join(self) -> None:
        self.go_on.set()
        self._thread_of.join(40)
        assert not self._thread_of.is_alive()


def queue_at(
    url: str, face: str, fault: Callable[[], object], settle: float = 0.0, in_order: bool = True, places: bool = True
) -> list[float]:
    """Three wait behind a holder; then the fault; then one after the other leaves. How late each next one was in.

    Not in order: a waiter that cannot be reached at its turn lets one pass and keeps its place. That is no place lost.
    Without places: the server was silent for longer than a waiter keeps its place, so all join the queue again.
    """
    holders: queue.Queue[Waiter] = queue.Queue()
    late: list[float] = []
    with fairlock.connect(url, lease=30) as locks:
        lease = locks.lock("x").acquire()
        assert lease
        waiters: list[Waiter] = []
        try:
            for number in range(1, 4):
                waiters.append(Waiter(face, url, holders))
                until(lambda n=number: len(locks.snapshot("x").resources[0].queue) == n, "the next one waits")  # type: ignore[misc]
            time.sleep(0.1)
            fault()
            time.sleep(settle)
            began = time.monotonic()
            lease.release()
            for number in range(3):
                one = holders.get(timeout=30)
                assert not in_order or one is waiters[number], "somebody was passed over"
                late.append(one.since - began)
                began = time.monotonic()
                one.go_on.set()
        finally:
            for one in waiters:
                one.go_on.set()
            for one in waiters:
                one.join()
        assert len({one.fence for one in waiters}) == 3
        assert not in_order or [one.fence for one in waiters] == sorted(one.fence for one in waiters)
        assert not any("lost" in one.events or (places and "place_lost" in one.events) for one in waiters)
        until(lambda: not any(r.holders or r.queue for r in locks.snapshot(idle=True).resources), "nothing is left", 5)
    return late


@pytest.mark.parametrize("face", FACES)
def test_without_any_fault_the_next_waiter_is_granted_at_once(redis_alone: Server, face: str) -> None:
    late = queue_at(redis_alone.url, face, lambda: None)
    assert max(late) < 0.5


@pytest.mark.parametrize("settle", [0.0, 1.5])
@pytest.mark.parametrize("face", FACES)
def test_a_killed_listener_costs_at_most_a_second(redis_alone: Server, face: str, settle: float) -> None:
    def listening() -> int:
        return str(redis_alone.call("CLIENT", "LIST", "TYPE", "pubsub")).count("addr=")

    def kill() -> None:
        before = listening()
        redis_alone.call("CLIENT", "KILL", "TYPE", "pubsub")
        if settle:
            until(lambda: listening() >= before, "all listen again")

    late = queue_at(redis_alone.url, face, kill, settle, in_order=settle > 1)
    assert max(late) < LATE


@pytest.mark.parametrize("face", FACES)
def test_all_connections_killed_cost_at_most_a_second(redis_alone: Server, face: str) -> None:
    def kill() -> None:
        for kind in ("pubsub", "normal"):
            redis_alone.call("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")

    late = queue_at(redis_alone.url, face, kill, in_order=False)
    assert max(late) < LATE


@pytest.mark.parametrize("face", FACES)
def test_a_paused_server_costs_its_pause_and_at_most_a_second(redis_alone: Server, face: str) -> None:
    pause = 1.5
    late = queue_at(redis_alone.url, face, lambda: redis_alone.call("CLIENT", "PAUSE", int(pause * 1000), "ALL"))
    assert max(late) < pause + LATE


@pytest.mark.parametrize("face", FACES)
def test_a_server_that_sleeps_costs_its_sleep_and_at_most_a_second(
    start_redis: Callable[..., Server], face: str
) -> None:
    server = start_redis("--enable-debug-command", "yes")
    with ThreadPoolExecutor() as threads:
        late = queue_at(server.url, face, lambda: threads.submit(server.call, "DEBUG", "SLEEP", "1.5"), 0.05)
    assert max(late) < 1.5 + LATE


@pytest.mark.parametrize("face", FACES)
def test_a_stopped_server_costs_its_stop_and_at_most_a_second(redis_alone: Server, face: str) -> None:
    def stop() -> None:
        redis_alone.stop()
        threading.Timer(1.5, redis_alone.cont).start()

    late = queue_at(redis_alone.url, face, stop)
    assert max(late) < 1.5 + LATE


@pytest.mark.parametrize("face", FACES)
def test_a_restart_costs_at_most_a_second_and_no_place(redis_durable: Server, face: str) -> None:
    def restart() -> None:
        redis_durable.kill()
        time.sleep(0.5)
        redis_durable.restart()

    late = queue_at(redis_durable.url, face, restart, in_order=False)
    assert max(late) < LATE


@pytest.mark.parametrize("face", FACES)
def test_a_server_that_forgets_its_scripts_gets_them_again(redis_alone: Server, face: str) -> None:
    late = queue_at(redis_alone.url, face, lambda: redis_alone.call("SCRIPT", "FLUSH"))
    assert max(late) < LATE


def test_a_restart_without_the_data_is_reported_to_holders_and_waiters(redis_alone: Server) -> None:
    """Nothing was kept, so the server knows neither: the holder loses its lease, and the waiter joins a new queue."""
    told: list[str] = []
    with fairlock.connect(redis_alone.url, lease=2, on_event=lambda event: told.append(event.kind)) as locks:
        lease = locks.lock("x").acquire()
        assert lease
        before = lease.fence
        redis_alone.kill()
        redis_alone.restart()
        until(lambda: lease.lost, "the holder is notified", 5)
        assert lease.reason == "store_reset"
        with locks.lock("x", timeout=5) as again:
            assert again.fence > before
    assert "lost" in told


@pytest.mark.parametrize("hold", [0.01, 0.3])  # a wait of a moment, and one that goes on as a coroutine
def test_a_wait_by_plain_calls_has_the_same_outcome(redis_alone: Server, hold: float) -> None:
    stories = []
    for plain in (True, False):
        events: list[fairlock.Event] = []
        with (
            fairlock.connect(redis_alone.url, namespace=str(plain)) as one,
            fairlock.connect(redis_alone.url, namespace=str(plain), on_event=events.append) as other,
        ):
            backend = other._session.backend
            assert backend.wait_briefly is not None
            if not plain:
                backend.wait_briefly = None
            with one.lock("x"):
                assert other.lock("x").acquire(timeout=0.05) is None  # from here on it listens
            fences = []
            for _ in range(3):
                first = one.lock("x").acquire()
                assert first
                leaving = threading.Thread(target=leave_after, args=(one, first, hold))
                leaving.start()
                with other.lock("x") as lease:
                    fences += [first.fence, lease.fence]
                    assert lease.held and other.snapshot("x").resources[0].holders[0].fence == lease.fence
                leaving.join()
        assert fences == sorted(set(fences))
        assert all(event.seconds >= hold for event in events if event.kind == "acquired")
        stories.append([(event.kind, event.outcome, event.place, event.contended) for event in events])
    assert stories[0] == stories[1]


def leave_after(locks: fairlock.Locks, lease: fairlock.Lease, seconds: float) -> None:
    until(lambda: len(locks.snapshot("x").resources[0].queue) == 1, "the next one waits")
    time.sleep(seconds)
    lease.release()


def test_a_wait_that_is_given_up_reports_all_of_its_time(redis_alone: Server) -> None:
    events: list[fairlock.Event] = []
    with fairlock.connect(redis_alone.url) as one, fairlock.connect(redis_alone.url, on_event=events.append) as other:
        with one.lock("x"):
            for timeout in (0.05, 0.6, 0.05):  # the first one has no listener yet
                assert other.lock("x").acquire(timeout=timeout) is None
    given_up = [event for event in events if event.kind == "given_up"]
    assert [event.place for event in given_up] == [1, 1, 1]
    assert [event.seconds >= timeout for event, timeout in zip(given_up, (0.05, 0.6, 0.05), strict=True)] == [True] * 3


def test_a_forged_wakeup_without_ticket_and_place_grants_nothing(redis_alone: Server) -> None:
    holders: queue.Queue[Waiter] = queue.Queue()
    with fairlock.connect(redis_alone.url) as locks:
        with locks.lock("x") as lease:
            waiter = Waiter("threads", redis_alone.url, holders)
            until(lambda: any(r.queue for r in locks.snapshot("x").resources), "it is in the queue")
            (listener,) = redis_alone.call("PUBSUB", "CHANNELS", "fairlock:listener:*")
            ticket = redis_alone.call("ZRANGE", "fairlock:{x}:queue", 1, 1)[0].removeprefix("t")
            fence = lease.fence + 1
            nobody = "0" * 32
            for text in (f"{nobody} 1 {fence}", f"{ticket} 0 {fence}", f"{ticket} 2 {fence}", f"{ticket} 1 0", "junk"):
                redis_alone.call("PUBLISH", listener, text)
                time.sleep(0.02)
            assert holders.empty()
        assert holders.get(timeout=10) is waiter
        waiter.go_on.set()
        waiter._thread_of.join(10)
