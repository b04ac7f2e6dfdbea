"""RemoteLocks on every kind of store: what the usual description promises, and what was wrong with it and is mended.

For threads, and on some of the stores for tasks, too: those are played by a loop of their own, so that a test sees no
difference.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import fairlock
import fairlock.aio
from fairlock.engine.run_sync import run
from fairlock.recipes import RemoteLocks, aio, locks_by_type_and_number_base
from fairlock.rules.locks import Release
from tests.servers.server import until

STORES = ["memory", "sqlite", "redis_alone", "postgresql", "mariadb", "cassandra", "fake_nosql"]
FOR_TASKS = ["memory", "redis_alone", "postgresql", "mariadb"]
Make = Callable[..., RemoteLocks]


class Loop:
    """A loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def end(self) -> None:
        async def cancel() -> None:  # as asyncio.run does
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

        self.run(cancel())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Dressed:
    """RemoteLocks for tasks, with the interface of the one for threads."""

    def __init__(self, loop: Loop, remote: aio.RemoteLocks) -> None:
        self._loop = loop
        self._remote = remote

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._remote, name)
        if not asyncio.iscoroutinefunction(value):
            return value
        return lambda *args, **kwargs: self._loop.run(value(*args, **kwargs))


def say(remote: Any, name: str, command: Any) -> None:
    work = remote._locks._session.call(name, command)
    remote._loop.run(work) if isinstance(remote, Dressed) else run(work)


RUNTIMES = [(store, "threads") for store in STORES] + [(store, "tasks") for store in FOR_TASKS]


