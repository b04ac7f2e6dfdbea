"""A doorman on a bench: a record, a clock turned by hand, and short words for the commands.

Every example is written against `Door`, so that the same example can be run over deliberately broken rules too.
"""

from collections.abc import Callable
from typing import Any

from holdfast.doorman import (
    ALL,
    EMPTY,
    Command,
    Enter,
    Entrant,
    Evict,
    Grave,
    Keep,
    Leave,
    Record,
    Renew,
    Reply,
    Resize,
    Wake,
)
from holdfast.doorman import apply as true_apply

SECOND = 1_000_000
LEASE = 30 * SECOND
START = 1_800_000_000 * SECOND  # a clock that looks like one: fences are taken from it

Apply = Callable[..., tuple[Record, Reply, tuple[Wake, ...]]]


class Door:
    def __init__(self, apply: Apply = true_apply) -> None:
        self.apply = apply
        self.record = EMPTY
        self.now = START
        self.woken: tuple[Wake, ...] = ()
        self.deaf: set[str] = set()
        self.dead: set[str] = set()

    def say(self, command: Command) -> Any:
        self.record, reply, self.woken = self.apply(
            self.record, command, self.now, frozenset(self.deaf), frozenset(self.dead)
        )
        return reply

    def pass_time(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)

    # -- what can be said; without capacity and weight it is about a lock

    def enter(self, ticket: str, weight: int = ALL, capacity: int = ALL, *, lease: int = LEASE, **more: Any) -> Any:
        return self.say(Enter(ticket, capacity, weight, lease, ear=more.pop("ear", f"ear of {ticket}"), **more))

    def read(self, ticket: str, **more: Any) -> Any:
        """Enter as a reader does."""
        return self.enter(ticket, 1, **more)

    def slot(self, ticket: str, weight: int = 1, of: int = 2, **more: Any) -> Any:
        """Enter a semaphore."""
        return self.enter(ticket, weight, of, **more)

    def renew(self, ticket: str, fence: int | None = None, weight: int | None = None) -> Any:
        return self.say(Renew(ticket, fence, weight))

    def leave(self, ticket: str, bury: bool = False, fence: int | None = None) -> Any:
        return self.say(Leave(ticket, bury, fence))

    def keep(self, ticket: str, lease: int, fence: int | None = None, closed: bool = False) -> Any:
        return self.say(Keep(ticket, fence, lease, closed))

    def evict(self, ticket: str | None, at_once: bool = False) -> Any:
        return self.say(Evict(ticket, "ops", "stuck", at_once))

    def resize(self, capacity: int | None) -> Any:
        return self.say(Resize(capacity))

    def tick(self) -> None:
        """A step by somebody who is not concerned."""
        self.leave("a passer-by")

    # -- what can be seen

    @property
    def inside(self) -> list[str]:
        return [e.ticket for e in self.record.inside]

    @property
    def line(self) -> list[str]:
        return [e.ticket for e in self.record.line]

    def seat(self, ticket: str) -> Entrant:
        (found,) = [e for e in self.record.inside if e.ticket == ticket]
        return found

    def place(self, ticket: str) -> Entrant:
        (found,) = [e for e in self.record.line if e.ticket == ticket]
        return found

    def grave(self, ticket: str) -> Grave:
        (found,) = [g for g in self.record.graves if g.ticket == ticket]
        return found

    @property
    def hints(self) -> list[str]:
        """Whom the last step woke."""
        return [w.ticket for w in self.woken]
