"""One step of some rules, and the questions that the laws ask of it.

Everything here is worked out from the state before, the command, the reply and the state after; nothing from the code
between.
"""

from collections.abc import Collection
from typing import Any

from fairlock.rules.pools import ItemState, On, Order, Quit, Seek, Worker, WorkerQueue
from tests.pool_rules.walkthrough import Rack, Rules


class Broken(AssertionError):
    """A law was broken; `law` is its name."""

    def __init__(self, law: str, step: "Step", why: AssertionError | str) -> None:
        super().__init__(f"{law}: {why}\n{step}")
        self.law = law


class Step:
    def __init__(
        self,
        rules: Rules,
        items: dict[str, ItemState],
        queue: WorkerQueue,
        order: Order,
        now: int,
        dead: Collection[str] = frozenset(),
    ) -> None:
        self.rules = rules
        self.was = items
        self.line_was = queue
        self.order = order
        self.now = now
        self.dead = dead
        rack = Rack(items)
        self.queue: WorkerQueue
        self.reply: Any
        self.queue, self.reply, self.hints = rules.step(rack, queue, order, now, dead)
        self.items = rack.items
        self.sender = order.ticket if isinstance(order, Seek | Quit) else ""
        self.command = order.command if isinstance(order, On) else None
        self.living = [w for w in queue.workers if self.lives(w)]

    def lives(self, w: Worker) -> bool:
        """Did it stand in the queue when the step began? A clock that went back only shortens, and never to nothing."""
        return w.ticket == self.sender or (w.expires > self.now and w.ticket not in self.dead)

    def in_time(self, item: ItemState) -> ItemState:
        """As it was, if the clock has not gone back meanwhile."""
        return item._replace(score=min(item.score, self.now + item.lease))

    def says(self, item: ItemState) -> bool:
        """Is it the owner of this item who speaks, and about this one?"""
        c: Any = self.command
        if isinstance(self.order, On) and self.order.key == item.key and item.ticket:
            return bool(getattr(c, "ticket", "") == item.ticket and getattr(c, "fence", -1) == item.fence)
        named = not isinstance(self.order, Seek) or self.order.key in ("", item.key)
        return bool(item.ticket and item.ticket == self.sender and named)

    def newly_taken(self) -> list[ItemState]:
        """Return the items whose owner is new, in the order in which they were due."""
        owner = {key: item.ticket for key, item in self.was.items()}
        new = [i for i in self.items.values() if i.ticket and i.ticket != owner.get(i.key)]
        return sorted(new, key=lambda i: (self.in_time(self.was[i.key]).score if i.key in self.was else i.score, i.key))

    def __str__(self) -> str:
        def sketch(items: dict[str, ItemState], queue: WorkerQueue) -> str:
            rows = [
                f"    {i.key} {i.state(self.now)} ticket={i.ticket!r} score={i.score - self.now:+} "
                f"fence={i.fence - self.now if i.fence else 0:+} lease={i.lease} body={i.body}"
                for i in items.values()
            ]
            rows += [
                f"    {w.ticket} place={w.place} expires={w.expires - self.now:+} key={w.key!r}"
                for w in (*queue.workers, *queue.watchers)
            ]
            return "\n".join(rows)

        return (
            f"{self.order} dead={sorted(self.dead)} seen={self.line_was.seen - self.now:+}\n"
            f"before\n{sketch(self.was, self.line_was)}\nafter: {self.reply}, hints {self.hints}\n"
            f"{sketch(self.items, self.queue)}"
        )
