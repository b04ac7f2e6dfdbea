"""Rows: compare and swap by a version that never recurs, in one statement."""

import random
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairlock
from fairlock.errors import ConfigError, StoreError
from fairlock.stores.base import Row, RowSnapshot, Store, Written
from fairlock.stores.sqlite import SqliteStore
from tests.sqlite.processes import ThreadRuntime, get, put, run, store_at

Client = Callable[..., SqliteStore]


def test_it_is_a_store(client: Client) -> None:
    store: Store = client()
    assert store.scope == "machine"
    assert store.skew == 0


def test_constructing_one_touches_nothing(path: Path) -> None:
    store = store_at(path)
    assert list(path.parent.iterdir()) == []
    assert store.where == f"sqlite:///{path}"


def test_what_is_written_is_read_back(client: Client) -> None:
    store = client()
    assert get(store, "k").row is None
    row = Row("k", 7, "me", "[ü\U0001f512]")
    done = run(store.write(row, None, 0, ()))
    assert isinstance(done, Written)
    seen = get(store, "k")
    assert (seen.row, seen.version) == (row, done.version)


def test_a_first_write_that_comes_second_sees_the_other(client: Client) -> None:
    one, two = client(), client()
    first = run(one.write(Row("k", 1, "", "one"), None, 0, ()))
    second = run(two.write(Row("k", 1, "", "two"), None, 0, ()))
    assert isinstance(first, Written)
    assert isinstance(second, RowSnapshot)
    assert second.row is not None
    assert (second.row.body, second.version) == ("one", first.version)


def test_a_write_with_an_old_version_sees_what_is_there(client: Client) -> None:
    store = client()
    old = put(store, "k", "1")
    put(store, "k", "2")
    result = run(store.write(Row("k", 1, "", "3"), old.version, 0, ()))
    assert isinstance(result, RowSnapshot)
    assert result.row is not None
    assert result.row.body == "2"


def test_a_write_to_a_row_that_was_swept_sees_that_there_is_none(client: Client) -> None:
    store = client()
    old = put(store, "k")
    assert run(store.delete("k", old.version))
    assert not run(store.delete("k", old.version))
    result = run(store.write(Row("k", 1, "", "x"), old.version, 0, ()))
    assert isinstance(result, RowSnapshot)
    assert result.row is None


def test_versions_never_recur_whatever_the_program_does_to_random(client: Client) -> None:
    versions = set()
    store = client()
    for _ in range(50):
        random.seed(1)
        versions.add(put(store, "k").version)
    assert len(versions) == 50


def test_scan_finds_a_prefix_and_nothing_else(client: Client) -> None:
    store = client()
    for key in ("a", "ab", "ab\x1fc", "abc", "b", "ab\U0010ffff", "aB", "a%", "a_"):
        put(store, key)
    keys = [seen.row.key for seen in run(store.scan("ab")) if seen.row]
    assert keys == ["ab", "ab\x1fc", "abc", "ab\U0010ffff"]
    assert len(run(store.scan(""))) == 9


def test_scan_reads_on_after_a_thousand_rows(client: Client, path: Path) -> None:
    store = client()
    put(store, "x")
    with sqlite3.connect(path) as other:
        other.executemany("INSERT INTO fairlock_locks VALUES (?, 0, '', '', ?)", [(f"k{i:05}", i) for i in range(2500)])
    other.close()
    keys = [seen.row.key for seen in run(store.scan("")) if seen.row]
    assert len(keys) == 2501
    assert keys == sorted(keys)


