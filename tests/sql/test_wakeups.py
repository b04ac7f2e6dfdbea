"""Wake-ups by NOTIFY: a waiter learns that it may be its turn; a holder learns of the first waiter."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import fairlock
import fairlock.aio
from fairlock.engine.run_sync import run
from fairlock.rules.locks import Wakeup
from fairlock.stores.polling import Ahead
from fairlock.stores.sql import wait_for_wakeup
from fairlock.stores.sql.store import SqlStore
from fairlock.stores.sql.wait_for_wakeup import wakeups_for
from tests.redis.proxy import Proxy
from tests.servers.sql import PostgreSQL


class Two:
    """Two clients, both of which have waited, and so have a listener."""

    def __init__(self, url: str) -> None:
        self.one, self.other = fairlock.connect(url), fairlock.connect(url)
        self.url = url
        self.through: list[str] = []

    def waits(self, locks: fairlock.Locks) -> threading.Thread:
        def wait() -> None:
            with locks.lock("x"):
                self.through.append("x")

        before = len(self.one.snapshot("x").resources[0].queue)
        waiting = threading.Thread(target=wait)
        waiting.start()
        limit = time.monotonic() + 20
        while len(self.one.snapshot("x").resources[0].queue) == before:
            assert time.monotonic() < limit, "nobody waits"
            time.sleep(0.01)
        return waiting

    @property
    def backend(self) -> object:
        return self.one._session.backend

    @property
    def waiters_seen(self) -> int:
        """Return how many wait for it by the row that the first client has last seen, without a request."""
        known = self.one._session.backend.store.row_cache.get("x")  # type: ignore[attr-defined]
        return len(known.state.queue) if known is not None else 0


@pytest.fixture
def two(postgresql: PostgreSQL) -> Iterator[Two]:
    two = Two(postgresql.url)
    lease = two.other.lock("x").acquire()
    assert lease is not None
    waiting = two.waits(two.one)
    listener = two.one._session.backend.store._listener  # type: ignore[attr-defined]
    limit = time.monotonic() + 20
    while not listener.listening and time.monotonic() < limit:
        time.sleep(0.01)
    assert listener.listening
    lease.release()
    waiting.join(20)
    yield two
    two.one.close()
    two.other.close()


def leave(two: Two, lease: fairlock.Lease) -> tuple[int, int]:
    """Release the lease and return the number of statements and conflicts that it took."""
    backend = two.backend
    before = backend.store.executor.statements, backend.conflicts  # type: ignore[attr-defined]
    lease.release()
    after = backend.store.executor.statements, backend.conflicts  # type: ignore[attr-defined]
    return after[0] - before[0], after[1] - before[1]


def released_in_one_statement(two: Two, meanwhile: Callable[[], object] = lambda: None) -> bool:
    """Try it a few times: both clients use the same connections, and one may renew or poll at this very moment."""
    for _ in range(6):
        lease = two.one.lock("x").acquire()
        assert lease is not None
        waiting = two.waits(two.other)
        _until(lambda: two.waiters_seen == 1)
        meanwhile()
        took = leave(two, lease)
        waiting.join(20)
        if took == (1, 0):
            return True
    return False


def test_the_holder_is_shown_the_first_waiter(two: Two) -> None:
    assert released_in_one_statement(two)


def test_another_client_of_the_same_process_does_not_take_it_away(two: Two) -> None:
    def try_too() -> None:
        assert two.other.lock("x").acquire(False) is None

    assert released_in_one_statement(two, try_too)


def test_the_listener_ends_with_the_last_client(postgresql: PostgreSQL) -> None:
    sessions = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'fairlock%%'"
    earlier = postgresql.run(sessions)  # of clients that other tests have left to the garbage collector
    one, other = fairlock.connect(postgresql.url), fairlock.connect(postgresql.url)
    with one.lock("x"):
        assert other.lock("x").acquire(timeout=0.2) is None
        _until(lambda: bool(_listeners()))
        assert set(postgresql.run(sessions)) - set(earlier)
    other.close()
    assert _listeners()
    one.close()
    assert not _listeners()
    _until(lambda: not set(postgresql.run(sessions)) - set(earlier))


def test_the_listener_ends_with_a_client_that_is_forgotten(postgresql: PostgreSQL) -> None:
    one = fairlock.connect(postgresql.url)
    with one.lock("x"):
        assert one.lock("x", local_handoff=False).acquire(timeout=0.2) is None
    assert _listeners()
    del one
    gc.collect()
    _until(lambda: not _listeners())


def _listeners() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "fairlock-listener"]


def _until(so: Callable[[], bool]) -> None:
    limit = time.monotonic() + 20
    while not so():
        assert time.monotonic() < limit, "it does not happen"
        time.sleep(0.01)


@pytest.mark.parametrize("forged", ["=x", "=y", "=", "=" + "x" * 7000, "= it's\n17\n[1,2]", "x 17 [1,2]", " ", ""])
def test_what_was_forged_costs_a_statement_and_nothing_else(two: Two, postgresql: PostgreSQL, forged: str) -> None:
    lease = two.one.lock("x").acquire()
    assert lease is not None
    listener = two.one._session.backend.store._listener  # type: ignore[attr-defined]
    two.one.lock("other").acquire(False).release()  # type: ignore[union-attr]
    rows = two.one._session.backend.store.row_cache  # type: ignore[attr-defined]
    before = rows.get("other").version
    postgresql.run("SELECT pg_notify(%s, %s)", listener.name, forged)
    two.other.lock("other").acquire(False).release()  # type: ignore[union-attr]
    postgresql.run("SELECT pg_notify(%s, %s)", listener.name, "=other")
    _until(lambda: rows.get("other").version != before)
    assert leave(two, lease)[0] <= 3
    assert two.other.lock("x").acquire(False) is not None


def test_only_the_first_waiter_is_shown_to_the_holder(two: Two) -> None:
    lease = two.one.lock("x").acquire()
    assert lease is not None
    first = two.waits(two.other)
    _until(lambda: two.waiters_seen == 1)
    with fairlock.connect(two.url) as third:
        second = two.waits(third)
        time.sleep(0.2)
        assert two.waiters_seen == 1
        lease.release()
        first.join(20)
        second.join(20)


def test_a_row_that_is_not_to_be_read_is_no_news(two: Two, postgresql: PostgreSQL) -> None:
    """The listening role may differ from the writing one. The waiter is woken all the same."""
    listener = two.one._session.backend.store._listener  # type: ignore[attr-defined]
    lease = two.one.lock("x").acquire()
    assert lease is not None
    postgresql.run("ALTER TABLE fairlock_locks RENAME TO elsewhere")
    postgresql.run("SELECT pg_notify(%s, '=x')", listener.name)
    postgresql.run("SELECT pg_notify(%s, 'somebody')", listener.name)
    _until(lambda: "somebody" in listener._wakeups)
    postgresql.run("ALTER TABLE elsewhere RENAME TO fairlock_locks")
    assert listener.listening and two.waiters_seen == 0
    lease.release()


def test_which_wakeup_goes_to_which_listener() -> None:
    woken = [Wakeup("fairlock_a", "t1", 1, 2), Wakeup("fairlock_b", ""), Wakeup("", "t"), Wakeup("/run/elsewhere", "t")]
    assert wakeups_for(woken, "x") == (["fairlock_a", "fairlock_b"], ["t1", "=x"])
    assert wakeups_for(woken[2:], "x") is None


def test_a_listener_whose_first_request_is_lost_tries_again(postgresql: PostgreSQL) -> None:
    """Nobody replies to its LISTEN and the connection stays open: then it would never listen in this process."""
    lost: list[bytes] = []

    def fate(request: bytes) -> str:
        if b"LISTEN" in request and not lost:
            lost.append(request)
            return "swallow"
        return ""

    with Proxy(postgresql.port) as proxy, fairlock.connect(postgresql.url) as other:
        proxy.fate = fate
        url = postgresql.url.replace(f":{postgresql.port}", f":{proxy.port}")
        with fairlock.connect(url, timeout=1) as locks:
            with other.lock("x"):
                waiting = threading.Thread(target=lambda: locks.lock("x").acquire())
                waiting.start()
                _until(lambda: bool(lost))
                listener = locks._session.backend.store._listener  # type: ignore[attr-defined]
                _until(lambda: listener.listening)
            waiting.join()


def test_where_no_listener_can_be_started_waiters_poll(postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if thread.name == "fairlock-listener":
            raise RuntimeError("can't start new thread")
        start(thread)

    with fairlock.connect(postgresql.url) as locks, fairlock.connect(postgresql.url) as other:
        with monkeypatch.context() as limit, locks.lock("x"):
            limit.setattr(threading.Thread, "start", limited)
            assert other.lock("x").acquire(timeout=0.3) is None
            got: list[object] = []
            waiting = threading.Thread(target=lambda: got.append(other.lock("x").acquire(timeout=20)))
            waiting.start()
            _until(lambda: bool(locks.snapshot("x").resources[0].queue))
            assert not _listeners()
        waiting.join()
        assert isinstance(got[0], fairlock.Lease)
        assert locks.lock("x").acquire(timeout=0.3) is None
        _until(lambda: locks.lock("x").acquire(timeout=1.2) is None and bool(_listeners()))


def test_waiters_that_poll_are_woken_when_their_process_listens(
    postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would read ever more seldom, and sleep through the grants of the first moments."""
    monkeypatch.setattr(wait_for_wakeup, "UNREACHABLE", 60.0)
    monkeypatch.setattr(SqlStore, "first_pause", 60.0)
    monkeypatch.setattr(SqlStore, "longest_pauses", (60.0, 60.0))
    looks: list[str] = []

    async def look(store: object, key: str, ticket: str, age: float) -> Ahead:
        looks.append(key)
        return Ahead(5, due=60.0)

    monkeypatch.setattr(SqlStore, "look_for_grant", look)
    with fairlock.connect(postgresql.url) as locks:
        store = locks._session.backend.store  # type: ignore[attr-defined]
        listener = store._find_listener()
        connect, may = listener._connect, threading.Event()
        listener._connect = lambda: may.wait(20) and connect()
        waiting = threading.Thread(target=lambda: run(store.wait_for_wakeup("x", "ticket", 60.0, ())), daemon=True)
        waiting.start()
        _until(lambda: bool(looks))
        may.set()
        waiting.join(20)
        assert not waiting.is_alive(), "it sleeps until it reads again"


def test_a_grant_that_this_client_has_made_itself_is_not_read(postgresql: PostgreSQL) -> None:
    """The release shows the row that grants the slot to another task of this client: its wake-up needs no statement."""

    async def handed_over() -> int:
        async with fairlock.aio.connect(postgresql.url) as locks:
            store = locks._session.backend.store  # type: ignore[attr-defined]
            first = await locks.semaphore("s", 1).acquire()
            waiting = asyncio.create_task(locks.semaphore("s", 1).acquire(timeout=20))
            while not ((known := store.row_cache.get("s")) and known.state.queue and store._listener.listening):
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)  # it reads once because its process listens now
            before = store.executor.statements
            await first.release()
            second = await waiting
            assert second is not None
            took: int = store.executor.statements - before
            await second.release()
            return took

    assert 1 in [asyncio.run(handed_over()) for _ in range(4)], "the release alone; a renewal may come in between"
