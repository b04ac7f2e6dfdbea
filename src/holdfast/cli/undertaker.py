"""Finds a command with all that came of it, and ends it.

A process group would be simpler, but on a terminal the command has to stay in the group of its pipeline, where a group
kill would hit the neighbours; and any descendant may have left the group or the session. So three trails are followed:
the group if the command has one of its own, parents and children, and the ticket in the environment that every
descendant inherits. Who leaves the group, loses its parents *and* wipes its environment is not found.

A process is a pid and its start time, so that a pid used again is never hit. Everything is read from /proc.

One sweep is enough if it finds nobody new: whoever has been sent KILL can no longer fork, so all children of those
killed before the sweep are already there to be seen.
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
        now = look(self.pid)
        return now is not None and now.start == self.start and now.state not in "ZX"

    def send(self, signum: int) -> None:
        """A signal, if it is still the same process and may be signalled."""
        if self.alive:
            try:
                os.kill(self.pid, signum)
            except OSError:  # gone in between, or it belongs to another user: the caller sees that it lives on
                pass


class Look(NamedTuple):
    state: str
    parent: int
    group: int
    start: int


def look(pid: int) -> Look | None:
    """What /proc says about a pid; None if there is no such process."""
    text = read(f"/proc/{pid}/stat")
    if not text:
        return None
    fields = text[text.rindex(b")") + 2 :].split()  # the name before it may hold anything
    return Look(fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[19]))


def process(pid: int) -> Process | None:
    seen = look(pid)
    return Process(pid, seen.start) if seen is not None else None


def read(path: str) -> bytes:
    """The whole file; b'' if it is not there or not ours to read. Plain os calls: a sweep reads hundreds."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        text = b""
        while more := os.read(fd, 65536):
            text += more
        return text
    except OSError:  # it ended while being read
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
    """All that came of these, themselves not included; parents before their children."""
    find = children
    if not LISTS_CHILDREN:  # a kernel built without it: ask everyone for its parent
        family: dict[int, list[int]] = {}
        for pid in pids():
            if seen := look(pid):
                family.setdefault(seen.parent, []).append(pid)
        find = lambda pid: family.get(pid, [])  # noqa: E731
    known = list(roots)
    found = known.copy()
    for pid in found:  # it grows while we walk along it
        found += [child for child in find(pid) if child not in found]
    return found[len(known) :]


def marked(ticket: str) -> list[int]:
    """All whose environment says that they run under this ticket; nested runs keep it in HOLDFAST_HELD."""
    mark = ticket.encode()
    found = []
    for pid in pids():
        text = read(f"/proc/{pid}/environ")
        if mark in text:
            for variable in text.split(b"\0"):
                if variable.startswith((b"HOLDFAST_TICKET=", b"HOLDFAST_HELD=")) and mark in variable:
                    found.append(pid)
                    break
    return found


def with_continue(signum: int) -> tuple[int, ...]:
    """A stopped one does not hear TERM before it goes on."""
    return (signum, signal.SIGCONT) if signum == signal.SIGTERM else (signum,)


class Undertaker:
    """For one command: `root` may be unknown (the wrapper died while it started), `group` is 0 if it has none."""

    def __init__(self, ticket: str, spare: Iterable[int] = ()) -> None:
        self.ticket = ticket
        self.spare = set(spare) | {os.getpid()}
        self.root: Process | None = None
        self.group = 0
        self.known: dict[Process, None] = {}  # parents before their children, and so they die: see `send`

    def watch(self, pid: int, group: int) -> None:
        self.root = process(pid)
        self.group = group
        if self.root is not None:
            self.known = {self.root: None}

    @property
    def living(self) -> list[Process]:
        return [p for p in self.known if p.alive]

    def send(self, signum: int) -> int:
        """To everyone, once; how many the last sweep found who had escaped until then.

        Parents first: a shell that outlives its child for a moment would go on with the next line of its script.
        """
        self._know(descendants([p.pid for p in self.living]))
        if self.group:  # all at once
            for one in with_continue(signum):
                try:
                    os.killpg(self.group, one)
                except OSError:  # nobody is left in it
                    pass
        self._tell(self.living, signum)
        late = self._know(marked(self.ticket))
        self._tell(late, signum)
        return len(late)

    def _tell(self, those: list[Process], signum: int) -> None:
        for process in those:
            seen = look(process.pid)
            if seen is not None and (not self.group or seen.group != self.group):  # the group was told as a whole
                for one in with_continue(signum):
                    process.send(one)

    def _know(self, pids: list[int]) -> list[Process]:
        """Those of them whom we did not know."""
        seen = [p for pid in pids if pid not in self.spare and (p := process(pid)) is not None]
        new = [p for p in seen if p not in self.known]
        self.known.update(dict.fromkeys(new))
        return new

    @property
    def gone(self) -> bool:
        """Everyone who is known is dead. Ask right after a `send` that found nobody new, or it means little."""
        if self.living:
            return False
        if self.group:
            try:
                os.killpg(self.group, 0)
            except ProcessLookupError:
                return True
            except OSError:
                pass
            return all(seen.state in "ZX" for pid in pids() if (seen := look(pid)) and seen.group == self.group)
        return True

    def bury(self, seconds: float) -> bool:
        """KILL until nobody is left; False if somebody is, so many seconds later (not ours, or stuck on a disk)."""
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
