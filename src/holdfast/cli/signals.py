"""Which signals the tool takes, and how it stops itself.

All of them are blocked before the first thread starts, so that every thread inherits that; then they are *fetched*
with sigtimedwait, which also tells who sent them: the terminal (the kernel, to everyone in the foreground) or kill(2)
(to us alone, so the command has to be told).
"""

import os
import signal
from collections.abc import Callable

FROM_KERNEL = 128  # si_code: typed at the terminal, or a hang-up
PASS_ON = {signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
STOP = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
NUDGE = signal.SIGURG  # from one of our threads to another; ignored by everyone who does not expect it


def block() -> set[int]:
    """Block all that we fetch; what the mask was before. Call it while there is one thread."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, it would swallow the exit code
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, PASS_ON | STOP | {signal.SIGCHLD, signal.SIGCONT, NUDGE}))


def wanted() -> set[signal.Signals]:
    """Those to pass on. What was ignored when we started (nohup, a shell's background) stays ignored."""
    return {one for one in PASS_ON if signal.getsignal(one) != signal.SIG_IGN}


def fetch(those: set[signal.Signals], seconds: float) -> tuple[int, bool]:
    """The next signal and whether the kernel sent it; (0, False) when the time is over."""
    got = signal.sigtimedwait(those, max(0.0, seconds))
    if got is None or got.si_signo not in those:  # after stop and continue, 3.11 gives nonsense
        return 0, False
    return got.si_signo, got.si_code == FROM_KERNEL


def halt(quietly: Callable[[Callable[[], None]], None]) -> None:
    """Stop this process, as Ctrl-Z does, and come back when somebody continues it.

    `quietly` calls what it is given while no statement is under way, or a stopped process would block the store.
    """
    quietly(lambda: os.kill(os.getpid(), signal.SIGSTOP))


def let_go() -> None:
    """The command is over: forget what came for it. If giving the lock back takes long, a signal may end us.

    Not at once: a hang-up or a kill of the job often comes twice, and would cost the others the rest of the lease.
    """
    while fetch(PASS_ON | {signal.SIGCHLD, signal.SIGCONT}, 0)[0]:
        pass
    if signal.SIGINT in wanted():
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    signal.signal(signal.SIGALRM, lambda *_: signal.pthread_sigmask(signal.SIG_UNBLOCK, PASS_ON))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, 1.0)


def end_by(signum: int) -> None:
    """Die of this signal, so that a shell's loop ends with its Ctrl-C and does not go on with the next round."""
    signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signum})
    os.kill(os.getpid(), signum)
