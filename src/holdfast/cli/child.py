"""The wrapped command: started, attended, its end told.

On a terminal it stays in our process group: a group of its own would have to be made the foreground, which breaks
`holdfast run … | less`. Then the terminal's signals reach it without us. Without a terminal it gets its own group, so
that it can be ended as one.
"""

import errno
import os
import signal
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from . import signals
from .exits import BY_SIGNAL, CANNOT_EXECUTE, NOT_FOUND, Exit
from .guard import Guard, Watch, clock

if TYPE_CHECKING:
    from .undertaker import Undertaker

# Python ignores these two; a command expects them as a shell would leave them.
DEFAULT = [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)]
TICK = 5.0  # seconds; nothing depends on it, everything that counts is told by a signal


def terminal() -> bool:
    """Is there a controlling terminal?"""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


class Modes:
    """How the terminal was set before the command began: echo, whole lines, Ctrl-C. Nothing without a terminal."""

    def __init__(self, own_group: bool) -> None:
        self.before: list[Any] | None = None
        self.fd = -1
        if own_group:
            return
        import termios

        try:
            self.fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
            self.before = termios.tcgetattr(self.fd)
        except (OSError, termios.error):
            pass

    def restore(self) -> None:
        """After a command that was killed and could not do so itself. Not in the background: there it is not ours."""
        if self.before is None:
            return
        import termios

        try:
            if os.tcgetpgrp(self.fd) == os.getpgrp() and termios.tcgetattr(self.fd) != self.before:
                termios.tcsetattr(self.fd, termios.TCSANOW, self.before)
        except (OSError, termios.error):  # it has hung up
            pass


def find(command: str) -> str:
    """Where it is. Exit 127 or 126 now rather than after an hour in line."""
    places = [command] if "/" in command else [os.path.join(p or ".", command) for p in os.get_exec_path()]
    there = [place for place in places if os.path.isfile(place)]
    if not there:
        kind = "is a directory" if os.path.isdir(places[0]) else "is not there" if "/" in command else "is not in PATH"
        raise Exit(CANNOT_EXECUTE if kind == "is a directory" else NOT_FOUND, f"Cannot run {command!r}: it {kind}.")
    for place in there:
        if os.access(place, os.X_OK):
            return place
    raise Exit(CANNOT_EXECUTE, f"Cannot run {command!r}: it is not executable (chmod +x).")


def spawn(file: str, argv: list[str], env: Mapping[str, str], mask: set[int], own_group: bool) -> int:
    """Start it with the signal mask that we were started with; its pid. Exit 126 or 127 if it cannot be."""
    how: dict[str, Any] = {"setsigdef": DEFAULT, "setsigmask": mask}
    if own_group:
        how["setpgroup"] = 0
    try:
        try:
            return os.posix_spawn(file, argv, env, **how)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            # A script without #!: a shell would run it, so do we.
            script = ["/bin/sh", file, *argv[1:]]
            return os.posix_spawn(script[0], script, env, **how)
    except OSError as error:
        code = NOT_FOUND if error.errno in (errno.ENOENT, errno.ENOTDIR) else CANNOT_EXECUTE
        raise Exit(code, f"Cannot run {argv[0]!r}: {os.strerror(error.errno or 0)}.") from None


class Attendant:
    """Passes signals on, tells the guard every new deadline, and waits for the end."""

    def __init__(
        self,
        pid: int,
        own_group: bool,
        guard: Guard,
        watch: Watch,
        undertaker: "Callable[[], Undertaker]",
        remaining: Callable[[], float],
        quietly: Callable[[Callable[[], None]], None],
    ) -> None:
        self.pid = pid
        self.own_group = own_group
        self.guard = guard
        self.watch = watch  # for the case that the guard is killed: then we are the guard, as good as we can
        self.undertaker = undertaker
        self.remaining = remaining
        self.quietly = quietly
        self.typed: set[int] = set()
        self.stopping = False
        self.ended: int | None = None

    def until_its_end(self) -> tuple[int, int]:
        """Its exit code, or 128+N; and the signal that ended it if somebody typed that at the terminal, else 0."""
        passed_on = signals.wanted()
        fetched = passed_on | signals.STOP | {signal.SIGCHLD, signal.SIGCONT, signals.NUDGE}
        self.refresh()
        while (early := signals.fetch(passed_on | signals.STOP, 0))[0]:
            # Typed while the command was being started: it may not have been there yet to get it. Twice does no harm.
            self.typed |= {early[0]} if early[1] else set()
            self.send(early[0])
            self.stopping = early[0] in signals.STOP
        self.reap()  # it may have ended before SIGCHLD was looked for
        while self.ended is None:
            tick = min(TICK, self.watch.next() - clock()) if self.guard.dead else TICK
            signum, by_kernel = signals.fetch(fetched, tick)
            if signum == signal.SIGCHLD:
                self.reap()
            elif signum in signals.STOP:
                self.stopping = True  # we stop when the command has: a pager tidies the terminal up first
                if self.own_group or not by_kernel:
                    self.send(signum)
            elif signum == signal.SIGCONT:
                self.send(signum)
            elif signum in passed_on:
                if by_kernel and not self.own_group:
                    self.typed.add(signum)  # the command got it as well
                else:
                    self.send(signum)
            self.refresh()
        code = os.waitstatus_to_exitcode(self.ended)
        return (code, 0) if code >= 0 else (BY_SIGNAL - code, -code if -code in self.typed else 0)

    def refresh(self) -> None:
        """Tell the guard until when the lease is ours. The keeper nudges us after each renewal and each loss."""
        deadline = clock() + self.remaining()
        if abs(deadline - self.watch.deadline) > 0.001:
            self.watch.moved(deadline)
            self.guard.tell("deadline", f"{deadline:.6f}")
        if self.guard.dead:
            due = self.watch.due(clock())
            if due:
                self.guard.heard.add(due)
                self.undertaker().send(signal.SIGTERM if due == "term" else signal.SIGKILL)

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.guard.pid:
                self.guard.dead = True
            elif pid == self.pid and os.WIFSTOPPED(status):
                if self.stopping or not self.own_group:  # the shell watches us, not it
                    self.halt()
            elif pid == self.pid:
                self.ended = status

    def halt(self) -> None:
        self.stopping = False
        signals.halt(self.quietly)
        self.send(signal.SIGCONT)

    def send(self, signum: int) -> None:
        try:
            if self.own_group:
                os.killpg(self.pid, signum)
            else:
                os.kill(self.pid, signum)
        except OSError:  # it has just ended
            pass
