"""What happens to the command when its lease cannot be kept, or its wrapper is stopped or killed."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

from holdfast.cli.undertaker import children
from tests.busy import within
from tests.cli.conftest import Tool, alive, until

# A child of its own, a grandchild in another session, one without its environment. None of them keeps our pipes.
FAMILY = """
    exec </dev/null >/dev/null 2>&1
    echo $$ > child
    sleep 600 & echo $! > near
    setsid sh -c 'echo $$ > far; exec sleep 600' &
    (exec env -i sh -c 'echo $$ > naked; exec sleep 600') &
    wait
"""


def guard_of(wrapper: int) -> int:
    (pid,) = [pid for pid in children(wrapper) if os.getsid(pid) == pid]
    return pid


def test_killing_the_wrapper_ends_its_whole_family_and_lets_the_next_one_in(holdfast: Tool) -> None:
    first = holdfast.holding("run", "x", "-c", FAMILY)
    pids = holdfast.pids("child", "near", "far", "naked")
    second = holdfast.start("run", "x", "-c", "date +%s%N > began")
    until(lambda: holdfast.line("x"))
    killed = time.time_ns()
    first.kill()
    assert second.wait(20) == 0
    assert not any(map(alive, pids))
    assert first.stderr is not None
    assert first.stderr.read() == ""  # not even "Killed" from a shell inside
    (began,) = holdfast.pids("began")
    assert (began - killed) / 1e9 < within(1, below=20)  # 30 s would be a lease; a quiet machine needs 20 ms


def test_at_least_is_kept_by_the_release_and_does_not_outlive_a_kill(holdfast: Tool) -> None:
    first = holdfast.holding("run", "--at-least", "600", "x", "-c", "echo $$ > child; exec sleep 600")
    (command,) = holdfast.pids("child")
    os.kill(command, signal.SIGKILL)  # the wrapper lives, and keeps it closed
    first.wait(20)
    assert "kept closed" in holdfast("run", "-n", "x", "true").stderr
    second = holdfast.holding("run", "--at-least", "600", "y", "sleep", "600", name="y")
    second.kill()
    assert holdfast("run", "-w", "20", "y", "true").returncode == 0


def test_who_was_killed_is_not_shown_as_a_holder(holdfast: Tool) -> None:
    first = holdfast.holding("run", "x", "sleep", "600")
    first.kill()
    until(lambda: not holdfast.inside("x"))
    assert holdfast("ls", "--held").stdout.startswith("no names")


def test_a_stopped_wrapper_loses_its_command_before_its_lease(holdfast: Tool) -> None:
    first = holdfast.holding("run", "--lease", "1.5", "x", "-c", FAMILY)
    pids = holdfast.pids("child", "near", "far", "naked")
    second = holdfast.start("run", "x", "-c", "date +%s%N > began")
    until(lambda: holdfast.line("x"))
    first.send_signal(signal.SIGSTOP)
    until(lambda: not any(map(alive, pids)))
    assert not (holdfast.folder / "began").exists()
    assert second.wait(20) == 0
    first.send_signal(signal.SIGCONT)
    _, err = first.communicate(timeout=20)
    assert first.returncode == 79
    assert err.startswith("holdfast: The lease on 'x' was lost: it was not renewed in time")
    assert err.count("\n") == 1


def test_killing_the_guard_does_not_end_the_protection(holdfast: Tool) -> None:
    first = holdfast.holding("run", "--max-hold", "3", "x", "-c", FAMILY)
    pids = holdfast.pids("child", "near", "far", "naked")
    os.kill(guard_of(first.pid), signal.SIGKILL)
    assert first.wait(20) == 79
    assert not any(map(alive, pids))


def test_killing_the_guard_harms_nobody(holdfast: Tool) -> None:
    first = holdfast.holding("run", "x", "-c", "read line; exit 4")
    os.kill(guard_of(first.pid), signal.SIGKILL)
    first.communicate("go\n", timeout=20)
    assert first.returncode == 4
    assert holdfast.inside("x") == []


def test_killing_wrapper_and_guard_leaves_the_command_running_without_its_lock(holdfast: Tool) -> None:
    first = holdfast.holding("run", "x", "-c", "exec </dev/null >/dev/null 2>&1; echo $$ > child; exec sleep 600")
    (pid,) = holdfast.pids("child")
    guard = guard_of(first.pid)
    os.kill(first.pid, signal.SIGSTOP)  # or each would see the other die
    os.kill(guard, signal.SIGKILL)
    first.kill()
    first.wait()
    try:
        assert holdfast("run", "-w", "10", "x", "echo", "next").stdout == "next\n"
        assert alive(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_command_that_holds_too_long_is_stopped(holdfast: Tool) -> None:
    text = "trap 'echo > termed; exit' TERM; sleep 60"
    done = holdfast("run", "--max-hold", "700ms", "--grace", "300ms", "x", "-c", text)
    assert done.returncode == 79
    assert (holdfast.folder / "termed").exists()
    assert done.stderr.endswith("'x' was held for as long as --max-hold allows. '/bin/sh' was stopped.\n")


def test_an_evicted_command_is_told_to_stop(holdfast: Tool) -> None:
    text = "trap 'echo > termed; exit' TERM; echo $$ > up; sleep 60 & wait"
    first = holdfast.holding("run", "--lease", "3", "x", "-c", text)
    holdfast.pids("up")
    assert holdfast("evict", "x", "--reason", "maintenance", "-y").returncode == 0
    _, err = first.communicate(timeout=20)
    assert first.returncode == 79
    assert "maintenance" in err
    assert (holdfast.folder / "termed").exists()
    assert holdfast.inside("x") == []


def test_with_warn_the_command_runs_on_and_keeps_its_exit_code(holdfast: Tool) -> None:
    done = holdfast("run", "--on-lost", "warn", "--max-hold", "300ms", "x", "-c", "sleep 0.6; exit 6")
    assert done.returncode == 6
    assert done.stderr.startswith("holdfast: The lease on 'x' was lost")
    assert done.stderr.endswith("'/bin/sh' ran on.\n")


def test_with_term_a_stubborn_command_is_not_killed(holdfast: Tool) -> None:
    text = "trap 'echo > termed' TERM; sleep 0.3 & wait; sleep 0.6; exit 6"
    done = holdfast("run", "--on-lost", "term", "--max-hold", "400ms", "--grace", "300ms", "x", "-c", text)
    assert (holdfast.folder / "termed").exists()
    assert done.returncode == 79


def test_a_family_outside_the_lease_is_gone_before_the_next_one_comes(holdfast: Tool) -> None:
    text = "trap '' TERM; (sleep 600) & echo $! > near; wait"
    first = holdfast.holding("run", "--max-hold", "700ms", "x", "-c", text)
    (pid,) = holdfast.pids("near")
    second = holdfast.start("run", "x", "-c", "date +%s%N > began")
    until(lambda: (holdfast.folder / "began").exists())
    assert not alive(pid)
    assert first.wait(20) == 79
    assert second.wait(20) == 0


def test_a_wrapper_killed_in_line_leaves_no_place_behind(holdfast: Tool) -> None:
    first = holdfast.holding("run", "x", "-c", "read line")
    dead = holdfast.start("run", "x", "true")
    until(lambda: holdfast.line("x"))
    living = holdfast.start("run", "x", "true")
    until(lambda: len(holdfast.line("x")) == 2)
    dead.kill()
    dead.wait()
    first.communicate("go\n", timeout=20)
    began = time.monotonic()
    assert living.wait(20) == 0
    assert time.monotonic() - began < within(1.5, below=2)  # its patience would be longer


def test_an_evicted_command_is_dead_before_the_next_one_comes(holdfast: Tool) -> None:
    text = "trap '' TERM; echo $$ > up; while :; do sleep 0.05; done"
    first = holdfast.holding("run", "--lease", "6", "x", "-c", text)
    (pid,) = holdfast.pids("up")
    second = holdfast.start("run", "x", "-c", f"kill -0 {pid} 2>/dev/null && echo two were inside")
    until(lambda: holdfast.line("x"))
    holdfast("evict", "x", "--reason", "maintenance", "-y")
    assert first.wait(20) == 79
    assert second.communicate(timeout=20)[0] == ""


def test_a_store_that_hangs_costs_the_command_in_time(holdfast: Tool) -> None:
    first = holdfast.holding("run", "--lease", "1.5", "x", "-c", FAMILY)
    pids = holdfast.pids("child", "near", "far", "naked")
    blocker = sqlite3.connect(holdfast.folder / "locks.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")  # nobody else can write
    took = until(lambda: not any(map(alive, pids)))
    assert took < within(1.5 + 0.5, below=10)  # the lease may have been renewed just before
    blocker.execute("ROLLBACK")
    blocker.close()
    _, err = first.communicate(timeout=30)
    assert first.returncode == 79
    assert "was stopped." in err


def test_a_bug_in_the_wrapper_costs_the_command_too(holdfast: Tool) -> None:
    program = """
