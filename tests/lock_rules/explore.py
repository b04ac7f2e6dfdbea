"""Every state that a handful of tickets can reach, breadth first, with all laws checked in every step.

Two records are the same state if they differ only in what no rule looks at: the time of day, how far the counters have
run, names and notes. So the number of states is finite, and "every" means every one. What drives a world is a small set
of time advances around the instants that matter; spans are whole seconds, and so are the advances.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from fairlock.rules.locks import (
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
from fairlock.rules.locks import apply as true_apply
from fairlock.rules.locks.codec import decode, encode
from fairlock.rules.locks.state import FOREVER
from tests.lock_rules.laws import check
from tests.lock_rules.resource import SECOND, START, Apply
from tests.lock_rules.step import MINUTE, Broken, Step

NOBODY: frozenset[str] = frozenset()


class World(NamedTuple):
    """A small world: who may come and what may happen."""

    capacity: int = EXCLUSIVE
    weights: dict[str, int] = {"a": EXCLUSIVE, "b": EXCLUSIVE, "c": EXCLUSIVE}
    lease: int = 3
    leases: dict[str, int] = {}  # those with a lease of their own
    advances: tuple[int, ...] = (0, 1, 2, 3)
    block: int = 1
    no_listener: frozenset[str] = NOBODY  # entries without a process
    unfair: frozenset[str] = NOBODY
    tries: frozenset[str] = NOBODY  # those who do not wait
    renew: frozenset[str] = NOBODY
    extend: dict[str, int] = {}  # those whose lease is made that long
    strangers: bool = False  # Renew and Release with the fence of another
    downgrade: frozenset[str] = NOBODY
    leave_tombstone: frozenset[str] = NOBODY
    evict: frozenset[str] = NOBODY
    at_once: frozenset[str] = NOBODY
    evict_all: bool = False
    ask: frozenset[str] = NOBODY
    keep: dict[str, int] = {}
    resize: tuple[int | None, ...] = ()
    says: tuple[int, ...] = ()  # other numbers that those who come ask for
    unreachable: tuple[frozenset[str], ...] = (NOBODY,)
    dead: tuple[frozenset[str], ...] = (NOBODY,)
    alike: str = ""  # tickets that nothing tells apart: only one of each set of mirror images is walked through
    tombstone: int = MINUTE  # how long the tombstones of these rules last

    def enter(self, ticket: str, **more: Any) -> Acquire:
        return Acquire(
            ticket, self.capacity, self.weights[ticket], self.leases.get(ticket, self.lease) * SECOND,
            wait=ticket not in self.tries, fair=ticket not in self.unfair, block=self.block,
            listener="" if ticket in self.no_listener else "listener", **more,
        )  # fmt: skip

    def commands(self, record: LockState) -> Iterator[Command]:
        """Yield each command that may come now, except those that the rules must treat like another one here."""
        fences = {e.ticket: e.fence for e in record.holders}
        for t in self.weights:
            yield self.enter(t)
            for number in self.says:
                yield self.enter(t)._replace(capacity=number)
            yield Release(t, fence=fences.get(t))
            if t in self.leave_tombstone:
                yield Release(t, leave_tombstone=True)
            if t in self.renew:
                yield Renew(t, fences.get(t))
            if t in self.extend:
                yield Renew(t, fences.get(t), lease=self.extend[t] * SECOND)
                yield Release(t, fence=fences.get(t), lease=self.leases.get(t, self.lease) * SECOND)
            if t in self.downgrade:
                yield Renew(t, fences.get(t), weight=1)
            if self.strangers and t in fences:
                yield Renew(t, fences[t] - 1)
                yield Renew(t, fences[t] + 1)
                yield Release(t, fence=fences[t] - 1)
                yield Release(t, fence=fences[t] + self.block)
            if t in self.keep:
                yield Detach(t, fences.get(t), self.keep[t] * SECOND)
            if t in self.evict:
                yield Evict(t, "ops", "")
            if t in self.at_once:
                yield Evict(t, "ops", "", at_once=True)
            if t in self.ask:
                yield Ask(t, "ops", "please")
        if self.evict_all:
            yield Evict(None, "ops", "")
            yield Evict(None, "ops", "", at_once=True)
        for capacity in self.resize:
            yield Resize(capacity)


def state(r: LockState, alike: str = "") -> tuple[Any, ...]:
    """Return a key that two records share if the rules can't distinguish them."""
    now = r.seen
    if alike:
        names = iter(alike)
        seen = [e.ticket for e in (*r.holders, *r.queue)] + [
            g.ticket for g in sorted(r.tombstones, key=lambda g: g[1:])
        ]
        name = {t: next(names) if t in alike else t for t in dict.fromkeys(seen)}
        r = r._replace(
            holders=tuple([e._replace(ticket=name[e.ticket]) for e in r.holders]),
            queue=tuple([e._replace(ticket=name[e.ticket]) for e in r.queue]),
            tombstones=tuple([g._replace(ticket=name[g.ticket]) for g in r.tombstones]),
        )
    ahead = r.fence - now
    return (
        r.capacity,
        r.fixed,
        0 if ahead < 0 else 1 if ahead < SECOND else 2,  # the next fence: the clock, or the counter, or for long
        tuple(
            (
                e.ticket,
                e.weight,
                e.lease,
                e.block,
                e.listener,
                e.confirmed,
                max(e.expires - now, 0),
                0 if e.confirmed else max(e.since + e.poll_ttl - now, 0),
            )
            for e in r.holders
        ),
        tuple((e.ticket, e.weight, e.block, max(e.expires - now, 0), e.poll_ttl, e.passed) for e in r.queue),
        tuple(
            sorted(
                (g.ticket, g.until - now if g.until < FOREVER else FOREVER, g.span, g.why.kind) for g in r.tombstones
            )
        ),
    )


class Explored(NamedTuple):
    states: int
    steps: int
    replies: dict[str, int]  # how often each kind of reply was given


class TooMany(AssertionError):
    """A world is larger than somebody thought."""


def explore(
    world: World, apply: Apply = true_apply, limit: int = 1_000_000, look: Callable[[Step], None] = check
) -> Explored:
    """Walk through every state that can be reached. The first broken law ends it, by one of the shortest ways."""
    known = {state(EMPTY): (EMPTY._replace(seen=START), 0)}
    reached = list(known.values())
    replies: dict[str, int] = {}
    steps = 0
    for record, depth in reached:  # grows while it is walked
        for command in world.commands(record):
            for advance in world.advances:
                for unreachable in world.unreachable:
                    for dead in world.dead:
                        step = Step(
                            apply, record, command, record.seen + advance * SECOND, unreachable, dead, world.tombstone
                        )
                        steps += 1
                        try:
                            look(step)
                        except Broken as broken:
                            broken.add_note(f"{depth + 1} steps from the empty record")
                            raise
                        kind = type(step.reply).__name__
                        replies[kind] = replies.get(kind, 0) + 1
                        shape = state(step.after, world.alike)
                        if shape not in known:
                            assert decode(encode(step.after)) == step.after, "the record does not survive the wire"
                            known[shape] = (step.after, depth + 1)
                            reached.append(known[shape])
                            if len(reached) > limit:
                                raise TooMany(f"more than {limit} states, {depth} steps from the empty record")
    return Explored(len(known), steps, replies)
