"""`fairlock events` prints what other processes do, as they do it, without the extra of the page."""

import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlock import connect
from fairlock.cli.output import plain
from fairlock.cli.show_events import line
from fairlock.web.events_from_snapshots import Happened
from tests.cli.conftest import Tool, until

Watch = Callable[..., "Watching"]


class Watching:
    """A running `fairlock events` and the lines that it has printed."""

    def __init__(self, tool: Tool, *args: str) -> None:
        self.file = Path(tempfile.mkdtemp(dir=tool.folder)) / "events"
        self.process = self._start(tool, args)
        until(lambda: "watching " in self.errors())

    def _start(self, tool: Tool, args: tuple[str, ...]) -> subprocess.Popen[bytes]:
        with self.file.open("wb") as out, self.file.with_suffix(".err").open("wb") as err:
            command = [sys.executable, "-m", "fairlock", *tool.always, "events", "--every", "0.1", *args]
            return subprocess.Popen(command, cwd=tool.folder, env=tool.env, stdout=out, stderr=err)

    def errors(self) -> str:
        return self.file.with_suffix(".err").read_text()

    def lines(self) -> list[str]:
        return self.file.read_text().splitlines()

    def until(self, *patterns: str) -> None:
        """Wait for lines that match these, in this order."""
        until(lambda: self.shows(patterns), 30)

    def shows(self, patterns: tuple[str, ...]) -> bool:
        lines = iter(self.lines())
        return all(any(re.search(pattern, line) for line in lines) for pattern in patterns)

    def end(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(20)


@pytest.fixture
def watch(fairlock: Tool) -> Iterator[Watch]:
    started: list[Watching] = []

    def start(*args: str) -> Watching:
        started.append(Watching(fairlock, *args))
        return started[-1]

    yield start
    for it in started:
        it.end()


def test_each_event_is_a_line(watch: Watch, fairlock: Tool) -> None:
    it = watch()
    holder = fairlock.holding("run", "--owner", "web-1", "--note", "month end", "x", "--", "sleep", "60")
    it.until(r"^\d\d:\d\d:\d\d acquired +x  web-1  (after \S+, )?fence \d+, month end")
    waiter = fairlock.start("run", "--owner", "web-2", "x", "--", "sleep", "60")
    it.until(r"^\d\d:\d\d:\d\d waiting +x  web-2  sleep$")
    holder.send_signal(signal.SIGTERM)
    it.until(r" released +x  web-1  held \S+, fence \d+, month end$", r" acquired +x  web-2  after \S+, fence \d+")
    done = fairlock("evict", "x", "-y", "--at-once", "--reason", "stuck")
    assert done.returncode == 0
    it.until(r" evicted +x  web-2  held \S+, fence \d+, sleep, by \S+@\S+: stuck \(at once\)$")
    waiter.wait(30)
    assert it.end() == 0, "Ctrl-C is how it ends"
    assert "Traceback" not in it.errors()


def test_what_lasts_already_is_not_an_event(watch: Watch, fairlock: Tool) -> None:
    fairlock("acquire", "before", "--lease", "60")
    it = watch()
    fairlock("acquire", "after", "--lease", "60")
    it.until(" acquired +after ")
    assert not any("before" in line for line in it.lines())


def test_json_prints_one_object_a_line(watch: Watch, fairlock: Tool) -> None:
    it = watch("--json", "jobs:*")
    fairlock("acquire", "other", "--lease", "60")
    fairlock("acquire", "jobs:1", "--lease", "60", "--note", "a b")
    until(lambda: it.lines())
    (one,) = map(json.loads, it.lines())
    assert list(one) == ["at", "kind", "name", "owner", "note", "ticket", "fence", "seconds", "detail"]
    assert (one["kind"], one["name"], one["note"]) == ("acquired", "jobs:1", "a b")


def test_text_of_others_stays_on_its_line() -> None:
    one = Happened(0, "acquired", "x\n12:00:00 released  y", "\x1b[2J")
    assert re.fullmatch(r"\d\d:\d\d:\d\d acquired   x\\n12:00:00 released  y  \\x1b\[2J", plain(line(one)))


def test_items_of_a_pool_and_all_namespaces(watch: Watch, fairlock: Tool) -> None:
    here, everywhere = watch("jobs"), watch("--namespace", "*")
    with connect(fairlock.url, owner="worker") as locks, connect(fairlock.url, namespace="b", owner="far") as other:
        locks.pool("jobs").add("one")
        item = locks.pool("jobs").acquire()
        other.lock("x").acquire()
        here.until(r" acquired +jobs  worker ")
        everywhere.until(r" acquired +b/x  far ")
        item.done()
        here.until(r" released +jobs  worker ")


def test_a_store_that_is_gone_is_reported_once_and_then_its_return(watch: Watch, fairlock: Tool) -> None:
    fairlock("ls")
    it = watch()
    file = fairlock.folder / "locks.db"
    moved = file.rename(file.with_name("away"))
    file.mkdir()
    it.until(r" store_down +\S+")
    file.rmdir()
    moved.rename(file)
    it.until(r" store_down ", r" store_up$")
    assert len([line for line in it.lines() if " store_down " in line]) == 1


def test_it_needs_neither_the_extra_nor_asyncio(tmp_path: Path) -> None:
    code = "import sys, fairlock.cli.show_events; print(sorted({'starlette', 'uvicorn', 'asyncio'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_reader_that_ends_ends_it(fairlock: Tool) -> None:
    command = f"{sys.executable} -m fairlock events --every 0.1 2>err | head -1"
    it = subprocess.Popen(
        ["sh", "-c", command], cwd=fairlock.folder, env=fairlock.env, stdout=subprocess.PIPE, text=True
    )
    until(lambda: (fairlock.folder / "err").exists() and "watching" in (fairlock.folder / "err").read_text())
    numbers = iter(range(30))
    until(lambda: fairlock("acquire", f"x{next(numbers)}", "--lease", "60") and it.poll() is not None, 30)
    out, _ = it.communicate(timeout=30)
    assert len(out.splitlines()) == 1
    assert "Traceback" not in (fairlock.folder / "err").read_text()
