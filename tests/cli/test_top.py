"""`fairlock top` on a real terminal: it draws, sorts, filters, evicts, and follows the window."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from fairlock import Locks, connect
from fairlock.cli.top_view import HEAD
from tests.cli.conftest import Tool
from tests.cli.top_process import TopProcess

UP, DOWN, ESC = "\x1b[A", "\x1b[B", "\x1b"
PAGE_UP, PAGE_DOWN, HOME, END = "\x1b[5~", "\x1b[6~", "\x1b[H", "\x1b[F"


Start = Callable[..., TopProcess]


@pytest.fixture
def top(fairlock: Tool) -> Iterator[Start]:
    started = []

    def start(*args: str, columns: int = 80, rows: int = 24) -> TopProcess:
        it = TopProcess(fairlock, *args, columns=columns, rows=rows)
        started.append(it)
        return it

    yield start
    for it in started:
        it.close()


class Crowd:
    """Holders and waiters, each with a client of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.cancel = threading.Event()
        self.clients: list[Locks] = []
        self.threads: list[threading.Thread] = []

    def client(self, owner: str) -> Locks:
        self.clients.append(connect(self.url, owner=owner))
        return self.clients[-1]

    def hold(self, owner: str, name: str, note: str = "") -> None:
        self.client(owner).lock(name, note=note).acquire()

    def wait(self, owner: str, name: str) -> None:
        locks = self.client(owner)
        thread = threading.Thread(target=lambda: locks.lock(name).acquire(cancel=self.cancel))
        thread.start()
        self.threads.append(thread)
        end = time.monotonic() + 20
        while not any(w.owner == owner for r in locks.snapshot(name).resources for w in r.queue):
            assert time.monotonic() < end
            time.sleep(0.01)


@pytest.fixture
def crowd(fairlock: Tool) -> Iterator[Crowd]:
    it = Crowd(fairlock.url)
    yield it
    it.cancel.set()
    for thread in it.threads:
        thread.join(20)
    for client in it.clients:
        client.close()


def fill(crowd: Crowd) -> None:
    crowd.hold("alice:1", "quiet", "nothing to see")
    crowd.hold("bob:2", "busy", "long work")
    crowd.hold("carol:3", "calm")
    for number in (1, 2):
        crowd.wait(f"waiter:{number}", "busy")
    for locks in crowd.clients:
        locks.snapshot()  # after this the tool sees it at once, on stores with an index of busy names, too


def test_it_draws_the_table_sorted_by_the_waiting_caused(top: Start, crowd: Crowd, fairlock: Tool) -> None:
    fill(crowd)
    with crowd.client("x").lock("idle"):
        pass
    it = top()
    lines = it.until(lambda lines: it.names() == ["busy", "calm", "quiet"])
    assert lines[0].startswith("fairlock top: 3 held, 2 waiting, longest wait ")
    assert lines[1] == "sorted by waiting"
    assert lines[2].split() == ["NAME", "HELD", "BY", "FOR", "LEASE", "QUEUE", "WAITED"]
    assert re.fullmatch(r"busy +bob:2 +\S+s +\d+s +2 +\S+s", lines[3])
    assert len(lines) == 24
    assert lines[-1].endswith("q quit")
    assert max(map(len, lines)) <= 80


def test_it_follows_the_store(top: Start, crowd: Crowd) -> None:
    it = top()
    it.until(lambda lines: "nothing is held or waited for" in lines)
    crowd.hold("alice:1", "x")
    it.until(lambda _: it.names() == ["x"])
    crowd.clients[0].close()
    it.until(lambda lines: "nothing is held or waited for" in lines)


def test_it_sorts(top: Start, crowd: Crowd) -> None:
    fill(crowd)
    it = top()
    it.until(lambda _: it.names() == ["busy", "calm", "quiet"])
    for sort, first in (("queue", "busy"), ("held", "quiet"), ("lease", None), ("name", "busy"), ("waiting", "busy")):
        it.type("s")
        it.until(lambda lines, sort=sort: lines[1] == f"sorted by {sort}")  # type: ignore[misc]
        assert first in (None, it.names()[0])
    other = top("--sort", "held")
    other.until(lambda _: other.names() == ["quiet", "busy", "calm"])


def test_it_filters_by_name_owner_and_note(top: Start, crowd: Crowd) -> None:
    fill(crowd)
    it = top()
    it.until(lambda _: len(it.names()) == 3)
    for text, found in (("CALM", ["calm"]), ("waiter:2", ["busy"]), ("nothing to", ["quiet"]), ("zzz", [])):
        it.type("/" + text)
        it.until(lambda lines, text=text: lines[-1] == f"filter: {text}_")  # type: ignore[misc]
        it.type("\r")
        lines = it.until(lambda lines, text=text: f"filter {text!r}" in lines[1] and "quit" in lines[-1])  # type: ignore[misc]
        assert it.names() == found or (not found and "no name matches the filter" in lines)
    it.type("/")
    it.type(ESC)
    it.until(lambda _: len(it.names()) == 3)


