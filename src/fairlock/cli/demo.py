"""`fairlock demo`: eight workers compete for locks on an SQLite store in a temporary folder, with the page open.

They show what an operator sees: contention on a lock, a semaphore, readers and a writer, a pool, a deadlock, and a
holder that crashes and is restarted. Each worker is a process of its own, as in production.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import fairlock

from . import exit_codes, output
from .demo_workers import ENDS, WORKERS
from .parse_arguments import Arguments
from .serve_web_page import serve

if TYPE_CHECKING:
    import subprocess


def demo(args: Arguments) -> int:
    from fairlock.web.serve import end_in_order

    folder = ""
    workers: list[subprocess.Popen[bytes]] = []
    code = 0
    try:
        end_in_order()
        folder = new_folder()  # known before it is made: an end at any moment removes it
        code = compete(args, folder, workers)
    except KeyboardInterrupt:
        pass
    finally:
        left = remove(folder, workers)
    if left:
        output.err(f"{folder} could not be removed: {left}. Remove it yourself.")
    elif not args["json"]:
        with suppress(OSError):  # its terminal was closed
            output.out("the demo has ended; its workers and its folder are gone\n")
    return code


def compete(args: Arguments, folder: str, workers: list[subprocess.Popen[bytes]]) -> int:
    """Start the workers, and serve the page until a signal ends it."""
    from fairlock.web.serve import require_extra

    require_extra()
    try:
        os.mkdir(folder, 0o700)
    except OSError as error:
        why = f"{folder} cannot be made: {error.strerror}. Set TMPDIR to a directory that you may write."
        raise exit_codes.Exit(exit_codes.CONFIG, why) from None
    url = f"sqlite:///{folder}/demo.db"
    args.options.update(journal=f"{folder}/journal.db", quiet=True)
    with fairlock.connect(url) as locks:
        locks.ping()
        for role in WORKERS:
            with blocked():  # a worker that was started is in the list, or a signal would leave it behind
                workers.append(start(role, url, folder))
        return serve(args, locks, admin=True, ready=lambda page: announce(args, url, page, folder))


@contextmanager
def blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def new_folder() -> str:
    import secrets
    import tempfile

    try:
        return os.path.join(tempfile.gettempdir(), f"fairlock-demo-{secrets.token_hex(4)}")
    except FileNotFoundError as error:
        raise exit_codes.Exit(exit_codes.CONFIG, f"{error.strerror}. Set TMPDIR to one that you may write.") from None


def remove(folder: str, workers: list[subprocess.Popen[bytes]]) -> str:
    """End the workers and remove the folder, whatever signal comes. Return why it is still there; '' if it is not."""
    import shutil

    for number in ENDS:
        signal.signal(number, signal.SIG_IGN)
    for each in workers:
        each.kill()
    for each in workers:
        each.wait()
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        return error.strerror or str(error)
    return ""


def start(role: str, url: str, folder: str) -> subprocess.Popen[bytes]:
    import subprocess

    command = [sys.executable, "-m", "fairlock.cli.demo_workers", role, url, f"{folder}/journal.db", str(os.getpid())]
    # In a session of its own: Ctrl-C is for the demo, which ends its workers. They would answer it with tracebacks.
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=folder, env=search_path(), start_new_session=True)


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
