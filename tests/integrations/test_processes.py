"""gunicorn with --preload, uWSGI, and gevent: a client that was made before a fork, and waits of greenlets."""

from __future__ import annotations

import socket
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from urllib.request import ProxyHandler, build_opener

import pytest

from tests.integrations.conftest import Project, until

open_url = build_opener(ProxyHandler({})).open
FORKED = """
import os
seen = set()
inner = application
def application(environ, start_response):
    reply = inner(environ, start_response)
    return [reply[0] + f" {os.getpid()} {os.getppid()}".encode()]
"""


GUNICORN = (
    *("-m", "gunicorn", "--preload", "--workers", "2", "--threads", "4", "--bind", "ADDRESS"),
    *("wsgi:application", "--no-control-socket"),
)
UWSGI = (
    *("-c", "import sys, pyuwsgi; pyuwsgi.run(sys.argv[1:])", "--master", "--processes", "2", "--threads", "4"),
    *("--enable-threads", "--http-socket", "ADDRESS", "--wsgi-file", "wsgi.py", "--need-app", "--die-on-term"),
)


@pytest.mark.parametrize("command", [pytest.param(GUNICORN, id="gunicorn"), pytest.param(UWSGI, id="uwsgi")])
def test_workers_use_a_client_that_was_made_before_the_fork(project: Project, command: tuple[str, ...]) -> None:
    if command is UWSGI and project.attempt("-c", "import pyuwsgi")[0]:
        pytest.skip("pyuwsgi has no wheel for this machine.")
    project.take_files("integrations-processes.md")
    project.write("wsgi.py", project.read("wsgi.py") + FORKED)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"127.0.0.1:{port}"
    server = project.start(*(address if word == "ADDRESS" else word for word in command))

    def ask(_: object = None) -> list[int]:
        try:
            with open_url(f"http://{address}/", timeout=20) as reply:
                return [int(word) for word in reply.read().split()]
        except urllib.error.URLError:
            assert server.poll() is None, server.communicate()[0]
            return []

    def ask_both() -> bool:
        """Return whether both workers have replied: the kernel decides which one gets a request."""
        with ThreadPoolExecutor(8) as threads:
            replies.extend(filter(None, threads.map(ask, range(60))))  # a full backlog refuses some
        return len({worker for _, worker, _ in replies}) == 2

    until(ask)
    replies: list[list[int]] = []
    until(ask_both)
    fences = [fence for fence, _, _ in replies]
    assert len(set(fences)) == len(replies)  # of all workers together
    assert {parent for _, _, parent in replies} == {server.pid}
    server.terminate()
    assert server.wait(20) == 0


KEPT = """
import time
lease = None
def application(environ, start_response):
    global lease
    if environ["PATH_INFO"] == "/acquire":
        lease = fairlock.connect("sqlite:///locks.db", lease=1).lock("kept").acquire()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(lease is not None and lease.held).encode()]
"""


def test_uwsgi_renews_between_two_requests(project: Project) -> None:
    if project.attempt("-c", "import pyuwsgi")[0]:
        pytest.skip("pyuwsgi has no wheel for this machine.")
    project.take_files("integrations-processes.md")
    project.write("wsgi.py", project.read("wsgi.py") + KEPT)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    words = [word for word in UWSGI if word not in ("--processes", "2", "--threads", "4")]
    server = project.start(*(address if word == "ADDRESS" else word for word in words))

    def ask(path: str) -> str:
        try:
            with open_url(f"http://{address}{path}", timeout=20) as reply:
                return str(reply.read().decode())
        except urllib.error.URLError:
            assert server.poll() is None, server.communicate()[0]
            return ""

    until(lambda: ask("/"))
    assert ask("/acquire") == "True"
    time.sleep(2.5)
    assert ask("/") == "True", "a thread has renewed it, although no request came"


def test_greenlets_wait_for_a_lock_one_at_a_time(project: Project) -> None:
    project.take_files("integrations-processes.md")
    assert project.run("green.py").strip() == str(list(range(10)))
