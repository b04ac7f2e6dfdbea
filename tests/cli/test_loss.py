"""Tests of the command when its lease is lost, or its wrapper is stopped or killed."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

from fairlock.cli.process_tree import children
from tests.cli.conftest import Tool, alive, until
from tests.machine_load import within

# A child of its own, a grandchild in another session, one without its environment. None of them keeps our pipes.
FAMILY = """
    exec </dev/null >/dev/null 2>&1
    echo $$ > child
    sleep 600 & echo $! > near
    setsid sh -c 'echo $$ > far; exec sleep 600' &
    (exec env -i sh -c 'echo $$ > naked; exec sleep 600') &
    wait
"""


def watchdog_of(wrapper: int) -> int:
    (pid,) = [pid for pid in children(wrapper) if os.getsid(pid) == pid]
    return pid


def test_killing_the_wrapper_ends_all_descendants_and_frees_the_lock(fairlock: Tool) -> None:
    first = fairlock.holding("run", "x", "-c", FAMILY)
    pids = fairlock.pids("child", "near", "far", "naked")
    second = fairlock.start("run", "x", "-c", "date +%s%N > began")
    until(lambda: fairlock.queue("x"))
    killed = time.time_ns()
    first.kill()
    assert second.wait(20) == 0
    assert not any(map(alive, pids))
    assert first.stderr is not None
    assert first.stderr.read() == ""  # not even "Killed" from a shell inside
    (began,) = fairlock.pids("began")
    assert (began - killed) / 1e9 < within(1, below=20)  # 30 s would be a lease; a quiet machine needs 20 ms


def test_at_least_is_kept_by_the_release_and_does_not_outlive_a_kill(fairlock: Tool) -> None:
    first = fairlock.holding("run", "--at-least", "600", "x", "-c", "echo $$ > child; exec sleep 600")
    (command,) = fairlock.pids("child")
    os.kill(command, signal.SIGKILL)  # the wrapper lives, and keeps it closed
    first.wait(20)
    assert "kept closed" in fairlock("run", "-n", "x", "true").stderr
    second = fairlock.holding("run", "--at-least", "600", "y", "sleep", "600", name="y")
    second.kill()
    assert fairlock("run", "-w", "20", "y", "true").returncode == 0


def test_a_killed_run_is_not_shown_as_a_holder(fairlock: Tool) -> None:
    first = fairlock.holding("run", "x", "sleep", "600")
    first.kill()
    until(lambda: not fairlock.holders("x"))
    assert fairlock("ls", "--held").stdout.startswith("no names")


def test_a_stopped_wrapper_loses_its_command_before_its_lease(fairlock: Tool) -> None:
    first = fairlock.holding("run", "--lease", "1.5", "x", "-c", FAMILY)
    pids = fairlock.pids("child", "near", "far", "naked")
    second = fairlock.start("run", "x", "-c", "date +%s%N > began")
    until(lambda: fairlock.queue("x"))
    first.send_signal(signal.SIGSTOP)
    until(lambda: not any(map(alive, pids)))
    assert not (fairlock.folder / "began").exists()
    assert second.wait(20) == 0
    first.send_signal(signal.SIGCONT)
    _, err = first.communicate(timeout=20)
    assert first.returncode == 79
    assert err.startswith("fairlock: The lease on 'x' was lost: it was not renewed in time")
    assert err.count("\n") == 1


def test_killing_the_watchdog_does_not_end_the_protection(fairlock: Tool) -> None:
    first = fairlock.holding("run", "--max-hold", "3", "x", "-c", FAMILY)
    pids = fairlock.pids("child", "near", "far", "naked")
    os.kill(watchdog_of(first.pid), signal.SIGKILL)
    assert first.wait(20) == 79
    assert not any(map(alive, pids))


def test_killing_the_watchdog_does_no_harm(fairlock: Tool) -> None:
    first = fairlock.holding("run", "x", "-c", "read line; exit 4")
    os.kill(watchdog_of(first.pid), signal.SIGKILL)
    first.communicate("go\n", timeout=20)
    assert first.returncode == 4
    assert fairlock.holders("x") == []


def test_killing_wrapper_and_watchdog_leaves_the_command_running_without_its_lock(fairlock: Tool) -> None:
    first = fairlock.holding("run", "x", "-c", "exec </dev/null >/dev/null 2>&1; echo $$ > child; exec sleep 600")
    (pid,) = fairlock.pids("child")
    watchdog = watchdog_of(first.pid)
    os.kill(first.pid, signal.SIGSTOP)  # or each would see the other die
    os.kill(watchdog, signal.SIGKILL)
    first.kill()
    first.wait()
    try:
        assert fairlock("run", "-w", "10", "x", "echo", "next").stdout == "next\n"
        assert alive(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_command_that_holds_too_long_is_stopped(fairlock: Tool) -> None:
    text = "trap 'echo > termed; exit' TERM; sleep 60"
    done = fairlock("run", "--max-hold", "700ms", "--grace", "300ms", "x", "-c", text)
    assert done.returncode == 79
    assert (fairlock.folder / "termed").exists()
    assert done.stderr.endswith("'x' was held for as long as --max-hold allows. '/bin/sh' was stopped.\n")


def test_an_evicted_command_gets_term(fairlock: Tool) -> None:
    text = "trap 'echo > termed; exit' TERM; echo $$ > up; sleep 60 & wait"
    first = fairlock.holding("run", "--lease", "3", "x", "-c", text)
    fairlock.pids("up")
    assert fairlock("evict", "x", "--reason", "maintenance", "-y").returncode == 0
    _, err = first.communicate(timeout=20)
    assert first.returncode == 79
    assert "maintenance" in err
    assert (fairlock.folder / "termed").exists()
    assert fairlock.holders("x") == []


def test_with_warn_the_command_runs_on_and_keeps_its_exit_code(fairlock: Tool) -> None:
    done = fairlock("run", "--on-lost", "warn", "--max-hold", "300ms", "x", "-c", "sleep 0.6; exit 6")
    assert done.returncode == 6
    assert done.stderr.startswith("fairlock: The lease on 'x' was lost")
    assert done.stderr.endswith("'/bin/sh' ran on.\n")


def test_with_term_a_stubborn_command_is_not_killed(fairlock: Tool) -> None:
    text = "trap 'echo > termed' TERM; sleep 0.3 & wait; sleep 0.6; exit 6"
    done = fairlock("run", "--on-lost", "term", "--max-hold", "400ms", "--grace", "300ms", "x", "-c", text)
    assert (fairlock.folder / "termed").exists()
    assert done.returncode == 79


def test_descendants_are_dead_before_the_next_command_starts(fairlock: Tool) -> None:
    text = "trap '' TERM; (sleep 600) & echo $! > near; wait"
    first = fairlock.holding("run", "--max-hold", "700ms", "x", "-c", text)
    (pid,) = fairlock.pids("near")
    second = fairlock.start("run", "x", "-c", "date +%s%N > began")
    until(lambda: (fairlock.folder / "began").exists())
    assert not alive(pid)
    assert first.wait(20) == 79
    assert second.wait(20) == 0


def test_a_wrapper_killed_while_it_waits_leaves_the_queue(fairlock: Tool) -> None:
    first = fairlock.holding("run", "x", "-c", "read line")
    dead = fairlock.start("run", "x", "true")
    until(lambda: fairlock.queue("x"))
    living = fairlock.start("run", "x", "true")
    until(lambda: len(fairlock.queue("x")) == 2)
    dead.kill()
    dead.wait()
    first.communicate("go\n", timeout=20)
    began = time.monotonic()
    assert living.wait(20) == 0
    assert time.monotonic() - began < within(1.5, below=2)  # the entry of the killed one would last longer


def test_an_evicted_command_is_dead_before_the_next_one_comes(fairlock: Tool) -> None:
    text = "trap '' TERM; echo $$ > up; while :; do sleep 0.05; done"
    first = fairlock.holding("run", "--lease", "6", "x", "-c", text)
    (pid,) = fairlock.pids("up")
    second = fairlock.start("run", "x", "-c", f"kill -0 {pid} 2>/dev/null && echo two at the same time")
    until(lambda: fairlock.queue("x"))
    fairlock("evict", "x", "--reason", "maintenance", "-y")
    assert first.wait(20) == 79
    assert second.communicate(timeout=20)[0] == ""


def test_a_store_that_hangs_costs_the_command_in_time(fairlock: Tool) -> None:
    first = fairlock.holding("run", "--lease", "1.5", "x", "-c", FAMILY)
    pids = fairlock.pids("child", "near", "far", "naked")
    blocker = sqlite3.connect(fairlock.folder / "locks.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")  # nobody else can write
    took = until(lambda: not any(map(alive, pids)))
    assert took < within(1.5 + 0.5, below=10)  # the lease may have been renewed just before
    blocker.execute("ROLLBACK")
    blocker.close()
    _, err = first.communicate(timeout=30)
    assert first.returncode == 79
    assert "was stopped." in err


def test_a_bug_in_the_wrapper_costs_the_command_too(fairlock: Tool) -> None:
    program = """
