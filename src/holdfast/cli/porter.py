"""The porter: takes the signals while the main thread stands in line, and has the remarks made that waiting.py prints.

Signals stay blocked in every thread (see signals.py), so somebody has to fetch them while the main thread is busy
waiting. On the first one the porter nudges the main thread, which raises `Called` out of the wait, so that the client
leaves the line in good order; a second one ends the process on the spot, for a store that does not answer.

Most waits are over at once, and a thread costs half a millisecond: so an alarm calls the porter after a moment. It
starts from a signal handler, in the middle of anything, so it uses no lock of `threading`.
"""

import os
import signal
from _thread import allocate_lock, get_ident, start_new_thread
from collections.abc import Callable
from typing import Self

from . import signals
from .exits import BY_SIGNAL

MOMENT = 0.1
RETRY = 5.0


class Called(KeyboardInterrupt):
    """A signal ended the wait."""


class Porter:
    def __init__(
        self, after: float, remark: Callable[[], float], quietly: Callable[[Callable[[], None]], None]
    ) -> None:
        """`remark` is made if the wait lasts longer than `after` seconds, and again in as many as it returns."""
        self.after = after
        self.remark = remark
        self.quietly = quietly
        self.signum = 0
        self.typed = False
        self.waiting = True
        self.main = get_ident()
        self.thread = 0
        self.gone = allocate_lock()

    def __enter__(self) -> Self:
        signal.signal(signals.NUDGE, lambda *_: self.nudged())
        self.alarm = signal.signal(signal.SIGALRM, lambda *_: self.start())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signals.NUDGE, signal.SIGALRM})
        signal.setitimer(signal.ITIMER_REAL, MOMENT)
        return self

    def __exit__(self, *exc: object) -> None:
        self.waiting = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signals.NUDGE})
        signal.signal(signal.SIGALRM, self.alarm)
        if self.thread:
            signal.pthread_kill(self.thread, signals.NUDGE)
            self.gone.acquire()
        if not self.signum:
            self.signum, self.typed = signals.fetch(signals.wanted(), 0)

    def nudged(self) -> None:
        if self.waiting and self.signum:
            self.waiting = False  # once
            raise Called

    def start(self) -> None:
        """In the main thread, from the alarm."""
        if self.waiting and not self.thread:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signals.NUDGE})  # so that it begins with everything blocked
            self.gone.acquire()
            try:
                self.thread = start_new_thread(self.work, ())
            except RuntimeError:  # there are too many threads; perhaps not for long
                self.gone.release()
                signal.setitimer(signal.ITIMER_REAL, MOMENT)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signals.NUDGE})

    def work(self) -> None:
        try:
            self.attend(signals.wanted())
        finally:
            self.gone.release()

    def attend(self, ending: set[signal.Signals]) -> None:
        left = self.after - MOMENT
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
            else:
                try:
                    left = self.remark()
                except Exception:  # nice to know; the main thread will say what is wrong
                    left = RETRY
