"""The signals that the tool handles.

All of them are blocked before the first thread starts, so that every thread inherits the mask. Then they are *fetched*
with sigtimedwait, which also returns their origin: the terminal (the kernel, to the whole foreground group) or kill(2)
(to this process alone, so the signal must be forwarded to the command).
"""

import os
import signal

FROM_KERNEL = 128  # si_code: typed at the terminal, or a hang-up
FORWARD = {signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
STOP = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
WAKE = signal.SIGURG  # from one of our threads to another; ignored by default


def block() -> set[int]:
    """Block all signals that are fetched and return the mask before. Call it while there is one thread."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is inherited as ignored, the exit code is lost
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, FORWARD | STOP | {signal.SIGCHLD, signal.SIGCONT, WAKE}))


def to_forward() -> set[signal.Signals]:
    """Return the signals to forward. Those that were ignored at the start (nohup, background) stay ignored."""
    return {one for one in FORWARD if signal.getsignal(one) != signal.SIG_IGN}


def fetch(those: set[signal.Signals], seconds: float) -> tuple[int, bool]:
    """Return the next signal and whether the kernel sent it; (0, False) after the timeout."""
    got = signal.sigtimedwait(those, max(0.0, seconds))
    if got is None or got.si_signo not in those:  # after stop and continue, Python 3.11 returns wrong numbers
        return 0, False
    return got.si_signo, got.si_code == FROM_KERNEL


def stop_forwarding() -> None:
    """Discard the signals that arrived for the command, which has ended. A signal ends a release that takes long.

    Not at once: a hang-up or a kill of the job often comes twice, and then others would wait until the lease ends.
    """
    while fetch(FORWARD | {signal.SIGCHLD, signal.SIGCONT}, 0)[0]:
        pass
    if signal.SIGINT in to_forward():
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    signal.signal(signal.SIGALRM, lambda *_: signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARD))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, 1.0)


def end_by(signum: int) -> None:
    """End this process by the signal, so that Ctrl-C also ends a loop of the shell."""
    signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signum})
    os.kill(os.getpid(), signum)
