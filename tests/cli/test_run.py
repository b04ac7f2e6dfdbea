"""`fairlock run`: one command at a time, with its own exit code, signals and standard input."""

import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from tests.cli.conftest import TOOL, Tool, alive, until


def test_it_runs_the_command(fairlock: Tool) -> None:
    done = fairlock("run", "hello", "--", "echo", "hi")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hi\n", "")


@pytest.mark.parametrize(
    "text, code", [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -9 $$", 137)]
)
def test_the_exit_code_is_the_commands_own_or_128_and_its_signal(fairlock: Tool, text: str, code: int) -> None:
    assert fairlock("run", "x", "--", "sh", "-c", text).returncode == code


def test_options_of_the_command_are_its_own(fairlock: Tool) -> None:
    done = fairlock("run", "x", "echo", "-n", "--json", "--", "-u")
    assert done.stdout == "--json -- -u"


def test_standard_input_belongs_to_the_command(fairlock: Tool) -> None:
    assert fairlock("run", "x", "cat", stdin="a\nb\n").stdout == "a\nb\n"


def test_shell_text_as_with_flock(fairlock: Tool) -> None:
    assert fairlock("run", "x", "-c", "echo a | tr a b").stdout == "b\n"


@pytest.mark.parametrize(
    "args, sentence",
    [
        (["x"], "No command is given. The form is `fairlock run x -- CMD`."),
        (["x", "--"], "No command is given."),
        (["x", "-n", "true"], "'-n' comes after the name 'x', where the command begins. Put options before the name"),
        (["x", "-c"], "-c needs one text, in quotes"),
        (["x", "-c", "a", "b"], "-c needs one text, in quotes"),
        (["--slots", "2", "-s", "x", "true"], "--slots makes a semaphore"),
    ],
)
def test_a_usage_error_exits_64(fairlock: Tool, args: list[str], sentence: str) -> None:
    done = fairlock("run", *args)
    assert done.returncode == 64
    assert done.stderr.startswith(f"fairlock: {sentence}")
    assert done.stderr.count("\n") == 1


def test_the_environment_of_the_command(fairlock: Tool) -> None:
    done = fairlock("run", "--lease", "5s", "x y", "--", "env")
    given = dict(line.split("=", 1) for line in done.stdout.splitlines() if line.startswith("FAIRLOCK_"))
    assert given["FAIRLOCK_NAME"] == "x y"
    assert given["FAIRLOCK_LEASE"] == "5"
    assert given["FAIRLOCK_TICKET"] == given["FAIRLOCK_HELD"] != ""
    assert int(given["FAIRLOCK_FENCE"]) > 0
    assert given["FAIRLOCK_URL"] == fairlock.url  # as the user exported it


def test_a_url_given_with_u_is_not_in_the_environment(fairlock: Tool) -> None:
    del fairlock.env["FAIRLOCK_URL"]
    done = fairlock("-u", fairlock.url, "run", "x", "env")
    assert fairlock.url not in done.stdout


def test_fences_rise(fairlock: Tool) -> None:
    fences = [int(fairlock("run", "x", "-c", "echo $FAIRLOCK_FENCE").stdout) for _ in range(3)]
    assert fences == sorted(set(fences))


# Two at once.


def test_without_waiting_the_error_names_the_holder(fairlock: Tool) -> None:
    first = fairlock.holding("run", "--owner", "web-3:4117", "--note", "ship order", "x", "sleep", "60")
    second = fairlock("run", "-n", "x", "true")
    assert second.returncode == 75
    assert second.stderr.startswith("fairlock: 'x' is held by web-3:4117 (ship order) for ")
    assert fairlock("run", "-w", "0", "x", "true").returncode == 75
    assert fairlock("run", "-n", "-E", "9", "x", "true").returncode == 9
    quiet = fairlock("-q", "run", "-n", "x", "true")
    assert (quiet.returncode, quiet.stderr) == (75, "")
    first.terminate()
    assert first.wait() == 143


def test_the_name_of_the_command_is_the_note_and_its_arguments_are_not(fairlock: Tool) -> None:
    fairlock.holding("run", "x", "sleep", "61")
    assert [one.note for one in fairlock.state("x")[0]] == ["sleep"]


def test_a_waiter_runs_as_soon_as_the_holder_ends(fairlock: Tool) -> None:
    first = fairlock.holding("run", "x", "-c", "read line; date +%s%N > ended")
    second = fairlock.start("run", "-w", "30", "x", "-c", "date +%s%N > began")
    until(lambda: fairlock.queue("x"))
    first.communicate("go\n")
    assert second.wait(20) == 0
    ended, began = fairlock.pids("ended", "began")
    assert 0 < began - ended < 500_000_000


def test_after_its_timeout_a_waiter_reports_its_position(fairlock: Tool) -> None:
    fairlock.holding("run", "x", "sleep", "60")
    began = time.monotonic()
    second = fairlock("run", "-w", "300ms", "x", "true")
    assert second.returncode == 75
    assert 0.3 < time.monotonic() - began < 5
    assert "; you waited 0.3 s, position 1 in the queue." in second.stderr
    assert fairlock.queue("x") == []


def test_readers_share_and_a_writer_waits(fairlock: Tool) -> None:
    fairlock.holding("run", "-s", "x", "sleep", "60")
    assert fairlock("run", "-n", "--shared", "x", "echo", "in").stdout == "in\n"
    assert fairlock("run", "-n", "-x", "x", "true").returncode == 75


def test_slots(fairlock: Tool) -> None:
    fairlock.holding("run", "--slots", "2", "x", "sleep", "60")
    assert fairlock("run", "-n", "--slots", "2", "x", "echo", "in").stdout == "in\n"
    other = fairlock("run", "-n", "--slots", "3", "x", "true")
    assert other.returncode == 78
    assert "'x' has 2 slots and is in use" in other.stderr


def test_a_nested_run_under_the_same_name_fails_at_once_instead_of_hanging(fairlock: Tool) -> None:
    done = fairlock("run", "x", sys.executable, "-m", "fairlock", "run", "x", "true")
    assert done.returncode == 75
    assert "held by a `fairlock run` around this one; waiting would never end" in done.stderr


def test_a_nested_run_under_another_name_keeps_both_tickets(fairlock: Tool) -> None:
    text = "echo $FAIRLOCK_HELD $FAIRLOCK_TICKET"
    done = fairlock("run", "x", sys.executable, "-m", "fairlock", "run", "y", "-c", text)
    outer, inner, own = done.stdout.split()
    assert inner == own != outer


def test_a_nested_reader_gets_in(fairlock: Tool) -> None:
    done = fairlock("run", "-s", "x", sys.executable, "-m", "fairlock", "run", "-s", "x", "echo", "in")
    assert done.stdout == "in\n"


def test_a_short_job_can_keep_the_others_out_for_a_while(fairlock: Tool) -> None:
    assert fairlock("run", "--at-least", "60", "x", "true").returncode == 0
    assert fairlock("run", "-n", "x", "true").returncode == 75


# Commands that cannot run.


@pytest.mark.parametrize(
    "command, code, text",
    [("no-such-command", 127, "is not in PATH"), ("./not-there", 127, "does not exist"),
     ("./plain", 126, "not executable"), ("./folder", 126, "is a directory"), ("/", 126, "is a directory")],
)
def test_what_cannot_run_exits_126_or_127_and_locks_nothing(fairlock: Tool, command: str, code: int, text: str) -> None:
    (fairlock.folder / "plain").write_text("true\n")
    (fairlock.folder / "folder").mkdir()
    done = fairlock("run", "x", command)
    assert done.returncode == code
    assert text in done.stderr
    assert fairlock.holders("x") == []


def test_a_broken_binary_gives_the_lock_back(fairlock: Tool) -> None:
    broken = fairlock.folder / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    done = fairlock("run", "x", "./broken")
    assert done.returncode == 127
    assert done.stderr == "fairlock: Cannot run './broken': No such file or directory.\n"
    assert fairlock.holders("x") == []


def test_a_script_without_a_first_line_is_run_by_the_shell(fairlock: Tool) -> None:
    script = fairlock.folder / "script"
    script.write_text('echo "$1"\n')
    script.chmod(0o755)
    assert fairlock("run", "x", "./script", "hi").stdout == "hi\n"


# Signals, without a terminal.


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT])
def test_signals_are_passed_on(fairlock: Tool, signum: signal.Signals) -> None:
    name = signum.name[3:]
    text = f"trap 'echo got {name}; exit 5' {name}; echo $$ > up; while :; do sleep 0.05; done"
    it = fairlock.holding("run", "x", "-c", text)
    fairlock.pids("up")
    it.send_signal(signum)
    out, _ = it.communicate(timeout=20)
    assert (it.returncode, out) == (5, f"got {name}\n")


