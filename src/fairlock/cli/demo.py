"""`fairlock demo`: eight workers compete for locks on an SQLite store in a temporary folder, with the page open.

They show what an operator meets: contention on a lock, a semaphore, readers and a writer, a pool, a deadlock, and a
holder that crashes and is restarted. Each worker is a process of its own, as in production.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import fairlock

from . import output
from .demo_workers import WORKERS
from .parse_arguments import Arguments
from .serve_web_page import serve

if TYPE_CHECKING:
    import subprocess


def demo(args: Arguments) -> int:
    from fairlock.web.serve import require_extra

    require_extra()
    import tempfile

    with tempfile.TemporaryDirectory(prefix="fairlock-demo-") as folder:
        url = f"sqlite:///{folder}/demo.db"
        args.options.update(journal=f"{folder}/journal.db", quiet=True)
        with fairlock.connect(url) as locks:
            locks.ping()
            started = [start(role, url, folder) for role in WORKERS]
            try:
                return serve(args, locks, admin=True, ready=lambda page: announce(args, url, page, folder))
            finally:
                for each in started:
                    each.kill()
                for each in started:
                    each.wait()


def start(role: str, url: str, folder: str) -> subprocess.Popen[bytes]:
    import subprocess

    command = [sys.executable, "-m", "fairlock.cli.demo_workers", role, url, f"{folder}/journal.db", str(os.getpid())]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=folder, env=search_path())


def search_path() -> dict[str, str]:
    """Return an environment in which a worker imports the same fairlock as this process."""
    ours = os.path.dirname(os.path.dirname(fairlock.__file__))
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH")]))}


def announce(args: Arguments, url: str, page: str, folder: str) -> None:
    if not args["json"]:
        output.out(f"eight workers compete for its locks; look at them in another terminal, too:\n"
                   f"  fairlock -u {url} ls\nCtrl-C ends all of it\n")  # fmt: skip
    if args["open"] is not False and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        import webbrowser

        # By a file that only this user may read: `ps` shows the command line of a browser to all users.
        file = f"{folder}/open.html"
        with open(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "w") as redirect:
            redirect.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={page}">')
        webbrowser.open(f"file://{file}")
