"""Watching processes: a file descriptor for each that becomes readable when it ends.

The pid is read off the name of an ear. It may be one of another pid namespace; then a stranger is watched, which does
no harm: that a client is dead is only ever concluded from the ear itself (`ears`).
"""

import errno
import os
import re

NAME = re.compile(r"(\d{1,10})-\w{1,8}-(\w{1,16})", re.ASCII)  # of an ear: pid, boot, inode
MOST = 64  # file descriptors


class Deaths:
    def __init__(self) -> None:
        self._pidfds: dict[str, int] = {}

    def watch(self, ear: str) -> tuple[int, bool]:
        """A descriptor that becomes readable when the process behind this ear ends, or -1; and whether it is new."""
        fd = self._pidfds.get(ear)
        if fd is not None:
            return fd, False
        match = NAME.fullmatch(ear)
        if match is not None and hasattr(os, "pidfd_open") and int(match[1]) != os.getpid():
            try:
                fd = self._pidfds[ear] = os.pidfd_open(int(match[1]))
                return fd, True
            except OSError:
                pass
        return -1, True

    def watched(self, ears: set[str]) -> dict[int, str]:
        """The file descriptors under watch, of these ears."""
        return {self._pidfds[e]: e for e in ears if e in self._pidfds}

    def watches_many(self) -> bool:
        return len(self._pidfds) > MOST

    def unwatch(self, ear: str) -> None:
        fd = self._pidfds.pop(ear, None)
        if fd is not None:
            os.close(fd)

    def forget_unwatched(self, watched: set[str]) -> None:
        """Keep the number of open file descriptors within bounds."""
        for ear in [e for e in self._pidfds if e not in watched]:
            self.unwatch(ear)


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as bad:
        return bad.errno != errno.ESRCH
    return True
