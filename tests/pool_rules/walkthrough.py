"""A pool on a bench: items in a dict, a queue, a clock set by hand, and short names for the commands.

Every example is written against `Bench`, so that the same example can be run over deliberately broken rules too.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fairlock.rules.pools import (
    NOBODY,
    Add,
    Command,
    Finish,
    Give,
    ItemState,
    Look,
    On,
    Order,
    Put,
    Quit,
    Remove,
    Seek,
    Take,
    Touch,
    Wakeup,
    WorkerQueue,
)
from fairlock.rules.pools import apply as true_apply
from fairlock.rules.pools.step import step as true_step

SECOND = 1_000_000
LEASE = 60 * SECOND
START = 1_800_000_000 * SECOND  # a clock that looks like one: scores and fences are taken from it


class Rules(NamedTuple):
    """The true ones, or a variant."""

    apply: Callable[..., Any] = true_apply
    step: Callable[..., Any] = true_step


TRUE = Rules()


class Rack:
    """The plainest item_store there is."""

    def __init__(self, items: dict[str, ItemState] | None = None) -> None:
        self.items = dict(items or {})

    def get(self, key: str) -> ItemState | None:
        return self.items.get(key)

    def put(self, item: ItemState) -> None:
        self.items[item.key] = item

    def drop(self, key: str) -> None:
        del self.items[key]

    def due(self, now: int, limit: int) -> Sequence[ItemState]:
        return sorted([i for i in self.items.values() if 0 <= i.score <= now], key=_by_score)[:limit]

    def coming(self, now: int) -> ItemState | None:
        return min([i for i in self.items.values() if i.score > now], key=_by_score, default=None)

    def of(self, ticket: str) -> ItemState | None:
        return next((i for i in self.items.values() if i.ticket == ticket), None)

    def late(self, now: int) -> Sequence[ItemState]:
        return [i for i in self.items.values() if i.score > now + i.lease]


def _by_score(item: ItemState) -> tuple[int, str]:
    return item.score, item.key


class Bench:
    def __init__(self, rules: Rules = TRUE) -> None:
        self.rules = rules
        self.rack = Rack()
        self.queue: WorkerQueue = NOBODY
        self.now = START
        self.hints: list[Wakeup] = []
        self.dead: set[str] = set()
        self.unreachable: set[str] = set()

    def say(self, order: Order) -> Any:
        dead, unreachable = frozenset(self.dead), frozenset(self.unreachable)
        self.queue, reply, self.hints = self.rules.step(self.rack, self.queue, order, self.now, dead, unreachable)
        return reply

    def pass_time(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)

    # -- what can be said

    def add(self, *keys: str, body: str = "null") -> Any:
        return self.say(Put(tuple((key, body) for key in keys)))

    def seek(self, ticket: str, *, lease: int = LEASE, **more: Any) -> Any:
        return self.say(Seek(ticket, lease, listener=more.pop("listener", f"listener of {ticket}"), **more))

    def touch(self, key: str, ticket: str, fence: int | None = None, body: str | None = None) -> Any:
        return self.say(On(key, Touch(ticket, self.fence(key, fence), body)))

    def give(self, key: str, ticket: str, after: float = 0, fence: int | None = None, body: str | None = None) -> Any:
        return self.say(On(key, Give(ticket, self.fence(key, fence), round(after * SECOND), body)))

    def finish(self, key: str, ticket: str, fence: int | None = None, body: str | None = None) -> Any:
        return self.say(On(key, Finish(ticket, self.fence(key, fence), body)))

    def remove(self, key: str, ticket: str = "", fence: int = 0, force: bool = False) -> Any:
        return self.say(On(key, Remove(ticket, fence, force)))

    def quit(self, ticket: str, lease: int = LEASE) -> Any:
        return self.say(Quit(ticket, lease))

    def on(self, key: str, command: Command) -> Any:
        """Straight to the rules of one item."""
        item, reply = self.rules.apply(self.rack.get(key), command, self.now, key)
        if item is not None:
            self.rack.put(item)
        elif self.rack.get(key) is not None:
            self.rack.drop(key)
        return reply

    def fence(self, key: str, fence: int | None = None) -> int:
        item = self.rack.get(key)
        return fence if fence is not None else item.fence if item is not None else 0

    # -- what can be seen

    def item(self, key: str) -> ItemState:
        found = self.rack.get(key)
        assert found is not None, f"there is no {key}"
        return found

    def state(self, key: str) -> str:
        return self.item(key).state(self.now)

    @property
    def waiting(self) -> list[str]:
        return [w.ticket for w in self.queue.workers]

    @property
    def woken(self) -> list[str]:
        """Return the tickets that the last step woke."""
        return [h.ticket for h in self.hints]


# Ready conditions of an item, for the table.


def absent(bench: Bench) -> None:
    pass


def free(bench: Bench) -> None:
    bench.add("x")


def given(bench: Bench) -> None:
    """Free again after it was taken."""
    taken(bench)
    bench.on("x", Give("a", bench.fence("x")))


def resting(bench: Bench) -> None:
    taken(bench)
    bench.on("x", Give("a", bench.fence("x"), 10 * SECOND))


def taken(bench: Bench) -> None:
    bench.on("x", Add('"first"'))
    bench.on("x", Take("a", LEASE, "worker", "why"))


def expired(bench: Bench) -> None:
    taken(bench)
    bench.pass_time(61)


def done(bench: Bench) -> None:
    taken(bench)
    bench.on("x", Finish("a", bench.fence("x")))


__all__ = ["LEASE", "SECOND", "START", "TRUE", "Bench", "Look", "Rack", "Rules"]
