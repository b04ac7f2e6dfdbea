"""`fairlock top` in a process with a terminal of its own."""

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable

from tests.cli.conftest import TOOL, Tool


class TopProcess:
    """`fairlock top` on a pty. `lines` is the last frame that it has drawn."""

    def __init__(self, tool: Tool, *args: str, columns: int = 80, rows: int = 24) -> None:
        self.master, self.slave = os.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            [*TOOL, *tool.always, "top", "--every", "0.2", *args], cwd=tool.folder, env={**tool.env, "TERM": "xterm"},
            stdin=self.slave, stdout=self.slave, stderr=self.slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        self.seen = ""

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while select.select([self.master], [], [], max(end - time.monotonic(), 0))[0]:
            self.seen += os.read(self.master, 65536).decode()

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    @property
    def lines(self) -> list[str]:
        frames = self.seen.split("\x1b[H")
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", frames[-1])
        return [line.rstrip() for line in text.split("\r\n")]

    def until(self, check: Callable[[list[str]], object], seconds: float = 20) -> list[str]:
        """Wait until a frame is as it should be, and return it."""
        end = time.monotonic() + seconds
        while not check(self.lines):
            assert time.monotonic() < end, "\n".join(self.lines)
            self.read(0.05)
        return self.lines

    def names(self) -> list[str]:
        """Return the first column of the table."""
        head = next((n for n, line in enumerate(self.lines) if line.startswith("NAME")), None)
        return [] if head is None else [line.split()[0] for line in self.lines[head + 1 : -1] if line]

    def selected(self) -> str:
        """Return the name of the row that is marked; '' if none is on the screen."""
        rows = [line for line in self.seen.split("\x1b[H")[-1].split("\r\n") if "\x1b[7m" in line]
        names = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", row).split()[0] for row in rows]
        return next((name for name in names if name != "NAME"), "")

    def end(self) -> int:
        """Wait for its end and return its exit code."""
        end = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        self.read(0.05)
        return self.process.wait(1)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)
