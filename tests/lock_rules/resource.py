"""A lock under test: a state, a clock that the test advances, and short methods for the commands.

Every example uses `LockUnderTest`, so that the same example can be run with deliberately broken rules, too.
"""

from collections.abc import Callable
from typing import Any

from fairlock.rules.locks import (
    EMPTY,
    EXCLUSIVE,
    Acquire,
    Ask,
    Command,
    Detach,
    Entry,
    Evict,
    LockState,
    Release,
    Renew,
    Reply,
    Resize,
    Tombstone,
    Wakeup,
)
from fairlock.rules.locks import apply as true_apply

SECOND = 1_000_000
LEASE = 30 * SECOND
START = 1_800_000_000 * SECOND  # a clock that looks like one: fences are taken from it

Apply = Callable[..., tuple[LockState, Reply, tuple[Wakeup, ...]]]


class LockUnderTest:
    def __init__(self, apply: Apply = true_apply) -> None:
        self.apply = apply
        self.record = EMPTY
        self.now = START
        self.woken: tuple[Wakeup, ...] = ()
        self.unreachable: set[str] = set()
        self.dead: set[str] = set()

    def say(self, command: Command) -> Any:
        self.record, reply, self.woken = self.apply(
            self.record, command, self.now, frozenset(self.unreachable), frozenset(self.dead)
        )
        return reply

    def pass_time(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)

    # -- what can be said; without capacity and weight it is about a lock

    def enter(
        self, ticket: str, weight: int = EXCLUSIVE, capacity: int = EXCLUSIVE, *, lease: int = LEASE, **more: Any
    ) -> Any:
        return self.say(
            Acquire(ticket, capacity, weight, lease, listener=more.pop("listener", f"listener of {ticket}"), **more)
        )

    def read(self, ticket: str, **more: Any) -> Any:
        """Acquire as a reader does."""
        return self.enter(ticket, 1, **more)

    def slot(self, ticket: str, weight: int = 1, of: int = 2, **more: Any) -> Any:
        """Acquire a semaphore."""
        return self.enter(ticket, weight, of, **more)

    def renew(self, ticket: str, fence: int | None = None, weight: int | None = None) -> Any:
        return self.say(Renew(ticket, fence, weight))

    def leave(self, ticket: str, leave_tombstone: bool = False, fence: int | None = None) -> Any:
        return self.say(Release(ticket, leave_tombstone, fence))

    def keep(self, ticket: str, lease: int, fence: int | None = None, closed: bool = False) -> Any:
        return self.say(Detach(ticket, fence, lease, closed))

    def evict(self, ticket: str | None, at_once: bool = False) -> Any:
        return self.say(Evict(ticket, "ops", "stuck", at_once))

    def ask(self, ticket: str, reason: str = "please") -> Any:
        return self.say(Ask(ticket, "ops", reason))

    def resize(self, capacity: int | None) -> Any:
        return self.say(Resize(capacity))

    def tick(self) -> None:
        """A step by somebody who is not concerned."""
        self.leave("a passer-by")

    # -- what can be seen

    @property
    def holders(self) -> list[str]:
        return [e.ticket for e in self.record.holders]

    @property
    def queue(self) -> list[str]:
        return [e.ticket for e in self.record.queue]

    def grant(self, ticket: str) -> Entry:
        (found,) = [e for e in self.record.holders if e.ticket == ticket]
        return found

    def place(self, ticket: str) -> Entry:
        (found,) = [e for e in self.record.queue if e.ticket == ticket]
        return found

    def tombstone(self, ticket: str) -> Tombstone:
        (found,) = [g for g in self.record.tombstones if g.ticket == ticket]
        return found

    @property
    def hints(self) -> list[str]:
        """Return the tickets that the last step woke."""
        return [w.ticket for w in self.woken]