def test_it_pauses(top: Start, crowd: Crowd) -> None:
    it = top()
    it.until(lambda lines: "nothing is held or waited for" in lines)
    it.type("p")
    it.until(lambda lines: "PAUSED" in lines[1])
    crowd.hold("alice:1", "x")
    it.read(1)
    assert "nothing is held or waited for" in it.lines
    it.type(" ")
    it.until(lambda _: it.names() == ["x"])


def test_it_shows_one_name(top: Start, crowd: Crowd) -> None:
    fill(crowd)
    it = top()
    it.until(lambda _: it.names() == ["busy", "calm", "quiet"])
    it.type(DOWN + DOWN + UP)
    it.type("\r")
    it.until(lambda lines: lines[0].startswith("calm: lock, last fence") and "carol:3" in " ".join(lines))
    it.type(" ")
    it.until(lambda _: len(it.names()) == 3)
    it.type("k\r")
    lines = it.until(lambda lines: lines[0].startswith("busy: lock"))
    assert [line.split()[:2] for line in lines if line.startswith(("  1", "  2"))] == [
        ["1", "waiter:1"], ["2", "waiter:2"],
    ]  # fmt: skip
    it.type("\r?")
    it.until(lambda lines: any("evict at once" in line for line in lines))


def test_it_evicts_after_the_reason_and_the_typed_name(top: Start, crowd: Crowd, fairlock: Tool) -> None:
    crowd.hold("alice:1", "x")
    it = top()
    it.until(lambda _: it.names() == ["x"])
    it.type("E")
    lines = it.until(lambda lines: lines[-1] == "Reason (the holder reads it): _")
    explained = " ".join(line for line in lines[-5:-1] if line)
    assert explained.startswith("Evict from 'x' AT ONCE: alice:1, which has held it for ")
    assert "It is free now; no client waits for it. The holder is NOT stopped: two may work at the same" in explained
    it.type("it hangs\r")
    it.until(lambda lines: lines[-1] == "Type 'x' to evict AT ONCE: _")
    it.type("y\r")
    it.until(lambda lines: lines[-1] == "That is not the name; nothing was changed.")
    assert fairlock.holders("x") == ["alice:1"]
    it.type("E\r")
    it.until(lambda lines: lines[-1].startswith("Nothing was changed: evict needs a reason"))
    it.type("Eit hangs\r" + ESC)
    it.until(lambda lines: lines[-1].endswith("q quit"))
    assert fairlock.holders("x") == ["alice:1"]
    it.type("Eit hangs\rx\r")
    it.until(lambda lines: lines[-1] == "'x' is taken from its holder and is free now.")
    assert fairlock.holders("x") == []
    it.until(lambda lines: "nothing is held or waited for" in lines)


def test_a_question_explains_what_happens_and_who_is_next(top: Start, crowd: Crowd) -> None:
    fill(crowd)
    it = top("--sort", "name")
    it.until(lambda _: it.names()[:1] == ["busy"])
    it.type("e")
    lines = it.until(lambda lines: lines[-1] == "Reason (the holder reads it): _")
    explained = " ".join(line for line in lines[-5:-1] if line)
    assert explained.startswith("Evict from 'busy': bob:2 (long work), which has held it for ")
    assert re.search(r"its lease not renewed: free in \d+ s at most; waiter:1 is next\. Esc cancels\.", explained)
    it.type(ESC)
    it.until(lambda lines: lines[-1].endswith("q quit") and lines[-2] == "")
    it.type("a")
    lines = it.until(lambda lines: lines[-1] == "Reason (the holder reads it): _")
    explained = " ".join(line for line in lines[-5:-1] if line)
    assert explained.startswith("Ask to release 'busy': bob:2 (long work), which has held it for ")
    assert explained.endswith("The holder is notified and decides; nothing is taken from it. Esc cancels.")


def test_it_evicts_only_the_holder_that_it_shows(top: Start, crowd: Crowd, fairlock: Tool) -> None:
    crowd.hold("alice:1", "x")
    it = top()
    it.until(lambda _: it.names() == ["x"])
    it.type("pEit hangs\r")
    it.until(lambda lines: lines[-1].startswith("Type 'x'"))
    crowd.clients[0].close()
    crowd.hold("bob:2", "x")
    it.type("x\r")
    it.until(lambda lines: "nothing was changed" in lines[-1])
    assert fairlock.holders("x") == ["bob:2"]