import sys
from holdfast.cli import child, main
def stumble(self):
    import os, time
    while not os.path.exists("child"):
        time.sleep(0.01)
    raise RuntimeError("oops")
child.Attendant.reap = stumble
sys.exit(main(["run", "x", "-c", "sleep 600 & echo $$ > child; exec >/dev/null 2>&1; wait"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=holdfast.folder, env=holdfast.env, start_new_session=True,
        capture_output=True, text=True,
    )
    assert done.returncode == 70
    assert done.stderr == "holdfast: This is a bug: RuntimeError: oops. HOLDFAST_DEBUG=1 shows where.\n"
    (pid,) = holdfast.pids("child")
    until(lambda: not alive(pid))
    assert holdfast("run", "-w", "5", "x", "echo", "next").stdout == "next\n"


def test_a_script_does_not_go_on_with_its_next_line_while_it_is_killed(holdfast: Tool) -> None:
    program = """
import sys
from holdfast.cli import child, main
child.terminal = lambda: True  # the way it is done where a group of its own cannot be had
sys.exit(main(sys.argv[1:]))
"""
    crowd = "sleep 600 & " * 100  # it takes a while to kill them all
    text = f"exec >/dev/null 2>&1; {crowd} echo $$ > child; sleep 600; echo > next"
    it = subprocess.Popen(
        [sys.executable, "-c", program, "run", "x", "-c", text], cwd=holdfast.folder, env=holdfast.env,
        start_new_session=True,
    )
    (pid,) = holdfast.pids("child")
    until(lambda: len(children(pid)) == 101)
    it.kill()
    it.wait()
    until(lambda: not alive(pid))
    assert not (holdfast.folder / "next").exists()
