"""Programs that tests start: found on PATH, or fetched by ./dev when the first test needs one.

Only `./dev test` sets FAIRLOCK_DEV. When pytest is started directly, nothing is fetched. Several processes that need
the same program wait for each other in ./dev.
"""

import os
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

LIMIT = 900.0  # seconds for one download


def find(name: str) -> str | None:
    """Return the path of a program. If this machine lacks it, fetch it and put its folder at the end of PATH."""
    if (found := shutil.which(name)) is None and (folder := _fetch(name)):
        os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), folder])
        found = shutil.which(name)
    return found


def find_jars(name: str, pattern: str) -> Path | None:
    """Return the folder with the jars of this name, fetched first if it lacks a file that matches the pattern."""
    folder = Path(os.environ.get(f"FAIRLOCK_{name.upper()}") or Path(__file__).parents[2] / ".dev" / name)
    if not any(folder.glob(pattern)):
        _fetch(name)
    return folder if any(folder.glob(pattern)) else None


def find_frameworks() -> Path | None:
    """Return the folder with Django, Celery and the others, fetched first if it is not whole."""
    folder = Path(__file__).parents[2] / ".dev" / "frameworks"
    if os.environ.get("FAIRLOCK_DEV"):
        return Path(found) if (found := _fetch("frameworks")) else None
    return folder if (folder / "made-from").exists() else None


def _fetch(name: str) -> str:
    """Return the folder of a fetched program, or "" if it cannot be fetched."""
    dev = os.environ.get("FAIRLOCK_DEV")
    return _fetch_by(dev, name) if dev else ""


@cache
def _fetch_by(dev: str, name: str) -> str:
    """Return the folder, or "" if the program cannot be fetched. The time limit of the test stands still meanwhile."""
    left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        done = subprocess.run([sys.executable, dev, "fetch", name], stdout=subprocess.PIPE, text=True, timeout=LIMIT)
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
    return done.stdout.strip() if done.returncode == 0 else ""
