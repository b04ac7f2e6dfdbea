"""On a real terminal, under a real shell with job control: the keyboard, Ctrl-C, Ctrl-Z and fg, a pager, a hang-up."""

import fcntl
import os
import select
import shlex
import signal
import sqlite3
import struct
import subprocess
import termios
import time
from collections.abc import Iterator

import pytest

from tests.cli.conftest import TOOL, Tool, alive, until

CTRL_C, CTRL_Z = "\x03", "\x1a"


class Terminal:
    """bash on a pty. Its output is collected; `type` types, `expect` waits for a text."""

    def __init__(self, tool: Tool) -> None:
        self.master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        env = {**tool.env, "PS1": "ready> ", "TERM": "xterm", "PATH": os.environ["PATH"]}
        self.shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "--noediting", "-i"], cwd=tool.folder, env=env, start_new_session=True,
            stdin=slave, stdout=slave, stderr=slave, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self.seen = ""
        self.expect("ready> ")
        self.tool = shlex.join([*TOOL, *tool.always])
        self.do(f"fairlock() {{ {self.tool} \"$@\"; }}")  # a function runs in the job's own process group as well

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def read(self, seconds: float) -> bool:
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            self.seen += os.read(self.master, 65536).decode(errors="replace")
        except OSError:
            return False
        return True

    def expect(self, text: str, seconds: float = 15) -> str:
        """Wait until this appears; return the output before it, which is then forgotten."""
        until_then = time.monotonic() + seconds
        while text not in self.seen:
            self.read(0.05)
            assert time.monotonic() < until_then, f"no {text!r} in {self.seen!r}"
        before, _, self.seen = self.seen.partition(text)
        return before

    def do(self, line: str) -> str:
        """Type a line and return the output until the shell is ready again."""
        self.type(line + "\n")
        self.expect("\n")
        return self.expect("ready> ").replace("\r", "")

    def close(self) -> None:
        """Hang up."""
        if self.master >= 0:
            os.close(self.master)
            self.master = -1


@pytest.fixture
def terminal(fairlock: Tool) -> Iterator[Terminal]:
    it = Terminal(fairlock)
    yield it
    it.close()
    try:
        it.shell.wait(5)
    except subprocess.TimeoutExpired:
        it.shell.kill()
        it.shell.wait()


def holders(tool: Tool, name: str = "x") -> None:
    until(lambda: tool.holders(name))


def free(tool: Tool, name: str = "x") -> None:
    until(lambda: not tool.holders(name))


def test_the_keyboard_belongs_to_the_command(terminal: Terminal, fairlock: Tool) -> None:
    terminal.type("fairlock run x -- sh -c 'read a; echo you typed $a'\n")
    holders(fairlock)
    terminal.type("hello\n")
    terminal.expect("you typed hello\r\n")


def test_ctrl_c_ends_the_command_once_and_then_us(terminal: Terminal, fairlock: Tool) -> None:
    text = 'trap "echo INT >> got; exit 7" INT; echo up; while :; do sleep 0.05; done'
    terminal.type(f"fairlock run x -- sh -c '{text}'\n")
    terminal.expect("up\r\n")
    terminal.type(CTRL_C)
    terminal.expect("ready> ")
    assert terminal.do("echo code $?") == "code 7\n"
    assert (fairlock.folder / "got").read_text() == "INT\n"
    free(fairlock)


def test_ctrl_c_ends_a_loop_of_the_shell_too(terminal: Terminal, fairlock: Tool) -> None:
    terminal.type("for i in 1 2 3; do echo round $i; fairlock run x -- sleep 60; done\n")
    terminal.expect("round 1\r\n")
    holders(fairlock)
    terminal.type(CTRL_C)
    assert "round 2" not in terminal.expect("ready> ")
    assert terminal.do("echo code $?") == "code 130\n"


def test_ctrl_c_while_waiting_leaves_the_queue(terminal: Terminal, fairlock: Tool) -> None:
    fairlock.holding("run", "--owner", "web-3", "--note", "ship order", "x", "sleep", "60")
    terminal.type("fairlock run x -- true\n")
    terminal.expect("fairlock: waiting for 'x', position 1 of 1: held by web-3 (ship order) for ")  # after a second
    terminal.type(CTRL_C)
    terminal.expect("ready> ")
    assert terminal.do("echo code $?") == "code 130\n"
    assert fairlock.queue("x") == []


def test_ctrl_z_and_fg(terminal: Terminal, fairlock: Tool) -> None:
    terminal.type("fairlock run x -- sh -c 'echo $$ > child; read a; echo you typed $a'\n")
    (pid,) = fairlock.pids("child")
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    terminal.expect("ready> ")
    terminal.type("fg\n")
    terminal.type("again\n")
    terminal.expect("you typed again\r\n")
    terminal.expect("ready> ")
    assert not alive(pid)
    free(fairlock)


def test_ctrl_z_and_bg_and_a_kill_of_the_job(terminal: Terminal, fairlock: Tool) -> None:
    terminal.type("fairlock run x -- sleep 60\n")
    holders(fairlock)
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    terminal.do("bg")
    terminal.do("kill %1")
    terminal.type("wait %1\n")
    free(fairlock)


