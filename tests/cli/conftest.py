"""Runs the tool as a user does: in its own process, with its own store, without a terminal (see test_terminal.py)."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlock.cli.process_tree import read_stat

TOOL = [sys.executable, "-m", "fairlock"]


def alive(pid: int) -> bool:
    seen = read_stat(pid)
    return seen is not None and seen.state not in "ZX"


def until(what: Callable[[], object], seconds: float = 15) -> float:
    """Wait for it and return how long that took."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < seconds, "it did not happen in time"
        time.sleep(0.01)
    return time.monotonic() - began


class Tool:
    """Runs `fairlock ARGS` in its own folder, with its own store or, by -u alone, with the one at a URL."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.folder = folder
        self.url = url or f"sqlite:///{folder}/locks.db"
        self.always = ["-u", url] if url else []
        kept = {k: v for k, v in os.environ.items() if not k.startswith("FAIRLOCK_")}
        self.env = {**kept, "HOME": str(folder), "SHELL": "/bin/sh", **({} if url else {"FAIRLOCK_URL": self.url})}
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *args: str, **env: str) -> subprocess.Popen[str]:
        it = subprocess.Popen(
            [*TOOL, *self.always, *args], cwd=self.folder, env={**self.env, **env}, text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self.started.append(it)
        return it

    def __call__(self, *args: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        it = self.start(*args, **env)
        out, err = it.communicate(stdin, timeout=60)
        return subprocess.CompletedProcess(args, it.returncode, out, err)

    def holders(self, name: str) -> list[str]:
        """Return the owners of the holders."""
        return [one.owner for one in self.state(name)[0]]

    def queue(self, name: str) -> list[str]:
        return [one.owner for one in self.state(name)[1]]

    def state(self, name: str):  # type: ignore[no-untyped-def]
        import fairlock

        with fairlock.connect(self.url) as locks:
            found = [r for r in locks.snapshot(name).resources if r.name == name]
        return (found[0].holders, found[0].queue) if found else ((), ())

    def holding(self, *args: str, name: str = "x", **env: str) -> subprocess.Popen[str]:
        """Start a run and wait until it holds the lock."""
        it = self.start(*args, **env)
        until(lambda: it.poll() is not None or self.holders(name))
        assert it.poll() is None, it.communicate()
        return it

    def pids(self, *names: str) -> list[int]:
        """Return the pids that processes wrote to files of these names."""
        for name in names:
            file = self.folder / name
            until(lambda file=file: file.exists() and file.read_text().endswith("\n"))
        return [int((self.folder / name).read_text()) for name in names]

    def end(self) -> None:
        for it in self.started:
            if it.poll() is None:
                it.send_signal(signal.SIGCONT)
                it.kill()
                it.wait()
            for end in (it.stdin, it.stdout, it.stderr):
                if end is not None:
                    end.close()


@pytest.fixture
def fairlock(tmp_path: Path) -> Iterator[Tool]:
    tool = Tool(tmp_path)
    yield tool
    tool.end()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what test_on_redis.py only borrows for the long runs: a mark on the test itself would be on both."""
    for item in items:
        if item.path.name == "test_on_redis.py" and isinstance(item, pytest.Function):
            if is_for_the_long_runs(item.originalname.removeprefix("test_")):
                item.add_marker(pytest.mark.soak)


def is_for_the_long_runs(name: str) -> bool:
    from tests.cli.test_on_redis import EVERY_DAY, THE_SAME

    return any(name in names.split() for names in THE_SAME.values()) and name not in EVERY_DAY.split()
