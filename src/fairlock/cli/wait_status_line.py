"""Prints the state of a wait.

In the foreground of a terminal: one line with the position in the queue, rewritten every second and erased at the end.
Anywhere else (a log, a mail from cron, a job in the background): one line after a second of waiting, and one when the
wait has ended. A wait that fails ends with the sentence of its error, and a short wait prints nothing.
"""

import os
import time
from collections.abc import Callable

from . import output
from .parse_arguments import Arguments

AFTER = 1.0  # seconds until the first line
AGAIN = 1.0
NEVER = 1e7


class Waiting:
    def __init__(self, args: Arguments, what: str, describe: Callable[[], str]) -> None:
        """`what` names the lock; `describe` asks the store for holder and position, '' = not in the queue yet."""
        self.quiet = bool(args["quiet"])
        self.rewrites = not args["verbose"] and os.isatty(2)  # with -v every event has its own line
        self.what = what
        self.describe = describe
        self.began = time.monotonic()
        self.printed = self.on_line = False

    def remark(self) -> float:
        """Print or update the line. Called after AFTER seconds, and again after the seconds that it returns."""
        if self.quiet:
            return NEVER
        text = self.describe()
        if not text:
            return AGAIN
        if self.rewrites and output.in_foreground(2):
            shown = f"fairlock: {output.plain(text)}"[: os.get_terminal_size(2).columns - 1]
            self.on_line = True
            put(f"\r\x1b[K{shown}")
            return AGAIN
        if not self.printed:
            self.printed = True
            output.err(text)
        return AGAIN if self.rewrites else NEVER  # it may come to the foreground

    def erase(self) -> None:
        """Erase the line, because something else is printed next."""
        if self.on_line:
            self.on_line = False
            put("\r\x1b[K")

    def ended(self) -> None:
        """Print the end of a successful wait."""
        self.erase()
        if self.printed:
            output.err(f"{self.what} acquired after {output.duration(time.monotonic() - self.began)}.")


def put(text: str) -> None:
    try:
        os.write(2, text.encode(errors="backslashreplace"))
    except OSError:
        pass
