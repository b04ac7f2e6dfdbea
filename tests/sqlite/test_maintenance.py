"""Checkpoints by one at a time, and rows that nobody needs any more."""

import asyncio
import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import fairlock
from fairlock import aio
from fairlock.aio.runtime import TaskRuntime
from fairlock.rules.locks import Release, Resize, codec
from fairlock.stores.base import Row, Written
from fairlock.stores.sqlite import SqliteStore, maintenance
from tests.sqlite.processes import dead_socket, enter, get, put, python, run, step, store_at

Client = Callable[..., SqliteStore]
DAY = 24 * 3600 * 1_000_000


def log_size(path: Path) -> int:
    return os.stat(f"{path}-wal").st_size


def write_often(store: SqliteStore, times: int, key: str = "k") -> None:
    version = put(store, key).version
    for i in range(times):
        done = run(store.write(Row(key, i, "", "x"), version, 0, ()))
        assert isinstance(done, Written)
        version = done.version


def test_sqlite_itself_does_no_checkpoints(client: Client, path: Path) -> None:
    store = client()
    write_often(store, 1500)
    assert log_size(path) > 1500 * 2048


def test_the_log_does_not_grow_without_end_even_if_nobody_tidies(client: Client, path: Path) -> None:
    store = client()
    for _ in range(3):
        write_often(store, 2500)
        store._maintenance._rest_until = 0.0
    assert log_size(path) < 1.5 * maintenance.TRUNCATE


def test_tidying_empties_the_log_and_above_4_mb_cuts_it(
    client: Client, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance.Maintenance, "is_urgent", lambda self: False)
    store = client()
    write_often(store, 1000)
    run(store.tidy())
    size = log_size(path)
    write_often(store, 100)
    assert log_size(path) == size, "it was emptied: the next writes begin at its start"
    write_often(store, 2500)
    assert log_size(path) > maintenance.TRUNCATE
    run(store.tidy())
    assert log_size(path) < 100_000


