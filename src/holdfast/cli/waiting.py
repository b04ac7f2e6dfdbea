"""What is printed while a command waits for its turn.

In the foreground of a terminal: one line that is written again every second, with the place in the queue, and erased
at the end. Anywhere else (a log, a mail from cron, a job in the background): a line when the wait has lasted a second,
and one when it has ended. A wait that fails has a sentence of its own, and a short wait is not mentioned at all.
"""

import os
import time
from collections.abc import Callable

from . import say
from .words import Said

AFTER = 1.0  # seconds until the first line
AGAIN = 1.0
NEVER = 1e7


class Waiting:
    def __init__(self, said: Said, what: str, describe: Callable[[], str]) -> None:
        """`what` is waited for; `describe` asks the store who is in the way, '' = nobody yet."""
        self.quiet = bool(said["quiet"])
        self.rewrites = not said["verbose"] and os.isatty(2)  # with -v every event has a line of its own
        self.what = what
        self.describe = describe
        self.began = time.monotonic()
        self.begun_line = self.on_line = False

    def remark(self) -> float:
        """Called when the wait has lasted for AFTER seconds, and again when the answer says so: in so many seconds."""
        if self.quiet:
            return NEVER
        text = self.describe()
        if not text:
            return AGAIN
        if self.rewrites and in_foreground():
            shown = f"holdfast: {say.plain(text)}"[: os.get_terminal_size(2).columns - 1]
            self.on_line = True
            put(f"\r\x1b[K{shown}")
            return AGAIN
        if not self.begun_line:
            self.begun_line = True
            say.err(text)
        return AGAIN if self.rewrites else NEVER  # it may be brought to the foreground

    def erase(self) -> None:
        """Something else is about to be printed."""
        if self.on_line:
            self.on_line = False
            put("\r\x1b[K")

    def ended(self) -> None:
        """The wait was not in vain."""
        self.erase()
        if self.begun_line:
            say.err(f"{self.what} acquired after {say.for_(time.monotonic() - self.began)}.")


def put(text: str) -> None:
    try:
        os.write(2, text.encode(errors="backslashreplace"))
    except OSError:
        pass


def in_foreground() -> bool:
    try:
        return os.tcgetpgrp(2) == os.getpgrp()
    except OSError:  # a terminal that is not ours has no jobs
        return True
