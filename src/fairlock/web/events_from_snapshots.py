"""What happened between two snapshots, as events.

A snapshot has the time that each holder has held and each waiter has waited, so the beginning of a hold or a wait is
exact even if no snapshot was taken then. Its end is known to one interval; a lock that has another holder now was free
when that one acquired it, at the latest. A hold that began and ended between two snapshots is not seen at all: only
`on_event=fairlock.web.journal(FILE)` records it.

A holder that is gone has released the lock, or was evicted by an operator: the audit lines of the name show which.
They are read for the few that have held it longest, because operators evict those, and a busy store has many others.
On SQLite a process that is killed frees its locks at once; if another one has taken them by the next snapshot, this is
seen as a release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..engine.snapshots import Holder, Resource, Snapshot, Waiter

if TYPE_CHECKING:
    from .. import AuditLine


class Happened(NamedTuple):
    """One line of the journal. Times are seconds; `at` is the wall clock."""

    at: float
    kind: str
    """A kind of fairlock.Event, or evicting: no more renewals, and free when the lease ends."""
    name: str = ""
    owner: str = ""
    note: str = ""
    ticket: str = ""
    fence: int = 0
    seconds: float | None = None
    """How long the lock was held (released, lost, evicted) or waited for (acquired, given_up); None: not known."""
    detail: str = ""


Evicted = Mapping[tuple[str, str], str]
"""The operator and the reason, for the name and the ticket of holders that were evicted."""


def find_gone(before: Snapshot, after: Snapshot, most: int) -> list[tuple[str, str]]:
    """Return the name and the ticket of holders of locks that are gone: those that have held it longest, at most that
    many."""
    now = {one.name: {each.ticket for each in (*one.holders, *one.expired)} for one in after.resources}
    gone = [
        (-each.held_for, one.name, each.ticket)
        for one in before.resources
        if one.kind != "pool"
        for each in one.holders
        if each.owner and each.ticket not in now.get(one.name, ())
    ]
    return [(name, ticket) for _, name, ticket in sorted(gone)[:most]]


def find_eviction(audit: Iterable[AuditLine], ticket: str) -> str:
    """Return the operator and the reason, if the holder with this ticket was evicted; else ''."""
    lines = (line for line in audit if line.kind == "evicted" and line.ticket == ticket)
    return next((f"by {line.by}: {line.reason}" for line in lines), "")


def find_changes(
    before: Snapshot | None, after: Snapshot, wall: float, evicted: Evicted | None = None
) -> list[Happened]:
    """Return what happened, oldest first. Without `before`: what began and still lasts."""
    evicted = evicted or {}
    earlier = {resource.name: resource for resource in before.resources} if before else {}
    passed = after.now - before.now if before else 0.0
    found: list[Happened] = []
    for resource in after.resources:
        found += compare(earlier.pop(resource.name, empty(resource)), resource, passed, wall, evicted)
    for resource in earlier.values():
        found += compare(resource, empty(resource), passed, wall, evicted)
    return sorted(found, key=lambda one: (one.at, one.kind == "acquired"))  # at a hand-over it is released first


def empty(resource: Resource) -> Resource:
    return Resource(resource.name, "lock", 0, 0, (), ())


def compare(before: Resource, after: Resource, passed: float, wall: float, evicted: Evicted) -> list[Happened]:
    if "damaged" in (before.kind, after.kind):
        return []
    found: list[Happened] = []

    def add(at: float, kind: str, one: Holder | Waiter, seconds: float | None = None, detail: str = "") -> None:
        fence = one.fence if isinstance(one, Holder) else 0
        found.append(Happened(at, kind, after.name, one.owner, one.note, one.ticket, fence, seconds, detail))

    held_before, held_now = by_ticket(before.holders), by_ticket(after.holders)
    expired_before, expired_now = by_ticket(before.expired), by_ticket(after.expired)
    waited_before = {one.ticket: one for one in before.queue}
    waiting_now = {one.ticket: one for one in after.queue}
    for ticket, waiter in waiting_now.items():
        if ticket not in waited_before and ticket not in held_before:
            add(wall - waiter.waited, "waiting", waiter)
    for ticket, one in held_now.items():
        if ticket not in held_before and ticket not in expired_before:
            was = waited_before.get(ticket)
            waited = max(was.waited + passed - one.held_for, 0.0) if was else None
            add(wall - one.held_for, "acquired", one, waited)
    for ticket, one in expired_now.items():
        if ticket not in held_before and ticket not in expired_before and one.expires_in > -passed:
            add(wall - one.held_for, "acquired", one)
            add(wall + one.expires_in, "lost", one, one.held_for + one.expires_in, ENDED)
    next_held = (one.held_for for ticket, one in held_now.items() if ticket not in held_before)
    free_since = max(next_held, default=0.0) if after.kind == "lock" else 0.0
    for ticket, one in held_before.items():
        if ticket in expired_now:
            late = expired_now[ticket]
            why = ENDED if one.expires_in <= passed else DIED
            add(wall + late.expires_in, "lost", one, late.held_for + late.expires_in, why)
        elif ticket not in held_now:
            lost = one.expires_in <= passed
            since = min(one.expires_in, passed) if lost else max(passed - free_since, 0.0)
            kind, why = ("lost", ENDED) if lost else ("released", "")
            if (after.name, ticket) in evicted:
                kind, why = "evicted", evicted[after.name, ticket]
            add(wall - passed + since, kind, one, one.held_for + since, why)
    for ticket, waiter in waited_before.items():
        if not (ticket in waiting_now or ticket in held_now or ticket in expired_now):
            add(wall, "given_up", waiter, waiter.waited + passed)
    return found


ENDED = "the lease ended without a renewal"
DIED = "its process ended without a release"


def by_ticket(holders: tuple[Holder, ...]) -> dict[str, Holder]:
    """Return the holders by ticket, without those that are only kept closed."""
    return {one.ticket: one for one in holders if one.owner}
