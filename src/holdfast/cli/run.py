"""`holdfast run`: hold a name while a command runs.

The order matters: guard first (no thread, no store yet), then the signals are blocked (so that all threads inherit
that), then the store, the line, the beacon for the guard, the command.
"""

import gc
import os
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from holdfast.errors import BackendError, LeaseLost

from . import child, exits, guard, lock, porter, reach, say, signals, waiting, who
from .words import Said

if TYPE_CHECKING:
    from holdfast import Event, Lease, Locks

    from .undertaker import Undertaker

GRACE = 10.0


def run(said: Said) -> int:
    gc.disable()  # importing makes garbage collection run for a millisecond, and finds nothing
    name, command = said.words[0], command_in(said.words)
    file = child.find(command[0])
    check_system("run")
    post = guard.post(said["on_lost"] or "kill")
    try:
        Run(said, name, file, command, post).whole()
    finally:
        post.abandon()


def check_system(word: str) -> None:
    if not hasattr(signal, "sigtimedwait") or not os.path.isdir("/proc/self"):
        raise exits.Exit(exits.CONFIG, f"`holdfast {word}` needs Linux with /proc; the library works without it.")


def command_in(words: list[str], word: str = "run") -> list[str]:
    """The command behind NAME. Usage if there is none or an option is in its place."""
    name, *rest = words
    if rest[:1] == ["--"]:
        rest = rest[1:]
    elif rest[:1] in (["-c"], ["--command"]):
        if len(rest) != 2:
            raise exits.Usage(f"{rest[0]} takes one text, in quotes: holdfast {word} {name} {rest[0]} 'one | two'.")
        return [os.environ.get("SHELL") or "/bin/sh", "-c", rest[1]]
    elif rest and rest[0].startswith("-") and rest[0] != "-":
        raise exits.Usage(
            f"{rest[0]!r} stands behind the name {name!r}, where the command begins. Options go before the name; "
            "a command that begins with a dash goes behind `--`."
        )
    if not rest or not rest[0]:
        raise exits.Usage(f"What shall run while {name!r} is held? It is `holdfast {word} {name} -- CMD`.")
    return rest


