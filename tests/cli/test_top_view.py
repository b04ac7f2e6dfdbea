"""What `fairlock top` draws, without a terminal and without a store."""

import re
import threading

import pytest

from fairlock.cli.terminal_screen import split_keys
from fairlock.cli.top import Top
from fairlock.cli.top_view import View, arrange, fit, widths
from fairlock.engine.snapshots import Holder, Resource, Waiter
from fairlock.errors import StoreError
from fairlock.rules.locks import EXCLUSIVE


def make(name: str, *, holders: int = 1, queue: int = 0, expires_in: float = 9.0) -> Resource:
    inside = tuple(Holder(f"h{n}", "", f"t{n}", 1, EXCLUSIVE, 5.0, expires_in) for n in range(holders))
    waiters = tuple(Waiter(f"w{n}", "", f"u{n}", EXCLUSIVE, 2.0, 9.0) for n in range(queue))
    return Resource(name, "lock", EXCLUSIVE, 1, inside, waiters)


@pytest.mark.parametrize("columns", [1, 2, 10, 40, 79, 80, 120, 300])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 24])
def test_no_frame_is_larger_than_the_screen(columns: int, rows: int) -> None:
    view = View()
    resources = [make(f"name-{n}-名前", queue=n % 3) for n in range(50)]
    frame = view.frame(columns, rows, "memory://", resources, (), "keys")
    assert len(frame) == max(rows, 1)
    for line in frame:
        text = re.sub(r"\x1b\[[0-9;]*m", "", line)
        assert sum(2 if ord(char) > 0x2FFF else 1 for char in text) <= columns


def test_the_selected_row_stays_on_the_screen() -> None:
    view = View("name")
    resources = [make(f"n{n:02}") for n in range(40)]
    for by, expected in ((0, "n00"), (5, "n05"), (100, "n39"), (-3, "n36"), (-100, "n00")):
        view.frame(80, 10, "", resources, (), "")
        view.move(by)
        frame = view.frame(80, 10, "", resources, (), "")
        (selected,) = [line for line in frame[3:-1] if line.startswith("\x1b[7m")]
        assert expected in selected
    view.selected = "n20"
    frame = view.frame(80, 10, "", [make("n20"), make("n19")], (), "")
    assert any(line.startswith("\x1b[7m") and "n20" in line for line in frame)


def test_the_longest_waiting_is_first_and_idle_names_are_left_out() -> None:
    idle = make("idle", holders=0)
    some = [make("a"), make("b", queue=1), make("c", queue=3), idle]
    assert [r.name for r in arrange(some, "waiting")] == ["c", "b", "a"]
    assert [r.name for r in arrange([make("x", expires_in=9), make("y", expires_in=3)], "lease")] == ["y", "x"]


def test_the_columns_fill_the_screen() -> None:
    for columns in (80, 100, 200):
        shown = [width for width in widths(columns) if width]
        assert sum(shown) + 2 * (len(shown) - 1) == columns


def test_keys_are_recognized_also_when_they_come_together() -> None:
    assert split_keys("j\x1b[Bk\x1bOA\x1b[5~q") == ["j", "down", "k", "up", "page up", "q"]
    assert split_keys("\x1b") == ["escape"]
    assert split_keys("\x1b[1;5Cx\x1b[99~\x00é") == ["x", "é"]


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert fit("a\x1b[2Jb\u202e\ud800", 30).rstrip() == "a\\x1b[2Jb\\u202e\\ud800"


class Typist:
    """A screen that types these keys, one each time it has shown something, and keeps what was drawn."""

    def __init__(self, *keys: str) -> None:
        self.keys = list(keys)
        self.frames: list[list[str]] = []
        self.woken = threading.Event()

    def wake(self) -> None:
        self.woken.set()

    def size(self) -> tuple[int, int]:
        return 80, 24

    def draw(self, lines: list[str]) -> None:
        self.frames.append(lines)

    def read(self, seconds: float) -> list[str]:
        assert self.woken.wait(10)
        return [self.keys.pop(0)]


class Unreachable:
    store = "redis://gone"

    def snapshot(self, pattern: str, *, namespaces: bool = False) -> None:
        raise StoreError("redis://gone does not reply")


def test_a_store_that_goes_away_is_reported_and_keys_still_work() -> None:
    screen = Typist("s", "e", "s", "q")
    Top(Unreachable(), screen, "*", "waiting", 0.1).run()  # type: ignore[arg-type]
    assert any("redis://gone does not reply" in line for line in screen.frames[-1])
    assert "sorted by held" in screen.frames[-1][1]
    assert screen.keys == []
