"""`fairlock run --once-per`: once per tick over all machines, and silence for the others."""

import pytest

from tests.cli.conftest import Tool, until


def test_one_runs_and_the_others_exit_0_in_silence(fairlock: Tool) -> None:
    done = [fairlock("run", "--once-per", "1d", "report", "--", "echo", "done") for _ in range(3)]
    assert [each.returncode for each in done] == [0, 0, 0]
    assert [each.stdout + each.stderr for each in done] == ["done\n", "", ""]


def test_they_exit_0_while_it_runs_too(fairlock: Tool) -> None:
    running = fairlock.start("run", "--once-per", "1d", "x", "--", "sh", "-c", "echo $$ > pid; cat")
    fairlock.pids("pid")
    other = fairlock("run", "--once-per", "1d", "x", "--", "echo", "no")
    assert (other.returncode, other.stdout, other.stderr) == (0, "", "")
    other = fairlock("run", "-v", "-E", "9", "--once-per", "1d", "x", "--", "echo", "no")
    assert other.returncode == 9
    assert "'x' has been executed in this tick, or is being executed." in other.stderr
    running.communicate("", timeout=15)
    assert running.returncode == 0


def test_a_failure_frees_the_tick_for_one_more_try(fairlock: Tool) -> None:
    codes = [fairlock("run", "--once-per", "1d", "x", "--", "sh", "-c", "exit 3").returncode for _ in range(3)]
    assert codes == [3, 3, 0]


def test_tries_can_be_chosen(fairlock: Tool) -> None:
    run = ("run", "--once-per", "1d", "--tries", "1", "x", "--", "sh", "-c", "exit 3")
    assert [fairlock(*run).returncode for _ in range(2)] == [3, 0]


def test_with_w_another_takes_over_when_it_is_killed(fairlock: Tool) -> None:
    running = fairlock.start("run", "--lease", "1s", "--once-per", "1d", "x", "--", "sh", "-c", "echo $$ > pid; cat")
    fairlock.pids("pid")
    waiting = fairlock.start("run", "-w", "30", "--once-per", "1d", "x", "--", "sh", "-c", "echo $$ > other")
    until(lambda: waiting.poll() is None)
    running.kill()
    fairlock.pids("other")
    assert waiting.wait(15) == 0


@pytest.mark.parametrize("options", [["-s"], ["--slots", "2"], ["--at-least", "1s"], ["--handle", "secret"]])
def test_options_of_a_lock_have_no_meaning_with_it(fairlock: Tool, options: list[str]) -> None:
    done = fairlock("run", "--once-per", "1h", *options, "x", "--", "true")
    assert done.returncode == 64
    assert "holds no lock" in done.stderr


def test_tries_without_once_per_is_a_usage_error(fairlock: Tool) -> None:
    assert fairlock("run", "--tries", "3", "x", "--", "true").returncode == 64


def test_a_span_of_0_is_a_usage_error(fairlock: Tool) -> None:
    done = fairlock("run", "--once-per", "0", "x", "--", "true")
    assert done.returncode == 64
    assert done.stderr == "fairlock: --once-per needs a span longer than 0, such as 1h.\n"
