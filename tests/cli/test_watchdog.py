"""The watchdog: whatever happens to the wrapper, the command and its descendants are dead before the lease ends."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlock.cli.process_tree import process, read_stat
from fairlock.cli.watchdog import NEVER, KillSchedule
from tests.cli.conftest import alive, until
from tests.machine_load import within

STANDIN = str(Path(__file__).with_name("standin.py"))


# The schedule, with times as arguments.


def test_term_comes_early_and_kill_at_the_deadline() -> None:
    schedule = KillSchedule("kill", early=10)
    schedule.move(30)
    assert schedule.due(19.9) == ""
    assert schedule.next() == 20
    assert schedule.due(20) == "term"
    assert schedule.due(20) == ""
    assert schedule.next() == 30
    assert schedule.due(30) == "kill"
    assert schedule.due(31) == ""
    assert schedule.next() == NEVER


def test_a_renewal_after_term_calls_off_the_kill() -> None:
    schedule = KillSchedule("kill", early=10)
    schedule.move(30)
    assert schedule.due(25) == "term"
    schedule.move(52)
    assert schedule.due(31) == ""
    assert schedule.next() == 42
    assert schedule.due(42) == "term"


def test_a_deadline_that_jumps_into_the_past_kills_at_once() -> None:
    schedule = KillSchedule("kill", early=10)
    schedule.move(30)
    schedule.move(5)
    assert schedule.due(6) == "kill"


def test_term_mode_never_kills_and_warn_mode_does_nothing() -> None:
    term, warn = KillSchedule("term", early=10), KillSchedule("warn", early=10)
    for schedule in (term, warn):
        schedule.move(30)
    assert [term.due(25), term.due(35), term.next()] == ["term", "", NEVER]
    assert [warn.due(25), warn.due(35), warn.next()] == ["", "", NEVER]


# The real thing, with real processes.


HUSH = "exec </dev/null >/dev/null 2>&1; "  # else a reader of our pipes waits for the descendants, too


class Standin:
    def __init__(self, *argv: object, text: str, folder: Path) -> None:
        self.folder = folder
        self.liveness_fd, theirs = os.pipe()

        def put_at_nine() -> None:
            os.dup2(theirs, 9)

        self.process = subprocess.Popen(
            [sys.executable, STANDIN, *map(str, argv), "--", "/bin/sh", "-c", HUSH + text], cwd=folder, pass_fds=[9],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=put_at_nine,
        )
        os.close(theirs)
        self.watchdog, self.child = map(int, self.line().split())

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def send(self, text: object) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()

    def is_alive(self) -> bool:
        """Return True if a process still has the liveness_fd."""
        return not select.select([self.liveness_fd], [], [], 0)[0]

    def pids(self, *names: str) -> list[int]:
        """Return the pids that the command and its descendants wrote to files of these names."""
        for name in names:
            until(lambda name=name: (self.folder / name).exists() and (self.folder / name).read_text().endswith("\n"))
        return [int((self.folder / name).read_text()) for name in names]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Standin]]:
    started: list[Standin] = []

    def start(*argv: object, text: str) -> Standin:
        started.append(Standin(*argv, text=text, folder=tmp_path))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()
        until(lambda one=one: not alive(one.watchdog))  # it ends the others
        if alive(one.child):
            os.kill(one.child, signal.SIGKILL)
        os.close(one.liveness_fd)


# A child of its own, a grandchild in another session, one without its environment.
FAMILY = """
    echo $$ > child
    sleep 600 & echo $! > near
    setsid sh -c 'echo $$ > far; exec sleep 600' &
    (exec env -i sh -c 'echo $$ > naked; exec sleep 600') &
    wait
