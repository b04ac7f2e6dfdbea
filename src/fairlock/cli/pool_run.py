"""`fairlock pool run`: runs a command for any free item of a pool, with lease and watchdog as `fairlock run`.

`--forever` repeats it, each time in a new process that is forked before anything is opened. So each run has its own
watchdog, and no run can affect the next one.
"""

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from fairlock.errors import LockTimeout

from . import child_process, exit_codes, make_client, output
from .parse_arguments import Arguments
from .run import Run, find_program

if TYPE_CHECKING:
    from fairlock import Item

LEASE = 60.0
BACK_OFF = 5.0
PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def run(args: Arguments) -> int:
    file, command = find_program(args)
    if args["lease"] is None and not os.environ.get("FAIRLOCK_LEASE"):
        args.options["lease"] = LEASE
    if args["forever"]:
        return forever(args, file, command)
    PoolRun(args, file, command).execute()


class PoolRun(Run):
    def __init__(self, args: Arguments, file: str, command: list[str], key_fd: int = -1) -> None:
        super().__init__(args, file, command)
        self.key_fd = key_fd  # the key of the item is written to it; -1 = nowhere
        self.waiting.quiet |= key_fd >= 0 and not args["verbose"]  # --forever shows its own line

    def acquire(self) -> "Item":  # type: ignore[override]
        args = self.args
        self.locks = make_client.client(args, self.on_event)
        pool = self.locks.pool(self.name, lease=self.locks.session.default_lease)
        try:
            item = pool.hold(timeout=0.0 if args["nonblock"] else args["wait"], key=args["key"]).__enter__()
        except LockTimeout as late:
            code = exit_codes.NOT_ACQUIRED if args["conflict"] is None else args["conflict"]
            raise exit_codes.Exit(code, str(late), expected=True) from None
        if self.key_fd >= 0:
            os.write(self.key_fd, item.key.encode())
        return item

    def environment(self, lease: Any, length: float) -> dict[str, str]:
        from json import dumps

        body = dumps(lease.body, ensure_ascii=False)
        return {**super().environment(lease, length), "FAIRLOCK_ITEM": lease.key, "FAIRLOCK_BODY": body}

    def give_back(self, lease: Any, code: int) -> None:
        if code:
            back_off = BACK_OFF if self.args["back_off"] is None else self.args["back_off"]
            lease.release(after=back_off)
        elif self.args["give_back"]:
            lease.release()
        else:
            lease.done()

    def what(self) -> str:
        return f"an item of {self.name!r}"

    def describe(self) -> str:
        lasted = output.duration(time.monotonic() - self.waiting.began)
        return f"waiting for {self.what()}, for {lasted} now." if self.in_queue else ""


class Progress:
    """Shows what `--forever` has done so far: one line that is overwritten, on a terminal only."""

    def __init__(self, args: Arguments) -> None:
        self.pool = args.operands[0]
        self.shown = os.isatty(2) and not args["quiet"]
        self.does = "used" if args["give_back"] else "done"
        self.done = self.failed = 0

    def show(self, now: str, end: str = "") -> None:
        if self.shown:
            failed = f", {self.failed} given back after a failure" if self.failed else ""
            line = f"{self.pool}: {self.done} {self.does}{failed}; {now}"
            sys.stderr.write(f"\r\x1b[K{output.plain(line)}{end}")
            sys.stderr.flush()


def forever(args: Arguments, file: str, command: list[str]) -> int:
    """Repeat until a signal arrives, or no item is free within the time that -n or -w allows."""
    pid = stopped = code = 0
    key = ""
    progress = Progress(args)
    typed = child_process.has_terminal()

    def stop(signum: int, _: object) -> None:
        nonlocal stopped
        stopped = signum
        if pid and not (signum == signal.SIGINT and typed):  # the terminal has already sent it
            os.kill(pid, signum)

    for signum in (*PASSED_ON, signal.SIGINT):
        if signal.getsignal(signum) != signal.SIG_IGN:
            signal.signal(signum, stop)
    while not stopped:
        progress.show("waiting")
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(reading)
            for signum in (*PASSED_ON, signal.SIGINT):
                if signal.getsignal(signum) is stop:
                    signal.signal(signum, signal.default_int_handler if signum == signal.SIGINT else signal.SIG_DFL)
            os._exit(run_in_fork(args, file, command, writing))
        if stopped:
            os.kill(pid, stopped)  # the signal arrived during the fork
        os.close(writing)
        key = os.read(reading, 1000).decode()
        if key:
            progress.show(f"at {key}")
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        pid = 0
        os.close(reading)
        if key:
            progress.done += code == 0
            progress.failed += code != 0 and not stopped
        elif not stopped:
            no_item = exit_codes.NOT_ACQUIRED if args["conflict"] is None else args["conflict"]
            progress.show("no item left" if code == no_item else "ended", "\n")
            return 0 if code == no_item else code
    progress.show(f"stopped; item {key!r} is given back" if key and code else "stopped", "\n")
    return exit_codes.BY_SIGNAL + stopped


def run_in_fork(args: Arguments, file: str, command: list[str], key_fd: int) -> int:
    try:
        PoolRun(args, file, command, key_fd).execute()
    except exit_codes.Exit as end:
        if end.code != exit_codes.NOT_ACQUIRED:
            output.err(end.sentence)
        return end.code
    except BaseException as error:
        code, sentence = exit_codes.classify(error) if isinstance(error, Exception) else (exit_codes.INTERNAL, "")
        if sentence:
            output.err(sentence)
        return code
