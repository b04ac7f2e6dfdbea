"""Fetches the signals while the main thread waits for the lock, and prints the waiting line (wait_status_line.py).

Signals stay blocked in every thread (see signal_handling.py), so a thread has to fetch them while the main thread
waits. At the first signal this thread wakes the main thread, which raises `Called` out of the wait, so that the
client leaves the queue. A second signal ends the process at once, in case the store does not reply.

Most waits are short, and a thread costs half a millisecond: an alarm starts the thread after a moment. It starts from a
signal handler, which can interrupt any code, so it uses no lock of `threading`.
"""

import os
import signal
from _thread import allocate_lock, get_ident, start_new_thread
from collections.abc import Callable
from typing import Self

from . import signal_handling
from .exit_codes import BY_SIGNAL

MOMENT = 0.1
RETRY = 5.0


class Called(KeyboardInterrupt):
    """A signal ended the wait."""


class SignalWaiter:
    def __init__(self, after: float, remark: Callable[[], float], halt: Callable[[], None]) -> None:
        """Call `remark` if the wait lasts longer than `after` seconds, and again after the seconds that it returns.
        `halt` stops this process."""
        self.after = after
        self.remark = remark
        self.halt = halt
        self.signum = 0
        self.typed = False
        self.waiting = True
        self.main = get_ident()
        self.thread = 0
        self.gone = allocate_lock()

    def __enter__(self) -> Self:
        signal.signal(signal_handling.WAKE, lambda *_: self.on_wake())
        self.alarm = signal.signal(signal.SIGALRM, lambda *_: self.start())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal_handling.WAKE, signal.SIGALRM})
        signal.setitimer(signal.ITIMER_REAL, MOMENT)
        return self

    def __exit__(self, *exc: object) -> None:
        self.waiting = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal_handling.WAKE})
        signal.signal(signal.SIGALRM, self.alarm)
        if self.thread:
            signal.pthread_kill(self.thread, signal_handling.WAKE)
            self.gone.acquire()
        if not self.signum:
            self.signum, self.typed = signal_handling.fetch(signal_handling.to_forward(), 0)

    def on_wake(self) -> None:
        if self.waiting and self.signum:
            self.waiting = False  # once
            raise Called

    def start(self) -> None:
        """Start the thread. Called in the main thread, by the alarm."""
        if self.waiting and not self.thread:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal_handling.WAKE})  # the thread inherits all of them blocked
            self.gone.acquire()
            try:
                self.thread = start_new_thread(self.work, ())
            except RuntimeError:  # there are too many threads, perhaps only for a moment
                self.gone.release()
                signal.setitimer(signal.ITIMER_REAL, MOMENT)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal_handling.WAKE})

    def work(self) -> None:
        try:
            self.fetch_signals(signal_handling.to_forward())
        finally:
            self.gone.release()

    def fetch_signals(self, ending: set[signal.Signals]) -> None:
        left = self.after - MOMENT
        while True:
            signum, by_kernel = signal_handling.fetch(ending | signal_handling.STOP | {signal_handling.WAKE}, left)
            if signum == signal_handling.WAKE:
                return
            if signum in signal_handling.STOP:
                self.halt()
            elif signum and self.signum:
                os._exit(BY_SIGNAL + signum)
            elif signum:
                self.signum, self.typed = signum, by_kernel
                signal.pthread_kill(self.main, signal_handling.WAKE)
            else:
                try:
                    left = self.remark()
                except Exception:  # the line is optional; the main thread reports what is wrong
                    left = RETRY