def test_of_many_threads_with_the_same_version_exactly_one_writes(client: Client) -> None:
    stores = [client() for _ in range(4)]
    version = put(stores[0], "k", "0").version
    results: list[object] = []
    start = threading.Barrier(16)

    def compete(store: SqliteStore) -> None:
        start.wait()
        results.append(run(store.write(Row("k", 1, "", "x"), version, 0, ())))

    threads = [threading.Thread(target=compete, args=(stores[i % 4],)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(r, Written) for r in results) == 1
    assert len(results) == 16


def test_one_that_always_comes_too_late_gets_its_turn(client: Client) -> None:
    """A client that never pauses writes from its cache; one that must read first loses every race."""
    quick, slow = client(), client()
    version = put(quick, "k", "0").version
    for i in range(10):
        seen = get(slow, "k")
        done = run(quick.write(Row("k", 1, "", str(i)), version, 0, ()))  # from memory, between read and write
        if isinstance(done, Written):
            version = done.version
        if isinstance(run(slow.write(Row("k", 1, "", "slow"), seen.version, 0, ())), Written):
            break
    assert i == 2, "after two lost races the odds are even"
    assert slow._lost == {}
    row = get(quick, "k").row
    assert row is not None
    assert row.body == "slow"


def test_a_pause_does_not_cost_the_turn(client: Client, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick one writes while the slow one pauses, and from its memory just before the slow one writes."""
    quick = client()
    with fairlock.connect(path) as locks:
        with locks.lock("x"):
            pass
        backend: Any = locks.session.backend
        row, version = get(quick, "x")[:2]
        write = backend.store.write

        def write_quickly() -> None:
            nonlocal version
            assert row is not None
            done = run(quick.write(row, version, 0, ()))
            version = done.version if isinstance(done, Written) else version

        async def write_after_another(*what: Any) -> Any:
            nonlocal version
            if backend.conflicts < 5:  # until the slow one pauses after each
                version = get(quick, "x").version
            write_quickly()
            return await write(*what)

        async def pause(*_: Any) -> None:
            nonlocal version
            version = get(quick, "x").version
            write_quickly()

        monkeypatch.setattr(backend.store, "has_nowait", False)
        monkeypatch.setattr(backend.store, "write", write_after_another)
        monkeypatch.setattr(backend, "_rest", pause)
        with locks.lock("x") as lease:
            assert lease.held
    assert backend.conflicts < 20


def test_one_store_serves_many_threads(client: Client) -> None:
    store = client()
    wrong: list[object] = []

    def work(key: str) -> None:
        version = put(store, key).version
        for i in range(200):
            done = run(store.write(Row(key, i, "", str(i)), version, 0, ()))
            if not isinstance(done, Written):
                wrong.append(done)
                return
            version = done.version

    threads = [threading.Thread(target=work, args=(f"k{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_time_of_a_row_is_never_before_what_its_writer_saw(client: Client) -> None:
    one, two = client(), client()
    for _ in range(100):
        sample = put(one, "k").now
        assert get(two, "k").now >= sample


def test_the_time_of_a_write_is_a_sound_sample(client: Client) -> None:
    """The client's clock first, then the store's: so a lease counted from it is never longer than the store's."""
    store = client()
    seen = get(store, "k")
    time.sleep(0.01)
    before = store._db.now()
    done = run(store.write(Row("k", 1, "", "x"), None, seen.now, ()))
    assert isinstance(done, Written)
    assert done.now >= before


def test_now_is_unknown_before_the_first_statement_and_free_afterwards(client: Client) -> None:
    store = client()
    assert store.now() is None
    run(store.ping())
    before = store._clock()
    sample = store.now()
    assert sample is not None
    now, at = sample
    assert before <= at <= store._clock()
    assert abs(now / 1e6 - time.time()) < 3600 * 24 * 365 * 50


def test_a_writer_in_a_transaction_is_waited_for(client: Client, path: Path) -> None:
    store = client()
    put(store, "k")
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    def end() -> None:
        other.execute("ROLLBACK")
        other.close()

    timer = threading.Timer(0.1, end)
    timer.start()
    began = time.monotonic()
    put(store, "k", "late")
    assert 0.05 < time.monotonic() - began < 4
    timer.join()


def test_however_often_it_was_busy_the_pauses_stay_short(
    client: Client, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = client()
    put(store, "k")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1500:
            other.execute("ROLLBACK")

    monkeypatch.setattr(store.runtime, "sleep", sleep)
    put(store, "k", "late")
    other.close()
    assert len(pauses) == 1500
    assert max(pauses) <= 0.001


def test_a_writer_that_never_ends_is_reported_with_its_pid(path: Path) -> None:
    import os

    store = store_at(path, busy_timeout=0.1)
    put(store, "k")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    with pytest.raises(StoreError, match=rf"busy for 0.1 s: process {os.getpid()} "):
        put(store, "k", "never")
    assert time.monotonic() - began < 4
    assert get(store, "k").row is not None, "reading goes on"
    other.execute("ROLLBACK")
    other.close()
    put(store, "k", "now")
    run(store.close())


def test_waiting_for_a_writer_sleeps_in_the_runtime_of_the_client(path: Path) -> None:
    """An event loop must never be blocked by somebody else's transaction."""
    slept: list[float] = []

    class Runtime(ThreadRuntime):
        async def sleep(self, seconds: float) -> None:
            slept.append(seconds)
            if len(slept) == 20:
                other.execute("ROLLBACK")

    store = SqliteStore(str(path), Runtime())
    put(store, "k")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    put(store, "k", "2")
    other.close()
    assert len(slept) == 20
    assert max(slept) <= 0.001
    assert len(set(slept)) > 10, "with jitter"
    run(store.close())


def test_a_closed_store_raises(path: Path) -> None:
    store = store_at(path)
    put(store, "k")
    run(store.close())
    run(store.close())
    assert store.open_listener() == ""
    with pytest.raises(ConfigError, match="was closed"):
        get(store, "k")


def test_the_file_agrees_with_the_schema(client: Client, path: Path) -> None:
    store = client()
    put(store, "k")
    run(store.items.add("pool", [("key", "null")]))  # what pools need is made with the first of them
    with sqlite3.connect(path) as made:
        settings = {
            name: made.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "page_size", "application_id", "user_version")
        }
        tables = {sql for (sql,) in made.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    made.close()
    assert settings == {"journal_mode": "wal", "page_size": 2048, "application_id": 0x66616972, "user_version": 1}
    with sqlite3.connect(":memory:") as by_hand:
        by_hand.executescript(store.schema())
        assert {sql for (sql,) in by_hand.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")} == tables
    assert len(tables) == 4
    by_hand.close()


def test_a_look_at_what_is_busy_reads_the_rows_with_an_owner(client: Client) -> None:
    """By one statement, however many rows are idle. bench/snapshots.py measures the time, with a hundred thousand
    rows."""
    store = client()
    put(store, "first", "1")
    with sqlite3.connect(store.path) as db:
        rows = ((f"idle{number}", 0, "", "not decoded", number + 1) for number in range(2500))
        db.executemany("INSERT INTO fairlock_locks (key, score, owner, body, version) VALUES (?, ?, ?, ?, ?)", rows)
        many = ((f"busy{number:04}", 0, "web-3", "x", 10_000 + number) for number in range(1200))
        db.executemany("INSERT INTO fairlock_locks (key, score, owner, body, version) VALUES (?, ?, ?, ?, ?)", many)
    db.close()
    statements: list[str] = []
    assert store._db.cursor is not None
    store._db.cursor.connection.set_trace_callback(statements.append)
    keys = [seen.row.key for seen in run(store.scan_busy("busy")) if seen.row]
    assert keys == [f"busy{number:04}" for number in range(1200)]
    assert len(statements) == 2, "a thousand at a time"
