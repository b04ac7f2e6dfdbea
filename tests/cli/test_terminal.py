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

CTRL_C, CTRL_Z, CTRL_D = "\x03", "\x1a", "\x04"


class Terminal:
    """bash on a pty. What it prints is collected; `type` types, `expect` waits for a text."""

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
        self.do(f"holdfast() {{ {self.tool} \"$@\"; }}")  # a function runs in the job's own process group as well

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
        """Wait until this appears; all that came before it, which is then forgotten."""
        until_then = time.monotonic() + seconds
        while text not in self.seen:
            self.read(0.05)
            assert time.monotonic() < until_then, f"no {text!r} in {self.seen!r}"
        before, _, self.seen = self.seen.partition(text)
        return before

    def do(self, line: str) -> str:
        """Type a line; what it printed until the shell was ready again."""
        self.type(line + "\n")
        self.expect("\n")
        return self.expect("ready> ").replace("\r", "")

    def close(self) -> None:
        """Hang up."""
        if self.master >= 0:
            os.close(self.master)
            self.master = -1


@pytest.fixture
def terminal(holdfast: Tool) -> Iterator[Terminal]:
    it = Terminal(holdfast)
    yield it
    it.close()
    try:
        it.shell.wait(5)
    except subprocess.TimeoutExpired:
        it.shell.kill()
        it.shell.wait()


def inside(tool: Tool, name: str = "x") -> None:
    until(lambda: tool.inside(name))


def free(tool: Tool, name: str = "x") -> None:
    until(lambda: not tool.inside(name))


def test_the_keyboard_belongs_to_the_command(terminal: Terminal, holdfast: Tool) -> None:
    terminal.type("holdfast run x -- sh -c 'read a; echo you said $a'\n")
    inside(holdfast)
    terminal.type("hello\n")
    terminal.expect("you said hello\r\n")


def test_ctrl_c_ends_the_command_once_and_then_us(terminal: Terminal, holdfast: Tool) -> None:
    text = 'trap "echo INT >> got; exit 7" INT; echo up; while :; do sleep 0.05; done'
    terminal.type(f"holdfast run x -- sh -c '{text}'\n")
    terminal.expect("up\r\n")
    terminal.type(CTRL_C)
    terminal.expect("ready> ")
    assert terminal.do("echo code $?") == "code 7\n"
    assert (holdfast.folder / "got").read_text() == "INT\n"
    free(holdfast)


def test_ctrl_c_ends_a_loop_of_the_shell_too(terminal: Terminal, holdfast: Tool) -> None:
    terminal.type("for i in 1 2 3; do echo round $i; holdfast run x -- sleep 60; done\n")
    terminal.expect("round 1\r\n")
    inside(holdfast)
    terminal.type(CTRL_C)
    assert "round 2" not in terminal.expect("ready> ")
    assert terminal.do("echo code $?") == "code 130\n"


def test_ctrl_c_in_line_leaves_it(terminal: Terminal, holdfast: Tool) -> None:
    holdfast.holding("run", "--owner", "web-3", "--note", "ship order", "x", "sleep", "60")
    terminal.type("holdfast run x -- true\n")
    terminal.expect("holdfast: number 1 of 1 in line for 'x', held by web-3 (ship order) for ")  # after a second
    terminal.type(CTRL_C)
    terminal.expect("ready> ")
    assert terminal.do("echo code $?") == "code 130\n"
    assert holdfast.line("x") == []


def test_ctrl_z_and_fg(terminal: Terminal, holdfast: Tool) -> None:
    terminal.type("holdfast run x -- sh -c 'echo $$ > child; read a; echo you said $a'\n")
    (pid,) = holdfast.pids("child")
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    terminal.expect("ready> ")
    terminal.type("fg\n")
    terminal.type("again\n")
    terminal.expect("you said again\r\n")
    terminal.expect("ready> ")
    assert not alive(pid)
    free(holdfast)


def test_ctrl_z_and_bg_and_a_kill_of_the_job(terminal: Terminal, holdfast: Tool) -> None:
    terminal.type("holdfast run x -- sleep 60\n")
    inside(holdfast)
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    terminal.do("bg")
    terminal.do("kill %1")
    terminal.type("wait %1\n")
    free(holdfast)


def test_a_command_that_stops_itself_takes_the_terminal_back(terminal: Terminal, holdfast: Tool) -> None:
    terminal.type("holdfast run x -- sh -c 'echo $$ > child; kill -STOP $$; echo awake'\n")
    holdfast.pids("child")
    terminal.expect("Stopped")
    terminal.type("fg\n")
    terminal.expect("awake\r\n")


