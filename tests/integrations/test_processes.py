"""gunicorn with --preload, and gevent: a client that was made before a fork, and waits of greenlets."""

from __future__ import annotations

import socket
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from urllib.request import ProxyHandler, build_opener

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


def test_workers_of_gunicorn_use_a_client_that_was_made_before_the_fork(project: Project) -> None:
    project.take_files("integrations-processes.md")
    project.write("wsgi.py", project.read("wsgi.py") + FORKED)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"127.0.0.1:{port}"
    command = ["-m", "gunicorn", "--preload", "--workers", "2", "--threads", "4", "--bind", address, "wsgi:application"]
    server = project.start(*command, "--no-control-socket")

    def ask(_: object = None) -> list[int]:
        try:
            with open_url(f"http://{address}/", timeout=20) as reply:
                return [int(word) for word in reply.read().split()]
        except urllib.error.URLError:
            assert server.poll() is None, server.communicate()[0]
            return []

    until(ask)
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(ask, range(60)))
    fences = [fence for fence, _, _ in replies]
    assert len(set(fences)) == 60  # of all workers together
    assert {parent for _, _, parent in replies} == {server.pid}
    workers = {worker for _, worker, _ in replies}
    assert len(workers) == 2
    server.terminate()
    assert server.wait(20) == 0


def test_greenlets_wait_for_a_lock_one_at_a_time(project: Project) -> None:
    project.take_files("integrations-processes.md")
    assert project.run("green.py").strip() == str(list(range(10)))
