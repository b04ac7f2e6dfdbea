"""Makes the client from the options, and contains all uses of `locks.session`, the API for code built on a client.
"""

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import fairlock
from fairlock.engine import events
from fairlock.engine.run_sync import run
from fairlock.errors import ConfigError
from fairlock.rules.locks import Command, Reply

from . import exit_codes
from .parse_arguments import Arguments

if TYPE_CHECKING:
    from fairlock import Resource, Snapshot
    from fairlock.sync import Lease, Locks


EVERY_NAMESPACE = "*"
LOOKS = ("ls", "top", "ui", "pool ls")  # what can show all namespaces at once


def every_namespace(args: Arguments) -> bool:
    """Return True for --namespace '*': all namespaces at once. Usage error if the command does more than look."""
    import os

    given = os.environ.get("FAIRLOCK_NAMESPACE") if args["namespace"] is None else args["namespace"]
    name = args.command.name
    if given == EVERY_NAMESPACE and (name not in LOOKS or (name == "pool ls" and args.operands)):
        looks = f"{', '.join(LOOKS)} without a name"
        raise exit_codes.Usage(f"--namespace '*' is for {looks}, which only look. Name one namespace.")
    return given == EVERY_NAMESPACE


def client(args: Arguments, on_event: "Callable[[fairlock.Event], object] | None" = None) -> "Locks":
    """Make the client for -u, FAIRLOCK_URL or the default. No I/O yet."""
    import warnings

    namespace = "" if every_namespace(args) else args["namespace"]

    warnings.simplefilter("ignore")  # `ls` and `doctor` name the store; a mail from cron need not
    events.silent = True  # the tool prints its own sentences instead of log lines
    locks = fairlock.connect(
        args["url"],
        owner=args["owner"] or operator(args.command.name),
        lease=args["lease"],
        namespace=namespace,
        scope=args["scope"],
        on_event=on_event,
    )
    if locks.session.backend.scope == "process":
        raise ConfigError(f"{locks.store} ends with this process and locks nothing for others. Omit -u, or use sqlite:///…")
    return locks


def operator(command: str) -> str | None:
    """Return user@host for the commands by which people intervene: audit lines then name a person, not a process."""
    if command not in ("ask", "evict", "resize", "doctor", "top", "ui") or os.environ.get("FAIRLOCK_OWNER"):
        return None
    import pwd

    try:
        user = os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container without this user
        user = f"uid {os.getuid()}"
    return f"{user}@{os.uname().nodename}"[:200]


def liveness_fd(locks: "Locks") -> int | None:
    return locks.session.backend.liveness_fd()


def default_lease(locks: "Locks") -> float:
    return locks.session.default_lease


def is_capped(locks: "Locks", lease: "Lease") -> bool:
    """Return True if max_hold ends the lease, not a missing renewal."""
    return locks.session.ends_by_max_hold(lease)


def call(locks: "Locks", name: str, command: Command) -> Reply:
    """Send one message, for leases that no process renews."""
    return run(locks.session.call(name, command))


def tickets_of_holders(locks: "Locks", name: str) -> Iterator[str]:
    """Return the full tickets, which snapshots shorten."""
    state, _ = run(locks.session.read(name))
    return (entry.ticket for entry in state.holders)


def look(locks: "Locks", name: str) -> "Snapshot":
    """Return a snapshot of this name, in which * and ? are ordinary characters."""
    return run(locks.session.look(name))


def find_pool_resource(locks: "Locks", name: str) -> "Resource | None":
    return run(locks.session.find_pool_resource(name))


def find_pools(locks: "Locks", namespaces: bool) -> "list[Resource]":
    return sorted(run(locks.session.find_pools(namespaces)), key=lambda one: (one.namespace, one.name))


def holders(locks: "Locks", pattern: str) -> "list[tuple[Resource, list[str]]]":
    """Return the names that match and are held, with the full tickets of their holders."""
    return run(locks.session.holders(pattern))


def evict_tickets(locks: "Locks", name: str, tickets: list[str], reason: str, at_once: bool) -> tuple[str, ...]:
    """Evict exactly these holders, and none that came after they were listed."""
    return run(locks.session.evict_tickets(name, tickets, reason, at_once))


def release_held(locks: "Locks", name: str, ticket: str, reason: str) -> bool:
    """Release what another process holds and renews, by its ticket."""
    return run(locks.session.release_held(name, ticket, reason))


def list_names(locks: "Locks") -> None:
    """Let `fairlock ls` show at once what this client holds."""
    run(locks.session.list_names())


def release_ticket(locks: "Locks", name: str, ticket: str) -> None:
    """Release the lease with this ticket."""
    run(locks.session.release_ticket(name, ticket))


def choose_ticket(locks: "Locks", ticket: str) -> None:
    """Use this ticket for the next acquire, so that a repeated acquire is idempotent."""
    locks.session.use_ticket(ticket)


def handle(args: Arguments) -> str:
    """Return the value of --handle; @FILE: the content of that file, which `ps` does not show."""
    return text_or_file(args["handle"], "handle")


def text_or_file(text: str, what: str) -> str:
    """Return a secret that was given as TEXT or as @FILE."""
    if not text.startswith("@"):
        return text
    try:
        with open(text[1:], encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, UnicodeError) as bad:
        why = bad.strerror if isinstance(bad, OSError) else "it is not UTF-8"
        raise ConfigError(f"No {what} can be read from {text[1:]!r}: {why}. Name a file that you may read.") from None


def examine(locks: "Locks") -> list[tuple[str, str]]:
    return run(locks.session.backend.doctor())


def schema(locks: "Locks") -> str:
    return locks.session.backend.schema()


def scope(locks: "Locks") -> str:
    return locks.session.backend.scope


def close_quickly(locks: "Locks") -> None:
    """Close, for a process that ends now and holds nothing: without waiting for the disk if the store supports it."""
    if not locks.session.idle or not locks.session.backend.abandon():
        locks.close()


def between_statements(locks: "Locks", act: Callable[[], None]) -> None:
    """Call `act` while no statement runs. A process stopped in one would block the writes of all others."""
    backend = locks.session.backend
    paused = backend.before_fork()
    try:
        act()
    finally:
        if paused:
            backend.after_fork()
