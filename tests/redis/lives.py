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
    """One sort of life: who is there, what they want, how they behave, and how the time goes."""

    capacities: tuple[int, ...]
    weights: tuple[int, ...]
    tickets: int = 5
    moves: int = 40
    come: float = 0.55  # how many of the moves are Enters
    harm: float = 0.04  # evictions and other sizes
    sizes: float = 0.3  # how many of these are other sizes
    deaf: float = 0.25
    back: float = 0.04  # how often the clock goes back
    silence: int = 1000  # how long a line gets until all in it are likely to fall silent
    ticks: tuple[int, ...] = (0, 1, 1000, SECOND // 2, SECOND // 2, SECOND - 1, 2 * SECOND, 2 * SECOND + 1,
                              3 * SECOND, 10 * SECOND, 61 * SECOND)
    leases: tuple[int, ...] = (SECOND // 2, 3 * SECOND, 3 * SECOND, 30 * SECOND, 90 * SECOND)
    blocks: tuple[int, ...] = (0, 1, 33)


SOON = (0, 1, 1000, SECOND // 2, SECOND // 2, SECOND - 1, SECOND, 2 * SECOND)
KINDS = {
    "lock": Kind((ALL,), (ALL,)),
    "quiet lock": Kind((ALL,), (ALL,), tickets=3, come=0.5, harm=0.02, deaf=0.05, back=0.02, ticks=SOON),
    "contended lock": Kind((ALL,), (ALL,), tickets=8, moves=60, harm=0.02, back=0.02, ticks=SOON),
    "long blocks": Kind((ALL,), (ALL,), tickets=6, harm=0, deaf=0, back=0, ticks=SOON, leases=(3 * SECOND,),
                        blocks=(1, 1, 1, 400 * SECOND)),
    "readers and writers": Kind((ALL,), (1, 1, ALL), tickets=6, harm=0.02, ticks=SOON),
    "semaphore": Kind((4,), (1, 1, 2, 4, 5), tickets=7),
    "slots": Kind((3,), (1,), tickets=8, deaf=0.1, ticks=SOON),
    "trouble": Kind((4, 3), (1, 2, 4), tickets=4, harm=0.3, back=0.1),
    "evictions": Kind((2,), (1, 2), tickets=6, harm=0.3, sizes=0, deaf=0.1, ticks=SOON, leases=(SECOND, 3 * SECOND)),
    "sizes": Kind((0, 0, 4), (1, 2, 3, 4), tickets=6, harm=0.3, sizes=0.9, ticks=SOON, leases=(3 * SECOND,)),
    "anything": Kind((ALL, 4, 3, 0), (0, 1, 2, 4, ALL), harm=0.1, leases=(1, SECOND, 90 * SECOND),
                     blocks=(0, 1, 33, 1000 * SECOND)),
    "crowd": Kind((ALL,), (ALL, ALL, 1), tickets=60, moves=80, come=0.95, harm=0.002, deaf=0.1, back=0.002,
                  silence=20, ticks=(0, 1, 1000), leases=(90 * SECOND, 200 * SECOND)),
}  # fmt: skip


def life(chance: Random, kind: Kind) -> list[Move]:
    """Moves of this kind, each drawn with what has happened before in view."""
    tickets = [f"t{i}" for i in range(chance.randint(max(2, kind.tickets // 2), kind.tickets))]
    now = BEGIN + chance.randrange(SECOND)
    record, moves = EMPTY, []
    for _ in range(chance.randint(5, kind.moves)):
        if chance.random() < kind.back:
            now -= chance.choice((1, 5 * SECOND, 1000 * SECOND))
        else:
            silent = len(record.line) > kind.silence and chance.random() < 0.3
            now += 31 * SECOND if silent else chance.choice(kind.ticks)
        ears = sorted({ear_of(ticket) for ticket in tickets})
        deaf = frozenset(chance.sample(ears, round(len(ears) * kind.deaf * 2 * chance.random())))
        command = some_command(chance, kind, tickets, record)
        short = isinstance(command, Enter | Leave) and can_be_short(command) and chance.random() < 0.7
        moves.append(Move(command, now, deaf, short))
        record = pure(record, moves[-1]).after
        bury_and_replace(chance, tickets, record)
    return moves


def bury_and_replace(chance: Random, tickets: list[str], record: Record) -> None:
    """Whoever was buried rarely comes back; somebody else comes."""
    buried = {grave.ticket for grave in record.graves}
    for i, ticket in enumerate(tickets):
        if ticket in buried and chance.random() < 0.5:
            tickets[i] = f"t{int(ticket[1:]) + len(tickets)}"


def ear_of(ticket: str) -> str:
    """Some have no process behind them, some share one."""
    number = int(ticket[1:]) % 60
    return "" if number % 5 == 4 else f"e{number // 2 if number > 3 else number}"


def can_be_short(command: Enter | Leave) -> bool:
    """A client does not even try the short cut with others."""
    if isinstance(command, Leave):
        return not command.bury and command.lease is None
    return 1 <= command.weight <= command.capacity


def some_command(chance: Random, kind: Kind, tickets: list[str], record: Record) -> Command:
    ticket = chance.choice(tickets)
    if chance.random() < kind.come:
        return Enter(
            ticket, chance.choice(kind.capacities), chance.choice(kind.weights), chance.choice(kind.leases),
            chance.random() < 0.8, chance.random() < 0.85, chance.choice(kind.blocks), ear_of(ticket), "o" + ticket,
            chance.choice(("", "n", "a note of ünïcode")),
        )  # fmt: skip
    if record.inside and chance.random() < 0.6:
        ticket = chance.choice(record.inside).ticket
    fences = [None, *[fence for e in record.inside for fence in (e.fence, e.fence + 1, e.fence + e.block - 1)]]
    if chance.random() < kind.harm:
        if chance.random() < kind.sizes:
            return Resize(chance.choice((1, 2, 3, 4, 8, ALL, None)))
        return Evict(chance.choice((None, ticket)), "ops", "why not", chance.random() < 0.5)
    what = chance.randrange(10)
    if what < 5:
        short = chance.choice((None, None, None, *kind.leases))
        return Leave(ticket, chance.random() < 0.2, chance.choice(fences), short)
    if what < 8:
        longer = chance.choice((None, None, *kind.leases))
        return Renew(ticket, chance.choice(fences), chance.choice((None, None, 1, 2)), longer)
    return Keep(ticket, chance.choice(fences), chance.choice(kind.leases), chance.random() < 0.5)
