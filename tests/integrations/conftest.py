"""Small projects that use a framework: files taken from the pages or from a test, run in processes of their own.

A block of a page that begins with a comment like `# tasks.py` is that file; if it is run, the blocks after it belong to
it. So what a reader copies is what is tested.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.project_rules.snippets import ROOT, blocks


def until(what: Callable[[], object], seconds: float = 30) -> None:
    """Wait until it is true."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < seconds, "it did not happen in time"
        time.sleep(0.02)


class Project:
    """A folder with files, and processes that run in it with the frameworks and fairlock importable."""

    def __init__(self, folder: Path, frameworks: Path) -> None:
        self.folder = folder
        self.url = f"sqlite:///{folder}/locks.db"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRLOCK_", "PYTEST_"))}
        path = os.pathsep.join([str(ROOT / "src"), str(frameworks), str(folder)])
        self.env = {**kept, "PYTHONPATH": path, "FAIRLOCK_URL": self.url, "HOME": str(folder)}
        self.started: list[subprocess.Popen[str]] = []

    def take_files(self, page: str) -> None:
        """Write each file that a page of docs/ shows."""
        lines = (ROOT / "docs" / page).read_text().splitlines()
        last = ""
        for block in blocks("\n".join(lines)):
            hidden = lines[block.line - 2].strip() == "<!-- python"
            if name := re.match(r"# ([\w./-]+\.\w+)\n", block.text):
                self.write(name[1], block.text)
                last = "" if block.request else name[1]
            elif last.endswith(".py") and block.language == "python" and not hidden and not block.request:
                self.write(last, f"{self.read(last)}\n\n{block.text}")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def read(self, name: str) -> str:
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    def run(self, *arguments: str, timeout: float = 60) -> str:
        """Run Python with these arguments and return its output; it must succeed."""
        code, printed = self.attempt(*arguments, timeout=timeout)
        assert code == 0, printed
        return printed

    def attempt(self, *arguments: str, timeout: float = 60) -> tuple[int, str]:
        process = self.start(*arguments)
        printed, _ = process.communicate(timeout=timeout)
        return process.returncode, printed

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=self.folder, env=self.env, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.started.append(process)
        return process

    def end(self) -> None:
        for process in self.started:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # the whole session, which this test started
            except ProcessLookupError:
                pass
            process.communicate()


@pytest.fixture
def project(tmp_path: Path, frameworks: Path) -> Iterator[Project]:
    made = Project(tmp_path, frameworks)
    try:
        yield made
    finally:
        made.end()
