"""The guard: a process beside `holdfast run` that sees to it that the command is dead before the lease ends.

Why a process: the wrapper renews the lease, and whatever keeps it from renewing (a stop signal, a kill -9, a store
that hangs) would also keep it from noticing. The guard does nothing but read deadlines from a socket:

    wrapper -> guard    ticket T EARLY   deadline AT   beacon +descriptor   starting   child PID GROUP   over   done
    guard -> wrapper    term   kill   clean

It is forked before the store is opened and before any thread runs, so it owns no connection and no lock; it leaves the
session, so neither Ctrl-C nor a hang-up reaches it; and it keeps a copy of the store's beacon, so that to the others
the holder is alive until the command's whole family is dead. End of file on the socket means that the wrapper died.
"""

import _socket as socket  # without `socket` around it: enum classes that cost a fifth of a start of Python
import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING, NoReturn

from . import say

if TYPE_CHECKING:
    from .undertaker import Undertaker

NEVER = float("inf")
STUCK = 5.0  # how long past the deadline the guard tries to kill what does not die
BIRTH = 0.1  # by then a command that was being started shows its ticket


def clock() -> float:
    """Seconds that also count while the machine sleeps: the lease does not sleep either."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Watch:
    """When to do what, for a deadline that moves with every renewal. Pure: the caller brings the time.

    `early` is how long before the deadline TERM is due. A renewal that comes after TERM calls off the KILL.
    """

    def __init__(self, on_lost: str, early: float) -> None:
        self.on_lost = on_lost
        self.early = early
        self.deadline = NEVER
        self.termed = False  # for this deadline
        self.over = False

    def moved(self, deadline: float) -> None:
        if deadline > self.deadline:
            self.termed = False
        self.deadline = deadline

    def due(self, now: float) -> str:
        """'term', 'kill' or '' ; each is due once."""
        if self.over or self.on_lost == "warn":
            return ""
        if now >= self.deadline and self.on_lost == "kill":
            self.over = True
            return "kill"
        if now >= self.deadline - self.early and not self.termed:
            self.termed = True
            return "term"
        return ""

    def next(self) -> float:
        """When to look again."""
        if self.over or self.on_lost == "warn":
            return NEVER
        if self.termed:
            return self.deadline if self.on_lost == "kill" else NEVER
        return self.deadline - self.early


class Guard:
    """The wrapper's end. Every method may be called from any thread and never blocks, except `finish`."""

    def __init__(self, sock: socket.socket, pid: int) -> None:
        self.sock = sock
        self.pid = pid
        self.dead = False
        self.heard: set[str] = set()

    def tell(self, *words: object, fd: int | None = None) -> None:
        message = " ".join(map(str, words)).encode()
        try:
            if fd is None:
                self.sock.send(message, socket.MSG_DONTWAIT)
            else:
                rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, fd.to_bytes(4, sys.byteorder))
                self.sock.sendmsg([message], [rights], socket.MSG_DONTWAIT)
        except BlockingIOError:  # it is stopped; the deadlines it has still hold
            pass
        except OSError:
            self.dead = True

    def listen(self, seconds: float = 0) -> set[str]:
        """All that the guard has said so far; waits so long for something new."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        while not self.dead and poll.poll(max(0, int(seconds * 1000))):
            try:
                word = self.sock.recv(4096).decode()
            except OSError:
                word = ""
            if word:
                self.heard.add(word)
            else:
                self.dead = True
            seconds = 0
        return self.heard

    def finish(self, seconds: float) -> None:
        """The command is dead; wait until the guard has ended what is left of its family, at most so long."""
        self.tell("over")
        until = time.monotonic() + seconds
        while not self.dead and "clean" not in self.heard and (left := until - time.monotonic()) > 0:
            self.listen(left)

    def dismiss(self) -> None:
        """All is well: no command runs any more."""
        self.tell("done")
        self.sock.close()

    def abandon(self) -> None:
        """We end without knowing whether all is well, as if we had been killed: the guard sees to it."""
        self.sock.close()


def post(on_lost: str) -> Guard:
    """Fork the guard. Call this while the process has one thread and no store."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    wrapper = os.getpid()
    pid = os.fork()
    if pid:
        theirs.close()
        return Guard(ours, pid)
    keep_watch(ours, theirs, wrapper, on_lost)