def test_an_ignored_hang_up_stays_ignored(fairlock: Tool) -> None:
    text = f"trap '' HUP; exec {shlex.join(TOOL)} run x -c 'echo $$ > up; sleep 0.5; echo done'"
    it = subprocess.Popen(["sh", "-c", text], cwd=fairlock.folder, env=fairlock.env, stdout=subprocess.PIPE, text=True)
    fairlock.pids("up")
    it.send_signal(signal.SIGHUP)
    assert it.communicate(timeout=20)[0] == "done\n"
    assert it.returncode == 0


def test_the_command_starts_with_no_signal_blocked_or_ignored(fairlock: Tool) -> None:
    done = fairlock("run", "x", "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    masks = [int(line.split()[1], 16) for line in done.stdout.splitlines()]
    glibcs_own = 1 << 31 | 1 << 32  # its posix_spawn leaves these two ignored; no program can use them
    assert [mask & ~glibcs_own for mask in masks] == [0, 0]


def test_the_command_inherits_no_descriptor_of_ours(fairlock: Tool) -> None:
    done = fairlock("run", "x", "ls", "/proc/self/fd")
    assert done.stdout.split() == ["0", "1", "2", "3"]  # the last is ls looking


def test_stop_and_continue_reach_the_command(fairlock: Tool) -> None:
    it = fairlock.holding("run", "x", "-c", "echo $$ > child; exec sleep 60")
    (pid,) = fairlock.pids("child")
    it.send_signal(signal.SIGTSTP)
    until(lambda: state(it.pid) == "T" and state(pid) == "T")
    it.send_signal(signal.SIGCONT)
    until(lambda: state(it.pid) == "S" and state(pid) == "S")
    it.terminate()
    assert it.wait(20) == 143


def state(pid: int) -> str:
    from fairlock.cli.process_tree import read_stat

    seen = read_stat(pid)
    return seen.state if seen else ""


def test_a_signal_ends_the_wait_and_leaves_nothing_behind(fairlock: Tool) -> None:
    fairlock.holding("run", "x", "sleep", "60")
    second = fairlock.start("run", "x", "true")
    until(lambda: fairlock.queue("x"))
    second.terminate()
    assert second.wait(20) == 143
    assert fairlock.queue("x") == []


def test_what_runs_on_in_the_background_keeps_neither_the_lock_nor_us(fairlock: Tool) -> None:
    done = fairlock("run", "x", "-c", "sleep 60 >/dev/null 2>&1 & echo $! > left")
    assert done.returncode == 0
    (pid,) = fairlock.pids("left")
    assert alive(pid)
    assert fairlock.holders("x") == []
    os.kill(pid, signal.SIGKILL)


def test_a_second_term_does_not_cost_the_others_the_lease(fairlock: Tool) -> None:
    it = fairlock.holding("run", "x", "-c", "echo $$ > up; exec sleep 60")
    fairlock.pids("up")
    for _ in range(20):
        it.terminate()
    assert it.wait(20) == 143
    assert fairlock.holders("x") == []


def test_closed_standard_files_stay_closed_for_the_command(fairlock: Tool) -> None:
    text = f"exec {shlex.join(TOOL)} run x -c 'ls /proc/self/fd > fds; echo $FAIRLOCK_NAME > name' <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", text], cwd=fairlock.folder, env=fairlock.env).returncode == 0
    assert (fairlock.folder / "name").read_text() == "x\n"
    assert (fairlock.folder / "fds").read_text().split() == ["0", "1"]  # ls: its folder, its output
    assert fairlock("doctor").returncode == 0


