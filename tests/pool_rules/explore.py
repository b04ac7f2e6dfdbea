"""Every state that a few items and workers can reach, breadth first, with all laws checked in every step.

Two pools are in the same state if they differ only in what no rule looks at: the time of day, how long something has
been due, how far the counters have run. So the number of states is finite, and "every" means every one.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from fairlock.rules.pools import NOBODY, Finish, Give, ItemState, On, Order, Put, Quit, Remove, Seek, Touch, WorkerQueue
from fairlock.rules.pools.codec import decode_item, decode_queue, encode_item, encode_queue
from tests.pool_rules.laws import check
from tests.pool_rules.step import Broken, Step
from tests.pool_rules.walkthrough import SECOND, START, TRUE, Rules

NONE: frozenset[str] = frozenset()


class World(NamedTuple):
    """A small world: what there may be, who may come and what may happen."""

    keys: str = "x"
    tickets: str = "ab"
    lease: int = 3
    leases: dict[str, int] = {}
    advances: tuple[int, ...] = (0, 1, 3)
    named: dict[str, str] = {}  # who seeks only this one
    tries: frozenset[str] = NONE
    rests: tuple[int, ...] = (0,)
    bodies: bool = False
    touch: bool = True
    extend: tuple[int, ...] = ()
    finish: bool = True
    remove: bool = False
    strangers: bool = False  # what is said with other people's tickets and old fences
    quits: bool = True
    together: bool = False  # all keys are added in one step
    dead: tuple[frozenset[str], ...] = (NONE,)

    def orders(self, items: dict[str, ItemState]) -> Iterator[Order]:
        body = '"new"' if self.bodies else None
        if self.together:
            yield Put(tuple((k, f'"{k}"') for k in self.keys))
        for k in self.keys:
            if not self.together:
                yield Put(((k, f'"{k}"'),))
            item = items.get(k, ItemState(k, 0))
            who = [item.ticket or self.tickets[0]] if not self.strangers else list(self.tickets)
            for t in who:
                for fence in {item.fence, item.fence - 1} if self.strangers else {item.fence}:
                    if self.touch:
                        yield On(k, Touch(t, fence, body))
                    for longer in self.extend:
                        yield On(k, Touch(t, fence, body, longer * SECOND))
                    for rest in self.rests:
                        yield On(k, Give(t, fence, rest * SECOND, body))
                    if self.finish:
                        yield On(k, Finish(t, fence, body))
                    if self.remove and self.strangers:
                        yield On(k, Remove(t, fence))
            if self.remove:
                yield On(k, Remove())
                yield On(k, Remove(force=True))
        for t in self.tickets:
            lease = self.leases.get(t, self.lease) * SECOND
            yield Seek(t, lease, t not in self.tries, f"listener {t}", f"owner {t}", "", self.named.get(t, ""))
            if self.quits:
                yield Quit(t, lease)


def state(items: dict[str, ItemState], queue: WorkerQueue, now: int) -> tuple[Any, ...]:
    """Return a key that two pools share if the rules can't distinguish them."""
    due = sorted([i for i in items.values() if 0 <= i.score <= now], key=lambda i: (i.score, i.key))
    places = {i.key: n for n, i in enumerate(due)}
    return (
        tuple(
            (
                i.key, i.ticket, i.body, _when(i, places, now),
                i.lease, 0 if not i.fence else 1 if i.fence < now else 2,
            )
            for i in sorted(items.values())
        ),
        tuple((w.ticket, w.expires - now, w.poll_ttl) for w in queue.workers if w.expires > now),
        tuple(sorted((w.ticket, w.expires - now) for w in queue.watchers if w.expires > now)),
    )  # fmt: skip


def _when(item: ItemState, places: dict[str, int], now: int) -> object:
    """Return the rank of a due item; for any other, in how long it is due."""
    if item.key in places or item.score < 0:
        return places.get(item.key, "done")
    return item.score - now


class Explored(NamedTuple):
    states: int
    steps: int
    replies: dict[str, int]


class TooMany(AssertionError):
    """A world is larger than somebody thought."""


def explore(world: World, rules: Rules = TRUE, limit: int = 60_000, look: Callable[[Step], None] = check) -> Explored:
    """Walk through every state that can be reached. The first broken law ends it, by one of the shortest ways."""
    start: tuple[dict[str, ItemState], WorkerQueue, int, int] = ({}, NOBODY, START, 0)
    known = {state(*start[:3])}
    reached = [start]
    replies: dict[str, int] = {}
    steps = 0
    for items, queue, then, depth in reached:  # grows while it is walked
        for order in world.orders(items):
            for advance in world.advances:
                for dead in world.dead:
                    now = then + advance * SECOND
                    step = Step(rules, items, queue, order, now, dead)
                    steps += 1
                    try:
                        look(step)
                    except Broken as broken:
                        broken.add_note(f"{depth + 1} steps from the empty pool")
                        raise
                    kind = type(step.reply).__name__
                    replies[kind] = replies.get(kind, 0) + 1
                    shape = state(step.items, step.queue, now)
                    if shape not in known:
                        known.add(shape)
                        assert decode_queue(encode_queue(step.queue)) == step.queue, (
                            "the queue does not survive the wire"
                        )
                        for i in step.items.values():
                            assert decode_item(i.key, i.score, i.owner, encode_item(i)) == i
                        reached.append((step.items, step.queue, now, depth + 1))
                        if len(reached) > limit:
                            raise TooMany(f"more than {limit} states, {depth} steps from the empty pool")
    return Explored(len(known), steps, replies)