def test_a_command_that_stops_itself_takes_the_terminal_back(terminal: Terminal, fairlock: Tool) -> None:
    terminal.type("fairlock run x -- sh -c 'echo $$ > child; kill -STOP $$; echo awake'\n")
    fairlock.pids("child")
    terminal.expect("Stopped")
    terminal.type("fg\n")
    terminal.expect("awake\r\n")


def test_ctrl_z_past_the_lease_costs_the_command(terminal: Terminal, fairlock: Tool) -> None:
    terminal.type("fairlock run --lease 1 x -- sh -c 'sleep 60 & echo $$ > child; wait'\n")
    (pid,) = fairlock.pids("child")
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    until(lambda: not alive(pid))
    assert fairlock("run", "-w", "10", "x", "echo", "next").stdout == "next\n"
    terminal.type("fg\n")
    terminal.expect("fairlock: The lease on 'x' was lost")
    terminal.expect("ready> ")
    assert terminal.do("echo code $?") == "code 79\n"


def test_ctrl_z_while_waiting_and_fg(terminal: Terminal, fairlock: Tool) -> None:
    first = fairlock.holding("run", "x", "-c", "read a")
    terminal.type("fairlock run x -- echo my turn\n")
    until(lambda: fairlock.queue("x"))
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    first.communicate("go\n")
    terminal.type("fg\n")
    terminal.expect("my turn\r\n")


def test_a_pipe_to_a_pager(terminal: Terminal, fairlock: Tool) -> None:
    terminal.type("fairlock run x -- seq 1 500 | less\n")
    terminal.expect("23\r\n")
    terminal.type("G")
    terminal.expect("500\r\n")
    terminal.type("q")
    terminal.expect("ready> ")
    free(fairlock)


@pytest.mark.parametrize("how", ["--max-hold 1", "--grace 1"])
def test_a_killed_command_leaves_the_terminal_as_it_was(terminal: Terminal, fairlock: Tool, how: str) -> None:
    before = terminal.do("stty -a")
    text = 'stty raw -echo; trap "" TERM; echo $$ > child; while :; do sleep 0.05; done'
    terminal.type(f"fairlock run {how} x -- sh -c '{text}'\n")
    (pid,) = fairlock.pids("child")
    if "max-hold" not in how:
        os.kill(pid, signal.SIGKILL)
    terminal.expect("ready> ")
    assert terminal.do("stty -a") == before


def test_what_a_command_does_to_the_terminal_on_purpose_stays(terminal: Terminal) -> None:
    terminal.do("fairlock run x -- stty -echoctl")
    assert "-echoctl" in terminal.do("stty -a").split()


def test_a_pager_as_the_command(terminal: Terminal, fairlock: Tool) -> None:
    terminal.do("seq 1 500 > numbers")
    terminal.type("fairlock run x -- less numbers\n")
    terminal.expect("numbers\x1b[27m")  # its prompt; a moment later it reads and handles Ctrl-Z
    time.sleep(0.3)
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    terminal.type("fg\n")
    terminal.expect("23\r\n")  # painted again
    terminal.type("G")
    terminal.expect("500\r\n")
    terminal.type("q")
    terminal.expect("ready> ")
    free(fairlock)


def test_the_end_of_the_pipe_is_spared_when_the_command_is_killed(terminal: Terminal, fairlock: Tool) -> None:
    text = "echo $$ > child; sleep 60"
    terminal.type(f"fairlock run --max-hold 1 x -- sh -c '{text}' | cat; echo cat: ${{PIPESTATUS[@]}}\n")
    fairlock.pids("child")
    terminal.expect("cat: 79 0\r\n")


def test_a_hang_up_ends_the_command(terminal: Terminal, fairlock: Tool) -> None:
    terminal.type("fairlock run x -- sh -c 'echo $$ > child; sleep 60'\n")
    (pid,) = fairlock.pids("child")
    terminal.close()
    until(lambda: not alive(pid))
    free(fairlock)


def test_a_command_that_ignores_the_hang_up_goes_on_and_keeps_the_lock(terminal: Terminal, fairlock: Tool) -> None:
    terminal.type("fairlock run x -- nohup sh -c 'echo $$ > child; exec sleep 60'\n")
    (pid,) = fairlock.pids("child")
    terminal.close()
    terminal.shell.wait(10)
    assert alive(pid)
    assert fairlock.holders("x")
    os.kill(pid, signal.SIGTERM)
    free(fairlock)


@pytest.mark.parametrize("where", ["", " &"])
def test_killing_the_wrapper_ends_the_family_here_too(terminal: Terminal, fairlock: Tool, where: str) -> None:
    family = "echo $$ > child; sleep 600 & echo $! > near; setsid sh -c \"echo \\$\\$ > far; exec sleep 600\" & wait"
    terminal.type(f"{terminal.tool} run x -- sh -c '{family}'{where}\n")
    pids = fairlock.pids("child", "near", "far")
    (owner,) = fairlock.holders("x")
    os.kill(int(owner.rpartition(":")[2]), signal.SIGKILL)
    until(lambda: not any(map(alive, pids)))
    until(lambda: "Killed" in terminal.do("jobs"))  # the shell may learn of the death later than the family did
    assert fairlock("run", "-n", "x", "echo", "next").stdout == "next\n"


