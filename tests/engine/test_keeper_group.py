"""The threads that several clients share: none of them waits for another one's slow work."""

import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

import fairlock
from fairlock.engine import keeper_threads
from fairlock.engine.keeper_threads import KeeperGroup
from fairlock.engine.renewal import Keeper
from fairlock.engine.session import Session
from fairlock.stores.memory import Hub, MemoryBackend
from fairlock.sync.runtime import ThreadRuntime
from tests.engine.ctrl_c import CtrlC
from tests.servers.server import until


class Shared(MemoryBackend):
    def __init__(self, hub: Hub, runtime: ThreadRuntime, namespace: str) -> None:
        super().__init__(hub, runtime, namespace)
        self.keeper_key = "all of these tests"


def client(on_event: Any = None) -> fairlock.Locks:
    runtime = ThreadRuntime()
    return fairlock.Locks(Shared(Hub(), runtime, ""), runtime, owner="me", lease=0.6, on_event=on_event)


of_other_tests: set[threading.Thread] = set()  # theirs are in other groups


def threads() -> int:
    return sum(t.name == "fairlock-keeper" and t not in of_other_tests for t in threading.enumerate())


@pytest.fixture
def clients() -> Iterator[list[fairlock.Locks]]:
    of_other_tests.clear()
    of_other_tests.update(threading.enumerate())
    made = [client() for _ in range(20)]
    yield made
    for one in made:
        one.close()
    until(lambda: not threads(), "they end with the last client")


def test_two_threads_renew_the_leases_of_all(clients: list[fairlock.Locks]) -> None:
    leases = [each.lock("x").acquire() for each in clients]
    time.sleep(1.5)
    assert threads() == 2
    for lease in leases:
        assert lease is not None
        lease.ensure_held()


def test_one_that_hangs_costs_the_others_no_lease(clients: list[fairlock.Locks]) -> None:
    hang, over = clients[3]._session.backend, threading.Event()

    async def tidy() -> None:
        over.wait(20)

    leases = [each.lock("x").acquire() for each in clients]
    hang.tidy = tidy  # type: ignore[method-assign]
    time.sleep(2)
    lost = [number for number, lease in enumerate(leases) if lease is None or lease.lost]
    over.set()
    assert set(lost) <= {3}
    assert threads() <= 3 + 1


def test_an_error_of_one_ends_only_its_own(clients: list[fairlock.Locks], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    async def tidy() -> None:
        raise SystemExit

    leases = [each.lock("x").acquire() for each in clients]
    clients[3]._session.backend.tidy = tidy  # type: ignore[method-assign]
    time.sleep(1.5)
    del clients[3]._session.backend.tidy
    assert {number for number, lease in enumerate(leases) if lease is None or lease.lost} <= {3}
    again = clients[3].lock("y").acquire()
    assert again is not None
    time.sleep(1)
    again.ensure_held()  # the next acquire started it again


def test_no_more_threads_than_allowed(clients: list[fairlock.Locks], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper_threads, "LATE", 0.02)
    monkeypatch.setattr(keeper_threads, "MOST", 4)
    over = threading.Event()

    async def tidy() -> None:
        over.wait(20)

    for each in clients:
        each.lock("x").acquire()
        each._session.backend.tidy = tidy  # type: ignore[method-assign]
    time.sleep(1.5)
    most = threads()
    over.set()
    assert most == 4


def test_a_client_with_a_callback_has_a_thread_of_its_own(clients: list[fairlock.Locks]) -> None:
    with client(on_event=lambda event: None) as watched:
        watched.lock("x").acquire()
        clients[0].lock("x").acquire()
        assert threads() == 2
        assert watched._session.keepers is None


def test_a_wakeup_while_it_works_is_not_lost() -> None:
    """A client rings between the end of its work and the plan for the next one."""
    group = KeeperGroup(ThreadRuntime())
    session = Session(Shared(Hub(), ThreadRuntime(), ""), ThreadRuntime(), "me")
    session.keepers, session.keeper_event = group, group.event()
    rounds: list[float] = []

    class Work:
        def plan(self) -> float | None:
            if len(rounds) == 1:
                threading.Thread(target=session.keeper_event.set).start()
                time.sleep(0.05)  # it has called the leader, and this returns a time far away
            return None if len(rounds) > 1 else session.clock() + (30 if rounds else 0)

        async def work(self) -> None:
            rounds.append(session.clock())

        async def end(self) -> None:
            pass

        def fail(self) -> None:
            pass

    group.add(session, cast("Keeper", Work()))
    until(lambda: len(rounds) == 2, "it works once more", 5)


# Interrupted between making a coroutine and its first line, which does no harm.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.filterwarnings("ignore:Exception ignored in. <coroutine:pytest.PytestUnraisableExceptionWarning")
def test_a_ctrl_c_while_a_client_is_added_leaves_no_thread() -> None:
    of_other_tests.clear()
    of_other_tests.update(threading.enumerate())
    for nth in range(1, 2000):
        one = client()
        lease = CtrlC(nth, ("engine",)).run(one.lock("x").acquire)
        one.close()
        if lease is not None:
            break
    assert 20 < nth < 1999
    until(lambda: not threads(), "they end with the last client")