def test_it_asks_the_holders_that_it_shows_for_a_reason(top: Start, crowd: Crowd, fairlock: Tool) -> None:
    crowd.hold("alice:1", "x")
    it = top()
    it.until(lambda _: it.names() == ["x"])
    it.type("a")
    it.until(lambda lines: lines[-1].startswith("Reason (the holder"))
    it.type("\r")
    it.until(lambda lines: lines[-1].startswith("No holder was asked: ask needs a reason"))
    it.type("aplease\r")
    it.until(lambda lines: lines[-1] == "Asked 1 holder to release 'x'.")
    (holder,) = fairlock.state("x")[0]
    assert holder.asked is not None and holder.asked.reason == "please"
    it.until(lambda lines: any(line.split()[:3] == ["x", "(asked)", "alice:1"] for line in lines))
    it.type("\r")
    it.until(lambda lines: any("asked to release by" in line and line.endswith(": please") for line in lines))
    lines = it.until(lambda lines: "audit" in lines)
    assert any(re.match(r"  \S+ ago  asked .* alice:1 .* please$", line) for line in lines)


def test_it_follows_the_size_of_the_window(top: Start, crowd: Crowd) -> None:
    fill(crowd)
    it = top()
    it.until(lambda _: len(it.names()) == 3)
    it.resize(120, 10)
    lines = it.until(lambda lines: len(lines) == 10 and "NOTE" in lines[2])
    assert "long work" in lines[3]
    it.resize(40, 6)
    lines = it.until(lambda lines: len(lines) == 6)
    assert max(map(len, lines)) <= 40
    it.resize(3, 2)
    it.until(lambda lines: len(lines) == 2)
    it.resize(80, 24)
    it.until(lambda lines: len(lines) == 24 and len(it.names()) == 3)


def test_the_selection_is_moved_by_a_window_and_stays_visible(top: Start, fairlock: Tool) -> None:
    names = [f"n{number:02}" for number in range(45)]
    with connect(fairlock.url) as locks:
        for name in names:
            locks.lock(name).acquire()
        locks.snapshot()
        it = top("--sort", "name")
        it.until(lambda lines: "rows 1-20 of 45" in "".join(lines[1:2]) and it.selected() == "n00")
        for key, selected, reach in (
            (PAGE_DOWN, "n20", "2-21"), (PAGE_DOWN, "n40", "22-41"), (PAGE_UP, "n20", "21-40"), (END, "n44", "26-45"),
            (HOME, "n00", "1-20"), (PAGE_UP, "n00", "1-20"), (DOWN * 20, "n20", "2-21"),
        ):  # fmt: skip
            it.type(key)
            it.until(lambda lines, at=selected, reach=reach: it.selected() == at and f"rows {reach} of" in lines[1])  # type: ignore[misc]
        it.resize(20, 5)
        it.until(lambda lines: len(lines) == 5 and it.selected() == "n20")
        assert max(map(len, it.lines)) <= 20
        it.type(PAGE_DOWN)
        it.until(lambda lines: it.selected() == "n21")
        it.resize(80, 24)
        it.until(lambda lines: len(lines) == 24 and it.selected() == "n21")


def test_a_deadlock_is_shown(top: Start, crowd: Crowd) -> None:
    cancel = threading.Event()
    threads = []
    both = threading.Barrier(2)
    for owner, first, second in (("one", "a", "b"), ("two", "b", "a")):
        locks = crowd.client(owner)

        def work(locks: Locks = locks, first: str = first, second: str = second) -> None:
            with locks.lock(first):
                both.wait(20)
                locks.lock(second).acquire(cancel=cancel)

        threads.append(threading.Thread(target=work))
        threads[-1].start()
    it = top()
    lines = it.until(lambda lines: len(lines) > 2 and lines[2].startswith("DEADLOCK"))
    assert re.fullmatch(
        r"DEADLOCK of 2, youngest (one|two): (one waits for b, held by two, which waits for a, held by one|"
        r"two waits for a, held by one, which waits for b, held by two)",
        f"{lines[2]} {lines[3]}",
    )
    cancel.set()
    for thread in threads:
        thread.join(20)
    it.until(lambda lines: not lines[2].startswith("DEADLOCK"))


def test_once_needs_no_terminal(crowd: Crowd, fairlock: Tool) -> None:
    fill(crowd)
    done = fairlock("top", "--once")
    assert done.returncode == 0
    head, busy, *others, last = done.stdout.splitlines()
    assert tuple(re.split(r"\s{2,}", head)) == HEAD
    assert busy.startswith("busy  ")
    assert [line.split()[0] for line in others] == ["calm", "quiet"]
    assert last.startswith("3 held, 2 waiting, longest wait ")
    assert "\x1b" not in done.stdout
    found = json.loads(fairlock("--json", "top", "--once", "--sort", "name").stdout)
    assert [one["name"] for one in found["resources"]] == ["busy", "calm", "quiet"]
    assert found["rings"] == []
    assert fairlock("top", "--once", "q*").stdout.splitlines()[1].startswith("quiet")


def test_without_a_terminal_it_names_the_cure(fairlock: Tool) -> None:
    done = fairlock("top")
    assert (done.returncode, done.stdout) == (64, "")
    assert "fairlock top --once" in done.stderr
    assert fairlock("--json", "top").returncode == 64
