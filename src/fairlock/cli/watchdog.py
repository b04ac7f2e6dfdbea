"""The watchdog: a process beside `fairlock run` that ends the command before the lease ends.

Why a process: the wrapper renews the lease, and whatever prevents a renewal (a stop signal, a kill -9, a store that
hangs) would also prevent the wrapper from noticing it. The watchdog only reads deadlines from a socket:

    wrapper -> watchdog   ticket T EARLY   deadline AT   liveness_fd +descriptor
                          starting   child PID GROUP   over   done
    watchdog -> wrapper   term   kill   clean

It is forked before the store is opened and before any thread runs, so it has no connection and no lock. It leaves the
session, so neither Ctrl-C nor a hang-up reaches it. It keeps a copy of the store's liveness_fd: others see the holder
as alive until the command and all its descendants are dead. End of file on the socket means that the wrapper died.
"""

import _socket as socket  # not `socket`, whose enum classes cost a fifth of the start of Python
import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING, NoReturn

from fairlock.engine.boot_clock import boot_clock as clock

from . import output

if TYPE_CHECKING:
    from .process_tree import ProcessTree

NEVER = float("inf")
STUCK = 5.0  # how long after the deadline the watchdog tries to kill a process that does not die
START = 0.1  # after this time the environment of a started command shows its ticket


class KillSchedule:
    """Computes when TERM and KILL are due, for a deadline that moves with every renewal. Pure: time is an argument.

    TERM is due `early` seconds before the deadline. A renewal after TERM cancels the KILL.
    """

    def __init__(self, on_lost: str, early: float) -> None:
        self.on_lost = on_lost
        self.early = early
        self.deadline = NEVER
        self.term_sent = False  # for this deadline
        self.over = False

    def move(self, deadline: float) -> None:
        if deadline > self.deadline:
            self.term_sent = False
        self.deadline = deadline

    def due(self, now: float) -> str:
        """Return 'term', 'kill' or ''; each is due once."""
        if self.over or self.on_lost == "warn":
            return ""
        if now >= self.deadline and self.on_lost == "kill":
            self.over = True
            return "kill"
        if now >= self.deadline - self.early and not self.term_sent:
            self.term_sent = True
            return "term"
        return ""

    def next(self) -> float:
        """Return when to check again."""
        if self.over or self.on_lost == "warn":
            return NEVER
        if self.term_sent:
            return self.deadline if self.on_lost == "kill" else NEVER
        return self.deadline - self.early


class Watchdog:
    """The wrapper's side. Every method may be called from any thread and never blocks, except `finish`."""

    def __init__(self, sock: socket.socket, pid: int) -> None:
        self.sock = sock
        self.pid = pid
        self.dead = False
        self.received: set[str] = set()

    def send(self, *parts: object, fd: int | None = None) -> None:
        message = " ".join(map(str, parts)).encode()
        try:
            if fd is None:
                self.sock.send(message, socket.MSG_DONTWAIT)
            else:
                rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, fd.to_bytes(4, sys.byteorder))
                self.sock.sendmsg([message], [rights], socket.MSG_DONTWAIT)
        except BlockingIOError:  # it is stopped; the deadlines that it has stay valid
            pass
        except OSError:
            self.dead = True

    def receive(self, seconds: float = 0) -> set[str]:
        """Return all messages of the watchdog so far; wait up to `seconds` for a new one."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        while not self.dead and poll.poll(max(0, int(seconds * 1000))):
            try:
                message = self.sock.recv(4096).decode()
            except OSError:
                message = ""
            if message:
                self.received.add(message)
            else:
                self.dead = True
            seconds = 0
        return self.received

    def finish(self, seconds: float) -> None:
        """Wait, at most `seconds`, until the watchdog has ended the descendants of the command, which is dead."""
        self.send("over")
        until = time.monotonic() + seconds
        while not self.dead and "clean" not in self.received and (left := until - time.monotonic()) > 0:
            self.receive(left)

    def dismiss(self) -> None:
        """End the watchdog: no command runs any more."""
        self.send("done")
        self.sock.close()

    def abandon(self) -> None:
        """Close the socket as if this process had been killed: the watchdog ends what still runs."""
        self.sock.close()


def start_watchdog(on_lost: str) -> Watchdog:
    """Fork the watchdog. Call this while the process has one thread and no store."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    wrapper = os.getpid()
    pid = os.fork()
    if pid:
        theirs.close()
        return Watchdog(ours, pid)
    run_watchdog(ours, theirs, wrapper, on_lost)


