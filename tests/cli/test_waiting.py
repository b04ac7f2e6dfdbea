"""What a run prints while it waits: on a terminal one line that is kept up to date, elsewhere two lines."""

import re
import time

import pytest

from fairlock.cli.wait_status_line import AFTER
from tests.cli.conftest import Tool, until
from tests.cli.test_terminal import CTRL_C, CTRL_Z, Terminal
from tests.cli.test_terminal import terminal as terminal

HELD = "fairlock: waiting for 'x', position {}: held by web-3 (sleep) for "
ALONE = HELD.format("1 of 1")


def test_on_a_terminal_the_position_is_kept_up_to_date_on_one_line(terminal: Terminal, fairlock: Tool) -> None:
    first = fairlock.holding("run", "--owner", "web-3", "--note", "sleep", "x", "-c", "read a")
    ahead = fairlock.start("run", "--owner", "the same", "x", "-c", "read a")
    until(lambda: len(fairlock.queue("x")) == 1)
    terminal.type("FAIRLOCK_OWNER='the same' fairlock run x -- echo my turn\n")
    terminal.expect("\r\x1b[K" + HELD.format("2 of 2"))
    assert re.fullmatch(r"\S+ s\.", terminal.expect("\r\x1b[K"))
    ahead.terminate()
    terminal.expect("\r\x1b[K" + ALONE)
    first.communicate("go\n", timeout=20)
    before = terminal.expect("my turn\r\n")
    assert before.endswith("\r\x1b[K"), "the line is gone before the command prints"
    assert "\n" not in before
    assert "acquired" not in before


def test_a_line_that_is_too_long_for_the_terminal_is_cut(terminal: Terminal, fairlock: Tool) -> None:
    fairlock.holding("run", "--owner", "web-3", "--note", "n" * 200, "x", "sleep", "60")
    terminal.type("fairlock run x -- true\n")
    terminal.expect("\r\x1b[K")
    assert len(terminal.expect("\r\x1b[K")) == 79
    terminal.type(CTRL_C)
    terminal.expect("ready> ")


def test_in_the_background_nothing_is_written_over(terminal: Terminal, fairlock: Tool) -> None:
    first = fairlock.holding("run", "--owner", "web-3", "--note", "sleep", "x", "-c", "read a")
    terminal.type("fairlock run x -- echo my turn &\n")
    terminal.expect(ALONE)
    time.sleep(AFTER * 1.5)
    first.communicate("go\n", timeout=20)
    before = terminal.expect("my turn\r\n")
    assert "\x1b" not in before
    assert re.search(r"fairlock: 'x' acquired after \S+ s\.\r\n", before)


def test_a_run_that_is_stopped_while_waiting_shows_its_position_again(terminal: Terminal, fairlock: Tool) -> None:
    fairlock.holding("run", "--owner", "web-3", "--note", "sleep", "x", "sleep", "60")
    terminal.type("fairlock run x -- true\n")
    terminal.expect(ALONE)
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    terminal.type("fg\n")
    terminal.expect(ALONE)
    terminal.type(CTRL_C)
    terminal.expect("ready> ")


def test_off_a_terminal_a_wait_has_a_beginning_and_an_end(fairlock: Tool) -> None:
    first = fairlock.holding("run", "--owner", "web-3", "--note", "sleep", "x", "-c", "read a")
    second = fairlock.start("run", "x", "-c", "echo my turn >&2")
    assert second.stderr is not None
    begun = second.stderr.readline()
    assert begun.startswith(ALONE)
    assert begun.endswith(" s.\n")
    time.sleep(AFTER * 1.5)
    first.communicate("go\n", timeout=20)
    assert re.fullmatch(r"fairlock: 'x' acquired after \S+ s\.\nmy turn\n", second.communicate(timeout=20)[1])


def test_off_a_terminal_a_wait_in_vain_ends_with_its_own_sentence(fairlock: Tool) -> None:
    fairlock.holding("run", "x", "sleep", "60")
    late = fairlock("run", "-w", str(AFTER + 0.7), "x", "true")
    assert late.returncode == 75
    begun, ended = late.stderr.splitlines()
    assert begun.startswith("fairlock: waiting for 'x', position 1 of 1: held by ")
    assert "; you waited 1.7 s, position 1 in the queue." in ended


@pytest.mark.parametrize("words", [("-q",), ("-w", "0.5")])
def test_a_short_or_quiet_wait_is_not_mentioned(fairlock: Tool, words: tuple[str, ...]) -> None:
    first = fairlock.holding("run", "x", "-c", "read a")
    second = fairlock.start("run", *words, "x", "true")
    if words == ("-q",):
        time.sleep(AFTER * 1.5)
        first.communicate("go\n", timeout=20)
        assert (second.communicate(timeout=20)[1], second.returncode) == ("", 0)
    else:
        assert second.communicate(timeout=20)[1].count("\n") == 1


def test_a_wait_for_an_item_of_a_pool_has_a_beginning_and_an_end_too(fairlock: Tool) -> None:
    waiting = fairlock.start("pool", "run", "jobs", "true")
    assert waiting.stderr is not None
    assert re.fullmatch(r"fairlock: waiting for an item of 'jobs', for \S+ s now\.\n", waiting.stderr.readline())
    fairlock("pool", "add", "jobs", "a")
    assert re.fullmatch(r"fairlock: an item of 'jobs' acquired after \S+ s\.\n", waiting.communicate(timeout=20)[1])