def test_ctrl_z_past_the_lease_costs_the_command(terminal: Terminal, holdfast: Tool) -> None:
    terminal.type("holdfast run --lease 1 x -- sh -c 'sleep 60 & echo $$ > child; wait'\n")
    (pid,) = holdfast.pids("child")
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    until(lambda: not alive(pid))
    assert holdfast("run", "-w", "10", "x", "echo", "next").stdout == "next\n"
    terminal.type("fg\n")
    terminal.expect("holdfast: The lease on 'x' was lost")
    terminal.expect("ready> ")
    assert terminal.do("echo code $?") == "code 79\n"


def test_ctrl_z_in_line_and_fg(terminal: Terminal, holdfast: Tool) -> None:
    first = holdfast.holding("run", "x", "-c", "read a")
    terminal.type("holdfast run x -- echo my turn\n")
    until(lambda: holdfast.line("x"))
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    first.communicate("go\n")
    terminal.type("fg\n")
    terminal.expect("my turn\r\n")


def test_a_pipe_to_a_pager(terminal: Terminal, holdfast: Tool) -> None:
    terminal.type("holdfast run x -- seq 1 500 | less\n")
    terminal.expect("23\r\n")
    terminal.type("G")
    terminal.expect("500\r\n")
    terminal.type("q")
    terminal.expect("ready> ")
    free(holdfast)


@pytest.mark.parametrize("how", ["--max-hold 1", "--grace 1"])
def test_a_killed_command_leaves_the_terminal_as_it_was(terminal: Terminal, holdfast: Tool, how: str) -> None:
    before = terminal.do("stty -a")
    text = 'stty raw -echo; trap "" TERM; echo $$ > child; while :; do sleep 0.05; done'
    terminal.type(f"holdfast run {how} x -- sh -c '{text}'\n")
    (pid,) = holdfast.pids("child")
    if "max-hold" not in how:
        os.kill(pid, signal.SIGKILL)
    terminal.expect("ready> ")
    assert terminal.do("stty -a") == before


def test_what_a_command_does_to_the_terminal_on_purpose_stays(terminal: Terminal) -> None:
    terminal.do("holdfast run x -- stty -echoctl")
    assert "-echoctl" in terminal.do("stty -a").split()


def test_a_pager_as_the_command(terminal: Terminal, holdfast: Tool) -> None:
    terminal.do("seq 1 500 > numbers")
    terminal.type("holdfast run x -- less numbers\n")
    terminal.expect("numbers\x1b[27m")  # its prompt; a moment later it reads, and hears a Ctrl-Z
    time.sleep(0.3)
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    terminal.type("fg\n")
    terminal.expect("23\r\n")  # painted anew
    terminal.type("G")
    terminal.expect("500\r\n")
    terminal.type("q")
    terminal.expect("ready> ")
    free(holdfast)


def test_the_end_of_the_pipe_is_spared_when_the_command_is_killed(terminal: Terminal, holdfast: Tool) -> None:
    text = "echo $$ > child; sleep 60"
    terminal.type(f"holdfast run --max-hold 1 x -- sh -c '{text}' | cat; echo cat: ${{PIPESTATUS[@]}}\n")
    holdfast.pids("child")
    terminal.expect("cat: 79 0\r\n")


def test_a_hang_up_ends_the_command(terminal: Terminal, holdfast: Tool) -> None:
    terminal.type("holdfast run x -- sh -c 'echo $$ > child; sleep 60'\n")
    (pid,) = holdfast.pids("child")
    terminal.close()
    until(lambda: not alive(pid))
    free(holdfast)


def test_a_command_that_ignores_the_hang_up_goes_on_and_keeps_the_lock(terminal: Terminal, holdfast: Tool) -> None:
    terminal.type("holdfast run x -- nohup sh -c 'echo $$ > child; exec sleep 60'\n")
    (pid,) = holdfast.pids("child")
    terminal.close()
    terminal.shell.wait(10)
    assert alive(pid)
    assert holdfast.inside("x")
    os.kill(pid, signal.SIGTERM)
    free(holdfast)


@pytest.mark.parametrize("where", ["", " &"])
def test_killing_the_wrapper_ends_the_family_here_too(terminal: Terminal, holdfast: Tool, where: str) -> None:
    family = "echo $$ > child; sleep 600 & echo $! > near; setsid sh -c \"echo \\$\\$ > far; exec sleep 600\" & wait"
    terminal.type(f"{terminal.tool} run x -- sh -c '{family}'{where}\n")
    pids = holdfast.pids("child", "near", "far")
    (owner,) = holdfast.inside("x")
    os.kill(int(owner.rpartition(":")[2]), signal.SIGKILL)
    until(lambda: not any(map(alive, pids)))
    until(lambda: "Killed" in terminal.do("jobs"))  # the shell may learn of the death later than the family did
    assert holdfast("run", "-n", "x", "echo", "next").stdout == "next\n"


