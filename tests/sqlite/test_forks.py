"""Forks: the child starts over, and nothing that either side writes is lost."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlock.errors import StoreError
from fairlock.rules.locks import Wakeup
from fairlock.stores.base import Pushed, Row, Written
from fairlock.stores.sqlite import SqliteStore, fork_hooks
from tests.sqlite.processes import get, put, run, store_at

Client = Callable[..., SqliteStore]
NOBODY: frozenset[str] = frozenset()

# Newer Pythons warn about every fork with threads around. That is the very thing to be tested here.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def in_child(work: Callable[[], object]) -> int:
    """Run this in a forked child; its pid."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return pid


def ended_well(pid: int) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_the_child_reads_and_writes_on_a_connection_of_its_own(client: Client) -> None:
    store = client()
    put(store, "k", "parent")

    def child() -> None:
        row = get(store, "k").row
        assert row is not None
        assert row.body == "parent"
        put(store, "k", "child")

    assert ended_well(in_child(child))
    row = get(store, "k").row
    assert row is not None
    assert row.body == "child"


def test_the_connection_is_closed_before_the_fork(client: Client, path: Path) -> None:
    store = client()
    put(store, "k")
    assert store._db.cursor is not None
    ours = {str(path), f"{path}-wal", f"{path}-shm"}
    assert ours <= {_target(f) for f in os.listdir("/proc/self/fd")}

    def child() -> None:
        assert store._db.cursor is None
        assert not [f for f in os.listdir("/proc/self/fd") if _target(f) in ours], "nothing of it was inherited"

    assert ended_well(in_child(child))
    assert store._db.cursor is None
    put(store, "k", "again")


