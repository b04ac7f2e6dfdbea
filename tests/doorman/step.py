"""One step of some rules, and the questions that the laws ask of it.

Everything here is worked out from the record before, the command and the record after; nothing from the code between.
"""

from collections.abc import Collection

from holdfast.doorman import Command, Done, Enter, Entrant, Evict, Leave, Record
from holdfast.doorman.record import HEARD, SILENT
from tests.doorman.door import SECOND, Apply

MINUTE = 60 * SECOND


class Broken(AssertionError):
    """A law was broken; `law` is its name."""

    def __init__(self, law: str, step: "Step", why: AssertionError | str) -> None:
        super().__init__(f"{law}: {why}\n{step}")
        self.law = law


class Step:
    """One step and what came of it, with the questions that the laws ask of it."""

    def __init__(
        self,
        apply: Apply,
        before: Record,
        command: Command,
        now: int,
        deaf: Collection[str] = frozenset(),
        dead: Collection[str] = frozenset(),
        grave: int = MINUTE,
    ) -> None:
        self.apply = apply
        self.before = before
        self.command = command
        self.now = now
        self.deaf = deaf
        self.dead = dead
        self.grave = grave  # how long a grave lasts at least
        self.after, self.reply, self.woken = apply(before, command, now, deaf, dead)
        self.asker: str = getattr(command, "ticket", None) or ""
        self.entering = isinstance(command, Enter)
        self.was_inside = {e.ticket: e for e in before.inside}
        self.was_in_line = {e.ticket: e for e in before.line}
        self.inside = {e.ticket: e for e in self.after.inside}
        self.in_line = {e.ticket: e for e in self.after.line}
        self.admitted = [e for e in self.after.inside if e.fence > before.fence]
        self.graves_before = {g.ticket: g for g in before.graves}
        self.graves = {g.ticket: g for g in self.after.graves}

    def is_dead(self, e: Entrant) -> bool:
        return e.ticket in self.dead and e.ear != ""

    def over(self, e: Entrant) -> bool:
        """Had it run out before this step? A clock that went back only shortens, and never to nothing."""
        return self.is_dead(e) or e.expires <= self.now

    def buried(self, ticket: str) -> bool:
        """Did it lie in a grave when the step came to its command?"""
        return ticket in self.graves_before and self.graves_before[ticket].until > self.now

    def waited(self) -> bool:
        """Did a living one stand in line when the step began?"""
        return any(not self.over(e) or (self.entering and e.ticket == self.asker) for e in self.before.line)

    def may_be_passed(self, e: Entrant) -> bool:
        """Somebody who stands in line after this step: was it right to let others go first?"""
        if self.entering and e.ticket == self.asker:
            return False
        return e.passed == SILENT or (e.ticket in self.deaf and e.passed != HEARD)

    def put_back(self) -> list[Entrant]:
        """Who had its turn, was not heard in time, and has patience left: stands at the head of the line again."""
        return [
            e
            for e in self.before.inside
            if not e.sure
            and e.expires <= self.now < min(e.since, self.now) + e.patience
            and e.weight <= self.before.capacity
            and not self.is_dead(e)
            and e.ticket not in self.graves_before
        ]

    def removed(self, ticket: str) -> bool:
        """Was it the very command to take this one away?"""
        c = self.command
        all_inside = isinstance(self.reply, Done) and ticket in self.reply.tickets
        return isinstance(c, Leave | Evict) and (c.ticket == ticket or (c.ticket is None and all_inside))

    def __str__(self) -> str:
        def people(some: Collection[Entrant]) -> str:
            return "\n".join(
                f"    {e.ticket} weight={e.weight} lease={e.lease} ear={e.ear!r} place={e.place} sure={e.sure} "
                f"passed={e.passed} patience={e.patience} fence={e.fence - self.now:+} since={e.since - self.now:+} "
                f"expires={e.expires - self.now:+}"
                for e in some
            )

        def sketch(r: Record) -> str:
            graves = [(g.ticket, g.until - self.now, g.why.kind) for g in r.graves]
            return (
                f"  capacity={r.capacity} fixed={r.fixed} fence={r.fence - self.now:+} seen={r.seen - self.now:+} "
                f"graves={graves}\n  inside\n{people(r.inside)}\n  line\n{people(r.line)}"
            )

        return (
            f"{self.command} deaf={sorted(self.deaf)} dead={sorted(self.dead)}\nbefore\n{sketch(self.before)}\n"
            f"after: {self.reply}, woken {self.woken}\n{sketch(self.after)}"
        )
