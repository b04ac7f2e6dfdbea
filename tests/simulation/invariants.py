"""The witness: sees every hold of every client and says when something happened that must not.

A client *believes* that it holds while its hold says so by its own clock and its process runs. What the witness looks
at has no side effects: asking `hold.lost` would itself make a loss final.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.world import Violation, World

if TYPE_CHECKING:
    from tests.simulation.client import Client


class Stay:
    """One hold, from the moment somebody got it."""

    def __init__(self, client: Client, hold: Any, capacity: int, asked: float, began: float, turn: int) -> None:
        self.client = client
        self.hold = hold
        self.grant = hold._grant
        self.name: str = hold.name
        self.fence: int = hold.fence
        self.capacity = capacity
        self.weight: int = hold._grant.weight  # at the beginning; it may fall
        self.asked = asked
        self.began = began
        self.turn = turn
        self.given_back = False
        self.seen_lost = False

    @property
    def believed(self) -> bool:
        process, hold, grant = self.client.process, self.hold, self.grant
        return (
            not self.given_back
            and process.runs
            and not hold._released
            and not hold._reason
            and not grant.reason
            and process.clock() < min(grant.deadline, grant.cap)
        )

    def __str__(self) -> str:
        return f"{self.client.process.name} (fence {self.fence}, weight {self.grant.weight}, turn {self.turn})"


class Ledger:
    """What the lock protects. It refuses a write whose fence is lower than one it has seen: the guard of the docs."""

    def __init__(self) -> None:
        self.fence = 0
        self.last: Stay | None = None
        self.refused = 0

    def write(self, stay: Stay) -> None:
        if stay.fence < self.fence:
            self.refused += 1
            return
        if self.last is not None and stay.began < self.last.began and stay.fence == self.last.fence:
            raise Violation(f"a stale write was accepted: {stay} after {self.last}")
        self.fence, self.last = stay.fence, stay


class Witness:
    def __init__(self, world: World) -> None:
        self.world = world
        self.stays: dict[str, list[Stay]] = {}
        self.ledgers: dict[str, Ledger] = {}
        self.excused = ""  # why exclusion without a checked fence cannot be had in this run
        self.evicted = False  # an operator has told somebody to go
        self.calm = True  # no faults at all: then nothing may be lost
        self.grants = 0
        self.clients: list[Client] = []
        self.kept: set[str] = set()  # tickets that live on without a process; a late Acquire may bring them back
        self._past: dict[str, list[Stay]] = {}
        self._grants: dict[str, tuple[int, float]] = {}
        self._asked: dict[str, float] = {}
        world.watchers.append(self.look)

    def excuse(self, why: str) -> None:
        """From now on two may believe to hold at once: one of the impossibilities has been asked for."""
        self.excused = self.excused or why
        self.calm = False

    # -- what the clients report

    def got(self, client: Client, hold: Any, capacity: int, asked: float, before: Stay | None = None) -> Stay:
        """Somebody holds it. before: it was taken over from that one, by the ticket, with its fence."""
        self.grants += 1
        first = self._asked.setdefault(hold.ticket, asked)  # what is passed on was asked for by the first one
        stay = Stay(client, hold, capacity, first, self.world.now, self.grants)
        self.world.note(client.process.name, "holds it with fence {} until {}", stay.fence, stay.grant.deadline)
        if before is not None:
            stay.turn = before.turn
        elif stay.believed:
            self._fence_rises(stay, asked)
        elif client.process.thawed != self.world.now:  # unless it was stopped on the very last step of getting it
            raise Violation(f"handed out although its time is over: {stay}")
        if before is None:
            self._passing_is_bounded(stay)
        self.stays.setdefault(stay.name, []).append(stay)
        self._past.setdefault(stay.name, []).append(stay)
        return stay

    def gives_back(self, stay: Stay) -> None:
        """From here on the holder does nothing that needs the lock."""
        stay.given_back = True
        self.stays[stay.name].remove(stay)

    def past(self, name: str) -> list[Stay]:
        """Everybody who ever had it, in the order of having got it."""
        return self._past.get(name, [])

    def ledger(self, name: str) -> Ledger:
        return self.ledgers.setdefault(name, Ledger())

    # -- what must never be

    def look(self) -> None:
        """After every step: do those that believe to hold it fit?"""
        if self.excused:
            return
        for name, stays in self.stays.items():
            if len(stays) > 1:
                holders = [s for s in stays if s.believed]
                if len(holders) > 1 and sum(s.grant.weight for s in holders) > holders[0].capacity:
                    raise Violation(f"{len(holders)} believe to hold {name!r} at once: {', '.join(map(str, holders))}")

    def no_ghost(self, listener: str, ticket: str) -> None:
        """Somebody was let in or put in queue: does its client, if it runs, still know of it?"""
        for client in self.clients:
            if client.backend.open_listener() == listener and client.process.runs and not self.excused:
                if ticket not in self.kept and not any(ticket in other.tickets() for other in self.clients):
                    raise Violation(f"a ghost: {ticket} was let in or put in queue after its client had done with it")

    def must_be_told(self, stay: Stay) -> bool:
        """Return True if it was meanwhile granted to another that could not hold it beside this one."""
        if self.excused or stay.fence == 0:
            return False
        past = self._past[stay.name]
        later = past[past.index(stay) + 1 :]
        others = [s for s in later if s.turn > stay.turn and s.grant is not stay.grant]
        return any(s.weight + stay.grant.weight > s.capacity for s in others)

    def _fence_rises(self, stay: Stay, asked: float) -> None:
        for other in self._past.get(stay.name, ()):
            if other.weight + stay.weight <= stay.capacity:
                if other.fence == stay.fence and other.grant is not stay.grant:
                    raise Violation(f"one fence for two: {other}, {stay}")
                if stay.fence <= other.fence and other.began < asked:
                    raise Violation(f"the fence did not rise: {stay} asked after {other}")
            elif stay.fence <= other.fence and (not self.excused or other.began < stay.asked):
                raise Violation(f"the fence did not rise: {stay} came after {other}")

    def _passing_is_bounded(self, stay: Stay) -> None:
        count, first = self._grants.get(stay.hold.ticket, (0, stay.hold._since))
        self._grants[stay.hold.ticket] = (count + 1, first)
        if stay.weight == stay.capacity and count:
            span = stay.hold._since - first
            if count > 32 or span > 0.1 + 0.001:
                raise Violation(f"passed on {count} times and for {span:.3f} s in a row: {stay}")