@pytest.fixture(params=RUNTIMES, ids="-".join)
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Each call is one more process that knows the store; to Cassandra by one session, for to connect takes long."""
    store, runtime = request.param
    more: dict[str, Any] = {}
    url: Any
    if store == "memory":
        url = f"memory://{tmp_path.name}"
    elif store == "sqlite":
        url = f"sqlite:///{tmp_path}/locks.db"
    elif store == "fake_nosql":
        url = request.getfixturevalue(store).url()
    elif store == "cassandra":
        url, more = request.getfixturevalue(store).session(), {"keyspace": "fairlock"}
    else:
        url = request.getfixturevalue(store).url
    clients: list[Any] = []
    loop = Loop() if runtime == "tasks" else None

    async def connect(**options: Any) -> fairlock.aio.Locks:
        return fairlock.aio.connect(url, **options)

    def make(lease: float = 30, **options: float) -> Any:
        settings: dict[str, Any] = {"lease": lease, "owner": f"process {len(clients)}", **more}
        if loop is None:
            clients.append(fairlock.connect(url, **settings))
            return RemoteLocks(clients[-1], **options)
        clients.append(loop.run(connect(**settings)))
        return Dressed(loop, aio.RemoteLocks(clients[-1], **options))

    yield make
    for client in clients:
        loop.run(client.close()) if loop is not None else client.close()
    if loop is not None:
        loop.end()


def test_a_mutex(remote: Make) -> None:
    one, other = remote(), remote()
    assert one.acquire_mutex_lock("foobar", 123, "gluww")
    assert not other.acquire_mutex_lock("foobar", 123, "auykg")
    assert not one.acquire_mutex_lock("foobar", 123, "gluww"), "a ticket that is in use is refused, too"
    assert other.acquire_mutex_lock("foobar", 124, "auykg")
    assert not other.release_mutex_lock("foobar", 123, "auykg"), "somebody else's ticket releases nothing"
    assert one.release_mutex_lock("foobar", 123, "gluww")
    assert not one.release_mutex_lock("foobar", 123, "gluww")
    assert other.acquire_mutex_lock("foobar", 123, "gluww"), "a ticket may be used again"


def test_any_process_may_release_by_the_ticket(remote: Make) -> None:
    one, other = remote(), remote()
    for kind in ("mutex", "readers", "writer"):
        assert getattr(one, f"acquire_{kind}_lock")("foobar", 1, "t")
        assert getattr(other, f"release_{kind}_lock")("foobar", 1, "t")
        assert other.acquire_mutex_lock("foobar", 1, "u")
        assert other.release_mutex_lock("foobar", 1, "u")
        assert not getattr(one, f"release_{kind}_lock")("foobar", 1, "t")


def test_a_late_message_of_an_earlier_hold_does_not_end_a_later_one(remote: Make) -> None:
    one, other = remote(), remote()
    assert one.acquire_mutex_lock("foobar", 1, "t")
    earlier = one._held["foobar,1", "mutex t"].ticket
    assert one.release_mutex_lock("foobar", 1, "t")
    assert one.acquire_mutex_lock("foobar", 1, "t")
    say(other, "foobar,1", Release(earlier))
    assert not other.acquire_mutex_lock("foobar", 1, "u")


def test_readers_and_a_writer(remote: Make) -> None:
    one, other = remote(), remote()
    assert one.acquire_readers_lock("foobar", 1, "afxkv")
    assert other.acquire_readers_lock("foobar", 1, "ngyfs")
    assert one.acquire_readers_lock("foobar", 1, "pvzas"), "several of one process"
    assert not one.acquire_readers_lock("foobar", 1, "pvzas"), "but each with a ticket of its own"
    assert not other.acquire_mutex_lock("foobar", 1, "m")
    assert not other.acquire_writer_lock("foobar", 1, "jqpcq")
    assert not one.acquire_readers_lock("foobar", 1, "late"), "a writer waits"
    assert one.release_readers_lock("foobar", 1, "afxkv")
    assert one.release_readers_lock("foobar", 1, "pvzas")
    assert not other.acquire_writer_lock("foobar", 1, "jqpcq")
    assert other.release_readers_lock("foobar", 1, "ngyfs")
    assert other.acquire_writer_lock("foobar", 1, "jqpcq", timeout=10)
    assert not one.acquire_readers_lock("foobar", 1, "late")
    assert other.release_writer_lock("foobar", 1, "jqpcq")
    assert one.acquire_readers_lock("foobar", 1, "late", timeout=10)


def test_a_pending_writer_that_does_not_come_back_loses_its_place(remote: Make) -> None:
    one, other = remote(), remote(pending=0.5)
    assert one.acquire_readers_lock("foobar", 1, "r")
    assert not other.acquire_writer_lock("foobar", 1, "w")
    assert not one.acquire_readers_lock("foobar", 1, "s")
    assert one.acquire_readers_lock("foobar", 1, "s", timeout=10)
    assert other.acquire_mutex_lock("foobar", 2, "w"), "and the others are as before"


def test_a_pending_writer_that_is_granted_and_does_not_come_back_is_released(remote: Make) -> None:
    one, other = remote(), remote(pending=1)
    assert one.acquire_readers_lock("foobar", 1, "r")
    assert not other.acquire_writer_lock("foobar", 1, "w")
    assert one.release_readers_lock("foobar", 1, "r")
    assert one.acquire_readers_lock("foobar", 1, "s", timeout=20)


def test_waiting_instead_of_trying_again(remote: Make) -> None:
    one, other = remote(), remote()
    assert one.acquire_mutex_lock("foobar", 1, "t")
    begun = time.monotonic()
    assert not other.acquire_mutex_lock("foobar", 1, "u", timeout=0.2)
    assert time.monotonic() - begun >= 0.2
    assert one.release_mutex_lock("foobar", 1, "t")
    assert other.acquire_mutex_lock("foobar", 1, "u", timeout=10)


def test_a_dead_process_holds_nothing_forever(remote: Make) -> None:
    one, other = remote(lease=2), remote()
    assert one.acquire_mutex_lock("foobar", 1, "t")
    assert one.acquire_readers_lock("foobar", 2, "t")
    time.sleep(2.2)
    assert not other.acquire_mutex_lock("foobar", 1, "u"), "while it lives, its keeper renews"
    session = one._locks._session
    session.closing = session.closed = True  # as if it were dead: no more renewals
    assert other.acquire_mutex_lock("foobar", 1, "u", timeout=10)
    assert other.acquire_writer_lock("foobar", 2, "u", timeout=10)
    session.closing = session.closed = False


def test_what_has_been_held_for_long_is_found(remote: Make) -> None:
    one, other = remote(), remote()
    assert one.acquire_mutex_lock("foobar", 123, "old")
    time.sleep(1.5)  # on Redis another client sees it after about a second
    assert one.acquire_readers_lock("foobar", 124, "young")
    (found,) = other.stale(1.4)
    assert (found.resource_type, found.resource_id, found.kind) == ("foobar", "123", "mutex")
    assert (found.ticket, found.owner) == ("old", "process 0")
    until(lambda: [each.ticket for each in other.stale(0.000001)] == ["old", "young"], "both are found")
    assert other.stale(60) == []


def test_bad_words_are_told_of() -> None:
    with fairlock.connect("memory://") as locks:
        for bad in ({"ticket": ""}, {"resource_id": "1,2"}, {"resource_type": "x" * 300}):
            with pytest.raises(fairlock.ConfigError):
                RemoteLocks(locks).acquire_mutex_lock(**{"resource_type": "a", "resource_id": 1, "ticket": "t", **bad})


@pytest.mark.parametrize("face", ["threads", "tasks"])
def test_a_writer_whose_first_word_was_not_heard_gets_in_all_the_same(face: str, tmp_path: Path) -> None:
    url, loop = f"memory://{tmp_path.name}", Loop()
    try:
        with fairlock.connect(url) as locks:
            other = RemoteLocks(locks)
            theirs: Any = RemoteLocks(locks) if face == "threads" else aio.RemoteLocks(fairlock.aio.connect(url))
            remote: Any = theirs if face == "threads" else Dressed(loop, theirs)

            def fail(*_: object) -> None:
                del theirs._send_acquire  # the next one arrives
                raise fairlock.StoreError("it does not reply")

            theirs._send_acquire = fail
            assert other.acquire_mutex_lock("order", 1, "first")
            with pytest.raises(fairlock.StoreError, match="does not reply"):
                remote.acquire_writer_lock("order", 1, "second")
            assert other.release_mutex_lock("order", 1, "first")
            assert remote.acquire_writer_lock("order", 1, "second", timeout=10)
            assert remote.release_writer_lock("order", 1, "second")
            if face == "tasks":
                loop.run(theirs._locks.close())
    finally:
        loop.end()


@pytest.fixture(params=["threads", "tasks"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """RemoteLocks of either face, on one store in memory; any thread may call those of tasks."""
    url = f"memory://{tmp_path.name}"
    loop = Loop() if request.param == "tasks" else None
    clients: list[Any] = []

    async def connect() -> fairlock.aio.Locks:
        return fairlock.aio.connect(url)

    def make(**options: float) -> Any:
        clients.append(fairlock.connect(url) if loop is None else loop.run(connect()))
        if loop is None:
            return RemoteLocks(clients[-1], **options)
        return Dressed(loop, aio.RemoteLocks(clients[-1], **options))

    yield make
    for client in clients:
        loop.run(client.close()) if loop is not None else client.close()
    if loop is not None:
        loop.end()


def nothing_is_left(tmp_path: Path) -> None:
    with fairlock.connect(f"memory://{tmp_path.name}") as locks:
        assert [(r.name, r.holders, r.queue) for r in locks.snapshot(idle=True).resources if r.holders or r.queue] == []


def test_a_writer_that_calls_again_asks_the_store_itself(
    pair: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(locks_by_type_and_number_base, "HEARTBEAT", 3.0)  # nobody asks in its place for now
    one, other = pair(), pair()
    assert one.acquire_readers_lock("order", 1, "r")
    assert not other.acquire_writer_lock("order", 1, "w")
    assert one.release_readers_lock("order", 1, "r")
    begun = time.monotonic()
    assert other.acquire_writer_lock("order", 1, "w")
    assert time.monotonic() - begun < 1
    assert other.release_writer_lock("order", 1, "w")
    nothing_is_left(tmp_path)


def test_a_try_does_not_cut_the_wait_of_another_call(pair: Callable[..., Any], tmp_path: Path) -> None:
    one, other = pair(), pair(pending=0.3)
    assert one.acquire_readers_lock("order", 1, "r")
    with ThreadPoolExecutor() as threads:
        begun = time.monotonic()
        waits = threads.submit(other.acquire_writer_lock, "order", 1, "w", timeout=10)
        time.sleep(0.2)
        assert not other.acquire_writer_lock("order", 1, "w")
        time.sleep(1)
        assert one.release_readers_lock("order", 1, "r")
        assert waits.result()
        assert time.monotonic() - begun < 3
    assert other.release_writer_lock("order", 1, "w")
    nothing_is_left(tmp_path)


@pytest.mark.parametrize("kind", ["mutex", "readers", "writer"])
def test_one_ticket_used_by_many_calls_at_once_is_one_hold(pair: Callable[..., Any], kind: str, tmp_path: Path) -> None:
    one, other = pair(), pair()
    acquire, release = getattr(other, f"acquire_{kind}_lock"), getattr(other, f"release_{kind}_lock")
    for turn in range(5):
        assert one.acquire_mutex_lock("order", turn, "first")
        with ThreadPoolExecutor(8) as threads:
            calls = [threads.submit(acquire, "order", turn, "t", timeout=2 if n % 2 else 0) for n in range(8)]
            time.sleep(0.05)
            with fairlock.connect(f"memory://{tmp_path.name}") as locks:
                (resource,) = locks.snapshot(f"order,{turn}").resources
                assert len(resource.queue) <= 1, "one place in the queue"
            assert one.release_mutex_lock("order", turn, "first")
            holders = sum(call.result() for call in calls)
        assert holders == 1 if kind == "writer" else holders <= 1  # a try may have kept the others out
        assert release("order", turn, "t") is bool(holders)
    nothing_is_left(tmp_path)


def test_a_writer_that_gives_up_leaves_at_once_and_ends_the_wait_of_its_other_call(
    pair: Callable[..., Any], tmp_path: Path
) -> None:
    one, other = pair(), pair()
    assert one.acquire_mutex_lock("order", 1, "first")
    with ThreadPoolExecutor() as threads:
        waits = threads.submit(other.acquire_writer_lock, "order", 1, "w", timeout=20)
        time.sleep(0.3)
        assert other.release_writer_lock("order", 1, "w")
        assert waits.result(5) is False
    assert one.release_mutex_lock("order", 1, "first")
    nothing_is_left(tmp_path)


def test_a_call_that_hangs_in_the_store_keeps_no_other_back(pair: Callable[..., Any]) -> None:
    one, other = pair(), pair()
    assert one.acquire_mutex_lock("slow", 1, "first")
    assert one.acquire_mutex_lock("quick", 1, "first")
    session, hung = other._locks._session, threading.Event()
    real_call = session.call

    async def call(name: str, *args: Any) -> Any:
        if name == "slow,1" and session.runtime.blocking:
            hung.wait(10)
        while name == "slow,1" and not hung.is_set():
            await session.runtime.sleep(0.01)
        return await real_call(name, *args)

    session.call = call
    with ThreadPoolExecutor() as threads:
        slow = threads.submit(other.acquire_writer_lock, "slow", 1, "w")
        time.sleep(0.2)
        begun = time.monotonic()
        assert not other.acquire_writer_lock("quick", 1, "w")
        assert other.acquire_mutex_lock("quick", 2, "m")
        assert time.monotonic() - begun < 5
        hung.set()
        assert not slow.result()
