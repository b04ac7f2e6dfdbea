"""`fairlock acquire --pid PID NAME`: a lease that ends with a process, however that ends.

    fairlock acquire --pid $$ deploy || exit     # as `flock 9` does: the rest of the script holds it

The command acquires and detaches the lease. A process in the background, the keeper, attaches it, renews it, and
releases it when PID has ended:

    command -> keeper   the ticket        (end of file without one: it was not acquired)
    keeper -> command   "held"            (end of file without it: the keeper failed)

- The keeper has a pidfd of PID from before the wait on, so a pid that is used again is never taken for it.
- It is forked before the store is opened, as the watchdog is. It leaves the session and ignores the signals by which a
  terminal or a service manager ends a script: the script may still be at work when they arrive.
- It keeps neither the standard output (`$(…)` would wait for its end) nor the standard error, unless that is the one of
  PID itself. There it reports a loss.
- The lease is detached first: if the keeper is killed, the lease ends by itself.

Rejected alternatives: an inherited descriptor, as of flock (a server knows no descriptors), and a command that
stays in the foreground (a script would have to put it there and to end it).
"""

import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING, NoReturn

from fairlock.engine.default_owner import this_process
from fairlock.engine.run_sync import run
from fairlock.errors import LeaseLost, LockError, StoreError
from fairlock.rules.locks import NotHolder, Renew

from . import exit_codes, make_client, output
from .detached_leases import PREFIX, RELEASED, acquire_detached, print_ticket
from .parse_arguments import Arguments

if TYPE_CHECKING:
    from fairlock import Lease, Locks

CHECK = 500  # milliseconds between two looks at the clock
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTSTP)


def acquire_for(args: Arguments, pid: int) -> int:
    """Acquire NAME until this process has ended, and print the ticket."""
    if args["ticket"] is not None:
        raise exit_codes.Usage("--pid makes a ticket of its own: omit --ticket.")
    pidfd = _open(pid)
    name = args.operands[0]
    if args["owner"] is None:
        args.options["owner"] = f"{this_process().rpartition(':')[0]}:{pid}"
    to_keeper, from_keeper, keeper = _start(args, pid, pidfd)
    with make_client.client(args) as locks:
        lease = acquire_detached(args, locks, PREFIX + os.urandom(16).hex())
        os.write(to_keeper, lease["ticket"].encode())
        os.close(to_keeper)
        if os.read(from_keeper, 100) != b"held":
            run(locks.session.release_ticket(name, lease["ticket"]))
            sentence = f"The keeper of {name!r} failed, so it was released. FAIRLOCK_DEBUG=1 shows why."
            raise exit_codes.Exit(exit_codes.INTERNAL, sentence)
    print_ticket(args, {**lease, "pid": pid, "keeper": keeper})
    return 0


def _open(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except AttributeError:
        raise exit_codes.Exit(exit_codes.CONFIG, "--pid needs Linux 5.3 or newer.") from None
    except OSError:
        raise exit_codes.Usage(f"There is no process {pid}. In a shell script its own is $$.") from None


def _start(args: Arguments, pid: int, pidfd: int) -> tuple[int, int, int]:
    """Fork the keeper. Return where the ticket is written, where its reply is read, and its pid."""
    ticket_from, ticket_to = os.pipe()
    reply_from, reply_to = os.pipe()
    keeper = os.fork()
    if keeper:
        os.close(ticket_from)
        os.close(reply_to)
        return ticket_to, reply_from, keeper
    os.close(ticket_to)
    os.close(reply_from)
    _keep_surely(args, pid, pidfd, ticket_from, reply_to)


def _keep_surely(args: Arguments, pid: int, pidfd: int, ticket_from: int, reply_to: int) -> NoReturn:
    code = exit_codes.INTERNAL
    try:
        os.setsid()
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        _drop_standard_files(pid)
        ticket = os.read(ticket_from, 1000).decode()
        code = _keep(args, pidfd, ticket, reply_to) if ticket else 0  # 0: it was not acquired
    except BaseException as error:
        if os.environ.get("FAIRLOCK_DEBUG"):
            import traceback

            traceback.print_exc()
        elif isinstance(error, LockError):
            output.err(str(error))
    finally:
        os._exit(code)


def _drop_standard_files(pid: int) -> None:
    """Keep the standard error if it is also that of the process: it stays open as long as that, anyway."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    sys.stdout = None
    try:
        here, there = os.fstat(2), os.stat(f"/proc/{pid}/fd/2")
        same = (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
    except OSError:
        same = False
    if not same and not os.environ.get("FAIRLOCK_DEBUG"):
        os.dup2(nothing, 2)


def _keep(args: Arguments, pidfd: int, ticket: str, reply_to: int) -> int:
    """Hold it until the process has ended or the lease is lost."""
    name = args.operands[0]
    with make_client.client(args) as locks:
        lease = locks.attach(name, ticket)
        lease.renew()
        os.write(reply_to, b"held")
        os.close(reply_to)
        ended = select.poll()
        ended.register(pidfd, select.POLLIN)
        while not lease.lost:
            if ended.poll(CHECK):
                _release(lease)
                return 0
        return _lost(args, locks, lease, pidfd)


def _release(lease: "Lease") -> None:
    """Release it; while the store cannot be reached, try again until the lease has ended."""
    end = time.monotonic() + lease.remaining()
    while True:
        try:
            lease.release()
            return
        except LeaseLost:
            return
        except StoreError:
            if time.monotonic() >= end:
                return
            time.sleep(CHECK / 1000)


def _lost(args: Arguments, locks: "Locks", lease: "Lease", pidfd: int) -> int:
    name = args.operands[0]
    try:
        reply = run(locks.session.call(name, Renew(lease.ticket, 0)))
        if isinstance(reply, NotHolder) and reply.why is not None and reply.why.reason == RELEASED:
            return 0
    except LockError:
        pass
    ends = args["on_lost"] == "term"
    try:
        lease.ensure_held()
    except LockError as error:
        output.err(f"{error}{' Its process is ended.' if ends else ' Its process goes on without it.'}")
    if ends:
        try:
            signal.pidfd_send_signal(pidfd, signal.SIGTERM)
        except OSError:
            pass  # it has just ended
    return exit_codes.LOST
