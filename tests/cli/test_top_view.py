"""What `fairlock top` draws, without a terminal and without a store."""

import re
import threading

import pytest

from fairlock.cli.terminal_screen import split_keys
from fairlock.cli.top import Top
from fairlock.cli.top_poller import Poller
from fairlock.cli.top_view import View, arrange, char_width, cut, fit, widths, wrap
from fairlock.engine.find_deadlocks import Ring, RingMember
from fairlock.engine.snapshots import Holder, Resource, Snapshot, Waiter
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


def test_a_long_line_is_broken_at_spaces_and_what_does_not_fit_is_cut() -> None:
    assert wrap("", 10, 3) == []
    assert [line.rstrip() for line in wrap("ab cd ef gh", 5, 9)] == ["ab cd", "ef gh"]
    assert [line.rstrip() for line in wrap("abcdefgh ij", 5, 9)] == ["abcde", "fgh", "ij"]
    assert [line.rstrip() for line in wrap("ab cd ef gh", 5, 1)] == ["ab c…"]
    assert [line.rstrip() for line in wrap("a\x1bb", 40, 2)] == ["a\\x1bb"]
    for width in range(1, 12):
        for line in wrap("名前 is a name, 名前名前名前 another", width, 4):
            assert sum(map(char_width, line)) <= width or width == 1


def test_what_a_question_is_about_stands_above_it_and_the_table_keeps_its_head() -> None:
    resources = [make(f"n{n:02}") for n in range(40)]
    for rows in (1, 2, 5, 12, 24):
        frame = View("name").frame(80, rows, "s", resources, (), "Reason: ", "", "word " * 60)
        assert len(frame) == rows
        assert frame[-1].startswith("Reason: ")
        if rows >= 5:
            assert "word word" in frame[-2]
            assert "NAME" in frame[1 if rows == 5 else 2]


@pytest.mark.parametrize("rows", range(2, 30))
def test_the_selected_row_stays_in_a_low_window_whatever_else_is_shown(rows: int) -> None:
    resources = [make(f"n{n:02}") for n in range(40)]
    member = RingMember("web-1", "1", "n01", "n02", 3.0, "t", "u")
    for rings in ((), (Ring((member, member), True),)):
        for error in ("", "It is down. " * 20):
            for explained in ("", "word " * 60) if rows > 2 else ("",):
                view = View("name")
                view.frame(20, rows, "s", resources, rings, "", error, explained)
                view.move(25)
                frame = view.frame(20, rows, "s", resources, rings, "", error, explained)
                assert len(frame) == rows
                assert any("n25" in line and "\x1b[7m" in line for line in frame)


def test_a_table_longer_than_the_window_says_how_far_it_reaches() -> None:
    view = View("name")
    resources = [make(f"n{n:02}") for n in range(40)]
    assert view.frame(80, 24, "", resources, (), "")[1].rstrip() == "sorted by name, rows 1-20 of 40"
    view.move(view.space)
    view.move(view.space)
    assert view.frame(80, 24, "", resources, (), "")[1].rstrip() == "sorted by name, rows 21-40 of 40"
    assert view.frame(80, 24, "", resources[:20], (), "")[1].rstrip() == "sorted by name"


def test_when_the_selected_name_goes_the_next_one_is_selected_and_not_the_first() -> None:
    view = View("name")
    resources = [make(f"n{n:02}") for n in range(40)]
    view.frame(80, 24, "", resources, (), "")
    view.move(30)
    view.frame(80, 24, "", resources[:30] + resources[31:], (), "")
    assert view.selected == "n31"
    view.frame(80, 24, "", resources[:5], (), "")
    assert view.selected == "n04"


def test_a_narrow_window_leaves_columns_out_and_keeps_names_readable() -> None:
    for columns in (20, 30, 40, 50):
        name, owner, *others, note = widths(columns)
        assert name >= 9 and owner >= 8 and not note
        assert name + owner + 2 + sum(width + 2 for width in others if width) == columns


def test_names_are_cut_where_they_are_the_same() -> None:
    for end in ("", "/compaction"):
        view = View("name")
        resources = [make(f"tenant/8f14e45f/region/eu-central-1/orders/partition-{n:06}{end}") for n in range(4)]
        rows = view.frame(80, 24, "", [make("a"), *resources], (), "")[4:8]
        assert [re.search(r"00000(\d)", row).group(1) for row in rows] == ["0", "1", "2", "3"]  # type: ignore[union-attr]


def test_help_that_does_not_fit_says_so() -> None:
    assert cut(["a", "b", "c", "d"], 30, 3, ": there")[-1].rstrip() == "… 2 more lines: there"
    assert cut(["a", "b"], 3, 3, "") == ["a  ", "b  ", ""]


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
    assert any("redis://gone does not reply What is shown is 0." in line for line in screen.frames[-1])
    assert "sorted by held" in screen.frames[-1][1]
    assert screen.keys == []


def test_a_look_that_fails_is_shown_and_the_next_one_follows() -> None:
    """Whatever it raises: before, the thread that looks ended, and the screen stood still."""
    looks = [ValueError("a defect"), StoreError("It is down."), Snapshot("test://", 0.0, ())]
    shown: list[str] = []
    made, seen = threading.Event(), threading.Event()

    class Client:
        def snapshot(self, pattern: str, *, namespaces: bool) -> Snapshot:
            made.wait(20)
            look = looks.pop(0)
            if isinstance(look, Exception):
                raise look
            return look

    def wake() -> None:
        shown.append(poller.error)
        if len(shown) == 3:
            poller.ended = True
            seen.set()

    poller = Poller(Client(), "*", 0.0, wake)  # type: ignore[arg-type]
    made.set()
    assert seen.wait(20)
    assert [text.partition(" What is shown")[0] for text in shown] == [
        "The last snapshot failed (ValueError: a defect). It is tried again.", "It is down.", "",
    ]  # fmt: skip
