"""The porter: takes the signals while the main thread stands in line, and tells it who is inside.

Signals stay blocked in every thread (see signals.py), so somebody has to fetch them while the main thread is busy
waiting. On the first one the porter nudges the main thread, which raises `Called` out of the wait, so that the client
leaves the line in good order; a second one ends the process on the spot, for a store that does not answer.
"""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Self

from . import signals
from .exits import BY_SIGNAL

FOREVER = 1e7


class Called(KeyboardInterrupt):
    """A signal ended the wait."""


class Porter:
    def __init__(self, after: float, remark: Callable[[], None], quietly: Callable[[Callable[[], None]], None]) -> None:
        """`remark` is made once, if the wait lasts longer than `after` seconds."""
        self.after = after
        self.remark = remark
        self.quietly = quietly
        self.signum = 0
        self.typed = False
        self.waiting = True
        self.main = threading.main_thread().ident or 0
        self.thread = threading.Thread(target=self.work, name="holdfast-porter", daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()  # with everything blocked
        signal.signal(signals.NUDGE, self.nudged)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signals.NUDGE})
        return self

    def __exit__(self, *exc: object) -> None:
        self.waiting = False
        signal.pthread_sigmask(signal.SIG_BLOCK, {signals.NUDGE})
        signal.pthread_kill(self.thread.ident or 0, signals.NUDGE)
        self.thread.join()

    def nudged(self, signum: int, frame: FrameType | None) -> None:
        if self.waiting and self.signum:
            self.waiting = False  # once
            raise Called

    def work(self) -> None:
        ending = signals.wanted()
        left = self.after
        while True:
            signum, by_kernel = signals.fetch(ending | signals.STOP | {signals.NUDGE}, left)
            if signum == signals.NUDGE:
                return
            if signum in signals.STOP:
                signals.halt(self.quietly)
            elif signum and self.signum:
                os._exit(BY_SIGNAL + signum)
            elif signum:
                self.signum, self.typed = signum, by_kernel
                signal.pthread_kill(self.main, signals.NUDGE)
            elif left < FOREVER:
                left = FOREVER
                try:
                    self.remark()
                except Exception:  # who is inside is nice to know; the main thread will say what is wrong
                    pass
