"""`fairlock run`: holds a name while a command runs.

The order matters: first the watchdog (no thread, no store yet), then the signals are blocked (so that all threads
inherit the mask), then the store, the wait, the store's liveness_fd for the watchdog, the command.
"""

import gc
import os
import signal
import threading
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from fairlock.engine.boot_clock import boot_clock as clock
from fairlock.engine.run_sync import run as run_sync
from fairlock.errors import LeaseLost, StoreError

from . import acquire_lock, child_process, exit_codes, make_client, output, signal_handling, wait_status_line
from .parse_arguments import Arguments
from .signals_while_waiting import Called, SignalWaiter
from .watchdog import STUCK, KillSchedule, Watchdog, start_watchdog

if TYPE_CHECKING:
    from fairlock import Event, Lease, Locks

    from .process_tree import ProcessTree

GRACE = 10.0
SIGNALS = {"warn": None, "usr1": signal.SIGUSR1, "term": signal.SIGTERM}


def run(args: Arguments) -> NoReturn:
    file, command = find_program(args)
    kind: type[Run] = Run
    if args["once_per"] is not None:
        from .run_once_per_tick import once_run

        kind = once_run(args)
    elif args["tries"] is not None:
        raise exit_codes.Usage("--tries belongs to --once-per.")
    kind(args, file, command).execute()


def find_program(args: Arguments) -> tuple[str, list[str]]:
    """Return the file of the command after NAME, and the command. Exit if it or this system cannot run it."""
    command = parse_command(args)
    file = child_process.find_command(command[0])
    if not hasattr(signal, "sigtimedwait") or not os.path.isdir("/proc/self"):
        sentence = f"`fairlock {args.command.name}` needs Linux with /proc; the library works without it."
        raise exit_codes.Exit(exit_codes.CONFIG, sentence)
    return file, command


def parse_command(args: Arguments) -> list[str]:
    """Return the command after NAME. Usage if it is missing or an option is in its place."""
    word, (name, *rest) = args.command.name, args.operands
    if rest[:1] == ["--"]:
        rest = rest[1:]
    elif rest[:1] in (["-c"], ["--command"]):
        if len(rest) != 2:
            form = f"fairlock {word} {name} {rest[0]} 'one | two'"
            raise exit_codes.Usage(f"{rest[0]} needs one text, in quotes: {form}.")
        return [os.environ.get("SHELL") or "/bin/sh", "-c", rest[1]]
    elif rest and rest[0].startswith("-") and rest[0] != "-":
        raise exit_codes.Usage(
            f"{rest[0]!r} comes after the name {name!r}, where the command begins. Put options before the name, "
            "and `--` before a command that begins with a dash."
        )
    if not rest or not rest[0]:
        raise exit_codes.Usage(f"No command is given. The form is `fairlock {word} {name} -- CMD`.")
    return rest


