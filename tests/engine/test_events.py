"""The stream of events: each hold has one last event, with its seconds and its outcome, and a wait has its end."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest

import fairlock
from fairlock import Event, LeaseLost, LockTimeout, StoreError, aio
from fairlock.engine.events import Event as EngineEvent
from fairlock.testing.faults import Faults, FaultyBackend


def fresh_url() -> str:
    return f"memory://events-{time.monotonic_ns()}"


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def balance(told: list[Event]) -> tuple[int, int]:
    """Return the holds and the waiters that a counter of this stream shows at its end."""
    kinds = Counter(event.kind for event in told)
    ends = sum(kinds[kind] for kind in ("released", "lost", "evicted", "detached"))
    left = sum(event.place > 0 for event in told if event.kind in ("acquired", "given_up"))
    return kinds["acquired"] + kinds["attached"] - ends, kinds["waiting"] - left


def test_a_hold_without_contention() -> None:
    told: list[Event] = []
    with fairlock.connect("memory://", owner="me", on_event=told.append) as locks, locks.lock("x") as lease:
        time.sleep(0.05)
    acquired, released = told
    assert (acquired.kind, acquired.outcome, acquired.contended, acquired.place) == ("acquired", "acquired", False, 0)
    assert (released.kind, released.outcome) == ("released", "released")
    assert {(event.name, event.owner, event.fence) for event in told} == {("x", "me", lease.fence)}
    assert 0 <= acquired.seconds < 0.04
    assert 0.05 <= released.seconds < 1


def test_a_wait_and_its_seconds() -> None:
    told: list[Event] = []
    url = fresh_url()
    with fairlock.connect(url) as other, fairlock.connect(url, on_event=told.append) as locks:
        held = other.lock("x").acquire()
        threading.Timer(0.1, held.release).start()
        with locks.lock("x"):
            pass
    waiting, acquired, released = told
    assert (waiting.kind, waiting.place, waiting.contended) == ("waiting", 1, True)
    assert (acquired.kind, acquired.place, acquired.contended, acquired.outcome) == ("acquired", 1, True, "acquired")
    assert 0.08 <= acquired.seconds < 2
    assert released.seconds < 0.08


def test_a_timeout_is_an_event() -> None:
    told: list[Event] = []
    url = fresh_url()
    with fairlock.connect(url) as other, fairlock.connect(url, owner="me", on_event=told.append) as locks:
        with other.lock("x"), pytest.raises(LockTimeout), locks.lock("x").hold(timeout=0.1):
            pass
    waiting, given_up = told
    assert waiting.kind == "waiting"
    assert (given_up.kind, given_up.outcome, given_up.contended, given_up.place) == ("given_up", "timeout", True, 1)
    assert (given_up.owner, given_up.fence) == ("me", 0)
    assert 0.1 <= given_up.seconds < 2


def test_a_try_that_is_refused_is_an_event_without_a_place() -> None:
    told: list[Event] = []
    url = fresh_url()
    with fairlock.connect(url) as other, fairlock.connect(url, on_event=told.append) as locks, other.lock("x"):
        assert locks.lock("x").acquire(False) is None
    (given_up,) = told
    assert (given_up.kind, given_up.outcome, given_up.contended, given_up.place) == ("given_up", "timeout", True, 0)


def test_a_wait_that_another_thread_cancels() -> None:
    told: list[Event] = []
    url = fresh_url()
    with fairlock.connect(url) as other, fairlock.connect(url, on_event=told.append) as locks, other.lock("x"):
        cancel = threading.Event()
        threading.Timer(0.1, cancel.set).start()
        assert locks.lock("x").acquire(cancel=cancel) is None
    assert [(event.kind, event.outcome) for event in told] == [("waiting", ""), ("given_up", "cancelled")]


def test_a_task_that_is_cancelled() -> None:
    told: list[Event] = []
    url = fresh_url()

    async def main() -> None:
        async with aio.connect(url) as other, aio.connect(url, on_event=told.append) as locks, other.lock("x"):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await locks.lock("x").acquire()

    asyncio.run(main())
    assert [(event.kind, event.outcome) for event in told] == [("waiting", ""), ("given_up", "cancelled")]
    assert told[-1].seconds >= 0.09


def test_a_store_that_is_down() -> None:
    told: list[Event] = []
    with fairlock.connect("memory://", on_event=told.append) as locks:
        locks.session.backend = FaultyBackend(locks.session.backend, Faults("down"), locks.session.runtime)
        with pytest.raises(StoreError):
            locks.lock("x").acquire()
    assert [(event.kind, event.outcome) for event in told if event.name] == [("given_up", "error")]


def test_a_loss_has_its_reason_and_its_seconds() -> None:
    told: list[Event] = []
    with fairlock.connect("memory://", on_event=told.append) as locks:
        lease = locks.lock("x", max_hold=0.1).acquire()
        time.sleep(0.15)
        assert lease.lost
        with pytest.raises(LeaseLost):
            lease.release()
        until(lambda: len(told) > 1)
    lost = told[-1]
    assert (lost.kind, lost.outcome, lost.reason) == ("lost", "lost", "max_hold")
    assert lost.seconds >= 0.1
    assert balance(told) == (0, 0)


def test_an_eviction() -> None:
    told: list[Event] = []
    url = fresh_url()
    with fairlock.connect(url) as operator, fairlock.connect(url, on_event=told.append) as locks:
        lease = locks.lock("x").acquire()
        operator.evict("x", reason="it hangs", at_once=True)
        until(lambda: len(told) > 1)
        assert lease.lost
    assert (told[-1].kind, told[-1].outcome, told[-1].reason) == ("evicted", "evicted", "evicted")


def test_a_renewal_has_its_seconds_and_its_margin() -> None:
    told: list[Event] = []
    with fairlock.connect("memory://", lease=10, on_event=told.append) as locks, locks.lock("x") as lease:
        lease.renew()
    renewed = next(event for event in told if event.kind == "renewed")
    assert 0 <= renewed.seconds < 1
    assert 7 < renewed.margin <= 9


def test_detached_and_attached() -> None:
    told: list[Event] = []
    with fairlock.connect("memory://", on_event=told.append) as locks:
        ticket = locks.lock("x").acquire().detach(5)
        assert balance(told) == (0, 0)
        lease = locks.attach("x", ticket)
        assert balance(told) == (1, 0)
        lease.release()
    assert [event.kind for event in told] == ["acquired", "detached", "attached", "released"]
    assert balance(told) == (0, 0)


def test_a_reentrant_hold_counts_once() -> None:
    told: list[Event] = []
    with fairlock.connect("memory://", on_event=told.append) as locks:
        lock = locks.lock("x", reentrant=True)
        with lock, lock, lock:
            pass
    assert [event.kind for event in told] == ["acquired", "released"]


def crowd_of_threads(work: Callable[[], None], size: int = 8) -> None:
    threads = [threading.Thread(target=work) for _ in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


@pytest.mark.parametrize("kind", ["lock", "readers"])
def test_locks_that_are_passed_on_between_threads_balance(kind: str) -> None:
    told: list[Event] = []
    url = fresh_url()
    with fairlock.connect(url, on_event=told.append) as locks, fairlock.connect(url, on_event=told.append) as others:

        def work() -> None:
            for number in range(30):
                client = others if number % 5 == 0 else locks
                lock = client.lock("x") if kind == "lock" or number % 3 == 0 else client.rwlock("x").read()
                with lock:
                    pass
                tried = locks.lock("x").acquire(False) if number % 7 == 0 else locks.lock("x").acquire(timeout=0.001)
                if tried is not None:
                    tried.release()

        held = locks.lock("x").acquire()
        threading.Timer(0.05, held.release).start()
        crowd_of_threads(work)
    acquired = [event for event in told if event.kind == "acquired"]
    assert any(event.contended for event in acquired)
    assert balance(told) == (0, 0)


def test_tasks_balance() -> None:
    told: list[Event] = []
    url = fresh_url()

    async def main() -> None:
        async with aio.connect(url, on_event=told.append) as locks, aio.connect(url, on_event=told.append) as others:

            async def work(number: int) -> None:
                for turn in range(20):
                    client = others if (number + turn) % 3 == 0 else locks
                    async with client.lock("x"):
                        await asyncio.sleep(0)

            await asyncio.gather(*(work(number) for number in range(10)))

    asyncio.run(main())
    assert len([event for event in told if event.kind == "acquired"]) == 200
    assert balance(told) == (0, 0)


@pytest.mark.parametrize("face", ["threads", "tasks"])
def test_an_item_of_a_pool_has_the_same_events(face: str) -> None:
    told: list[Event] = []

    async def tasks() -> None:
        async with aio.connect("memory://", on_event=told.append) as locks:
            pool = locks.pool("jobs")
            await pool.add("a")
            async with pool.hold():
                assert await pool.acquire(timeout=0.05) is None
                assert await pool.acquire(False) is None

    if face == "tasks":
        asyncio.run(tasks())
    else:
        with fairlock.connect("memory://", on_event=told.append) as locks:
            pool = locks.pool("jobs")
            pool.add("a")
            with pool.hold():
                assert pool.acquire(timeout=0.05) is None
                assert pool.acquire(False) is None
    assert [(event.kind, event.outcome) for event in told] == [
        ("acquired", "acquired"), ("waiting", ""), ("given_up", "timeout"), ("given_up", "timeout"),
        ("released", "released"),
    ]  # fmt: skip
    assert {event.name for event in told} == {"jobs"}
    assert balance(told) == (0, 0)


def test_the_type_is_the_public_one() -> None:
    assert Event is EngineEvent is aio.Event
