"""Does a living waiter that polls get in, in the end? Every schedule of a few clients that keep to the rules.

Here the clients are part of the state. A waiter polls at the latest when `Queued` says, a wake-up may reach it at once
or never; a holder releases after a while; some clients may crash, at any time and silently; a store may take any client
for unreachable. The schedule is as bad as possible. Then a waiter starves if there is a circle of states in which time
passes and it still waits; and if there is none, the longest way through these states is the longest wait.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from fairlock.rules.locks import EMPTY, EXCLUSIVE, Acquire, Command, Granted, LockState, Queued, Release
from fairlock.rules.locks import apply as true_apply
from fairlock.rules.locks.step import sleep_span
from tests.lock_rules.explore import NOBODY, state
from tests.lock_rules.resource import SECOND, START, Apply

OUT, WAITS, HOLDS, CRASHED = "out", "waits", "holds", "crashed"


class Crowd(NamedTuple):
    """The clients that come, and what can happen to them. `x` is the one whose wait is measured."""

    capacity: int = EXCLUSIVE
    weights: dict[str, int] = {"x": EXCLUSIVE, "a": EXCLUSIVE, "b": EXCLUSIVE}
    lease: float = 3
    leases: dict[str, float] = {}  # those with a lease of their own
    hold: int = 2  # a holder leaves after this many ticks at most
    tick: float = 1  # seconds
    mortal: frozenset[str] = NOBODY
    unfair: frozenset[str] = NOBODY
    unreachable: tuple[frozenset[str], ...] = (NOBODY,)


class Node(NamedTuple):
    record: LockState
    now: int
    doing: tuple[tuple[str, int], ...]  # for every ticket what it does, and how many ticks it may go on with that


class Starved(AssertionError):
    pass


class Dropped(AssertionError):
    pass


def longest_wait(crowd: Crowd, apply: Apply = true_apply, limit: int = 100_000) -> tuple[float, int]:
    """The longest that `x` can wait, in seconds, and how many states were looked at."""
    tickets = list(crowd.weights)
    nodes: list[Node] = []
    number: dict[Any, int] = {}
    ways: list[list[tuple[int, int]]] = []  # from each node: (to, ticks)

    def visit(node: Node) -> int:
        key = (state(node.record._replace(seen=node.now)), node.doing)
        if key not in number:
            if len(nodes) >= limit:
                raise AssertionError(f"more than {limit} states")
            number[key] = len(nodes)
            nodes.append(node)
            ways.append([])
        return number[key]

    visit(Node(EMPTY, START, ((OUT, 0),) * len(tickets)))
    for at, node in enumerate(nodes):  # grows while it is walked
        for to, ticks in _moves(crowd, apply, tickets, node):
            ways[at].append((visit(to), ticks))
    x = tickets.index("x")
    waiting = [node.doing[x][0] == WAITS for node in nodes]
    return _longest(ways, waiting, nodes) * crowd.tick, len(nodes)


def _moves(crowd: Crowd, apply: Apply, tickets: list[str], node: Node) -> Iterator[tuple[Node, int]]:
    if all(left > 0 or what in (OUT, CRASHED) for what, left in node.doing):
        later = tuple((what, left - 1 if what in (WAITS, HOLDS) else 0) for what, left in node.doing)
        yield Node(node.record, node.now + round(crowd.tick * SECOND), later), 1
    for i, ticket in enumerate(tickets):
        what, _ = node.doing[i]
        if what == CRASHED:
            continue
        if ticket in crowd.mortal and what != OUT:
            yield Node(node.record, node.now, _with(node.doing, i, CRASHED, 0)), 0
        command: Command = Release(ticket)
        if what != HOLDS:
            command = Acquire(
                ticket, crowd.capacity, crowd.weights[ticket],
                round(crowd.leases.get(ticket, crowd.lease) * SECOND), listener="listener",
                fair=ticket not in crowd.unfair,
            )  # fmt: skip
        for unreachable in crowd.unreachable:
            record, reply, _ = apply(node.record, command, node.now, unreachable)
            if isinstance(reply, Granted):
                doing = _with(node.doing, i, HOLDS, crowd.hold)
            elif isinstance(reply, Queued):
                sleep = min(reply.retry_in, sleep_span(reply.ahead))
                doing = _with(node.doing, i, WAITS, math.ceil(sleep / SECOND / crowd.tick))
            else:
                doing = _with(node.doing, i, OUT, 0)
            there = {e.ticket for e in (*record.holders, *record.queue)}
            for other, (doing_now, _) in zip(tickets, doing, strict=True):
                if doing_now == WAITS and other not in there:
                    raise Dropped(f"{other} lives and polls in time, and is dropped by {command} in {node}")
            yield Node(record, node.now, doing), 0


def _with(doing: tuple[tuple[str, int], ...], i: int, what: str, left: int) -> tuple[tuple[str, int], ...]:
    return (*doing[:i], (what, left), *doing[i + 1 :])


def _longest(ways: list[list[tuple[int, int]]], waiting: list[bool], nodes: list[Node]) -> int:
    """The most ticks on any way through waiting nodes, circles that take no time being one place."""
    part = _circles(ways, waiting)
    best: dict[int, int] = {}
    for at in sorted((n for n in range(len(ways)) if waiting[n]), key=lambda n: part[n]):  # ends of ways first
        longest = best.get(part[at], 0)
        for to, ticks in ways[at]:
            if waiting[to]:
                if part[to] == part[at]:
                    if ticks:
                        raise Starved(f"x waits forever, for instance in {nodes[at]}")
                else:
                    longest = max(longest, ticks + best[part[to]])
        best[part[at]] = longest
    return max(best.values(), default=0)


def _circles(ways: list[list[tuple[int, int]]], waiting: list[bool]) -> list[int]:
    """Tarjan's strongly connected parts of the waiting nodes, numbered so that every way leads to a lower number."""
    part = [-1] * len(ways)
    index = [-1] * len(ways)
    low = [0] * len(ways)
    path: list[int] = []
    count = parts = 0
    for root in range(len(ways)):
        if not waiting[root] or index[root] >= 0:
            continue
        work = [(root, iter(ways[root]))]
        while work:
            at, rest = work[-1]
            if index[at] < 0:
                index[at] = low[at] = count
                count += 1
                path.append(at)
            for to, _ in rest:
                if not waiting[to]:
                    continue
                if index[to] < 0:
                    work.append((to, iter(ways[to])))
                    break
                if part[to] < 0:
                    low[at] = min(low[at], index[to])
            else:
                work.pop()
                if low[at] == index[at]:
                    while True:
                        member = path.pop()
                        part[member] = parts
                        if member == at:
                            break
                    parts += 1
                if work:
                    below = work[-1][0]
                    low[below] = min(low[below], low[at])
    return part
