"""The tool as a user meets it: a process of its own, a store of its own, no terminal (test_terminal.py brings one)."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.cli.undertaker import look

TOOL = [sys.executable, "-m", "holdfast"]


def alive(pid: int) -> bool:
    seen = look(pid)
    return seen is not None and seen.state not in "ZX"


def until(what: Callable[[], object], seconds: float = 15) -> float:
    """Wait for it; how long that took."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < seconds, "it never came"
        time.sleep(0.002)
    return time.monotonic() - began


class Tool:
    """Runs `holdfast ARGS` in a folder of its own, with a store of its own or, by -u alone, with the one at a URL."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.folder = folder
        self.url = url or f"sqlite:///{folder}/locks.db"
        self.always = ["-u", url] if url else []
        kept = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
        self.env = {**kept, "HOME": str(folder), "SHELL": "/bin/sh", **({} if url else {"HOLDFAST_URL": self.url})}
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

    def inside(self, name: str) -> list[str]:
        """The owners inside."""
        return [one.owner for one in self.record(name)[0]]

    def line(self, name: str) -> list[str]:
        return [one.owner for one in self.record(name)[1]]

    def record(self, name: str):  # type: ignore[no-untyped-def]
        import holdfast

        with holdfast.connect(self.url) as locks:
            found = [r for r in locks.snapshot(name).resources if r.name == name]
        return (found[0].inside, found[0].line) if found else ((), ())

    def holding(self, *args: str, name: str = "x", **env: str) -> subprocess.Popen[str]:
        """Start a run and wait until it is inside."""
        it = self.start(*args, **env)
        until(lambda: it.poll() is not None or self.inside(name))
        assert it.poll() is None, it.communicate()
        return it

    def pids(self, *names: str) -> list[int]:
        """The pids that processes wrote to files of these names."""
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
def holdfast(tmp_path: Path) -> Iterator[Tool]:
    tool = Tool(tmp_path)
    yield tool
    tool.end()
