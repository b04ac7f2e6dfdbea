"""Processes that are killed or stopped at any point: the file stays whole, nobody holds twice, others go on."""

import os
import random
import signal
import sqlite3
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

import fairlock
from fairlock.stores.sqlite import SqliteStore
from tests.sqlite.processes import put, python, run, stop, store_at

Client = Callable[..., SqliteStore]

# Newer Pythons warn about a fork with threads around; these children begin with a client of their own.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


class Worker:
    """Fork a process that acquires, notes its fence where only holders write, looks for others, releases; forever."""

    def __init__(self, path: Path, least: int = 0) -> None:
        self._least = least  # how often it must get in
        self._shared = path.with_name("shared")
        self._stop = path.with_name("stop")
        ready, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._work(path, tell)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        os.close(tell)
        self.started = bool(os.read(ready, 1))
        os.close(ready)

    def _work(self, path: Path, tell: int) -> None:
        locks = fairlock.connect(f"sqlite:///{path}", lease=5)
        lock = locks.lock("k")
        fd = os.open(self._shared, os.O_RDWR)
        os.write(tell, b"x")
        done = 0
        while not self._stop.exists():
            with lock as lease:
                last = int(os.pread(fd, 32, 0) or b"0")
                assert lease.fence > last, ("fences fell", lease.fence, last)
                os.pwrite(fd, b"%-32d" % lease.fence, 0)
                assert int(os.pread(fd, 32, 0)) == lease.fence, "two holders"
                done += 1
        assert done >= self._least, "it hardly got in"

    def kill(self) -> None:
        assert os.waitpid(self.pid, os.WNOHANG) == (0, 0), "it failed by itself"
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def ended_well(self) -> bool:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]) == 0


def integrity(path: Path) -> str:
    check = sqlite3.connect(path)
    try:
        return str(check.execute("PRAGMA integrity_check").fetchone()[0])
    finally:
        check.close()


@pytest.mark.parametrize("kills", [40, pytest.param(1000, marks=pytest.mark.soak)])
@pytest.mark.timeout(600)
def test_processes_killed_in_the_middle_of_anything(path: Path, kills: int) -> None:
    path.with_name("shared").touch()
    dice = random.Random(7)
    survivor = Worker(path, least=kills)
    victims = [Worker(path) for _ in range(2)]
    try:
        for _ in range(kills // 2):
            for i, victim in enumerate(victims):
                assert victim.started
                time.sleep(dice.random() * 0.02)
                victim.kill()
                victims[i] = Worker(path)
    finally:
        path.with_name("stop").touch()
        ends = [worker.ended_well() for worker in (survivor, *victims)]
    assert all(ends), "and the others went on all the time"
    assert integrity(path) == "ok"
    with fairlock.connect(f"sqlite:///{path}") as locks:
        assert locks.lock("k").acquire(timeout=5), "nothing is left held"


def test_openers_killed_while_the_file_is_being_made(tmp_path: Path) -> None:
    dice = random.Random(3)
    for i in range(10):
        path = tmp_path / f"{i}.db"
        makers = [
            python(
                """
                print("ready", flush=True)
                put(store_at(sys.argv[1]), str(os.getpid()))
                """,
                path,
            )
            for _ in range(2)
        ]
        for maker in makers:
            assert maker.stdout is not None
            maker.stdout.readline()
        time.sleep(dice.random() * 0.004)
        for maker in makers:
            maker.kill()
            maker.communicate()
        store = store_at(path)
        put(store, "k", "fine")
        run(store.close())
        assert integrity(path) == "ok"


def test_checkpointers_killed_in_the_middle(path: Path) -> None:
    dice = random.Random(5)
    store = store_at(path)
    put(store, "k")
    for i in range(10):
        tidier = python(
            """
            store = store_at(sys.argv[1])
            put(store, "t")
            print("ready", flush=True)
            while True:
                put(store, "t")
                store._maintenance.checkpoint()
            """,
            path,
        )
        assert tidier.stdout is not None
        tidier.stdout.readline()
        put(store, f"k{i}", "x" * 5000)
        time.sleep(dice.random() * 0.02)
        tidier.kill()
        tidier.communicate()
        began = time.monotonic()
        put(store, "k", str(i))
        assert time.monotonic() - began < 4, "others go on at once"
    run(store.close())
    assert integrity(path) == "ok"


def test_a_process_stopped_in_the_middle_of_a_write_blocks_writers_with_a_sentence_and_readers_not_at_all(
    path: Path,
) -> None:
    """A statement is short, so most stops of a tight loop miss it: stop until one hits, then look."""
    store = store_at(path, busy_timeout=0.05)
    put(store, "k")
    writer = python(
        """
        store = store_at(sys.argv[1])
        row = get(store, "w").row
        version = put(store, "w").version
        from fairlock.stores.base import Row
        print("ready", flush=True)
        while True:
            version = run(store.write(Row("w", 1, "", "x" * 20000), version, 0, ())).version
        """,
        path,
    )
    assert writer.stdout is not None
    writer.stdout.readline()
    hit = ""
    try:
        for _ in range(300):
            stop(writer.pid)
            try:
                put(store, "k")
            except fairlock.StoreError as bad:
                hit = str(bad)
                assert run(store.read("k")).row is not None, "reading goes on"
            os.kill(writer.pid, signal.SIGCONT)
            if hit:
                break
            time.sleep(0.001)
        assert hit, "in 300 tries the writer was never stopped inside a write, where it spends a sixth of its time"
        assert f"process {writer.pid} " in hit
        assert f"kill -CONT {writer.pid}" in hit
        put(store_at(path), "k", "after it was continued")
    finally:
        writer.kill()
        writer.communicate()
        run(store.close())
    assert integrity(path) == "ok"


def test_a_holder_stopped_past_its_lease_is_passed_over_and_learns_of_it(path: Path) -> None:
    holder = python(
        """
        import fairlock
        locks = fairlock.connect(f"sqlite:///{sys.argv[1]}", lease=0.5)
        lease = locks.lock("k").acquire()
        print(lease.fence, flush=True)
        sys.stdin.readline()
        print(lease.lost, lease.held, flush=True)
        """,
        path,
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    fence = int(holder.stdout.readline())
    stop(holder.pid)
    with fairlock.connect(f"sqlite:///{path}") as locks:
        lease = locks.lock("k").acquire(timeout=5)
        assert lease is not None
        assert lease.fence > fence
        os.kill(holder.pid, signal.SIGCONT)
        holder.stdin.write("look\n")
        holder.stdin.flush()
        assert holder.stdout.readline().split() == ["True", "False"]
    holder.communicate()
