"""One step of some rules, and the questions that the laws ask of it.

Everything here is worked out from the record before, the command and the record after; nothing from the code between.
"""

from collections.abc import Collection

from fairlock.rules.locks import ASKED, Acquire, Command, Done, Entry, Evict, LockState, Release
from fairlock.rules.locks.state import POLLED, SILENT
from tests.lock_rules.resource import SECOND, Apply

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
        before: LockState,
        command: Command,
        now: int,
        unreachable: Collection[str] = frozenset(),
        dead: Collection[str] = frozenset(),
        tombstone: int = MINUTE,
    ) -> None:
        self.apply = apply
        self.before = before
        self.command = command
        self.now = now
        self.unreachable = unreachable
        self.dead = dead
        self.tombstone = tombstone  # how long a tombstone lasts at least
        self.after, self.reply, self.woken = apply(before, command, now, unreachable, dead)
        self.sender: str = getattr(command, "ticket", None) or ""
        self.acquiring = isinstance(command, Acquire)
        self.was_inside = {e.ticket: e for e in before.holders}
        self.was_in_line = {e.ticket: e for e in before.queue}
        self.holders = {e.ticket: e for e in self.after.holders}
        self.in_queue = {e.ticket: e for e in self.after.queue}
        self.admitted = [e for e in self.after.holders if e.fence > before.fence]
        self.tombstones_before = {g.ticket: g for g in before.tombstones if g.why.kind != ASKED}
        self.tombstones = {g.ticket: g for g in self.after.tombstones if g.why.kind != ASKED}
        self.asked_before = {g.ticket: g.why for g in before.tombstones if g.why.kind == ASKED}
        self.asked = {g.ticket: g.why for g in self.after.tombstones if g.why.kind == ASKED}

    def is_dead(self, e: Entry) -> bool:
        return e.ticket in self.dead and e.listener != ""

    def over(self, e: Entry) -> bool:
        """Had it run out before this step? A clock that went back only shortens, and never to nothing."""
        return self.is_dead(e) or e.expires <= self.now

    def has_tombstone(self, ticket: str) -> bool:
        """Did it have a tombstone when the step came to its command?"""
        return ticket in self.tombstones_before and self.tombstones_before[ticket].until > self.now

    def waited(self) -> bool:
        """Did a living one stand in queue when the step began?"""
        return any(not self.over(e) or (self.acquiring and e.ticket == self.sender) for e in self.before.queue)

    def may_be_passed(self, e: Entry) -> bool:
        """Somebody who stands in queue after this step: was it right to let others go first?"""
        if self.acquiring and e.ticket == self.sender:
            return False
        return e.passed == SILENT or (e.ticket in self.unreachable and e.passed != POLLED)

    def put_back(self) -> list[Entry]:
        """Return those that had a turn, did not confirm in time and have poll_ttl left: they lead the queue again."""
        return [
            e
            for e in self.before.holders
            if not e.confirmed
            and e.expires <= self.now < min(e.since, self.now) + e.poll_ttl
            and e.weight <= self.before.capacity
            and not self.is_dead(e)
            and e.ticket not in self.tombstones_before
        ]

    def removed(self, ticket: str) -> bool:
        """Was it the very command to take this one away?"""
        c = self.command
        all_inside = isinstance(self.reply, Done) and ticket in self.reply.tickets
        return isinstance(c, Release | Evict) and (c.ticket == ticket or (c.ticket is None and all_inside))

    def __str__(self) -> str:
        def people(some: Collection[Entry]) -> str:
            return "\n".join(
                f"    {e.ticket} weight={e.weight} lease={e.lease} listener={e.listener!r} place={e.place} "
                f"confirmed={e.confirmed} passed={e.passed} poll_ttl={e.poll_ttl} fence={e.fence - self.now:+} "
                f"since={e.since - self.now:+} expires={e.expires - self.now:+}"
                for e in some
            )

        def sketch(r: LockState) -> str:
            tombstones = [(g.ticket, g.until - self.now, g.why.kind) for g in r.tombstones]
            return (
                f"  capacity={r.capacity} fixed={r.fixed} fence={r.fence - self.now:+} seen={r.seen - self.now:+} "
                f"tombstones={tombstones}\n  holders\n{people(r.holders)}\n  queue\n{people(r.queue)}"
            )

        return (
            f"{self.command} unreachable={sorted(self.unreachable)} dead={sorted(self.dead)}\n"
            f"before\n{sketch(self.before)}\n"
            f"after: {self.reply}, woken {self.woken}\n{sketch(self.after)}"
        )