def test_in_the_background_reading_the_terminal_stops_us_as_it_would_the_command(
    terminal: Terminal, holdfast: Tool
) -> None:
    terminal.type("holdfast run x -- sh -c 'read a; echo you said $a' &\n")
    until(lambda: "Stopped" in terminal.do("jobs"))
    terminal.type("fg\n")
    time.sleep(0.2)
    terminal.type("hello\n")
    terminal.expect("you said hello\r\n")


# evict and doctor --repair ask.


def test_evict_wants_the_name_typed(terminal: Terminal, holdfast: Tool) -> None:
    first = holdfast.holding("run", "--owner", "web-3", "x", "sleep", "60")
    terminal.type("holdfast evict x --reason stuck --at-once\n")
    terminal.expect("This takes 'x' from web-3 (sleep), which has held it for ")
    terminal.expect("two may be inside")
    terminal.expect("Type the name to go on: ")
    terminal.type("y\n")
    terminal.expect("That is not the name, so nobody was evicted.\r\n")
    terminal.expect("ready> ")
    assert terminal.do("echo code $?") == "code 77\n"
    assert holdfast.inside("x") == ["web-3"]
    terminal.type("holdfast evict x --reason stuck --at-once\n")
    terminal.expect("Type the name to go on: ")
    terminal.type("x\n")
    terminal.expect("'x' is taken from its holder and free now")
    assert holdfast.inside("x") == []
    first.kill()


def test_a_repair_wants_the_name_typed(terminal: Terminal, holdfast: Tool) -> None:
    holdfast("run", "x", "true")
    with sqlite3.connect(holdfast.folder / "locks.db") as db:
        db.execute("UPDATE holdfast_locks SET body='[2,' WHERE key='x'")
    db.close()
    terminal.type("holdfast doctor --repair x\n")
    terminal.expect("If something is damaged under 'x', this resets it")
    terminal.expect("Type the name to go on: ")
    terminal.type("y\n")
    terminal.expect("That is not the name, so nothing was repaired.\r\n")
    terminal.expect("ready> ")
    assert terminal.do("echo code $?") == "code 77\n"
    assert holdfast("run", "x", "true").returncode == 77, "it is still damaged"
    terminal.type("holdfast doctor --repair x\n")
    terminal.expect("Type the name to go on: ")
    terminal.type("x\n")
    terminal.expect("The record of 'x' was reset")
    terminal.expect("ready> ")
    assert holdfast("run", "x", "true").returncode == 0


def test_evict_lists_what_matches_and_wants_the_pattern_typed(terminal: Terminal, holdfast: Tool) -> None:
    for name in ("web-1", "web-2", "db-1"):
        holdfast("acquire", "--owner", f"tina-{name}", "--lease", "60", name)
    terminal.type("holdfast evict 'web-*' --pattern --reason stuck --at-once\n")
    terminal.expect("This takes 2 names:\r\n  'web-1' from tina-web-1, which has held it for ")
    terminal.expect("  'web-2' from tina-web-2, which has held it for ")
    terminal.expect("two may be inside")
    terminal.expect("Type the pattern to go on: ")
    terminal.type("web-1\n")
    terminal.expect("That is not the pattern, so nobody was evicted.\r\n")
    terminal.expect("ready> ")
    assert holdfast.inside("web-1") == ["tina-web-1"]
    terminal.type("holdfast evict 'web-*' --pattern --reason stuck --at-once\n")
    terminal.expect("Type the pattern to go on: ")
    holdfast("acquire", "--owner", "late", "web-3")  # it was not listed
    terminal.type("web-*\n")
    terminal.expect("2 names free now")
    assert [holdfast.inside(name) for name in ("web-1", "web-2", "web-3", "db-1")] == [[], [], ["late"], ["tina-db-1"]]


def test_watching(terminal: Terminal, holdfast: Tool) -> None:
    holdfast.holding("run", "--owner", "web-3", "x", "sleep", "60")
    terminal.type("holdfast ls --watch\n")
    terminal.expect("web-3")
    terminal.expect("web-3")
    terminal.type(CTRL_C)
    terminal.expect("ready> ")
    assert terminal.do("echo code $?") == "code 0\n"
