"""What NOTIFY brings: to who waits, that it may be his turn; to who is inside, who is the first to wait."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import holdfast
from holdfast.backends.sql.waiting import hints_of
from holdfast.doorman import Wake
from tests.redis.proxy import Proxy
from tests.servers.sql import PostgreSQL


class Two:
    """Two clients, both of whom have waited, and so hear."""

    def __init__(self, url: str) -> None:
        self.one, self.other = holdfast.connect(url), holdfast.connect(url)
        self.url = url
        self.through: list[str] = []

    def waits(self, locks: holdfast.Locks) -> threading.Thread:
        def wait() -> None:
            with locks.lock("x"):
                self.through.append("x")

        before = len(self.one.snapshot("x").resources[0].line)
        waiting = threading.Thread(target=wait)
        waiting.start()
        limit = time.monotonic() + 20
        while len(self.one.snapshot("x").resources[0].line) == before:
            assert time.monotonic() < limit, "nobody waits"
            time.sleep(0.01)
        return waiting

    @property
    def backend(self) -> object:
        return self.one._desk.backend

    @property
    def news(self) -> dict[str, object]:
        """The rows that were read for the first one."""
        return self.one._desk.backend.store._told  # type: ignore[attr-defined,no-any-return]


@pytest.fixture
def two(postgresql: PostgreSQL) -> Iterator[Two]:
    two = Two(postgresql.url)
    lease = two.other.lock("x").acquire()
    assert lease is not None
    waiting = two.waits(two.one)
    ear = two.one._desk.backend.store._ear  # type: ignore[attr-defined]
    limit = time.monotonic() + 20
    while not ear.listening and time.monotonic() < limit:
        time.sleep(0.01)
    assert ear.listening
    lease.release()
    waiting.join(20)
    yield two
    two.one.close()
    two.other.close()


def leave(two: Two, lease: holdfast.Lease) -> tuple[int, int]:
    """How many statements and conflicts it takes to leave."""
    backend = two.backend
    before = backend.store.hands.statements, backend.conflicts  # type: ignore[attr-defined]
    lease.release()
    after = backend.store.hands.statements, backend.conflicts  # type: ignore[attr-defined]
    return after[0] - before[0], after[1] - before[1]


def test_who_is_inside_is_shown_the_first_who_waits(two: Two) -> None:
    lease = two.one.lock("x").acquire()
    assert lease is not None
    waiting = two.waits(two.other)
    _until(lambda: bool(two.news))
    assert leave(two, lease) == (1, 0)
    waiting.join(20)


def test_another_client_of_the_same_process_does_not_take_it_away(two: Two) -> None:
    lease = two.one.lock("x").acquire()
    assert lease is not None
    waiting = two.waits(two.other)
    _until(lambda: bool(two.news))
    assert two.other.lock("x").acquire(False) is None
    assert leave(two, lease) == (1, 0)
    waiting.join(20)


def test_the_listener_ends_with_the_last_client(postgresql: PostgreSQL) -> None:
    one, other = holdfast.connect(postgresql.url), holdfast.connect(postgresql.url)
    with one.lock("x"):
        assert other.lock("x").acquire(timeout=0.2) is None
        _until(lambda: bool(_listeners()))
    other.close()
    assert _listeners()
    one.close()
    assert not _listeners()
    sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'holdfast%%'"
    _until(lambda: postgresql.run(sessions)[0][0] == 0)


def test_the_listener_ends_with_a_client_that_is_forgotten(postgresql: PostgreSQL) -> None:
    one = holdfast.connect(postgresql.url)
    with one.lock("x"):
        assert one.lock("x", local_handoff=False).acquire(timeout=0.2) is None
    assert _listeners()
    del one
    gc.collect()
    _until(lambda: not _listeners())


def _listeners() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "holdfast-ear"]


def _until(so: Callable[[], bool]) -> None:
    limit = time.monotonic() + 20
    while not so():
        assert time.monotonic() < limit, "it does not happen"
        time.sleep(0.01)


@pytest.mark.parametrize("forged", ["=x", "=y", "=", "=" + "x" * 7000, "= it's\n17\n[1,2]", "x 17 [1,2]", " ", ""])
def test_what_was_forged_costs_a_statement_and_nothing_else(two: Two, postgresql: PostgreSQL, forged: str) -> None:
    lease = two.one.lock("x").acquire()
    assert lease is not None
    ear = two.one._desk.backend.store._ear  # type: ignore[attr-defined]
    two.news.clear()
    postgresql.run("SELECT pg_notify(%s, %s)", ear.name, forged)
    two.other.lock("other").acquire(False).release()  # type: ignore[union-attr]
    postgresql.run("SELECT pg_notify(%s, %s)", ear.name, "=other")
    _until(lambda: "other" in two.news)
    assert leave(two, lease)[0] <= 3
    assert two.other.lock("x").acquire(False) is not None


def test_only_the_first_in_line_is_shown_to_who_is_inside(two: Two) -> None:
    lease = two.one.lock("x").acquire()
    assert lease is not None
    first = two.waits(two.other)
    _until(lambda: bool(two.news))
    two.news.clear()
    with holdfast.connect(two.url) as third:
        second = two.waits(third)
        time.sleep(0.2)
        assert not two.news
        lease.release()
        first.join(20)
        second.join(20)


def test_a_row_that_is_not_to_be_read_is_no_news(two: Two, postgresql: PostgreSQL) -> None:
    """Who listens may be somebody else than who writes. Whoever waits is told all the same."""
    ear = two.one._desk.backend.store._ear  # type: ignore[attr-defined]
    lease = two.one.lock("x").acquire()
    assert lease is not None
    postgresql.run("ALTER TABLE holdfast_locks RENAME TO elsewhere")
    postgresql.run("SELECT pg_notify(%s, '=x')", ear.name)
    postgresql.run("SELECT pg_notify(%s, 'somebody')", ear.name)
    _until(lambda: "somebody" in ear._heard)
    postgresql.run("ALTER TABLE elsewhere RENAME TO holdfast_locks")
    assert ear.listening and not two.news
    lease.release()


def test_what_is_said_to_whom() -> None:
    woken = [Wake("holdfast_a", "t1", 1, 2), Wake("holdfast_b", ""), Wake("", "t"), Wake("/run/elsewhere", "t")]
    assert hints_of(woken, "x") == (["holdfast_a", "holdfast_b"], ["t1", "=x"])
    assert hints_of(woken[2:], "x") is None


def test_a_listener_whose_first_request_is_lost_tries_again(postgresql: PostgreSQL) -> None:
    """Nobody replies to its LISTEN and the connection stays open: then it would never listen in this process."""
    lost: list[bytes] = []

    def fate(request: bytes) -> str:
        if b"LISTEN" in request and not lost:
            lost.append(request)
            return "swallow"
        return ""

    with Proxy(postgresql.port) as proxy, holdfast.connect(postgresql.url) as other:
        proxy.fate = fate
        url = postgresql.url.replace(f":{postgresql.port}", f":{proxy.port}")
        with holdfast.connect(url, timeout=1) as locks:
            with other.lock("x"):
                waiting = threading.Thread(target=lambda: locks.lock("x").acquire())
                waiting.start()
                _until(lambda: bool(lost))
                ear = locks._desk.backend.store._ear  # type: ignore[attr-defined]
                _until(lambda: ear.listening)
            waiting.join()


def test_where_no_listener_can_be_started_waiters_poll(postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if thread.name == "holdfast-ear":
            raise RuntimeError("can't start new thread")
        start(thread)

    with holdfast.connect(postgresql.url) as locks, holdfast.connect(postgresql.url) as other:
        with monkeypatch.context() as limit, locks.lock("x"):
            limit.setattr(threading.Thread, "start", limited)
            assert other.lock("x").acquire(timeout=0.3) is None
            got: list[object] = []
            waiting = threading.Thread(target=lambda: got.append(other.lock("x").acquire(timeout=20)))
            waiting.start()
            _until(lambda: bool(locks.snapshot("x").resources[0].line))
            assert not _listeners()
        waiting.join()
        assert isinstance(got[0], holdfast.Lease)
        assert locks.lock("x").acquire(timeout=0.3) is None
        _until(lambda: locks.lock("x").acquire(timeout=1.2) is None and bool(_listeners()))