class Run:
    def __init__(self, said: Said, name: str, file: str, command: list[str], post: guard.Guard) -> None:
        self.said = said
        self.name = name
        self.file = file
        self.command = command
        self.post = post
        self.locks: Locks | None = None
        self.main = threading.get_ident()
        self.in_line = False
        self.place = ""  # the ticket in line, shortened as snapshots do
        self.attending = False
        self.waiting = waiting.Waiting(said, self.what(), self.describe)
        self.killed = False  # the command has ended by a signal
        self.mercy = 0.0  # until when an evicted command may go on

    def whole(self) -> NoReturn:
        own_group = not child.terminal()
        mask = signals.block()
        try:
            with porter.Porter(waiting.AFTER, self.waiting.remark, self.quietly) as door:
                try:
                    lease = self.enter()
                except porter.Called:
                    pass
                finally:
                    self.waiting.erase()
            if door.signum:  # or it came just as we got in: then closing gives the lock back
                self.end(exits.BY_SIGNAL + door.signum, door.signum if door.typed else 0)
            self.waiting.ended()
            modes = child.Modes(own_group)
            code, typed = self.attend(lease, mask, own_group)
            lost = self.leave(lease, code)
            if lost or self.killed:
                modes.restore()
            self.end(lost or code, typed)
        finally:
            if not self.attending:  # else something is wrong with us: the guard ends the command, then the lock is free
                self.close()

    def enter(self) -> "Lease":
        said = self.said
        self.locks = reach.client(said, self.told)
        note = os.path.basename(self.command[0])[:200]  # not its arguments: they may be secret, and the store shared
        wish = lock.make(said, self.locks, self.name, note, max_hold=said["max_hold"], at_least=said["at_least"])
        return lock.enter(said, self.locks, wish)

    def attend(self, lease: "Lease", mask: set[int], own_group: bool) -> tuple[int, int]:
        assert self.locks is not None
        post, length = self.post, reach.lease_of(self.locks)
        remaining = self.measure(lease, length)
        grace = GRACE if self.said["grace"] is None else self.said["grace"]
        early = min(grace, min(length, self.said["max_hold"] or length) / 3)
        post.tell("ticket", lease.ticket, early)
        post.tell("deadline", guard.clock() + remaining())
        beacon = reach.beacon(self.locks)
        if beacon is not None:
            post.tell("beacon", fd=beacon)
        lease.ensure_held()  # were we stopped on the way here? Then it is better not to begin
        post.tell("starting")
        pid = child.spawn(self.file, self.command, self.environment(lease, length), mask, own_group)
        self.attending = True
        post.tell("child", pid, pid if own_group else 0)
        gc.enable()
        watch = guard.Watch(self.said["on_lost"] or "kill", early)

        def undertaker() -> "Undertaker":
            from .undertaker import Undertaker

            one = Undertaker(lease.ticket, spare=[post.pid])
            one.watch(pid, pid if own_group else 0)
            return one

        attendant = child.Attendant(pid, own_group, post, watch, undertaker, remaining, self.quietly)
        try:
            return attendant.until_its_end()
        finally:
            self.killed = attendant.ended is not None and os.WIFSIGNALED(attendant.ended)
            if post.dead and post.heard & {"term", "kill"}:  # nobody else will see to what is left of its family
                undertaker().bury(remaining() + guard.STUCK)

    def measure(self, lease: "Lease", length: float) -> Callable[[], float]:
        def remaining() -> float:
            """Seconds that the command may still have. One that was evicted gets a moment between TERM and KILL."""
            left = lease.remaining()
            if left <= 0 and lease.reason == "evicted":
                self.mercy = self.mercy or guard.clock() + length / 20
                left = self.mercy - guard.clock()
            return left

        return remaining

    def environment(self, lease: "Lease", length: float) -> dict[str, str]:
        return {
            **os.environ,
            "HOLDFAST_NAME": self.name,
            "HOLDFAST_TICKET": lease.ticket,
            "HOLDFAST_FENCE": str(lease.fence),
            "HOLDFAST_LEASE": f"{length:g}",
            "HOLDFAST_HELD": f"{os.environ.get('HOLDFAST_HELD', '')} {lease.ticket}".strip(),
        }

    def let_go(self, lease: "Lease", code: int) -> None:
        """The command has ended with this code."""
        lease.release()

    def leave(self, lease: "Lease", code: int) -> int:
        """The command has ended: give the lock back. 79 if it was ended because the lease could not be kept, else 0."""
        self.attending = False
        stopped = bool(self.post.listen() & {"term", "kill"})
        if stopped:
            self.post.finish(lease.remaining() + guard.STUCK)  # the family first, then the lock
        else:
            self.post.tell("over")
        signals.let_go()
        loss, capped = "", reach.is_capped(lease)
        try:
            lease.ensure_held()
            self.let_go(lease, code)
        except LeaseLost as late:
            loss = str(late)
        except BackendError as error:
            left = say.for_(lease.remaining())
            say.err(f"{error} {self.name!r} stays locked until its lease ends, in {left}.")
        if stopped:
            if not loss:
                why = "was held for as long as --max-hold allows" if capped else "could not be renewed in time"
                loss = f"{self.name!r} {why}."
            say.err(f"{loss} {self.command[0]!r} was stopped.")
            return exits.LOST
        if loss:
            say.err(f"{loss} {self.command[0]!r} ran on.")
        return 0

    def end(self, code: int, typed: int) -> NoReturn:
        self.close()
        if typed == signal.SIGINT and code == exits.BY_SIGNAL + typed:
            signals.end_by(typed)
        self.post.dismiss()
        os._exit(code)  # everything is closed; taking the interpreter apart would cost another 5 ms

    def close(self) -> None:
        locks, self.locks = self.locks, None
        if locks is not None and self.said["at_least"] is None:
            reach.part(locks)
        elif locks is not None:
            locks.close()  # what is kept without a process should be on the disk

    # Called by other threads.

    def quietly(self, act: Callable[[], None]) -> None:
        if self.locks is None:
            act()
        else:
            reach.quietly(self.locks, act)

    def what(self) -> str:
        """What is waited for, in a sentence."""
        return repr(self.name)

    def describe(self) -> str:
        """Who is in the way, and how many; '' as long as we do not stand in line: then the store is slow to answer."""
        if not self.in_line:
            return ""
        found = None if self.locks is None else who.find(self.locks, self.name)
        return who.waiting_for(found, self.name, self.place)

    def told(self, event: "Event") -> None:
        """From the client, maybe from its keeper: the main thread has to look at the lease again."""
        if self.attending and event.kind in ("renewed", "lost", "evicted"):
            signal.pthread_kill(self.main, signals.NUDGE)
        if event.kind == "waiting":
            self.in_line, self.place = True, event.ticket
        # A store that is down to begin with ends the run, with a sentence of its own.
        loud = event.kind in ("store_down", "store_up", "place_lost") and (self.in_line or self.attending)
        if self.said["verbose"] or (loud and not self.said["quiet"]):
            self.waiting.erase()
            say.err(who.happened(event))
