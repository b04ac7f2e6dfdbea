"""Many processes and threads at one lock of one file, through the client itself."""

import faulthandler
import os
import signal
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

import fairlock

# Newer Pythons warn about a fork with threads around; these children begin with a client of their own.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def processes(number: int, work: Callable[[], None]) -> bool:
    """Run this in `number` forked processes. Return True if all went well."""
    pids: list[int] = []
    ends: list[int] = []
    try:
        for _ in range(number):
            pid = os.fork()
            if pid == 0:
                faulthandler.dump_traceback_later(90, exit=True)  # one that hangs shall say where
                try:
                    work()
                    os._exit(0)
                except BaseException:
                    traceback.print_exc()
                os._exit(1)
            pids.append(pid)
        for pid in pids:
            ends.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    finally:
        for pid in pids[len(ends) :]:
            os.kill(pid, signal.SIGKILL)
    return not any(ends)


def add_one(file: Path) -> None:
    """Reads, then writes: two at once lose one."""
    value = int(file.read_text())
    file.write_text(str(value + 1))


@pytest.mark.parametrize("times", [15, pytest.param(100, marks=pytest.mark.soak)])
def test_thirty_two_processes_count_and_lose_nothing(path: Path, times: int) -> None:
    counter = path.with_name("counter")
    counter.write_text("0")

    def work() -> None:
        with fairlock.connect(f"sqlite:///{path}") as locks:
            for _ in range(times):
                with locks.lock("k"):
                    add_one(counter)

    assert processes(32, work)
    assert counter.read_text() == str(32 * times)


def test_threads_of_several_processes_count_together(path: Path) -> None:
    counter = path.with_name("counter")
    counter.write_text("0")

    def work() -> None:
        with fairlock.connect(f"sqlite:///{path}") as locks:

            def count() -> None:
                for _ in range(20):
                    with locks.lock("k"):
                        add_one(counter)

            threads = [threading.Thread(target=count) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    assert processes(4, work)
    assert counter.read_text() == "640"


def test_a_semaphore_lets_in_as_many_as_it_has_slots(path: Path) -> None:
    grants = path.with_name("grants")
    grants.mkdir()

    def work() -> None:
        with fairlock.connect(f"sqlite:///{path}") as locks:
            for _ in range(30):
                with locks.semaphore("k", 3):
                    mine = grants / str(os.getpid())
                    mine.touch()
                    assert len(os.listdir(grants)) <= 3
                    mine.unlink()

    assert processes(8, work)


def test_a_crowd_that_meets_at_a_file_that_does_not_exist_yet(tmp_path: Path) -> None:
    for i in range(5):
        path = tmp_path / f"{i}.db"

        def work(path: Path = path) -> None:
            with fairlock.connect(f"sqlite:///{path}") as locks:
                with locks.lock("k", timeout=60):
                    pass

        assert processes(8, work)