class Run:
    watchdog: Watchdog

    def __init__(self, args: Arguments, file: str, command: list[str]) -> None:
        self.args = args
        self.name = args.operands[0]
        self.file = file
        self.command = command
        self.locks: Locks | None = None
        self.main = threading.get_ident()
        self.in_queue = False
        self.ticket = ""  # the ticket in the queue, shortened as in snapshots
        self.running = False
        self.waiting = wait_status_line.Waiting(args, self.what(), self.describe)
        self.killed = False  # a signal has ended the command
        self.modes: child_process.TerminalModes | None = None
        self.evicted_until = 0.0  # until then an evicted command may end by itself
        self.on_asked: int | None = SIGNALS[args["on_asked"] or "warn"]  # what a request to release sends; once
        self.asked = False

    def execute(self) -> NoReturn:
        gc.disable()  # during the imports it would run for a millisecond and find nothing
        self.watchdog = start_watchdog(self.args["on_lost"] or "kill")
        try:
            self.hold()
        finally:
            self.watchdog.abandon()

    def hold(self) -> NoReturn:
        own_group = not child_process.has_terminal()
        mask = signal_handling.block()
        try:
            with SignalWaiter(wait_status_line.AFTER, self.waiting.remark, self.halt) as waiter:
                try:
                    lease = self.acquire()
                except Called:
                    pass
                finally:
                    self.waiting.erase()
            if waiter.signum:  # also if it arrived just as the lock was acquired: closing releases it
                self.end(exit_codes.BY_SIGNAL + waiter.signum, waiter.signum if waiter.typed else 0)
            self.waiting.ended()
            with child_process.TerminalModes(own_group) as self.modes:
                code, typed = self.run_command(lease, mask, own_group)
                lost = self.release(lease, code)
                if self.killed:
                    self.modes.restore()
                self.end(lost or code, typed)
        finally:
            if not self.running:  # else this is an internal error: the watchdog ends the command, then the lock is free
                self.close()

    def acquire(self) -> "Lease":
        args = self.args
        self.locks = make_client.client(args, self.on_event)
        note = os.path.basename(self.command[0])[:200]  # not its arguments: they may be secret, and the store shared
        times = {"max_hold": args["max_hold"], "at_least": args["at_least"]}
        lease = acquire_lock.acquire(args, self.locks, acquire_lock.make(args, self.locks, self.name, note, **times))
        run_sync(self.locks.session.list_names())
        return lease

    def run_command(self, lease: "Lease", mask: set[int], own_group: bool) -> tuple[int, int]:
        assert self.locks is not None
        watchdog, length = self.watchdog, self.locks.session.default_lease
        remaining = partial(self.remaining, lease, length)
        grace = GRACE if self.args["grace"] is None else self.args["grace"]
        early = min(grace, min(length, self.args["max_hold"] or length) / 3)
        watchdog.send("ticket", lease.ticket, early)
        watchdog.send("deadline", clock() + remaining())
        liveness_fd = self.locks.session.backend.liveness_fd()
        if liveness_fd is not None:
            watchdog.send("liveness_fd", fd=liveness_fd)
        lease.ensure_held()  # this process may have been stopped meanwhile; then the command must not start
        watchdog.send("starting")
        pid = child_process.spawn(self.file, self.command, self.environment(lease, length), mask, own_group)
        self.running = True
        watchdog.send("child", pid, pid if own_group else 0)
        gc.enable()
        schedule = KillSchedule(self.args["on_lost"] or "kill", early)

        def process_tree() -> "ProcessTree":
            from .process_tree import ProcessTree

            one = ProcessTree(lease.ticket, spare=[watchdog.pid])
            one.watch(pid, pid if own_group else 0)
            return one

        supervisor = child_process.Supervisor(
            pid, own_group, watchdog, schedule, process_tree, remaining, self.halt, self.signal_to_send
        )
        try:
            return supervisor.wait()
        finally:
            self.killed = supervisor.ended is not None and os.WIFSIGNALED(supervisor.ended)
            if watchdog.dead and watchdog.received & {"term", "kill"}:  # it cannot end the descendants
                process_tree().kill_all(remaining() + STUCK)

    def remaining(self, lease: "Lease", length: float) -> float:
        """Return the seconds that the command may still run. An evicted one gets a moment between TERM and KILL."""
        left = lease.remaining()
        if left <= 0 and lease.reason == "evicted":
            self.evicted_until = self.evicted_until or clock() + length / 20
            left = self.evicted_until - clock()
        return left

    def signal_to_send(self) -> int:
        """Return the signal that a request to release sends to the command, the first time; else 0."""
        if not self.asked or self.on_asked is None:
            return 0
        signum, self.on_asked = self.on_asked, None
        return signum

    def environment(self, lease: "Lease", length: float) -> dict[str, str]:
        return {
            **os.environ,
            "FAIRLOCK_NAME": self.name,
            "FAIRLOCK_TICKET": lease.ticket,
            "FAIRLOCK_FENCE": str(lease.fence),
            "FAIRLOCK_LEASE": f"{length:g}",
            "FAIRLOCK_HELD": f"{os.environ.get('FAIRLOCK_HELD', '')} {lease.ticket}".strip(),
        }

    def give_back(self, lease: "Lease", code: int) -> None:
        """Release the lease after the command has ended with this code."""
        lease.release()

    def release(self, lease: "Lease", code: int) -> int:
        """Release the lock after the command. Return 79 if it was stopped because the lease was lost, else 0."""
        self.running = False
        stopped = bool(self.watchdog.receive() & {"term", "kill"})
        if stopped:
            self.watchdog.finish(lease.remaining() + STUCK)  # first the descendants, then the lock
        else:
            self.watchdog.send("over")
        signal_handling.stop_forwarding()
        loss, capped = "", self.locks is not None and self.locks.session.ends_by_max_hold(lease)
        try:
            lease.ensure_held()
            self.give_back(lease, code)
        except LeaseLost as late:
            loss = str(late)
        except StoreError as error:
            left = output.duration(lease.remaining())
            self.report(f"{error} {self.name!r} stays locked until its lease ends, in {left}.")
        if stopped:
            if not loss:
                why = "was held for as long as --max-hold allows" if capped else "could not be renewed in time"
                loss = f"{self.name!r} {why}."
            self.report(f"{loss} {self.command[0]!r} was stopped.")
            return exit_codes.LOST
        if loss:
            self.report(f"{loss} {self.command[0]!r} ran on.")
        return 0

    def report(self, sentence: str) -> None:
        """Print a sentence after the end of the command, which may have left a raw terminal."""
        if self.modes is not None:
            self.modes.restore()
        output.err(sentence)

    def end(self, code: int, typed: int) -> NoReturn:
        self.close()
        if typed == signal.SIGINT and code == exit_codes.BY_SIGNAL + typed:
            signal_handling.end_by(typed)
        self.watchdog.dismiss()
        os._exit(code)  # everything is closed; the end of the interpreter would cost another 5 ms

    def close(self) -> None:
        locks, self.locks = self.locks, None
        if locks is None:
            return
        # Without waiting for the disk, if the store supports it; but a lock that stays closed without a process should
        # be on the disk.
        quickly = self.args["at_least"] is None and locks.session.idle and locks.session.backend.abandon()
        if not quickly:
            locks.close()

    # Called by other threads.

    def halt(self) -> None:
        """Stop this process, as Ctrl-Z does, and return when it is continued. Not while a statement runs: a process
        that is stopped in one would block the writes of all others."""
        locks = self.locks
        paused = locks is not None and locks.session.backend.before_fork()
        try:
            os.kill(os.getpid(), signal.SIGSTOP)
        finally:
            if locks is not None and paused:
                locks.session.backend.after_fork()

    def what(self) -> str:
        """Return what the wait is for, as part of a sentence."""
        return repr(self.name)

    def describe(self) -> str:
        """Describe the wait; '' before the client is in the queue, when the store is only slow to reply."""
        if not self.in_queue:
            return ""
        from . import describe_holders

        found = None if self.locks is None else describe_holders.find(self.locks, self.name)
        return describe_holders.waiting_for(found, self.name, self.ticket)

    def on_event(self, event: "Event") -> None:
        """Called by the client, perhaps by its keeper thread. The main thread must check the lease again."""
        self.asked |= event.kind == "asked"
        if self.running and event.kind in ("renewed", "lost", "evicted", "asked"):
            signal.pthread_kill(self.main, signal_handling.WAKE)
        if event.kind == "waiting":
            self.in_queue, self.ticket = True, event.ticket
        # A store that is unreachable from the start ends the run with its own sentence.
        important = event.kind in ("store_down", "store_up", "place_lost") and (self.in_queue or self.running)
        important |= event.kind == "asked"
        if self.args["verbose"] or (important and not self.args["quiet"]):
            from . import describe_holders

            self.waiting.erase()
            output.err(describe_holders.describe_event(event))
