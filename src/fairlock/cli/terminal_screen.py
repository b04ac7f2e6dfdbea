"""A full-screen program on a terminal, without a library: the alternate screen, keys, the size, and the way back.

The terminal is as it was before, however the program ends: normally, by an exception, by Ctrl-C or Ctrl-\\, by SIGTERM
or SIGHUP. Ctrl-Z gives the terminal back, too, until the program goes on.
"""

import os
import select
import signal
import sys
import termios
from types import FrameType, TracebackType
from typing import Any, Self

from . import exit_codes, output

ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"  # the alternate screen, no cursor, no line wrap
LEAVE = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
ESCAPE_WAIT = 0.05  # seconds: the rest of a key's sequence comes at once

KEYS = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down", "\x1b[5~": "page up", "\x1b[6~": "page down",
    "\x1b[H": "home", "\x1bOH": "home", "\x1b[1~": "home", "\x1b[F": "end", "\x1bOF": "end", "\x1b[4~": "end",
    "\x1b[3~": "delete", "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x1b": "escape",
    "\x15": "clear", "\x0c": "redraw",
}  # fmt: skip


class Screen:
    """A context manager. `read` waits for keys; `draw` shows lines; `wake` ends a `read` from another thread."""

    def __init__(self) -> None:
        self._input, self._output = sys.stdin.fileno(), sys.stdout.fileno()
        self._encoding = sys.stdout.encoding or "utf-8"
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._before: list[Any] | None = None
        self._ours = False  # the terminal is changed; while the program is stopped it is the shell's
        self._handlers: dict[int, Any] = {}
        self._pending = ""

    def __enter__(self) -> Self:
        try:
            for number, handler in (
                (signal.SIGTERM, self._end),
                (signal.SIGHUP, self._end),
                (signal.SIGQUIT, self._end),
                (signal.SIGTSTP, self._pause),
                (signal.SIGWINCH, lambda *_: self.wake()),
            ):
                self._handlers[number] = signal.signal(number, handler)
            self._before = termios.tcgetattr(self._input)
            self._begin()
        except BaseException:  # a signal may come here, too
            self.__exit__()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None = None, error: BaseException | None = None,
        _: TracebackType | None = None,
    ) -> None:  # fmt: skip
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [*self._handlers, signal.SIGINT])  # nothing may come between
        try:
            self._finish()
        finally:
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            os.close(self._wake_read)
            os.close(self._wake_write)
            self._wake_write = -1
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _begin(self) -> None:
        assert self._before is not None
        mode = [*self._before]
        mode[3] &= ~(termios.ICANON | termios.ECHO)  # key by key, and not shown; Ctrl-C and Ctrl-Z stay signals
        mode[6] = [*mode[6]]
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        self._ours = True
        termios.tcsetattr(self._input, termios.TCSADRAIN, mode)
        self._write(ENTER)

    def _finish(self) -> None:
        if not self._ours or not output.in_foreground(self._input):
            return  # it was stopped, and is ended now: another program uses the terminal
        try:
            self._write(LEAVE)
            if self._before is not None:
                termios.tcsetattr(self._input, termios.TCSADRAIN, self._before)
        except (OSError, termios.error):
            pass  # the terminal is gone
        self._ours = False

    def _end(self, number: int, _: FrameType | None) -> None:
        raise exit_codes.Exit(exit_codes.BY_SIGNAL + number, "")

    def _pause(self, number: int, _: FrameType | None) -> None:
        self._finish()
        mine = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTSTP])  # it stops here, until `fg`
        signal.signal(signal.SIGTSTP, mine)
        self._begin()
        self.wake()

    def wake(self) -> None:
        """End a `read` now. Any thread and a signal handler may call this."""
        try:
            os.write(self._wake_write, b"\0")
        except OSError:
            pass  # it is full, which wakes as well; or the screen is closed

    def size(self) -> tuple[int, int]:
        """Return the columns and the rows."""
        try:
            columns, rows = os.get_terminal_size(self._output)
        except OSError:
            columns, rows = 0, 0
        return columns or 80, rows or 24

    def draw(self, lines: list[str]) -> None:
        """Show these lines, from the top. Each is at most as wide as the screen."""
        # A line is cleared before it is written: after its last column the cursor still stands on that column.
        self._write("\x1b[H" + "\r\n".join(f"\x1b[K{line}\x1b[0m" for line in lines))

    def _write(self, text: str) -> None:
        data = text.encode(self._encoding, "replace")
        while data:
            data = data[os.write(self._output, data) :]

    def read(self, seconds: float) -> list[str]:
        """Return the keys that were pressed: a character, or a name of KEYS. None within this time, or `wake`: []."""
        ready, _, _ = select.select([self._input, self._wake_read], [], [], max(seconds, 0))
        if self._wake_read in ready:
            os.read(self._wake_read, 4096)
        if self._input not in ready:
            return []
        data = os.read(self._input, 4096)
        if not data:
            raise exit_codes.Exit(0, "")  # the terminal has hung up
        text = data.decode(errors="replace")
        while "\x1b" in text[-5:] and select.select([self._input], [], [], ESCAPE_WAIT)[0]:
            text += os.read(self._input, 4096).decode(errors="replace")
        return split_keys(text)


def split_keys(text: str) -> list[str]:
    """Return what was typed, key by key. A sequence that is not known is left out."""
    keys = []
    while text:
        size = 1
        if text[0] == "\x1b" and len(text) > 1 and text[1] in "[O":
            size = 2
            while size < len(text) and not ("@" <= text[size] <= "~"):
                size += 1
            size += 1
        key, text = text[:size], text[size:]
        if key in KEYS:
            keys.append(KEYS[key])
        elif len(key) == 1 and key.isprintable():
            keys.append(key)
    return keys
