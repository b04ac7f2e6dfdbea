"""The contenders: fairlock on its embedded store, filelock, portalocker, and flock(2) itself as the limit.

Each is given as a program would write it, with the defaults of its library, and twice: a new object for each use, and
one object used again. What a library is not asked for here, it is not charged for: flock(2) alone neither waits with a
timeout nor shows the holder of a lock, has no queue, and passes its lock on to every child.
"""

import fcntl
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import filelock
import portalocker

import fairlock

Section = Callable[[], AbstractContextManager[Any]]


class Contender:
    """`open` in the process that is to use it; then `fresh()` and `same()` give what goes behind `with`."""

    name: str
    fresh: Section
    same: Section

    def open(self, folder: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


class Fairlock(Contender):
    name = "fairlock"

    def open(self, folder: str) -> None:
        self._locks = locks = fairlock.connect(f"sqlite:///{folder}/locks.db")
        self.fresh = lambda: locks.lock("x")
        same = locks.lock("x")
        self.same = lambda: same

    def close(self) -> None:
        self._locks.close()


class FileLock(Contender):
    name = "filelock"

    def open(self, folder: str) -> None:
        path = f"{folder}/filelock"
        self.fresh = lambda: filelock.FileLock(path)
        same = filelock.FileLock(path)
        self.same = lambda: same


class Portalocker(Contender):
    name = "portalocker"

    def open(self, folder: str) -> None:
        path = f"{folder}/portalocker"
        # Its own default gives up after five seconds, which a line of 32 can take.
        self.fresh = lambda: portalocker.Lock(path, timeout=600)
        same = portalocker.Lock(path, timeout=600)
        self.same = lambda: same


class RawFlock(Contender):
    name = "flock(2)"

    def open(self, folder: str) -> None:
        path = f"{folder}/flock"
        self.fresh = lambda: _OpenAndLock(path)
        same = _LockOpen(os.open(path, os.O_RDWR | os.O_CREAT))
        self.same = lambda: same


class _OpenAndLock:
    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT)
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


class _LockOpen:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __enter__(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_UN)


CONTENDERS: tuple[type[Contender], ...] = (Fairlock, FileLock, Portalocker, RawFlock)
VERSIONS = {"fairlock": fairlock.__version__, "filelock": filelock.__version__, "portalocker": portalocker.__version__}
