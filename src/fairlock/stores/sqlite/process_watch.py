"""Watching processes: a file descriptor for each that becomes readable when it ends.

The pid is part of the name of a listener. It may belong to another pid namespace; then an unrelated process is watched,
which does no harm: only the listener itself proves that a client is dead (`listener_sockets`).
"""

import errno
import os
import re

NAME = re.compile(r"(\d{1,10})-\w{1,8}-(\w{1,16})", re.ASCII)  # of a listener: pid, boot, inode
MOST = 64  # file descriptors


class ProcessDeaths:
    def __init__(self) -> None:
        self._pidfds: dict[str, int] = {}

    def watch(self, listener: str) -> tuple[int, bool]:
        """Return a descriptor that is readable when the process of this listener ends, or -1; whether it is new."""
        fd = self._pidfds.get(listener)
        if fd is not None:
            return fd, False
        match = NAME.fullmatch(listener)
        if match is not None and hasattr(os, "pidfd_open") and int(match[1]) != os.getpid():
            try:
                fd = self._pidfds[listener] = os.pidfd_open(int(match[1]))
                return fd, True
            except OSError:
                pass
        return -1, True

    def watched(self, listeners: set[str]) -> dict[int, str]:
        """Return the watched file descriptors of these listeners."""
        return {self._pidfds[e]: e for e in listeners if e in self._pidfds}

    def watches_many(self) -> bool:
        return len(self._pidfds) > MOST

    def unwatch(self, listener: str) -> None:
        fd = self._pidfds.pop(listener, None)
        if fd is not None:
            os.close(fd)

    def forget_unwatched(self, watched: set[str]) -> None:
        """Close all watches but these, to bound the number of open file descriptors."""
        for listener in [e for e in self._pidfds if e not in watched]:
            self.unwatch(listener)


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as bad:
        return bad.errno != errno.ESRCH
    return True