def test_output_that_cannot_be_written_is_a_sentence(fairlock: Tool) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join(TOOL)} ls > /dev/full"], env=fairlock.env, capture_output=True, text=True
    )
    assert done.returncode == 74
    assert done.stderr == "fairlock: The output cannot be written: No space left on device.\n"


def test_many_shells_count_without_losing_one(fairlock: Tool) -> None:
    (fairlock.folder / "n").write_text("0\n")
    loop = f"for i in 1 2 3 4 5; do {shlex.join(TOOL)} run n -c 'echo $(($(cat n) + 1)) > n'; done"
    shells = [subprocess.Popen(["sh", "-c", loop], cwd=fairlock.folder, env=fairlock.env) for _ in range(6)]
    assert [shell.wait(60) for shell in shells] == [0] * 6
    assert (fairlock.folder / "n").read_text() == "30\n"


def test_runs_in_a_row_do_not_wait_for_the_disk_and_do_not_let_the_log_grow(fairlock: Tool) -> None:
    log = fairlock.folder / "locks.db-wal"
    fairlock("run", "x", "true")
    assert log.stat().st_size > 0  # the last to close it would have taken it away
    filler = """
import os, sqlite3
db = sqlite3.connect("locks.db", isolation_level=None)
db.execute("PRAGMA wal_autocheckpoint=0")
while os.stat("locks.db-wal").st_size < 300_000:
    db.execute("UPDATE fairlock_locks SET owner=hex(randomblob(1000))")
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", filler], cwd=fairlock.folder, check=True)
    assert log.stat().st_size >= 300_000
    fairlock("run", "x", "true")
    assert not log.exists()
    db = sqlite3.connect(fairlock.folder / "locks.db")
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
    assert os.listdir(fairlock.folder / "locks.db.wakeups") == []
