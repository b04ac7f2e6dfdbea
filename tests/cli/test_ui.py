"""`fairlock ui` and `fairlock demo` as commands: what they print, what they refuse, and how they end."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.cli.conftest import Tool, alive, until

WITHOUT = """
import sys
sys.modules[{module!r}] = None  # as if it were not installed
from fairlock.cli import main
sys.exit(main({arguments!r}))
"""


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.parametrize("command", ["ui", "demo"])
@pytest.mark.parametrize("module", ["starlette", "uvicorn", "prometheus_client"])
def test_without_the_extra_it_is_a_sentence_with_the_cure(tmp_path: Path, command: str, module: str) -> None:
    arguments = ["-u", f"sqlite:///{tmp_path}/locks.db", command]
    code = WITHOUT.format(module=module, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr == f"fairlock: The page needs {module}: pip install 'fairlock[ui]'.\n"
    assert done.returncode == 78
    assert not (tmp_path / "locks.db").exists()


def test_it_prints_the_address_and_ends_with_a_signal(fairlock: Tool) -> None:
    it = fairlock.start("ui", "--port", "0")
    assert first_line(it) == f"{fairlock.url} is shown on\n"
    url = first_line(it).strip()
    assert url.startswith("http://127.0.0.1:")
    assert re.fullmatch(r"\d+/#token=[\w-]{32}", url.rpartition(":")[2])
    assert first_line(it) == "read-only; Ctrl-C ends it\n"
    until(lambda: urllib.request.urlopen(url.partition("#")[0]).status == 200)
    it.send_signal(signal.SIGINT)
    _, err = it.communicate(timeout=20)
    assert err == ""
    assert it.returncode in (0, 130)


def test_what_cannot_work_is_a_sentence(fairlock: Tool, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        busy = fairlock("ui", "--port", str(port))
    assert busy.returncode == 78
    assert f"127.0.0.1 port {port} cannot be used: Address already in use. Use --port 0" in busy.stderr
    assert fairlock("ui", "--port", "70000").returncode == 64
    (tmp_path / "text").write_text("no database " * 100)
    damaged = fairlock("ui", "--port", "0", "--journal", "text")
    assert damaged.returncode == 78
    assert "The journal 'text' cannot be opened" in damaged.stderr
    assert fairlock("-u", "memory://", "ui").returncode == 78


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_has_eight_workers_that_end_with_it(fairlock: Tool, end: signal.Signals) -> None:
    it = fairlock.start("demo", "--port", "0", "--json", "--no-browser", TMPDIR=str(fairlock.folder))
    told = json.loads(first_line(it))
    assert told["url"].startswith("http://127.0.0.1:")
    (folder,) = fairlock.folder.glob("fairlock-demo-*")
    workers = [int(pid) for pid in children(it.pid)]
    assert len(workers) == 8
    demo = Tool(fairlock.folder, told["store"])
    until(lambda: demo.holders("tenant:acme") and demo.queue("tenant:acme"), 60)
    it.send_signal(end)
    _, err = it.communicate(timeout=30)
    assert err == ""
    assert [pid for pid in workers if alive(pid)] == []
    assert not folder.exists()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_at_any_moment_ends_a_demo_and_leaves_nothing(fairlock: Tool, end: signal.Signals) -> None:
    for pause in (0.3, 0.5, 0.8, 1.2):
        it = fairlock.start("demo", "--port", "0", "--no-browser", TMPDIR=str(fairlock.folder))
        time.sleep(pause)
        workers = [int(pid) for pid in children(it.pid)]
        it.send_signal(end)
        out, err = it.communicate(timeout=30)
        if it.returncode not in (-end, 130):  # Python itself was still starting
            assert (it.returncode, err) == (0, "")
            assert out.endswith("the demo has ended; its workers and its folder are gone\n")
        assert [pid for pid in workers if alive(pid)] == []
        assert list(fairlock.folder.glob("fairlock-demo-*")) == []


@pytest.mark.parametrize("words", [("ui",), ("demo", "--no-browser")])
def test_a_closed_stdout_is_no_error(fairlock: Tool, words: tuple[str, ...]) -> None:
    line = shlex.join([sys.executable, "-m", "fairlock", "-u", fairlock.url, *words, "--port", "0"])
    env = {**os.environ, "TMPDIR": str(fairlock.folder)}
    it = subprocess.Popen(f"exec {line} >&-", shell=True, stderr=subprocess.PIPE, text=True, env=env)
    with pytest.raises(subprocess.TimeoutExpired):
        it.wait(3)
    it.terminate()
    assert it.communicate(timeout=30)[1] == ""
    assert it.returncode == 0


def test_the_workers_of_a_demo_that_was_killed_end(fairlock: Tool) -> None:
    it = fairlock.start("demo", "--port", "0", "--json", "--no-browser", TMPDIR=str(fairlock.folder))
    first_line(it)
    workers = [int(pid) for pid in children(it.pid)]
    until(lambda: sum("demo_workers" in command_line(pid) for pid in workers) == 8)
    it.kill()
    it.wait()
    until(lambda: not any(alive(pid) for pid in workers), 30)


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