def keep_watch(ours: socket.socket, theirs: socket.socket, wrapper: int, on_lost: str) -> NoReturn:
    status = 0
    try:
        from . import undertaker  # noqa: F401  # while sys.path still means what it meant; the wrapper need not wait

        ours.close()
        sock = alone(theirs)
        Watchman(sock, wrapper, on_lost).work()
    except BaseException as bug:  # a traceback out of a process nobody started would help no one
        say.err(f"the guard of process {wrapper} failed: {bug!r}")
        status = 1
    finally:
        os._exit(status)  # no atexit, no buffers: those are the wrapper's


def alone(theirs: socket.socket) -> socket.socket:
    """Leave everything that belongs to the wrapper: session, terminal, folder, signals, files. stderr stays."""
    os.setsid()
    os.chdir("/")
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGPIPE):
        signal.signal(signum, signal.SIG_IGN)
    fd = theirs.detach()
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nothing, standard)
    if fd != 3:
        os.dup2(fd, 3, inheritable=False)
    os.closerange(4, os.sysconf("SC_OPEN_MAX"))
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, 3)


class Watchman:
    """What the guard process does."""

    def __init__(self, sock: socket.socket, wrapper: int, on_lost: str) -> None:
        self.sock = sock
        self.wrapper = wrapper
        self.watch = Watch(on_lost, early=0.0)
        self.undertaker: Undertaker | None = None
        self.beacon: int | None = None
        self.starting = False

    def work(self) -> None:
        while True:
            left = self.watch.next() - clock()
            if self.starting:
                left = min(left, BIRTH)
            ready = select.select([self.sock], [], [], None if left == NEVER else max(0.0, left))[0]
            if ready and not self.obey():
                return
            if not ready and self.starting:
                self.free()
            due = self.watch.due(clock())
            if due and self.undertaker is not None:
                self.tell(due)  # before the signal: a wrapper that sees the command die knows why
                if due == "term":
                    self.undertaker.send(signal.SIGTERM)
                else:
                    self.bury()

    def obey(self) -> bool:
        """One message. False: nothing is left to do."""
        try:
            message, rights, _, _ = self.sock.recvmsg(4096, socket.CMSG_LEN(4))
        except OSError:
            message, rights = b"", []
        word, *rest = message.decode().split() or ["died"]
        if word == "ticket":
            from .undertaker import Undertaker

            self.undertaker = Undertaker(rest[0], spare=[self.wrapper])
            self.watch.early = float(rest[1])
        elif word == "deadline":
            self.watch.moved(float(rest[0]))
        elif word == "beacon":
            self.beacon = int.from_bytes(rights[0][2], sys.byteorder)
        elif word == "starting":
            self.starting = True
        elif word == "child" and self.undertaker is not None:
            self.starting = False
            self.undertaker.watch(int(rest[0]), int(rest[1]))
        elif word == "over":
            self.over()
        elif word == "done":
            return False
        elif word == "died":
            self.died()
            return False
        return True

    def free(self) -> None:
        """A Ctrl-Z that hits the command between vfork and exec stops it, and the wrapper hangs in vfork until it goes
        on, with everything blocked: not even the shell notices."""
        from .undertaker import children, look

        for pid in children(self.wrapper):
            seen = look(pid)
            if pid != os.getpid() and seen is not None and seen.state == "T":
                os.kill(pid, signal.SIGCONT)

    def over(self) -> None:
        """The command itself has ended. If we had begun to end it, its family must follow; else it may stay."""
        if self.undertaker is not None and (self.watch.termed or self.watch.over) and self.watch.on_lost == "kill":
            while not self.undertaker.gone and clock() < self.watch.deadline:
                time.sleep(0.005)
            self.bury()
        self.undertaker = None
        self.watch.over = True
        self.tell("clean")

    def died(self) -> None:
        """The wrapper is gone, so nobody renews. The beacon burns until the command is gone too, or the lease is."""
        family = self.undertaker
        if family is None or not (self.starting or (family.root is not None and family.root.alive)):
            return
        until = clock() + BIRTH
        while self.starting and not family.send(0) and clock() < until:
            time.sleep(0.001)
        if self.watch.on_lost == "kill":
            self.bury()
            return
        if self.watch.on_lost == "term":
            family.send(signal.SIGTERM)
        while not family.gone and clock() < self.watch.deadline:
            time.sleep(0.02)

    def bury(self) -> None:
        if self.undertaker is not None:
            late = max(self.watch.deadline, clock()) + STUCK
            if not self.undertaker.bury(late - clock()):
                left = ", ".join(str(one.pid) for one in self.undertaker.living)
                say.err(f"cannot end process {left}, which may go on without its lock: end it by hand.")

    def tell(self, word: str) -> None:
        try:
            self.sock.send(word.encode(), socket.MSG_DONTWAIT)
        except OSError:  # the wrapper is gone or stopped
            pass
