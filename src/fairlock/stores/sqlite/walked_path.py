"""A path is followed step by step, so that each directory and link that decides where it leads can be checked.

The check of a step holds for those behind it: what comes after a step that other users can exchange is whatever they
want, but that step has been seen. `root_acts_as_file_owner` judges them.
"""

import errno
import os
import stat
from typing import NamedTuple

LINKS = 40  # as many as the kernel follows


class Step(NamedTuple):
    path: str
    there: os.stat_result  # of a directory, or of a link that was followed


class WalkedPath(NamedTuple):
    real: str  # without symbolic links
    steps: tuple[Step, ...]  # from the root on

    def directory(self) -> os.stat_result:
        """Return the stat of the directory of the file, or of the last one above it that exists."""
        known, folder = dict(self.steps), os.path.dirname(self.real)
        while folder not in known:
            folder = os.path.dirname(folder)
        return known[folder]


def walk(path: str) -> WalkedPath:
    """Follow an absolute path. What does not exist is taken as it is written. OSError if a step may not be seen."""
    left = path.split("/")[::-1]
    real, links = "/", 0
    steps = [Step(real, os.lstat(real))]
    while left:
        name = left.pop()
        if name in ("", "."):
            continue
        if name == "..":
            real = os.path.dirname(real)
            continue
        one = os.path.join(real, name)
        try:
            there = os.lstat(one)
        except FileNotFoundError:
            return WalkedPath(os.path.normpath(os.path.join(one, *left[::-1])), tuple(steps))
        if stat.S_ISLNK(there.st_mode):
            links += 1
            if links > LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            steps.append(Step(one, there))
            target = os.readlink(one)
            left += target.split("/")[::-1]
            real = "/" if target.startswith("/") else real
            continue
        real = one
        if stat.S_ISDIR(there.st_mode):
            steps.append(Step(real, there))
        elif any(name not in ("", ".") for name in left):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return WalkedPath(real, tuple(steps))