def run_watchdog(ours: socket.socket, theirs: socket.socket, wrapper: int, on_lost: str) -> NoReturn:
    status = 0
    try:
        from . import process_tree  # noqa: F401  # before chdir, which changes sys.path; the wrapper need not wait

        ours.close()
        sock = isolate(theirs)
        WatchdogProcess(sock, wrapper, on_lost).run()
    except BaseException as bug:  # a traceback of a process that the user did not start would not help
        output.err(f"the watchdog of process {wrapper} failed: {bug!r}")
        status = 1
    finally:
        os._exit(status)  # no atexit, no buffers: they belong to the wrapper


def isolate(theirs: socket.socket) -> socket.socket:
    """Leave the wrapper's session, terminal, folder, signals and files, except stderr."""
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


class WatchdogProcess:
    """The process of the watchdog."""

    def __init__(self, sock: socket.socket, wrapper: int, on_lost: str) -> None:
        self.sock = sock
        self.wrapper = wrapper
        self.schedule = KillSchedule(on_lost, early=0.0)
        self.process_tree: ProcessTree | None = None
        self.liveness_fd: int | None = None
        self.starting = False

    def run(self) -> None:
        while True:
            left = self.schedule.next() - clock()
            if self.starting:
                left = min(left, START)
            ready = select.select([self.sock], [], [], None if left == NEVER else max(0.0, left))[0]
            if ready and not self.handle_message():
                return
            if not ready and self.starting:
                self.continue_child()
            due = self.schedule.due(clock())
            if due and self.process_tree is not None:
                self.send(due)  # before the signal: a wrapper that sees the command die knows the reason
                if due == "term":
                    self.process_tree.send(signal.SIGTERM)
                else:
                    self.kill_all()

    def handle_message(self) -> bool:
        """Handle one message. Return False if nothing is left to do."""
        try:
            message, rights, _, _ = self.sock.recvmsg(4096, socket.CMSG_LEN(4))
        except OSError:
            message, rights = b"", []
        word, *rest = message.decode().split() or ["died"]
        if word == "ticket":
            from .process_tree import ProcessTree

            self.process_tree = ProcessTree(rest[0], spare=[self.wrapper])
            self.schedule.early = float(rest[1])
        elif word == "deadline":
            self.schedule.move(float(rest[0]))
        elif word == "liveness_fd":
            self.liveness_fd = int.from_bytes(rights[0][2], sys.byteorder)
        elif word == "starting":
            self.starting = True
        elif word == "child" and self.process_tree is not None:
            self.starting = False
            self.process_tree.watch(int(rest[0]), int(rest[1]))
        elif word == "over":
            self.over()
        elif word == "done":
            return False
        elif word == "died":
            self.died()
            return False
        return True

    def continue_child(self) -> None:
        """Continue a command that Ctrl-Z stopped between vfork and exec. Until then the wrapper hangs in vfork with all
        signals blocked, and not even the shell notices."""
        from .process_tree import children, read_stat

        for pid in children(self.wrapper):
            seen = read_stat(pid)
            if pid != os.getpid() and seen is not None and seen.state == "T":
                os.kill(pid, signal.SIGCONT)

    def over(self) -> None:
        """The command has ended. If we had begun to end it, its descendants must end, too; else they may stay."""
        ending = self.schedule.on_lost == "kill" and (self.schedule.term_sent or self.schedule.over)
        if self.process_tree is not None and ending:
            while not self.process_tree.gone and clock() < self.schedule.deadline:
                time.sleep(0.005)
            self.kill_all()
        self.process_tree = None
        self.schedule.over = True
        self.send("clean")

    def died(self) -> None:
        """The wrapper is dead and nothing renews. The liveness_fd stays open until the command or the lease ends."""
        tree = self.process_tree
        if tree is None or not (self.starting or (tree.root is not None and tree.root.alive)):
            return
        until = clock() + START
        while self.starting and not tree.send(0) and clock() < until:
            time.sleep(0.001)
        if self.schedule.on_lost == "kill":
            self.kill_all()
            return
        if self.schedule.on_lost == "term":
            tree.send(signal.SIGTERM)
        while not tree.gone and clock() < self.schedule.deadline:
            time.sleep(0.02)

    def kill_all(self) -> None:
        if self.process_tree is not None:
            late = max(self.schedule.deadline, clock()) + STUCK
            if not self.process_tree.kill_all(late - clock()):
                left = ", ".join(str(one.pid) for one in self.process_tree.living)
                output.err(f"cannot end process {left}, which may go on without its lock. End it by hand.")

    def send(self, message: str) -> None:
        try:
            self.sock.send(message.encode(), socket.MSG_DONTWAIT)
        except OSError:  # the wrapper is dead or stopped
            pass
