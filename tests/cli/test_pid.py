"""`fairlock acquire --pid`: a lease that ends with a process, however that ends."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Tool, alive, until

FAIRLOCK = f"{sys.executable} -m fairlock"


class Scripts:
    """Starts shell scripts that call the tool."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self.started: list[subprocess.Popen[str]] = []

    def __call__(self, text: str) -> subprocess.Popen[str]:
        script = subprocess.Popen(
            ["bash", "-c", f"fairlock() {{ {FAIRLOCK} \"$@\"; }}\n{text}"], cwd=self.tool.folder, env=self.tool.env,
            text=True, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.started.append(script)
        return script


@pytest.fixture
def script(fairlock: Tool) -> Iterator[Scripts]:
    scripts = Scripts(fairlock)
    yield scripts
    for each in scripts.started:
        if each.poll() is None:
            os.killpg(each.pid, signal.SIGKILL)
        each.communicate()
    until(lambda: not fairlock.holders("x"))


def first_line(script: subprocess.Popen[str]) -> str:
    assert script.stdout is not None
    return script.stdout.readline().strip()


def test_the_rest_of_a_script_holds_it(fairlock: Tool, script: Scripts) -> None:
    it = script("fairlock acquire --pid $$ x >ticket || exit; echo in; sleep 0.7; echo out")
    assert first_line(it) == "in"
    (owner,) = fairlock.holders("x")
    assert owner.endswith(f":{it.pid}"), "others see the script"
    busy = fairlock("run", "-n", "x", "true")
    assert busy.returncode == 75 and f":{it.pid}" in busy.stderr
    assert it.wait(20) == 0
    until(lambda: not fairlock.holders("x"), 3)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_script_that_is_killed(fairlock: Tool, script: Scripts, number: signal.Signals) -> None:
    it = script("fairlock acquire --pid $$ x >/dev/null; echo in; exec sleep 60")
    assert first_line(it) == "in"
    it.send_signal(number)
    assert until(lambda: not fairlock.holders("x")) < 5


def test_it_is_renewed_for_longer_than_its_lease_and_waits_its_turn(fairlock: Tool, script: Scripts) -> None:
    one = script("fairlock acquire --lease 1 --pid $$ x >/dev/null; echo in; sleep 2.5; echo out")
    assert first_line(one) == "in"
    two = script("fairlock acquire --lease 1 --pid $$ x >/dev/null; date +%s.%N")
    assert first_line(one) == "out"
    assert time.time() - 5 < float(first_line(two))
    assert (one.wait(10), two.wait(10)) == (0, 0)


def test_a_command_substitution_does_not_wait_for_the_keeper(fairlock: Tool, script: Scripts) -> None:
    it = script("ticket=$(fairlock acquire --pid $$ x 2>&1); echo $ticket; exec sleep 60")
    assert first_line(it).startswith("pid")


def test_ctrl_c_on_the_terminal_does_not_end_the_keeper(fairlock: Tool, script: Scripts) -> None:
    it = script("trap : INT TERM HUP; fairlock acquire --json --pid $$ x; while :; do sleep 0.1; done")
    shown = json.loads(first_line(it))
    assert shown["pid"] == it.pid and shown["name"] == "x" and alive(shown["keeper"])
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        os.killpg(it.pid, number)
        os.kill(shown["keeper"], number)
    time.sleep(0.7)
    assert it.poll() is None and fairlock.holders("x") and alive(shown["keeper"])


def test_if_the_keeper_is_killed_the_lease_ends_by_itself(fairlock: Tool, script: Scripts) -> None:
    it = script("fairlock acquire --lease 1 --json --pid $$ x; exec sleep 60")
    shown = json.loads(first_line(it))
    os.kill(shown["keeper"], signal.SIGKILL)
    assert until(lambda: not fairlock.holders("x")) < 5
    assert it.poll() is None


def test_a_loss_is_reported_and_may_end_the_script(fairlock: Tool, script: Scripts) -> None:
    for action, code in (("warn", 3), ("term", -signal.SIGTERM)):
        it = script(f"fairlock acquire --on-lost {action} --pid $$ x; for i in 1 2 3 4 5 6; do sleep 0.5; done; exit 3")
        first_line(it)
        assert fairlock("evict", "x", "--reason", "a test", "--at-once", "-y").returncode == 0
        _, said = it.communicate(timeout=30)
        assert "evicted its holder (a test)" in said and it.returncode == code, said
        assert ("is ended" if action == "term" else "goes on without it") in said


def test_it_may_be_released_earlier_by_its_ticket(fairlock: Tool, script: Scripts) -> None:
    it = script(
        "shown=$(fairlock acquire --on-lost term --pid $$ --json x); echo $shown; read -r < <(sleep 0.1); "
        "ticket=$(echo $shown | cut -d '\"' -f 8); fairlock release x --ticket $ticket || exit; echo released; sleep 3"
    )
    keeper = json.loads(first_line(it))["keeper"]
    assert first_line(it) == "released"
    assert not fairlock.holders("x")
    until(lambda: not alive(keeper), 10)
    _, said = it.communicate(timeout=30)
    assert (it.returncode, said) == (0, "")


def test_what_is_refused(fairlock: Tool, tmp_path: Path) -> None:
    pid = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout.strip()
    gone = fairlock("acquire", "--pid", pid, "x")
    assert (gone.returncode, gone.stderr) == (
        64, f"fairlock: There is no process {pid}. In a shell script its own is $$.\n"
    )  # fmt: skip
    assert "whole number" in fairlock("acquire", "--pid", "me", "x").stderr
    assert "omit --ticket" in fairlock("acquire", "--pid", str(os.getpid()), "--ticket", "t", "x").stderr
    assert "goes with --pid" in fairlock("acquire", "--on-lost", "term", "x").stderr


def test_not_acquired_leaves_no_keeper(fairlock: Tool, script: Scripts) -> None:
    it = script("fairlock acquire --pid $$ x >/dev/null; echo in; exec sleep 60")
    assert first_line(it) == "in"
    late = script('fairlock acquire -n --pid $$ x; echo $?; ps -e -o args= | grep -c "[a]cquire -n --pid $$"')
    assert first_line(late) == "75"
    assert first_line(late) == "0"
