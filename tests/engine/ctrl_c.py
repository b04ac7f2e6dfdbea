"""Ctrl-C before any line of this project, one after the other."""

import gc
import sys
import time
from collections.abc import Callable
from linecache import getline
from pathlib import Path
from types import FrameType
from typing import Any

import fairlock

PACKAGE = str(Path(fairlock.__file__).parent)
NEVER_HERE = ("with ", "try:")
CLIENT = ("sync", "engine", "stores/redis")  # a store in memory is the server


class CtrlC:
    """Ctrl-C before the nth line of these parts that the main thread comes to; `at` is where that was.

    calls: before the first line of the nth function that is called from this package. There Python handles most
    signals. Not of what a program calls: if that is __exit__, the `with` is not left, and nothing can be done about it.
    """

    def __init__(self, nth: int, parts: tuple[str, ...] = CLIENT, calls: bool = False) -> None:
        self.rest = nth
        self.calls = calls
        self.parts = tuple(f"{PACKAGE}/{part}" for part in parts)
        self.at = ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(self.parts):
            return None
        if self.calls:
            caller = frame.f_back.f_code.co_filename if frame.f_back is not None else ""
            return self._interrupt(frame) if event == "call" and caller.startswith(PACKAGE) else self
        # A tracer also stops where no signal is ever handled: between the last line under a mutex and its release, and
        # at `try:`, which does nothing, and which CPython leaves out of the range of a `with` around it.
        if event == "line" and not getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith(NEVER_HERE):
            self._interrupt(frame)
        return self

    def _interrupt(self, frame: FrameType) -> Any:
        self.rest -= 1
        if self.rest == 0:
            self.at = f"{frame.f_code.co_filename.removeprefix(PACKAGE)}:{frame.f_lineno}"
            sys.settrace(None)
            raise KeyboardInterrupt
        return self

    def run(self, work: Callable[[], Any]) -> Any:
        """Return its result, or None if it was interrupted.

        No garbage is collected meanwhile: the clients that earlier tests have left are none of these lines.
        """
        gc.disable()
        sys.settrace(self)
        try:
            return work()
        except KeyboardInterrupt:
            assert self.at
            return None
        finally:
            sys.settrace(None)
            gc.enable()


def settled(locks: fairlock.Locks) -> None:
    """Wait until everything that is owed has been sent."""
    limit = time.monotonic() + 20
    while locks._session.pending_releases:
        assert time.monotonic() < limit
        time.sleep(0.005)
