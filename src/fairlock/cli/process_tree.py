"""Finds a command with all its descendants, and ends them.

A process group would be simpler, but on a terminal the command has to stay in the group of its pipeline, where a group
kill would hit its neighbours; and a descendant may have left the group or the session. So descendants are found in
three ways: by the group if the command has its own, by parents and children, and by the ticket in the environment that
every descendant inherits. One that leaves the group, loses its parents *and* clears its environment is not found.

A process is a pid and its start time, so that a pid that is used again is never hit. Everything is read from /proc.

One pass is enough if it finds no new process: a process that got KILL can no longer fork, so all children of the
processes killed before the pass are visible in it.
"""

import os
import signal
import time
from collections.abc import Iterable
from typing import NamedTuple


class Process(NamedTuple):
    pid: int
    start: int  # clock ticks since boot

    @property
    def alive(self) -> bool:
        now = read_stat(self.pid)
        return now is not None and now.start == self.start and now.state not in "ZX"

    def send(self, signum: int) -> None:
        """Send a signal, if it is still the same process and may be signalled."""
        if self.alive:
            try:
                os.kill(self.pid, signum)
            except OSError:  # it has ended, or it belongs to another user: then the caller sees that it lives
                pass


class Stat(NamedTuple):
    state: str
    parent: int
    group: int
    start: int


def read_stat(pid: int) -> Stat | None:
    """Read /proc about a pid; None if there is no such process."""
    text = read(f"/proc/{pid}/stat")
    if not text:
        return None
    fields = text[text.rindex(b")") + 2 :].split()  # the name before it may contain anything
    return Stat(fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[19]))


def process(pid: int) -> Process | None:
    seen = read_stat(pid)
    return Process(pid, seen.start) if seen is not None else None


def read(path: str) -> bytes:
    """Read a file; b'' if it does not exist or may not be read. Plain os calls: a pass reads hundreds."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        text = b""
        while more := os.read(fd, 65536):
            text += more
        return text
    except OSError:  # the process ended meanwhile
        return b""
    finally:
        os.close(fd)


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def children(pid: int) -> list[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(child) for task in tasks for child in read(f"/proc/{pid}/task/{task}/children").split()]


LISTS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def descendants(roots: Iterable[int]) -> list[int]:
    """Return all descendants of these, without themselves; parents before their children."""
    find = children
    if not LISTS_CHILDREN:  # a kernel without it: read the parent of every process
        by_parent: dict[int, list[int]] = {}
        for pid in pids():
            if seen := read_stat(pid):
                by_parent.setdefault(seen.parent, []).append(pid)
        find = lambda pid: by_parent.get(pid, [])  # noqa: E731
    known = list(roots)
    found = known.copy()
    for pid in found:  # it grows during the loop
        found += [child for child in find(pid) if child not in found]
    return found[len(known) :]


def find_by_ticket(ticket: str) -> list[int]:
    """Return the processes with this ticket in their environment; nested runs have it in FAIRLOCK_HELD."""
    mark = ticket.encode()
    found = []
    for pid in pids():
        text = read(f"/proc/{pid}/environ")
        if mark in text:
            for variable in text.split(b"\0"):
                if variable.startswith((b"FAIRLOCK_TICKET=", b"FAIRLOCK_HELD=")) and mark in variable:
                    found.append(pid)
                    break
    return found


def with_continue(signum: int) -> tuple[int, ...]:
    """Add CONT to TERM: a stopped process does not handle TERM before it is continued."""
    return (signum, signal.SIGCONT) if signum == signal.SIGTERM else (signum,)


class ProcessTree:
    """The processes of one command. `root` is None if the wrapper died at its start; `group` is 0 if it has none."""

    def __init__(self, ticket: str, spare: Iterable[int] = ()) -> None:
        self.ticket = ticket
        self.spare = set(spare) | {os.getpid()}
        self.root: Process | None = None
        self.group = 0
        self.known: dict[Process, None] = {}  # parents before their children, and signalled in this order: see `send`

    def watch(self, pid: int, group: int) -> None:
        self.root = process(pid)
        self.group = group
        if self.root is not None:
            self.known = {self.root: None}

    @property
    def living(self) -> list[Process]:
        return [p for p in self.known if p.alive]

    def send(self, signum: int) -> int:
        """Send a signal to every process once. Return how many new ones were found by their ticket.

        Parents first: a shell that outlives its child for a moment would run the next line of its script.
        """
        self._add(descendants([p.pid for p in self.living]))
        if self.group:  # all at once
            for one in with_continue(signum):
                try:
                    os.killpg(self.group, one)
                except OSError:  # the group is empty
                    pass
        self._signal(self.living, signum)
        late = self._add(find_by_ticket(self.ticket))
        self._signal(late, signum)
        return len(late)

    def _signal(self, those: list[Process], signum: int) -> None:
        for process in those:
            seen = read_stat(process.pid)
            if seen is not None and (not self.group or seen.group != self.group):  # the group got it as a whole
                for one in with_continue(signum):
                    process.send(one)

    def _add(self, pids: list[int]) -> list[Process]:
        """Add these processes and return those that were not known."""
        seen = [p for pid in pids if pid not in self.spare and (p := process(pid)) is not None]
        new = [p for p in seen if p not in self.known]
        self.known.update(dict.fromkeys(new))
        return new

    @property
    def gone(self) -> bool:
        """True if every known process is dead. Reliable only directly after a `send` that found no new process."""
        if self.living:
            return False
        if self.group:
            try:
                os.killpg(self.group, 0)
            except ProcessLookupError:
                return True
            except OSError:
                pass
            return all(seen.state in "ZX" for pid in pids() if (seen := read_stat(pid)) and seen.group == self.group)
        return True

    def kill_all(self, seconds: float) -> bool:
        """Send KILL until no process is left. False if one is left after `seconds` (not ours, or stuck on a disk)."""
        until = time.monotonic() + seconds
        pause = 0.0005
        while True:
            found = self.send(signal.SIGKILL)
            while not self.gone:
                if time.monotonic() >= until:
                    return False
                time.sleep(pause)
                pause = min(pause * 1.5, 0.02)
            if not found:
                return True
