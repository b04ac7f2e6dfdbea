"""Starts and supervises the wrapped command.

On a terminal it stays in our process group: its own group would have to become the foreground, which breaks
`fairlock run … | less`. There it gets the terminal's signals directly. Without a terminal it gets its own group, so
that the whole group can be signalled.
"""

import errno
import os
import signal
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from fairlock.engine.boot_clock import boot_clock as clock

from . import signal_handling
from .exit_codes import BY_SIGNAL, CANNOT_EXECUTE, NOT_FOUND, Exit
from .watchdog import KillSchedule, Watchdog

if TYPE_CHECKING:
    from .process_tree import ProcessTree

# Python ignores these two; a command expects them as a shell would leave them.
DEFAULT = [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)]
TICK = 5.0  # seconds; nothing depends on it, because signals announce every change


def has_terminal() -> bool:
    """Return True if there is a controlling terminal."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


class TerminalModes:
    """Saves the modes of the terminal before the command starts: echo, lines, Ctrl-C. Without a terminal: nothing.

    A context manager: an error restores them, before its sentence is printed.
    """

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.restore()

    def restore(self) -> None:
        """Restore the modes after a killed command. Not in the background, where the terminal belongs to others."""
        if self.before is None:
            return
        import termios

        try:
            if os.tcgetpgrp(self.fd) == os.getpgrp() and termios.tcgetattr(self.fd) != self.before:
                termios.tcsetattr(self.fd, termios.TCSANOW, self.before)
        except (OSError, termios.error):  # it has hung up
            pass


def find_command(command: str) -> str:
    """Return the path of the command. Exit 127 or 126 now rather than after an hour in the queue."""
    places = [command] if "/" in command else [os.path.join(p or ".", command) for p in os.get_exec_path()]
    there = [place for place in places if os.path.isfile(place)]
    if not there:
        missing = "does not exist" if "/" in command else "is not in PATH"
        kind = "is a directory" if os.path.isdir(places[0]) else missing
        raise Exit(CANNOT_EXECUTE if kind == "is a directory" else NOT_FOUND, f"Cannot run {command!r}: it {kind}.")
    for place in there:
        if os.access(place, os.X_OK):
            return place
    raise Exit(CANNOT_EXECUTE, f"Cannot run {command!r}: it is not executable (chmod +x).")


def spawn(file: str, argv: list[str], env: Mapping[str, str], mask: set[int], own_group: bool) -> int:
    """Start it with the signal mask that we were started with and return its pid. Exit 126 or 127 if that fails."""
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


class Supervisor:
    """Forwards signals to the command, sends every new deadline to the watchdog, and waits for the end."""

    def __init__(
        self,
        pid: int,
        own_group: bool,
        watchdog: Watchdog,
        schedule: KillSchedule,
        process_tree: "Callable[[], ProcessTree]",
        remaining: Callable[[], float],
        halt: Callable[[], None],
        signal_to_send: Callable[[], int],
    ) -> None:
        self.pid = pid
        self.own_group = own_group
        self.watchdog = watchdog
        self.schedule = schedule  # if the watchdog is killed, this process does its work as well as it can
        self.process_tree = process_tree
        self.remaining = remaining
        self.halt = halt  # stops this process
        self.signal_to_send = signal_to_send  # one of our own, beside those that are forwarded; 0: none
        self.typed: set[int] = set()
        self.stopping = False
        self.ended: int | None = None

    def wait(self) -> tuple[int, int]:
        """Return its exit code, or 128+N; and the signal that ended it if that was typed at the terminal, else 0."""
        forwarded = signal_handling.to_forward()
        fetched = forwarded | signal_handling.STOP | {signal.SIGCHLD, signal.SIGCONT, signal_handling.WAKE}
        self.refresh()
        while (early := signal_handling.fetch(forwarded | signal_handling.STOP, 0))[0]:
            # Typed while the command was being started: perhaps too early for it. A second one does no harm.
            self.typed |= {early[0]} if early[1] else set()
            self.send(early[0])
            self.stopping = early[0] in signal_handling.STOP
        self.reap()  # it may have ended before SIGCHLD was fetched
        while self.ended is None:
            tick = min(TICK, self.schedule.next() - clock()) if self.watchdog.dead else TICK
            signum, by_kernel = signal_handling.fetch(fetched, tick)
            if signum == signal.SIGCHLD:
                self.reap()
            elif signum in signal_handling.STOP:
                self.stopping = True  # this process stops after the command: a pager first restores the terminal
                if self.own_group or not by_kernel:
                    self.send(signum)
            elif signum == signal.SIGCONT:
                self.send(signum)
            elif signum in forwarded:
                if by_kernel and not self.own_group:
                    self.typed.add(signum)  # the terminal has sent it to the command, too
                else:
                    self.send(signum)
            self.refresh()
        code = os.waitstatus_to_exitcode(self.ended)
        return (code, 0) if code >= 0 else (BY_SIGNAL - code, -code if -code in self.typed else 0)

    def refresh(self) -> None:
        """Send the end of the lease to the watchdog, and to the command the signal of a request to release. The keeper
        wakes this thread after each renewal, each loss and each request."""
        if signum := self.signal_to_send():
            self.send(signum)
        deadline = clock() + self.remaining()
        if abs(deadline - self.schedule.deadline) > 0.001:
            self.schedule.move(deadline)
            self.watchdog.send("deadline", f"{deadline:.6f}")
        if self.watchdog.dead:
            due = self.schedule.due(clock())
            if due:
                self.watchdog.received.add(due)
                self.process_tree().send(signal.SIGTERM if due == "term" else signal.SIGKILL)

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.watchdog.pid:
                self.watchdog.dead = True
            elif pid == self.pid and os.WIFSTOPPED(status):
                if self.stopping or not self.own_group:  # the shell watches this process, not the command
                    self.stopping = False
                    self.halt()
                    self.send(signal.SIGCONT)
            elif pid == self.pid:
                self.ended = status

    def send(self, signum: int) -> None:
        try:
            if self.own_group:
                os.killpg(self.pid, signum)
            else:
                os.kill(self.pid, signum)
        except OSError:  # it has just ended
            pass
