"""The guards of docs/fences.md against a real sleeper: a process stopped past its lease, continued, and refused.

The guards are read from the page, so what is tested is what is shown.
"""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import fairlock
from tests.project_rules import snippets

PAGE = snippets.ROOT / "docs" / "fences.md"
LEASE = 0.5  # the smallest allowed

SLEEPER = """
import sys
import fairlock
from tests.docs.test_fences import guards, write

locks = fairlock.connect(sys.argv[2])
lease = locks.lock("thing", lease=float(sys.argv[3])).acquire()
write(sys.argv[1], "early", lease.fence)
print(lease.fence, flush=True)
sys.stdin.readline()
print("lost" if lease.lost else "held", flush=True)
try:
    write(sys.argv[1], "late", lease.fence)
    print("written", flush=True)
except guards()["StaleWrite"]:
    print("refused", flush=True)
"""


@cache
def guards() -> dict[str, Any]:
    """Return the functions that the page defines, without running its examples."""
    names: dict[str, Any] = {}
    for block in snippets.blocks(PAGE.read_text()):
        if block.language == "python" and "\ndef " in block.text:
            exec(block.text, names)
    return names


def write(what: str, text: str, fence: int) -> None:
    if what == "file":
        guards()["save_file"]("thing.txt", text, fence)
    else:
        db = sqlite3.connect("bank.db", isolation_level=None)
        db.execute("CREATE TABLE IF NOT EXISTS accounts (id INTEGER PRIMARY KEY, balance, fence INTEGER DEFAULT 0)")
        db.execute("INSERT OR IGNORE INTO accounts (id) VALUES (7)")
        try:
            guards()["save_balance"](db, 7, text, fence)
        finally:
            db.close()


def read(what: str) -> str:
    if what == "file":
        return Path("thing.txt").read_text()
    db = sqlite3.connect("bank.db")
    try:
        return str(db.execute("SELECT balance FROM accounts").fetchone()[0])
    finally:
        db.close()


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{snippets.ROOT}/src:{snippets.ROOT}")
    return "sqlite:///locks.db"


@pytest.fixture
def sleeper(request: pytest.FixtureRequest, url: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", SLEEPER, request.param, url, str(LEASE)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        yield process
        process.kill()


@pytest.mark.parametrize("sleeper, what", [("sql", "sql"), ("file", "file")], indirect=["sleeper"])
def test_a_holder_that_slept_past_its_lease_is_refused_by_the_guard(
    sleeper: subprocess.Popen[str], what: str, url: str
) -> None:
    assert sleeper.stdout is not None and sleeper.stdin is not None
    its_fence = int(sleeper.stdout.readline())
    assert read(what) == "early"
    sleeper.send_signal(signal.SIGSTOP)
    with fairlock.connect(url) as locks, locks.lock("thing", timeout=30) as lease:
        assert lease.fence > its_fence
        write(what, "new", lease.fence)
        sleeper.send_signal(signal.SIGCONT)
        sleeper.stdin.write("go on\n")
        sleeper.stdin.flush()
        assert sleeper.stdout.readline() == "lost\n"
        assert sleeper.stdout.readline() == "refused\n"
    assert read(what) == "new"


@pytest.mark.parametrize("what", ["sql", "file"])
def test_a_guard_takes_the_same_fence_again_and_a_greater_one(what: str, url: str) -> None:
    for text, fence in (("one", 5), ("two", 5), ("three", 7)):
        write(what, text, fence)
        assert read(what) == text
    with pytest.raises(Exception, match="fence 6 is too old"):
        write(what, "four", 6)
    assert read(what) == "three"
