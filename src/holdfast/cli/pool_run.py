"""`holdfast pool run`: a command for any free item of a pool, kept and guarded as `holdfast run` keeps a lock.

`--forever` does so again and again, each time in a process of its own that is forked before it has opened anything: so
each run has its guard, and none can harm the next.
"""

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from holdfast.errors import LockTimeout

from . import child, exits, guard, reach, say
from .run import Run, check_system, command_in
from .words import Said

if TYPE_CHECKING:
    from holdfast import Item

LEASE = 60.0
BACK_OFF = 5.0
PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def pool_run(said: Said) -> int:
    command = command_in(said.words, "pool run")
    if said["lease"] is None and not os.environ.get("HOLDFAST_LEASE"):
        said.options["lease"] = LEASE
    file = child.find(command[0])
    check_system("pool run")
    return forever(said, file, command) if said["forever"] else once(said, file, command, -1)


def once(said: Said, file: str, command: list[str], tell: int) -> int:
    post = guard.post(said["on_lost"] or "kill")
    try:
        PoolRun(said, said.words[0], file, command, post, tell).whole()
    finally:
        post.abandon()


class PoolRun(Run):
    def __init__(
        self, said: Said, name: str, file: str, command: list[str], post: guard.Guard, tell: int
    ) -> None:
        super().__init__(said, name, file, command, post)
        self.tell = tell  # where to say that there is an item, and which; -1 = nowhere
        self.waiting.quiet |= tell >= 0 and not said["verbose"]  # --forever shows a line of its own

    def enter(self) -> "Item":  # type: ignore[override]
        said = self.said
        self.locks = reach.client(said, self.told)
        pool = self.locks.pool(self.name, lease=reach.lease_of(self.locks))
        try:
            item = pool.hold(timeout=0.0 if said["nonblock"] else said["wait"], key=said["key"]).__enter__()
        except LockTimeout as late:
            code = exits.NOT_ACQUIRED if said["conflict"] is None else said["conflict"]
            raise exits.Exit(code, str(late), quietly=True) from None
        if self.tell >= 0:
            os.write(self.tell, item.key.encode())
        return item

    def environment(self, lease: Any, length: float) -> dict[str, str]:
        from json import dumps

        body = dumps(lease.body, ensure_ascii=False)
        return {**super().environment(lease, length), "HOLDFAST_ITEM": lease.key, "HOLDFAST_BODY": body}

    def let_go(self, lease: Any, code: int) -> None:
        if code:
            back_off = BACK_OFF if self.said["back_off"] is None else self.said["back_off"]
            lease.release(after=back_off)
        elif self.said["give_back"]:
            lease.release()
        else:
            lease.done()

    def what(self) -> str:
        return f"an item of {self.name!r}"

    def describe(self) -> str:
        lasted = say.for_(time.monotonic() - self.waiting.began)
        return f"waiting for {self.what()}, for {lasted} now." if self.in_line else ""


class Progress:
    """What `--forever` has done so far: one line that is written over and over, on a terminal only."""

    def __init__(self, said: Said) -> None:
        self.pool = said.words[0]
        self.shown = os.isatty(2) and not said["quiet"]
        self.does = "used" if said["give_back"] else "done"
        self.done = self.failed = 0

    def show(self, now: str, end: str = "") -> None:
        if self.shown:
            failed = f", {self.failed} given back after a failure" if self.failed else ""
            line = f"{self.pool}: {self.done} {self.does}{failed}; {now}"
            sys.stderr.write(f"\r\x1b[K{say.plain(line)}{end}")
            sys.stderr.flush()


def forever(said: Said, file: str, command: list[str]) -> int:
    """Until a signal comes, or nothing is to be had in the time that -n or -w allows."""
    pid = stopped = code = 0
    key = ""
    progress = Progress(said)
    typed = child.terminal()

    def stop(signum: int, _: object) -> None:
        nonlocal stopped
        stopped = signum
        if pid and not (signum == signal.SIGINT and typed):  # from the terminal it has got it already
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
            os._exit(one_of_many(said, file, command, writing))
        if stopped:
            os.kill(pid, stopped)  # it came while it was being made
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
            nothing = exits.NOT_ACQUIRED if said["conflict"] is None else said["conflict"]
            progress.show("nothing left" if code == nothing else "ended", "\n")
            return 0 if code == nothing else code
    progress.show(f"stopped, and item {key!r} is given back" if key and code else "stopped", "\n")
    return exits.BY_SIGNAL + stopped


def one_of_many(said: Said, file: str, command: list[str], tell: int) -> int:
    try:
        return once(said, file, command, tell)
    except exits.Exit as end:
        if end.code != exits.NOT_ACQUIRED:
            say.err(end.sentence)
        return end.code
    except BaseException as error:
        from .outcome import verdict

        code, sentence = verdict(error) if isinstance(error, Exception) else (exits.BUG, "")
        if sentence:
            say.err(sentence)
        return code
