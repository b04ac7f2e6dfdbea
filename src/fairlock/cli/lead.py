"""`fairlock lead`: of several processes one runs a command, and another one starts it when that ends, dies or hangs.

It is `run` with two differences. If the lease is lost, the command is stopped as by `run`, and then this program starts
itself again in the same process (exec), so that it is a candidate again: nothing of the lost term is left, and its pid
stays. And with --file there is a file while it leads.

Rejected alternatives: a parent that forks each term (if it is killed, its child leads on, and a supervisor does not
know it); to start the command again when it has ended by itself (a supervisor does that, with a pause).
"""

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, NoReturn

from fairlock.errors import StoreError

from . import exit_codes, output
from .parse_arguments import Arguments
from .run import Run, find_program

if TYPE_CHECKING:
    from fairlock import Event, Lease

AGAIN = "FAIRLOCK_STANDS_AGAIN"  # in our own environment only: a store that is down is then tried again
PAUSE = 1.0


def lead(args: Arguments) -> NoReturn:
    Lead(args, *find_program(args)).execute()


class LeaderFile:
    """The file of --file: it is there while this process leads."""

    def __init__(self, path: str | None) -> None:
        self.path = None if path is None else os.path.abspath(path)

    def write(self, owner: str, fence: int) -> None:
        """Create it, at once with its whole content. Exit if that is not possible."""
        if self.path is None:
            return
        new = f"{self.path}.{os.getpid()}.new"
        try:
            with open(new, "w", encoding="utf-8") as file:
                file.write(f"{owner} {fence}\n")
            os.replace(new, self.path)
        except OSError as bad:
            raise exit_codes.Exit(exit_codes.CANNOT_WRITE, f"Cannot write {self.path!r}: {bad.strerror}.") from None

    def remove(self) -> None:
        if self.path is None:
            return
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass
        except OSError as bad:
            raise exit_codes.Exit(exit_codes.CANNOT_WRITE, f"Cannot remove {self.path!r}: {bad.strerror}.") from None


class Lead(Run):
    def __init__(self, args: Arguments, file: str, command: list[str]) -> None:
        super().__init__(args, file, command)
        self.leader_file = LeaderFile(args["file"])
        self.leader_file.remove()  # of a process that was killed
        self.again = os.environ.pop(AGAIN, "") != ""  # it has led before
        self.lost = False
        self.mask: set[int] = set()

    def acquire(self) -> "Lease":
        while True:
            try:
                return super().acquire()
            except StoreError as down:
                if down.refused or not (self.again or self.in_queue):
                    raise
                self.close()
                time.sleep(PAUSE)

    def run_command(self, lease: "Lease", mask: set[int], own_group: bool) -> tuple[int, int]:
        self.mask = mask
        self.leader_file.write(lease.owner, lease.fence)
        try:
            return super().run_command(lease, mask, own_group)
        finally:
            self.leader_file.remove()

    def on_event(self, event: "Event") -> None:
        if self.running and event.kind in ("lost", "evicted"):
            self.leader_file.remove()
        super().on_event(event)

    def release(self, lease: "Lease", code: int) -> int:
        lost = super().release(lease, code)
        self.lost = lost != 0
        return lost

    def end(self, code: int, typed: int) -> NoReturn:
        if self.lost:
            self.start_again()
        super().end(code, typed)

    def start_again(self) -> NoReturn:
        """Start this program again, in this process. A signal that has arrived meanwhile ends it here."""
        self.close()
        self.watchdog.dismiss()
        if not self.args["quiet"]:
            output.err(f"standing for {self.name!r} again.")
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        os.environ[AGAIN] = "1"
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)
        os.execv(sys.executable, sys.orig_argv)

    def what(self) -> str:
        return f"the leadership of {self.name!r}"
