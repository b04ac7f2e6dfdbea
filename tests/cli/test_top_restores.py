"""The terminal is as it was after `fairlock top`, however that ends."""

import os
import signal
import subprocess
import sys
import termios

import pytest

from fairlock.cli.terminal_screen import ENTER, LEAVE
from tests.cli import test_top
from tests.cli.conftest import Tool, alive, until
from tests.cli.test_terminal import CTRL_Z, Terminal
from tests.cli.test_top import Crowd, Start

top, crowd = test_top.top, test_top.crowd


@pytest.mark.parametrize("how", ["q", "ctrl-c", "SIGTERM", "SIGHUP", "SIGQUIT"])
def test_the_terminal_is_as_it_was(top: Start, crowd: Crowd, how: str) -> None:
    crowd.hold("alice:1", "x")
    it = top()
    it.until(lambda _: it.names() == ["x"])
    assert it.seen.startswith(ENTER)
    assert termios.tcgetattr(it.slave) != it.before
    if how.startswith("SIG"):
        it.process.send_signal(getattr(signal, how))
    else:
        it.type("q" if how == "q" else "\x03")
    assert it.end() == (128 + getattr(signal, how) if how.startswith("SIG") else 0)
    assert it.seen.endswith(LEAVE)
    assert it.seen.count(LEAVE) == 1
    assert termios.tcgetattr(it.slave) == it.before


def test_an_interrupt_in_the_middle_of_a_question_restores_it(top: Start, crowd: Crowd) -> None:
    crowd.hold("alice:1", "x")
    it = top()
    it.until(lambda _: it.names() == ["x"])
    it.type("ebecause\x03")
    assert it.end() == 0
    assert it.seen.endswith(LEAVE)
    assert termios.tcgetattr(it.slave) == it.before


def test_a_stop_gives_the_terminal_back_and_a_continue_takes_it_again(fairlock: Tool) -> None:
    shell = Terminal(fairlock)
    try:
        shell.type("fairlock top\n")
        shell.expect("nothing is held or waited for")
        shell.type(CTRL_Z)
        assert LEAVE in shell.expect("ready> ")
        assert " icanon" in shell.do("stty -a")
        shell.type("fg\n")
        assert ENTER in shell.expect("nothing is held or waited for")
        shell.type("q")
        assert LEAVE in shell.expect("ready> ")
        assert " echo " in shell.do("stty -a")
    finally:
        shell.close()
        shell.shell.wait(10)


def test_a_program_that_is_ended_while_it_is_stopped_leaves_the_terminal_alone(fairlock: Tool) -> None:
    """The shell uses it then. Before, top was stopped again because it changed the terminal, and did not end."""
    shell = Terminal(fairlock)
    try:
        shell.type("fairlock top\n")
        shell.expect("nothing is held or waited for")
        shell.type(CTRL_Z)
        shell.expect("ready> ")
        pid = int(next(word for word in shell.do("jobs -p").split() if word.isdecimal()))
        shell.type("kill %1\n")
        until(lambda: not alive(pid))
        assert LEAVE not in shell.do("echo still here")
    finally:
        shell.close()
        shell.shell.wait(10)


def test_a_terminal_that_is_gone_is_no_internal_error(top: Start) -> None:
    it = top()
    it.until(lambda lines: "nothing is held or waited for" in lines)
    os.close(it.slave)
    os.close(it.master)
    assert it.process.wait(20) == 128 + signal.SIGHUP
    it.master, it.slave = os.openpty()  # for close()


@pytest.mark.parametrize("fails", ["_begin", "draw"])
def test_an_exception_restores_it(fails: str) -> None:
    """Also a signal that comes while the terminal is being changed."""
    master, slave = os.openpty()
    before = termios.tcgetattr(slave)
    code = f"""
from fairlock.cli.terminal_screen import Screen
works = Screen.{fails}
def {fails}(self, *args):
    works(self, *args)
    raise KeyboardInterrupt
Screen.{fails} = {fails}
with Screen() as screen:
    screen.draw(["a"])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdin=slave, stdout=slave, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert "KeyboardInterrupt" in done.stderr
    seen = os.read(master, 65536).decode()
    assert ENTER in seen and seen.endswith(LEAVE)
    assert termios.tcgetattr(slave) == before
    os.close(master)
    os.close(slave)