def test_in_the_background_reading_the_terminal_stops_us_as_it_would_the_command(
    terminal: Terminal, fairlock: Tool
) -> None:
    terminal.type("fairlock run x -- sh -c 'read a; echo you typed $a' &\n")
    until(lambda: "Stopped" in terminal.do("jobs"))
    terminal.type("fg\n")
    time.sleep(0.2)
    terminal.type("hello\n")
    terminal.expect("you typed hello\r\n")


# evict and doctor --repair ask.


def test_evict_requires_the_name(terminal: Terminal, fairlock: Tool) -> None:
    first = fairlock.holding("run", "--owner", "web-3", "x", "sleep", "60")
    terminal.type("fairlock evict x --reason stuck --at-once\n")
    terminal.expect("This takes 'x' from web-3 (sleep), which has held it for ")
    terminal.expect("two may work at the same time")
    terminal.expect("Type the name to continue: ")
    terminal.type("y\n")
    terminal.expect("That is not the name; nothing was changed.\r\n")
    terminal.expect("ready> ")
    assert terminal.do("echo code $?") == "code 77\n"
    assert fairlock.holders("x") == ["web-3"]
    terminal.type("fairlock evict x --reason stuck --at-once\n")
    terminal.expect("Type the name to continue: ")
    terminal.type("x\n")
    terminal.expect("'x' is taken from its holder and is free now")
    assert fairlock.holders("x") == []
    first.kill()


def test_a_repair_requires_the_name(terminal: Terminal, fairlock: Tool) -> None:
    fairlock("run", "x", "true")
    with sqlite3.connect(fairlock.folder / "locks.db") as db:
        db.execute("UPDATE fairlock_locks SET body='[3,' WHERE key='x'")
    db.close()
    terminal.type("fairlock doctor --repair x\n")
    terminal.expect("If something is damaged under 'x', this resets it")
    terminal.expect("Type the name to continue: ")
    terminal.type("y\n")
    terminal.expect("That is not the name; nothing was changed.\r\n")
    terminal.expect("ready> ")
    assert terminal.do("echo code $?") == "code 77\n"
    assert fairlock("run", "x", "true").returncode == 77, "it is still damaged"
    terminal.type("fairlock doctor --repair x\n")
    terminal.expect("Type the name to continue: ")
    terminal.type("x\n")
    terminal.expect("The record of 'x' was reset")
    terminal.expect("ready> ")
    assert fairlock("run", "x", "true").returncode == 0


def test_evict_lists_what_matches_and_requires_the_pattern(terminal: Terminal, fairlock: Tool) -> None:
    for name in ("web-1", "web-2", "db-1"):
        fairlock("acquire", "--owner", f"tina-{name}", "--lease", "60", name)
    terminal.type("fairlock evict 'web-*' --pattern --reason stuck --at-once\n")
    terminal.expect("This takes 2 names:\r\n  'web-1' from tina-web-1, which has held it for ")
    terminal.expect("  'web-2' from tina-web-2, which has held it for ")
    terminal.expect("two may work at the same time")
    terminal.expect("Type the pattern to continue: ")
    terminal.type("web-1\n")
    terminal.expect("That is not the pattern; nothing was changed.\r\n")
    terminal.expect("ready> ")
    assert fairlock.holders("web-1") == ["tina-web-1"]
    terminal.type("fairlock evict 'web-*' --pattern --reason stuck --at-once\n")
    terminal.expect("Type the pattern to continue: ")
    fairlock("acquire", "--owner", "late", "web-3")  # it was not listed
    terminal.type("web-*\n")
    terminal.expect("2 names free now")
    assert [fairlock.holders(name) for name in ("web-1", "web-2", "web-3", "db-1")] == [[], [], ["late"], ["tina-db-1"]]


def test_watching(terminal: Terminal, fairlock: Tool) -> None:
    fairlock.holding("run", "--owner", "web-3", "x", "sleep", "60")
    terminal.type("fairlock ls --watch\n")
    terminal.expect("web-3")
    terminal.expect("web-3")
    terminal.type(CTRL_C)
    terminal.expect("ready> ")
    assert terminal.do("echo code $?") == "code 0\n"


def test_ctrl_c_ends_a_demo_with_one_sentence(terminal: Terminal, fairlock: Tool) -> None:
    """Its workers are not in the session of the terminal: before, each of them answered Ctrl-C with a traceback."""
    terminal.type(f"TMPDIR={fairlock.folder} fairlock demo --port 0 --no-browser; echo code $?\n")
    terminal.expect("Ctrl-C ends all of it", 60)
    terminal.type(CTRL_C)
    said = terminal.expect("code 0\r\n", 60)
    assert said.replace("\r", "").replace("^C", "").strip() == "the demo has ended; its workers and its folder are gone"
    assert list(fairlock.folder.glob("fairlock-demo-*")) == []
