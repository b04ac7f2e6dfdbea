"""Deadlocks: rings of holders that wait for each other, found in one snapshot. Pure: no I/O, no clock.

Each wait leads to what blocks it, and that leads to the wait of the same thread or task, if there is one. Where this
comes back to its beginning, none of them can go on.

A ring is *certain* if each step is between entries of the same known thread or task, and all of its locks are locks or
readers-writer locks. It is *possible* if a thread is not known (threads of one process share an owner, and a lock that
was passed on between them has another holder than the store knows), or if a semaphore is part of it: another of its
holders may release.

One snapshot may show a ring that never existed: a store with many nodes is not read in one instant. So two must
agree: `in_both`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..rules.locks import EXCLUSIVE
from .snapshots import Resource, Snapshot, Waiter, duration


class RingMember(NamedTuple):
    """One member of a ring: it holds one name and waits for the next one."""

    owner: str
    thread: str
    """A number for its thread or task; '' if it is not known."""
    holds: str
    """What the member before it waits for; '' if it only waits before that member in the same queue."""
    waits_for: str
    waited: float
    """Seconds."""
    held_by: str
    """The ticket of its hold, shortened."""
    ticket: str
    """The ticket of its wait, shortened."""


class Ring(NamedTuple):
    """Holders that wait for each other: each one waits for what the next one holds, the last one for the first."""

    members: tuple[RingMember, ...]
    certain: bool
    """False: a possible ring, because a thread is not known or a semaphore is part of it."""

    @property
    def youngest(self) -> RingMember:
        """The member that closed the ring: it has waited for the shortest time."""
        return min(self.members, key=lambda one: one.waited)

    @property
    def names(self) -> frozenset[str]:
        """The names that are part of it."""
        return frozenset(one.waits_for for one in self.members)

    @property
    def tickets(self) -> frozenset[str]:
        """The waits that are part of it: two snapshots that have the same ones have the same ring."""
        return frozenset(one.ticket for one in self.members)

    def __str__(self) -> str:
        return describe(self)


Key = tuple[str, str]  # of a wait: its name and its ticket


class _Wait(NamedTuple):
    resource: Resource
    waiter: Waiter
    behind: Waiter | None
    """An earlier waiter of the same queue that blocks it although no holder does."""

    @property
    def key(self) -> Key:
        return self.resource.name, self.waiter.ticket


class _Step(NamedTuple):
    """From one wait to the wait of what blocks it."""

    held: str  # what the blocking one holds; '' = it is only before it in the queue
    ticket: str
    to: Key
    certain: bool


def find_rings(snapshot: Snapshot) -> tuple[Ring, ...]:
    """Return the rings of this snapshot, each once, the certain ones first. Each is as short as possible."""
    waits = {wait.key: wait for resource in snapshot.resources for wait in _waits(resource)}
    by_owner: dict[str, list[_Wait]] = {}
    for wait in waits.values():
        by_owner.setdefault(wait.waiter.owner, []).append(wait)
    steps = _without_ends({key: tuple(_steps(wait, by_owner)) for key, wait in waits.items()})
    found: list[Ring] = []
    known: set[str] = set()
    for sure in (True, False):
        for key in steps:
            path = _shortest(key, steps, sure) if waits[key].waiter.ticket not in known else None
            if path:
                members = tuple(_member(waits[step.to], step) for step in path)
                found.append(Ring(members, all(step.certain for step in path)))
                known |= found[-1].tickets
    return tuple(found)


def in_both(first: Iterable[Ring], second: Iterable[Ring]) -> tuple[Ring, ...]:
    """Return the rings of the second look that the first look has found, too."""
    before = {ring.tickets for ring in first}
    return tuple(ring for ring in second if ring.tickets in before)


def describe(ring: Ring) -> str:
    """Return the ring as a sentence: deadlock: a holds 'y' and waits for 'x' since 3 s; b holds 'x' and …"""
    youngest = ring.youngest
    parts = []
    for one in ring.members:
        holds = f"holds {one.holds!r} and " if one.holds else ""
        mark = " (youngest)" if one is youngest and len(ring.members) > 1 else ""
        parts.append(f"{label(one)} {holds}waits for {one.waits_for!r} since {duration(one.waited)}{mark}")
    return f"{'deadlock' if ring.certain else 'possible deadlock'}: {'; '.join(parts)}"


def label(one: RingMember) -> str:
    return f"{one.owner} thread {one.thread}" if one.thread else one.owner


def _waits(resource: Resource) -> Iterable[_Wait]:
    is_lock = resource.capacity == EXCLUSIVE
    before: Waiter | None = None  # a reader waits behind the last writer; in the queue of a semaphore each one waits
    for waiter in resource.queue:
        yield _Wait(resource, waiter, before if not is_lock or waiter.weight != EXCLUSIVE else None)
        if not is_lock or waiter.weight == EXCLUSIVE:
            before = waiter


def _steps(wait: _Wait, by_owner: dict[str, list[_Wait]]) -> Iterable[_Step]:
    resource, waiter, behind = wait
    is_lock = resource.capacity == EXCLUSIVE
    for holder in resource.holders:
        if is_lock and EXCLUSIVE not in (holder.weight, waiter.weight):
            continue  # two readers
        for other in by_owner.get(holder.owner, ()) if holder.owner else ():
            known = bool(holder.thread and other.waiter.thread)
            if known and holder.thread != other.waiter.thread:
                continue  # another thread of the same owner
            if not known and other is wait:
                continue  # two threads of one owner that want the same lock
            yield _Step(resource.name, holder.ticket, other.key, known and is_lock)
    if behind is not None:
        yield _Step("", "", (resource.name, behind.ticket), is_lock)


def _without_ends(steps: dict[Key, tuple[_Step, ...]]) -> dict[Key, tuple[_Step, ...]]:
    """Leave out the waits that are in no ring, however many: those that lead to a holder that does not wait, and those
    that nothing leads to."""
    onwards = {key: [step.to for step in each] for key, each in steps.items()}
    left = _trimmed(_reversed(_trimmed(_reversed(onwards))))
    return {key: tuple(step for step in steps[key] if step.to in left) for key in left}


def _reversed(edges: dict[Key, list[Key]]) -> dict[Key, list[Key]]:
    back: dict[Key, list[Key]] = {key: [] for key in edges}
    for key, others in edges.items():
        for other in others:
            back[other].append(key)
    return back


def _trimmed(edges: dict[Key, list[Key]]) -> dict[Key, list[Key]]:
    """Remove what no edge leads to, until there is no such any more."""
    number = dict.fromkeys(edges, 0)
    for others in edges.values():
        for other in others:
            number[other] += 1
    ends = [key for key, many in number.items() if not many]
    while ends:
        for other in edges[ends.pop()]:
            number[other] -= 1
            if not number[other]:
                ends.append(other)
    return {key: [other for other in others if number[other]] for key, others in edges.items() if number[key]}


def _shortest(start: Key, steps: dict[Key, tuple[_Step, ...]], sure: bool) -> list[_Step]:
    """Return the steps of the shortest ring through this wait; none: there is no ring. sure: only certain steps."""
    came_by: dict[Key, tuple[Key, _Step]] = {}
    edge = [start]
    while edge and start not in came_by:
        further = []
        for key in edge:
            for step in steps[key]:
                if (step.certain or not sure) and step.to not in came_by:
                    came_by[step.to] = key, step
                    further.append(step.to)
        edge = further
    path: list[_Step] = []
    here = start
    while here in came_by and (not path or here != start):
        here, step = came_by[here]
        path.append(step)
    return path[::-1] if start in came_by else []


def _member(wait: _Wait, step: _Step) -> RingMember:
    waiter = wait.waiter
    return RingMember(
        waiter.owner, waiter.thread, step.held, wait.resource.name, waiter.waited, step.ticket, waiter.ticket
    )
