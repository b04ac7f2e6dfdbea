"""Two witnesses that know no rule, only what every client may rely on.

`Holders` is all the clients together: it sees what they send and receive, never the record. A client that was granted
the lock believes that it holds it until the granted time is over on its own clock, and the clients that believe so
never weigh more than fits. `Queue` is the simplest queue, for runs in which nothing expires and every client listens.
"""

from collections.abc import Collection

from fairlock.rules.locks import (
    CONFIRM_WINDOW,
    Acquire,
    Command,
    Done,
    Evict,
    Granted,
    Queued,
    Release,
    Renew,
    Reply,
    Resize,
    Wakeup,
)


class Holders:
    def __init__(self, capacity: int) -> None:
        self.capacity = self.said = capacity  # what counts at most, and what all who come ask for
        self.until: dict[tuple[str, int], int] = {}  # (ticket, fence): how long its holder believes to be inside
        self.weights: dict[tuple[str, int], int] = {}  # of every grant that was ever told
        self.blocks: dict[tuple[str, int], int] = {}
        self.limits: dict[tuple[str, int], int] = {}  # what fitted when it was granted; a holder may stay
        self.asked: dict[str, Acquire] = {}
        self.polled: dict[str, tuple[int, int]] = {}  # when the last poll was sent that was answered Queued, and place

    def hear(
        self, time: int, command: Command, reply: Reply, woken: Collection[Wakeup], dead: Collection[str] = ()
    ) -> None:
        """Note a command and its reply, at this time of the clients' clock, which unlike the store's never jumps."""
        self.until = {grant: end for grant, end in self.until.items() if end > time and grant[0] not in dead}
        if isinstance(command, Acquire):
            self.asked.setdefault(command.ticket, command)
        if isinstance(command, Release):
            self._gives_up(command.ticket)
        if isinstance(command, Renew):
            self._lowers(command)
        if isinstance(command, Resize):  # some are let in just before; without a number the programs' own counts again
            self.capacity = max(self.capacity, command.capacity or self.said)
        if isinstance(command, Evict) and command.at_once and isinstance(reply, Done):
            for ticket in reply.tickets:
                self._gives_up(ticket)
        if isinstance(command, Acquire) and isinstance(reply, Queued):
            self.polled[command.ticket] = (time, reply.place)
        for wake in woken:
            sent, place = self.polled.get(wake.ticket, (0, 0))
            if wake.fence and wake.place == place and wake.ticket not in dead:  # a push is a grant, if it is in time
                self._believes(time, wake.ticket, wake.fence, sent + min(self.asked[wake.ticket].lease, CONFIRM_WINDOW))
        if isinstance(reply, Granted):
            weight = command.weight if isinstance(command, Renew) else None
            self._believes(time, str(getattr(command, "ticket", "")), reply.fence, time + reply.left, weight)
        if isinstance(command, Resize) and command.capacity:
            self.capacity = command.capacity

    def _lowers(self, c: Renew) -> None:
        """A lower weight counts from the sending, whatever the answer."""
        for grant, weight in self.weights.items():
            if c.weight is not None and grant[0] == c.ticket and c.fence in (None, grant[1]):
                self.weights[grant] = max(1, min(weight, c.weight))

    def _gives_up(self, ticket: str) -> None:
        self.until = {grant: end for grant, end in self.until.items() if grant[0] != ticket}

    def _believes(self, time: int, ticket: str, fence: int, until: int, weight: int | None = None) -> None:
        grant = ticket, fence
        if grant not in self.weights:
            asked = self.asked[ticket]
            self.weights[grant] = asked.weight if weight is None else max(1, min(weight, asked.weight))
            self.blocks[grant] = asked.block if asked.weight == asked.capacity else 1
            self.limits[grant] = self.capacity
            last = fence + self.blocks[grant] - 1
            for other in self.weights:
                first = other[1]
                apart = fence >= first + self.blocks[other] or last < first
                assert apart or other == grant, f"{other} and {grant} share a fence"
        if until > time:
            self.until[grant] = until
            total = sum(self.weights[g] for g in self.until)
            limit = max(self.limits[g] for g in self.until)
            assert total <= limit, f"{total} holders, {limit} fit: {self.until}"


class Queue:
    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.holders: dict[str, int] = {}
        self.queue: dict[str, int] = {}

    def fits(self, weight: int) -> bool:
        return sum(self.holders.values()) + weight <= self.capacity

    def hear(self, command: Command) -> None:
        if isinstance(command, Release):
            self.holders.pop(command.ticket, None)
            self.queue.pop(command.ticket, None)
        elif isinstance(command, Renew) and command.ticket in self.holders:
            self.holders[command.ticket] = min(self.holders[command.ticket], command.weight or self.capacity)
        elif isinstance(command, Acquire) and command.ticket not in self.holders | self.queue:
            if self.fits(command.weight) and not (self.queue and command.fair):
                self.holders[command.ticket] = command.weight
            elif command.wait:
                self.queue[command.ticket] = command.weight
        while self.queue and self.fits(next(iter(self.queue.values()))):
            ticket = next(iter(self.queue))
            self.holders[ticket] = self.queue.pop(ticket)