"""


@pytest.mark.parametrize("kind", ["GROUP", "SHARED"])
def test_the_family_is_dead_at_the_deadline_after_a_term(start: Callable[..., Standin], kind: str) -> None:
    it = start("kill", 0.3, kind, 600, text="trap 'echo >> termed' TERM; " + FAMILY + "while :; do sleep 600; done")
    pids = it.pids("child", "near", "far", "naked")
    began = time.monotonic()
    it.send(0.8)
    until(lambda: (it.folder / "termed").exists())
    termed = time.monotonic() - began
    until(lambda: not any(map(alive, pids)))
    killed = time.monotonic() - began
    assert 0.4 < termed < within(0.8, below=killed)
    assert 0.75 < killed < within(1.5, below=15)
    assert (it.folder / "termed").read_text() == "\n"  # once
    it.send("receive")
    assert it.line() == "kill term"


def test_a_stopped_wrapper_changes_nothing(start: Callable[..., Standin]) -> None:
    it = start("kill", 0.1, "SHARED", 600, text=FAMILY)
    pids = it.pids("child", "near", "far", "naked")
    it.send(0.6)
    it.send("receive")
    it.line()
    os.kill(it.process.pid, signal.SIGSTOP)
    assert 0 < until(lambda: not any(map(alive, pids))) < within(1.5, below=15)
    os.kill(it.process.pid, signal.SIGCONT)


@pytest.mark.parametrize("kind", ["GROUP", "SHARED"])
def test_killing_the_wrapper_ends_the_whole_family_at_once_and_only_then_closes_the_liveness_fd(
    start: Callable[..., Standin], kind: str
) -> None:
    it = start("kill", 5, kind, 600, text=FAMILY)
    pids = it.pids("child", "near", "far", "naked")
    it.process.kill()
    it.process.wait()
    took = until(lambda: not it.is_alive())
    assert not any(map(alive, pids))
    assert took < within(1, below=4)
    until(lambda: not alive(it.watchdog))


def test_a_command_that_ignores_everything_is_killed_too(start: Callable[..., Standin]) -> None:
    it = start("kill", 0.2, "SHARED", 600, text="trap '' TERM HUP INT; echo $$ > child; sleep 600; sleep 600")
    (pid,) = it.pids("child")
    it.send(0.3)
    until(lambda: not alive(pid))


def test_a_stopped_command_gets_term(start: Callable[..., Standin]) -> None:
    it = start("term", 0.2, "SHARED", 600, text="trap 'echo > termed; exit' TERM; echo $$ > child; kill -STOP $$")
    (pid,) = it.pids("child")
    until(lambda: (seen := read_stat(pid)) and seen.state == "T")
    it.send(0.3)
    until(lambda: (it.folder / "termed").exists())


def test_neighbours_in_the_same_process_group_are_spared(start: Callable[..., Standin]) -> None:
    it = start("kill", 0.1, "SHARED", 600, text="echo $$ > child; exec sleep 600")
    (pid,) = it.pids("child")
    mine, its, wrappers = (read_stat(p) for p in (os.getpid(), pid, it.process.pid))
    assert mine and its and wrappers
    assert mine.group == its.group == wrappers.group
    it.send(0.2)
    until(lambda: not alive(pid))
    it.send("receive")
    assert it.line() == "term"  # and both of us are here to say so


def test_a_wrapper_killed_while_it_starts_the_command_leaves_nothing(start: Callable[..., Standin]) -> None:
    it = start("kill", 5, "UNREPORTED", 600, text="echo $$ > child; exec sleep 600")
    (pid,) = it.pids("child")
    it.process.kill()
    until(lambda: not it.is_alive())
    assert not alive(pid)


@pytest.mark.parametrize("mode", ["term", "warn"])
def test_with_term_and_warn_the_command_may_go_on(start: Callable[..., Standin], mode: str) -> None:
    text = "trap 'echo > termed' TERM; echo $$ > child; while :; do sleep 0.05; done"
    it = start(mode, 0.1, "GROUP", 600, text=text)
    (pid,) = it.pids("child")
    it.send(0.2)
    it.send("receive")
    it.line()
    if mode == "term":
        until(lambda: (it.folder / "termed").exists())
    it.process.kill()
    until(lambda: not it.is_alive())  # at the end of the lease at the latest
    assert alive(pid)
    assert (it.folder / "termed").exists() == (mode == "term")


def test_what_a_command_left_in_the_background_is_left_alone(start: Callable[..., Standin]) -> None:
    it = start("kill", 5, "SHARED", 600, text="sleep 600 & echo $! > near")
    (pid,) = it.pids("near")
    it.send("over")
    assert it.line() == "clean"
    it.send(0.1)
    it.process.communicate()
    until(lambda: not alive(it.watchdog))
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)


def test_terminated_descendants_are_dead_before_the_watchdog_reports_clean(start: Callable[..., Standin]) -> None:
    text = "(trap '' TERM; sleep 600) & echo $! > near; trap exit TERM; wait"
    it = start("kill", 600, "SHARED", 9999, text=text)
    (pid,) = it.pids("near")
    it.send(600)  # TERM at once, KILL in ten minutes
    until(lambda: not alive(it.child))
    assert alive(pid)
    it.send(0.2)
    it.send("over")
    assert it.line() == "clean term"
    assert not alive(pid)


def test_the_watchdog_keeps_of_the_wrapper_only_stderr_and_the_liveness_fd(start: Callable[..., Standin]) -> None:
    it = start("kill", 5, "GROUP", 600, text="echo $$ > child; exec sleep 600")
    it.pids("child")
    fds = f"/proc/{it.watchdog}/fd"
    until(lambda: os.path.exists(f"{fds}/4") and os.readlink(f"{fds}/4").startswith("pipe:"))  # it has the liveness_fd
    assert sorted(os.listdir(fds)) == ["0", "1", "2", "3", "4"]
    assert os.readlink(f"{fds}/0") == os.readlink(f"{fds}/1") == "/dev/null"
    assert os.readlink(f"{fds}/3").startswith("socket:")
    assert os.getsid(it.watchdog) == it.watchdog
    assert os.readlink(f"/proc/{it.watchdog}/cwd") == "/"


def test_a_pid_used_again_is_another_process() -> None:
    me = process(os.getpid())
    assert me is not None
    assert me.alive
    assert not me._replace(start=me.start - 1).alive
