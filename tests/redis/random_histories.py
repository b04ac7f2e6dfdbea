"""Histories of a resource: long sequences of moves of every kind, from any source of chance.

A seed gives the same history forever; Hypothesis, as the source, can make a history that shows a mistake shorter.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from fairlock.rules.locks import (
    ASKED,
    EMPTY,
    EXCLUSIVE,
    Acquire,
    Ask,
    Command,
    Detach,
    Evict,
    LockState,
    Release,
    Renew,
    Resize,
)
from tests.redis.differential import Move, pure

SECOND = 1_000_000
BEGIN = 4_100_000_000 * SECOND  # far ahead of every real clock, so that no real server lets its keys expire


class Kind(NamedTuple):
    """One sort of history: who is there, what they want, how they behave, and how the time goes."""

    capacities: tuple[int, ...]
    weights: tuple[int, ...]
    tickets: int = 5
    moves: int = 40
    come: float = 0.55  # how many of the moves are Acquires
    harm: float = 0.04  # evictions and other sizes
    sizes: float = 0.3  # how many of these are other sizes
    asks: float = 0.0  # how many of the rest are requests to release
    unreachable: float = 0.25
    back: float = 0.04  # how often the clock goes back
    silence: int = 1000  # the length of a queue from which on all of it is likely to fall silent
    ticks: tuple[int, ...] = (
        0,
        1,
        1000,
        SECOND // 2,
        SECOND // 2,
        SECOND - 1,
        2 * SECOND,
        2 * SECOND + 1,
        3 * SECOND,
        10 * SECOND,
        61 * SECOND,
    )
    leases: tuple[int, ...] = (SECOND // 2, 3 * SECOND, 3 * SECOND, 30 * SECOND, 90 * SECOND)
    blocks: tuple[int, ...] = (0, 1, 33)


SOON = (0, 1, 1000, SECOND // 2, SECOND // 2, SECOND - 1, SECOND, 2 * SECOND)
KINDS = {
    "lock": Kind((EXCLUSIVE,), (EXCLUSIVE,)),
    "quiet lock": Kind((EXCLUSIVE,), (EXCLUSIVE,), tickets=3, come=0.5, harm=0.02, unreachable=0.05, back=0.02,
                       ticks=SOON),
    "contended lock": Kind((EXCLUSIVE,), (EXCLUSIVE,), tickets=8, moves=60, harm=0.02, back=0.02, ticks=SOON),
    "long blocks": Kind((EXCLUSIVE,), (EXCLUSIVE,), tickets=6, harm=0, unreachable=0, back=0, ticks=SOON,
                        leases=(3 * SECOND,),
                        blocks=(1, 1, 1, 400 * SECOND)),
    "patient lock": Kind((EXCLUSIVE,), (EXCLUSIVE,), tickets=5, moves=400, come=0.6, harm=0, unreachable=0, back=0,
                         ticks=(SECOND // 2, SECOND, 2 * SECOND), leases=(3 * SECOND, 5 * SECOND)),
    "sizes of a lock": Kind((EXCLUSIVE, 0), (EXCLUSIVE,), harm=0.2, sizes=0.9, unreachable=0, back=0, ticks=SOON,
                            leases=(3 * SECOND,)),
    "readers and writers": Kind((EXCLUSIVE,), (1, 1, EXCLUSIVE), tickets=6, harm=0.02, ticks=SOON),
    "semaphore": Kind((4,), (1, 1, 2, 4, 5), tickets=7),
    "slots": Kind((3,), (1,), tickets=8, unreachable=0.1, ticks=SOON),
    "trouble": Kind((4, 3), (1, 2, 4), tickets=4, harm=0.3, back=0.1),
    "evictions": Kind((2,), (1, 2), tickets=6, harm=0.3, sizes=0, unreachable=0.1, ticks=SOON,
                      leases=(SECOND, 3 * SECOND)),
    "requests": Kind((2,), (1, 2), tickets=5, moves=120, come=0.4, harm=0.35, sizes=0, asks=0.75, unreachable=0.1,
                     ticks=SOON, leases=(3 * SECOND, 30 * SECOND)),
    "requests for a lock": Kind((EXCLUSIVE,), (EXCLUSIVE,), tickets=4, moves=120, come=0.4, harm=0.3, sizes=0, asks=0.8,
                                unreachable=0.1, ticks=SOON),
    "sizes": Kind((0, 0, 4), (1, 2, 3, 4), tickets=6, harm=0.3, sizes=0.9, ticks=SOON, leases=(3 * SECOND,)),
    "anything": Kind((EXCLUSIVE, 4, 3, 0), (0, 1, 2, 4, EXCLUSIVE), harm=0.1, leases=(1, SECOND, 90 * SECOND),
                     blocks=(0, 1, 33, 1000 * SECOND)),
    "crowd": Kind((EXCLUSIVE,), (EXCLUSIVE, EXCLUSIVE, 1), tickets=60, moves=80, come=0.95, harm=0.002,
                  unreachable=0.1, back=0.002,
                  silence=20, ticks=(0, 1, 1000), leases=(90 * SECOND, 200 * SECOND)),
}  # fmt: skip


def history(rng: Random, kind: Kind) -> list[Move]:
    """Moves of this kind, each drawn with what has happened before in view."""
    tickets = [f"t{i}" for i in range(rng.randint(max(2, kind.tickets // 2), kind.tickets))]
    now = BEGIN + rng.randrange(SECOND)
    record, moves = EMPTY, []
    for _ in range(rng.randint(5, kind.moves)):
        if rng.random() < kind.back:
            now -= rng.choice((1, 5 * SECOND, 1000 * SECOND))
        else:
            silent = len(record.queue) > kind.silence and rng.random() < 0.3
            now += 31 * SECOND if silent else rng.choice(kind.ticks)
        listeners = sorted({listener_of(ticket) for ticket in tickets})
        count = round(len(listeners) * kind.unreachable * 2 * rng.random())
        unreachable = frozenset(rng.sample(listeners, count))
        command = some_command(rng, kind, tickets, record)
        short = isinstance(command, Acquire | Release) and can_be_short(command) and rng.random() < 0.7
        moves.append(Move(command, now, unreachable, short))
        record = pure(record, moves[-1]).after
        replace_evicted(rng, tickets, record)
    return moves


def replace_evicted(rng: Random, tickets: list[str], record: LockState) -> None:
    """Replace some tickets that have a tombstone: they rarely come back, others do."""
    with_tombstone = {tombstone.ticket for tombstone in record.tombstones if tombstone.why.kind != ASKED}
    for i, ticket in enumerate(tickets):
        if ticket in with_tombstone and rng.random() < 0.5:
            tickets[i] = f"t{int(ticket[1:]) + len(tickets)}"


def listener_of(ticket: str) -> str:
    """Some have no process behind them, some share one."""
    number = int(ticket[1:]) % 60
    return "" if number % 5 == 4 else f"e{number // 2 if number > 3 else number}"


def can_be_short(command: Acquire | Release) -> bool:
    """A client does not even try the short cut with others."""
    if isinstance(command, Release):
        return not command.leave_tombstone and command.lease is None
    return 1 <= command.weight <= command.capacity


def some_command(rng: Random, kind: Kind, tickets: list[str], record: LockState) -> Command:
    ticket = rng.choice(tickets)
    if rng.random() < kind.come:
        return Acquire(
            ticket, rng.choice(kind.capacities), rng.choice(kind.weights), rng.choice(kind.leases),
            rng.random() < 0.8, rng.random() < 0.85, rng.choice(kind.blocks), listener_of(ticket),
            "o" + ticket, rng.choice(("", "n", "a note of ünïcode")),
        )  # fmt: skip
    if record.holders and rng.random() < 0.6:
        ticket = rng.choice(record.holders).ticket
    fences: list[int | None] = [None]
    for e in record.holders:
        fences += [e.fence - 1, e.fence, e.fence, e.fence + e.block - 1, e.fence + e.block]
    if rng.random() < kind.harm:
        if rng.random() < kind.sizes:
            return Resize(rng.choice((1, 2, 3, 4, 8, EXCLUSIVE, None)))
        if kind.asks and rng.random() < kind.asks:
            return Ask(ticket, "ops", rng.choice(("please", "now", "ünïcode")))
        return Evict(rng.choice((None, ticket)), "ops", "why not", rng.random() < 0.5)
    what = rng.randrange(10)
    if what < 5:
        short = rng.choice((None, None, None, *kind.leases))
        return Release(ticket, rng.random() < 0.2, rng.choice(fences), short)
    if what < 8:
        longer = rng.choice((None, None, *kind.leases))
        return Renew(ticket, rng.choice(fences), rng.choice((None, None, 1, 2)), longer)
    return Detach(ticket, rng.choice(fences), rng.choice(kind.leases), rng.random() < 0.5)
