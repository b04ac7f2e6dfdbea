"""Lives of a resource: long sequences of moves of every kind, from any source of chance.

A seed gives the same life for ever; Hypothesis, as the source, can make a life that shows a mistake shorter.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from holdfast.doorman import ALL, EMPTY, Command, Enter, Evict, Keep, Leave, Record, Renew, Resize
from tests.redis.both import Move, pure

SECOND = 1_000_000
BEGIN = 4_100_000_000 * SECOND  # far ahead of every real clock, so that no real server lets its keys expire


class Kind(NamedTuple):
    """One sort of life: who is there, what they want, and how the time goes."""

    capacities: tuple[int, ...]
    weights: tuple[int, ...]
    tickets: int = 5
    leases: tuple[int, ...] = (SECOND // 2, 3 * SECOND, 3 * SECOND, 30 * SECOND, 90 * SECOND)
    ticks: tuple[int, ...] = (0, 1, 1000, SECOND // 2, SECOND // 2, SECOND - 1, 2 * SECOND, 2 * SECOND + 1,
                              3 * SECOND, 10 * SECOND, 61 * SECOND)
    moves: int = 40
    deaf: float = 0.25
    come: int = 10
    back: float = 0.04


KINDS = {
    "lock": Kind((ALL,), (ALL,)),
    "readers and writers": Kind((ALL,), (1, 1, ALL)),
    "semaphore": Kind((4,), (1, 1, 2, 4, 5), tickets=7),
    "slots": Kind((3,), (1,), tickets=8, deaf=0.1, ticks=(0, 1, 1000, SECOND // 2, SECOND - 1, 2 * SECOND)),
    "everything": Kind((ALL, 4, 3, 0), (1, 2, 4, ALL, 0)),
    "crowd": Kind((ALL, 2), (1, 2, ALL), tickets=40, moves=70, come=40, back=0.01, deaf=0.1,
                  ticks=(0, 0, 0, 0, 1, 1, 1000, 1000, SECOND // 10, SECOND, 31 * SECOND)),
    "quiet": Kind((ALL,), (ALL,), tickets=3, deaf=0.05, ticks=(0, 1, 1000, SECOND // 2, SECOND)),
}  # fmt: skip


def life(chance: Random, kind: Kind) -> list[Move]:
    """Moves of this kind, each drawn with what has happened before in view."""
    tickets = [f"t{i}" for i in range(chance.randint(2, kind.tickets))]
    now = BEGIN + chance.randrange(SECOND)
    record, moves = EMPTY, []
    for _ in range(chance.randint(5, kind.moves)):
        if chance.random() < kind.back:
            now -= chance.choice((1, 5 * SECOND, 1000 * SECOND))
        else:
            now += chance.choice(kind.ticks)
        ears = sorted({ear_of(ticket) for ticket in tickets})
        deaf = frozenset(ear for ear in ears if chance.random() < kind.deaf)
        command = some_command(chance, kind, tickets, record)
        short = isinstance(command, Enter | Leave) and can_be_short(command) and chance.random() < 0.7
        moves.append(Move(command, now, deaf, short))
        record = pure(record, moves[-1]).after
    return moves


def ear_of(ticket: str) -> str:
    """Some have no process behind them, some share one."""
    number = int(ticket[1:])
    return "" if number % 5 == 4 else f"e{number // 2 if number > 3 else number}"


def can_be_short(command: Enter | Leave) -> bool:
    """A client does not even try the short cut with others."""
    if isinstance(command, Leave):
        return not command.bury
    return 1 <= command.weight <= command.capacity


def some_command(chance: Random, kind: Kind, tickets: list[str], record: Record) -> Command:
    ticket = chance.choice(tickets)
    fences = [None, *[fence for e in record.inside for fence in {e.fence, e.fence + 1, e.fence + e.block - 1}]]
    what = chance.randrange(kind.come + 10)
    if what < kind.come:
        return Enter(
            ticket, chance.choice(kind.capacities), chance.choice(kind.weights), chance.choice(kind.leases),
            chance.random() < 0.8, chance.random() < 0.85, chance.choice((0, 1, 33)), ear_of(ticket), "o" + ticket,
            chance.choice(("", "n", "a note of ünïcode")),
        )  # fmt: skip
    if record.inside and chance.random() < 0.6:
        ticket = chance.choice(record.inside).ticket
    if what < kind.come + 5:
        return Leave(ticket, chance.random() < 0.3, chance.choice(fences))
    if what < kind.come + 7:
        return Renew(ticket, chance.choice(fences), chance.choice((None, None, 1, 2)))
    if what < kind.come + 8:
        return Keep(ticket, chance.choice(fences), chance.choice(kind.leases))
    if what < kind.come + 9:
        return Evict(chance.choice((None, ticket)), "ops", "why not", chance.random() < 0.5)
    return Resize(chance.choice((1, 2, 4, 8)))
