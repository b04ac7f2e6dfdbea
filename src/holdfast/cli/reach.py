"""From what was typed to a client, and the few things that the tool does to it which a program would not.

Everything that looks behind the public API is in this file.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import holdfast
from holdfast.doorman import Command, Reply
from holdfast.errors import ConfigError
from holdfast.flow import check, events, look
from holdfast.flow.run import run

from .words import Said

if TYPE_CHECKING:
    from holdfast import Pool, Resource
    from holdfast.client import Lease, Locks


def client(said: Said, on_event: "Callable[[holdfast.Event], object] | None" = None) -> "Locks":
    """The client that -u, HOLDFAST_URL or nothing asks for. No I/O yet."""
    import warnings

    warnings.simplefilter("ignore")  # the tool names its store in `ls` and `doctor`, not in every cron mail
    events.silent = True  # it says in its own sentences what the library would log
    locks = holdfast.connect(
        said["url"],
        owner=said["owner"],
        lease=said["lease"],
        namespace=said["namespace"],
        span=said["span"],
        on_event=on_event,
    )
    if locks._desk.backend.span == "process":
        raise ConfigError(f"{locks.store} ends with this process, so it would keep nobody out. Leave -u away, or sqlite:///…")
    return locks


def where(pool: "Pool") -> str:
    return pool._desk.backend.where


def beacon(locks: "Locks") -> int | None:
    return locks._desk.backend.beacon()


def lease_of(locks: "Locks") -> float:
    return locks._lease


def is_capped(lease: "Lease") -> bool:
    """Whether it is max_hold that ends it, not the want of a renewal."""
    return lease._seat.cap < lease._seat.deadline


def ask(locks: "Locks", name: str, command: Command) -> Reply:
    """One step of the doorman, for leases that no process keeps."""
    return run(locks._desk.ask(name, command)).reply


def tickets_inside(locks: "Locks", name: str) -> Iterator[str]:
    """The whole tickets, which snapshots shorten."""
    record, _ = run(locks._desk.backend.look(name))
    return (entrant.ticket for entrant in record.inside)


def holders(locks: "Locks", pattern: str) -> "list[tuple[Resource, list[str]]]":
    """The names that match and are held, with the whole tickets of those inside."""
    return run(look.holders(locks._desk, check.pattern(pattern)))


def evict_tickets(locks: "Locks", name: str, tickets: list[str], reason: str, at_once: bool) -> tuple[str, ...]:
    """Evict exactly these, whatever has come since they were listed."""
    return run(look.evict_tickets(locks._desk, name, tickets, check.label(reason, "A reason"), at_once))


def choose_ticket(locks: "Locks", ticket: str) -> None:
    """The next acquisition goes by this ticket. Saying the same thing twice is then the same acquisition."""
    locks._desk.ticket = lambda: ticket  # type: ignore[method-assign]


def handle(said: Said) -> str:
    """What --handle says; @FILE: what is in that file, so that `ps` does not show it."""
    text: str = said["handle"]
    if not text.startswith("@"):
        return text
    try:
        with open(text[1:], encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, UnicodeError) as bad:
        why = bad.strerror if isinstance(bad, OSError) else "it is not UTF-8"
        raise ConfigError(f"No handle can be read from {text[1:]!r}: {why}. Name a file that you may read.") from None


def examine(locks: "Locks") -> list[tuple[str, str]]:
    return run(locks._desk.backend.doctor())


def schema(locks: "Locks") -> str:
    return locks._desk.backend.schema()


def span(locks: "Locks") -> str:
    return locks._desk.backend.span


def part(locks: "Locks") -> None:
    """Close, for a process that ends now and holds nothing: without waiting for the disk if the store allows that."""
    abandon = getattr(getattr(locks._desk.backend, "store", None), "abandon", None)
    if abandon is None or locks._desk.seats or locks._desk.debts or not abandon():
        locks.close()


def quietly(locks: "Locks", act: Callable[[], None]) -> None:
    """Do it while no statement is under way. A process stopped inside one would block everybody else's writes."""
    store = getattr(locks._desk.backend, "store", None)
    before, after = getattr(store, "before_fork", None), getattr(store, "after_fork", None)
    paused = before is not None and before()
    try:
        act()
    finally:
        if paused and after is not None:
            after()