import sys
from fairlock.cli import child_process, main
def stumble(self):
    import os, time
    while not (os.path.exists("child") and os.path.getsize("child")):
        time.sleep(0.01)
    raise RuntimeError("oops")
child_process.Supervisor.reap = stumble
sys.exit(main(["run", "x", "-c", "sleep 600 & echo $$ > child; exec >/dev/null 2>&1; wait"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=fairlock.folder, env=fairlock.env, start_new_session=True,
        capture_output=True, text=True,
    )
    assert done.returncode == 70
    assert done.stderr == "fairlock: Internal error: RuntimeError: oops. FAIRLOCK_DEBUG=1 shows the traceback.\n"
    (pid,) = fairlock.pids("child")
    until(lambda: not alive(pid))
    assert fairlock("run", "-w", "5", "x", "echo", "next").stdout == "next\n"


def test_a_script_does_not_go_on_with_its_next_line_while_it_is_killed(fairlock: Tool) -> None:
    program = """
import sys
from fairlock.cli import child_process, main
child_process.has_terminal = lambda: True  # then the command does not get its own group
sys.exit(main(sys.argv[1:]))
"""
    crowd = "sleep 600 & " * 100  # it takes a while to kill them all
    text = f"exec >/dev/null 2>&1; {crowd} echo $$ > child; sleep 600; echo > next"
    it = subprocess.Popen(
        [sys.executable, "-c", program, "run", "x", "-c", text], cwd=fairlock.folder, env=fairlock.env,
        start_new_session=True,
    )
    (pid,) = fairlock.pids("child")
    until(lambda: len(children(pid)) == 101)
    it.kill()
    it.wait()
    until(lambda: not alive(pid))
    assert not (fairlock.folder / "next").exists()