def test_tidying_without_much_to_do_does_nothing(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    store = client()
    monkeypatch.setattr(store._maintenance, "checkpoint", lambda: pytest.fail("no need"))
    run(store.tidy())
    put(store, "k")
    run(store.tidy())


def test_one_at_a_time(client: Client, path: Path) -> None:
    store = client()
    put(store, "k")
    assert store.open_listener()
    other = os.open(f"{path}.wakeups", os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    assert store._maintenance.checkpoint() is False
    os.close(other)
    assert store._maintenance.checkpoint() is True


def test_a_lock_on_the_directory_of_the_database_stops_no_checkpoint(
    client: Client, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody who may read that directory could have one."""

    def refuse(self: object, name: str = "") -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("fairlock.stores.sqlite.listener_sockets.WakeupSockets._bind", refuse)
    store = client()
    put(store, "k")
    assert not store.open_listener()
    other = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    assert store._maintenance.checkpoint() is True
    os.close(other)


def test_a_reader_in_the_middle_only_delays_a_checkpoint(client: Client, path: Path) -> None:
    store = client()
    write_often(store, 100)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM fairlock_locks").fetchall()
    write_often(store, 100)
    store._maintenance.checkpoint()
    put(store, "k", "still works")
    reader.execute("COMMIT")
    reader.close()
    assert store._maintenance.checkpoint() is True


def test_a_stuck_writer_only_delays_a_checkpoint(client: Client, path: Path) -> None:
    store = client()
    put(store, "k")
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    assert store._maintenance.checkpoint() is False
    writer.execute("ROLLBACK")
    writer.close()


def test_the_last_one_to_close_leaves_one_file(path: Path) -> None:
    one, two = store_at(path), store_at(path)
    put(one, "k")
    put(two, "k")
    run(one.close())
    assert Path(f"{path}-wal").exists()
    run(two.close())
    assert not Path(f"{path}-wal").exists()
    assert not Path(f"{path}-shm").exists()


def test_writers_go_on_during_checkpoints_of_another_process(client: Client, path: Path) -> None:
    store = client()
    put(store, "other")
    tidier = python(
        """
        store = store_at(sys.argv[1])
        put(store, "k2")
        print("ready", flush=True)
        while not os.path.exists(sys.argv[1] + ".stop"):
            put(store, "k2")
            store._maintenance.checkpoint()
        """,
        path,
    )
    assert tidier.stdout is not None
    tidier.stdout.readline()
    write_often(store, 3000)
    Path(f"{path}.stop").touch()
    assert tidier.wait(20) == 0
    tidier.communicate()
    check = sqlite3.connect(path)
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()


def test_in_an_event_loop_a_checkpoint_runs_beside_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "TRUNCATE", 1000)
    where: list[int] = []
    original = maintenance.Maintenance.checkpoint

    def checkpoint(self: maintenance.Maintenance) -> bool:
        where.append(threading.get_ident())
        return original(self)

    monkeypatch.setattr(maintenance.Maintenance, "checkpoint", checkpoint)

    async def main() -> None:
        store = SqliteStore(str(path), TaskRuntime())
        seen = await store.read("k")
        version: int | str | None = seen.version
        for i in range(150):
            done = await store.write(Row("k", i, "", "x"), version, 0, ())
            assert isinstance(done, Written)
            version = done.version
            store._maintenance._rest_until = 0.0
        await store.close()

    asyncio.run(main())
    assert len(where) == 3, "and one at the end"
    assert threading.get_ident() not in where


def test_a_writer_does_not_wait_for_the_cut(client: Client, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = client()
    goes_on, done = threading.Event(), threading.Event()
    original = maintenance.Maintenance._checkpoint

    def slow(self: maintenance.Maintenance, path: str) -> bool:
        self._rest_until = time.monotonic() + 60
        assert goes_on.wait(20)
        cut = original(self, path)
        done.set()
        return cut

    monkeypatch.setattr(maintenance.Maintenance, "_checkpoint", slow)
    write_often(store, 2500)  # this returns, although the log has become long
    goes_on.set()
    assert done.wait(20)
    run(store.close())
    assert not Path(f"{path}-wal").exists(), "the thread closed its connection before the end of close()"


@pytest.mark.parametrize("no_thread", [True, False])
def test_a_writer_cuts_the_log_itself_if_no_thread_can(
    client: Client, path: Path, monkeypatch: pytest.MonkeyPatch, no_thread: bool
) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    store = client()
    busy = threading.Event()
    if no_thread:
        monkeypatch.setattr(threading.Thread, "start", refuse)
    else:  # or if the last one is still at it
        store._maintenance._cutter = threading.Thread(target=busy.wait)
        store._maintenance._cutter.start()
    write_often(store, 2500)
    busy.set()
    assert log_size(path) < 1.1 * maintenance.TRUNCATE


def short_clients(path: Path, number: int, rounds: int = 10) -> None:
    """Clients that live for a moment, each with fewer writes than a client makes between two looks at the log."""
    for _ in range(number):
        with fairlock.connect(f"sqlite:///{path}") as locks:
            for _ in range(rounds):
                with locks.lock("job"):
                    pass


def test_the_log_does_not_grow_beside_an_idle_holder_when_all_others_are_short(path: Path) -> None:
    with fairlock.connect(f"sqlite:///{path}") as idle, idle.lock("idle"):
        short_clients(path, 60, 30)
        assert log_size(path) < 1.1 * maintenance.TRUNCATE


def test_the_same_for_tasks(path: Path) -> None:
    async def main() -> None:
        for _ in range(60):
            async with aio.connect(f"sqlite:///{path}") as tasks:
                for _ in range(30):
                    async with tasks.lock("job"):
                        pass

    with fairlock.connect(f"sqlite:///{path}") as idle, idle.lock("idle"):
        asyncio.run(main())
        assert log_size(path) < 1.1 * maintenance.TRUNCATE


def test_a_checkpoint_begins_with_a_commit_that_is_one(client: Client, path: Path) -> None:
    """SQLite does not write a row that stays as it was."""
    store = client()
    put(store, "k")
    before = log_size(path)
    assert store._db.change(maintenance.COMMIT, ()) == 1
    assert log_size(path) > before


# -- the sweep


@pytest.mark.parametrize("by_run", [False, True])
def test_clients_that_live_for_a_moment_sweep_rows_and_sockets_of_the_dead(
    client: Client, path: Path, by_run: bool
) -> None:
    store = client()
    unused_rows(store, 300)
    directory = Path(store._db.real + ".wakeups")
    for i in range(20):
        dead_socket(directory / "dead")
        dead_listener = directory / f"{2**22 + i}-x-{(directory / 'dead').stat().st_ino:x}"
        (directory / "dead").rename(dead_listener)
        os.utime(dead_listener, (1, 1))
    killed = directory / ".1-left"  # what a process leaves that is killed while it makes its socket
    killed.mkdir(0o700)
    os.utime(killed, (1, 1))
    for _ in range(1000):  # each of sixteen clients sweeps at most 200 rows
        short = store_at(path)
        assert short.open_listener()
        put(short, "job")
        if not by_run or not short.abandon():
            run(short.close())
        if keys(store) == {"job"}:
            break
    assert keys(store) == {"job"}
    assert os.listdir(directory) == [store.open_listener()]


def age(store: SqliteStore, key: str, by: int) -> None:
    """As if its last use were longer ago."""
    seen = get(store, key)
    assert seen.row is not None
    record = codec.decode(seen.row.body)
    record = record._replace(seen=record.seen - by, fence=record.fence - by)
    run(store.write(seen.row._replace(body=codec.encode(record)), seen.version, 0, ()))


def unused_rows(store: SqliteStore, number: int) -> None:
    """One row that nobody has used for a day, and this many copies of it."""
    step(store, "k", enter("A", store.open_listener()))
    step(store, "k", Release("A"))
    age(store, "k", DAY + 1)
    row = get(store, "k").row
    assert row is not None
    for i in range(number):
        run(store.write(row._replace(key=f"k{i}"), None, 0, ()))


def keys(store: SqliteStore) -> set[str]:
    return {seen.row.key for seen in run(store.scan("")) if seen.row}


def test_rows_that_nobody_used_for_a_day_are_swept_and_no_others(client: Client) -> None:
    store = client()
    for key in ("old", "young", "held", "resized", "tombstone"):
        step(store, key, enter("A", store.open_listener()))
        if key != "held":
            step(store, key, Release("A"))
    step(store, "resized", Resize(5))
    step(store, "tombstone", Release("B", leave_tombstone=True))
    put(store, "strange", "not a record")
    for key in ("old", "held", "resized", "tombstone"):
        age(store, key, DAY + 1_000_000)
    age(store, "young", DAY - 60_000_000)
    assert store._maintenance.sweep() == 1
    assert keys(store) == {"young", "held", "resized", "tombstone", "strange"}


def test_fences_go_on_rising_after_a_sweep(client: Client) -> None:
    store = client()
    first = step(store, "k", enter("A", store.open_listener()))
    step(store, "k", Release("A"))
    age(store, "k", DAY + 1)
    assert store._maintenance.sweep() == 1
    again = step(store, "k", enter("B", store.open_listener()))
    assert again.fence > first.fence - DAY  # type: ignore[union-attr]
    assert again.fence > first.fence  # type: ignore[union-attr]


def test_a_row_that_is_used_again_meanwhile_is_not_swept(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    store, other = client(), client()
    step(store, "k", enter("A", store.open_listener()))
    step(store, "k", Release("A"))
    age(store, "k", DAY + 1)
    rows = store._db.rows

    def read_then_somebody_enters(sql: str, values: tuple[object, ...] = ()) -> list[object]:
        found = rows(sql, values)
        step(other, "k", enter("B", other.open_listener()))
        return found

    monkeypatch.setattr(store._db, "rows", read_then_somebody_enters)
    assert store._maintenance.sweep() == 0
    monkeypatch.undo()
    assert keys(store) == {"k"}


def test_the_sweep_takes_its_time(client: Client) -> None:
    store = client()
    unused_rows(store, 500)
    swept = []
    while sum(swept) < 501:
        swept.append(store._maintenance.sweep())
        assert swept[-1] <= maintenance.SWEEP_ROWS
        assert len(swept) < 10
    assert keys(store) == set()


def test_tidying_never_raises(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    store = client()
    put(store, "k")

    def broken() -> int:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(store._maintenance, "sweep", broken)
    store._maintenance._sweep_at = 0.0
    run(store.tidy())