def _target(fd: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""


def test_no_write_is_lost_between_parent_and_children(client: Client) -> None:
    """Each adds to one counter by compare and swap; a leaked connection would lose some of it."""
    store = client()
    put(store, "k", "0")

    def count() -> None:
        for _ in range(100):
            while True:
                seen = get(store, "k")
                assert seen.row is not None
                row = Row("k", 1, "", str(int(seen.row.body) + 1))
                if isinstance(run(store.write(row, seen.version, 0, ())), Written):
                    break

    pids = [in_child(count) for _ in range(4)]
    count()
    ends = [ended_well(pid) for pid in pids]
    assert all(ends)
    row = get(store, "k").row
    assert row is not None
    assert row.body == "500"


def test_parent_and_child_never_write_the_same_version(client: Client) -> None:
    store = client()
    put(store, "k")
    before = store._db.version()

    def child() -> None:
        assert abs(store._db.version() - before) > 1000, "another number space, even before it is opened again"

    assert ended_well(in_child(child))


def test_the_child_has_a_listener_of_its_own_and_does_not_keep_the_parents_alive(path: Path) -> None:
    store = store_at(path)
    parents = store.open_listener()
    read, write = os.pipe()

    def child() -> None:
        os.close(write)
        assert store.open_listener() != parents
        assert store.open_listener().startswith(f"{os.getpid()}-")
        run((other := store_at(path)).ping())
        os.read(read, 1)  # the parent has closed its own
        assert other.liveness([parents]) == (NOBODY, {parents})

    pid = in_child(child)
    os.close(read)
    assert store._listeners.socket is not None
    store._listeners.socket.close()
    os.close(write)
    assert ended_well(pid)
    run(store.close())


@pytest.mark.parametrize("times", [0, 1, 3])
def test_the_client_may_tell_it_too_before_or_after_the_hook(client: Client, times: int) -> None:
    store = client()
    put(store, "k")
    old = store.open_listener()

    def child() -> None:
        for _ in range(times):
            store.forked()
        new = store.open_listener()
        assert new != old
        put(store, "k", "child")
        store.forked()
        assert store.open_listener() == new, "once is enough"

    assert ended_well(in_child(child))
    assert store.open_listener() == old
    store.forked()
    assert store.open_listener() == old, "this is the parent"


def test_wakeups_for_the_parent_do_not_reach_the_child(client: Client) -> None:
    store = client()
    listener = store.open_listener()
    store._waiters.deliver(Pushed("A"))

    def child() -> None:
        assert run(store.wait_for_wakeup("k", "A", 0.05, ())) is None

    assert ended_well(in_child(child))
    run(store.wake([Wakeup(listener, "B")]))
    assert run(store.wait_for_wakeup("k", "B", 5, ())) is not None


def test_a_fork_while_other_threads_write_and_wait_blocks_neither(client: Client) -> None:
    store = client()
    put(store, "k")
    stop = threading.Event()
    failed: list[BaseException] = []

    def work(key: str) -> None:
        try:
            while not stop.is_set():
                put(store, key)
        except BaseException as bad:
            failed.append(bad)

    def wait() -> None:
        while not stop.is_set():
            run(store.wait_for_wakeup("k", "nobody", 0.01, ()))

    threads = [threading.Thread(target=work, args=(f"w{i}",)) for i in range(3)]
    threads.append(threading.Thread(target=wait))
    for thread in threads:
        thread.start()
    try:
        for i in range(10):

            def child(i: int = i) -> None:
                put(store, f"child{i}")
                assert run(store.wait_for_wakeup("k", "nobody", 0.01, ())) is None

            assert ended_well(in_child(child))
    finally:
        stop.set()
        for thread in threads:
            thread.join(10)
    assert not failed
    assert len([s for s in run(store.scan("child")) if s.row]) == 10


def test_a_fork_in_the_middle_of_a_statement_is_refused_in_the_child_not_lost(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal handler may fork while this very thread is inside SQLite: then nothing can be closed."""
    store = client()
    put(store, "k")
    monkeypatch.setattr(store._db, "before_fork", lambda: False)

    def child() -> None:
        with pytest.raises(StoreError, match="Connect after the fork"):
            put(store, "k", "child")

    assert ended_well(in_child(child))
    put(store, "k", "parent")


def test_before_a_fork_a_held_guard_is_waited_for_but_not_forever(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlock.stores.sqlite.connection.FORK", 0.1)
    store = client()
    put(store, "k")
    for lock in (store._db.guard, store._db.aside):
        with lock:
            began = time.monotonic()
            assert store.before_fork() is False
            assert 0.09 < time.monotonic() - began < 3
    assert store.before_fork() is True
    store.after_fork()
    put(store, "k")


def test_a_store_that_nobody_has_any_more_does_not_hold_up_a_fork(path: Path) -> None:
    """It may lose its last owner between the two halves of a fork, while its guard is held."""
    store = store_at(path)
    put(store, "k")
    connection = store._db
    original = connection.before_fork
    owners = [store]
    del store

    def before_fork() -> bool:
        done = original()
        owners.clear()  # as another thread might do just then
        return done

    connection.before_fork = before_fork  # type: ignore[method-assign]
    pid = in_child(lambda: None)
    end = time.monotonic() + 20
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            pytest.fail("the child hangs")
        time.sleep(0.001)
    assert not fork_hooks._paused


def test_a_store_that_was_dropped_is_not_called_at_a_fork(path: Path) -> None:
    store = store_at(path)
    count = len(fork_hooks._stores)
    del store
    assert len(fork_hooks._stores) == count - 1


def test_processes_started_by_subprocess_inherit_nothing(client: Client) -> None:
    store = client()
    put(store, "k")
    assert store.open_listener()
    code = "import os; print([os.readlink(f'/proc/self/fd/{f}') for f in os.listdir('/proc/self/fd') if int(f) > 3])"
    out = subprocess.run([sys.executable, "-c", code], close_fds=False, capture_output=True, text=True, check=True)
    assert "locks.db" not in out.stdout
    assert "socket" not in out.stdout


def test_ctrl_c_in_the_child_does_not_hurt_the_parent(client: Client, path: Path) -> None:
    store = client()
    put(store, "k", "1")
    pid = in_child(lambda: [put(store, "k", "2"), time.sleep(30)])
    deadline = time.monotonic() + 10
    while (row := get(store, "k").row) is not None and row.body == "1" and time.monotonic() < deadline:
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    put(store, "k", "3")
    check = sqlite3.connect(path)
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()
