"""One bounded inbox of wake-ups per client, and the waiters on it. The listeners deliver into it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from ..base import NEVER, Event, Pushed, Runtime

CAPACITY = 1000  # wake-ups that no waiter has taken yet; a further one removes the oldest


class WakeupInbox:
    """The part of both listeners that does no I/O."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.breaks = 0  # how often a subscription broke
        self.on_break: Callable[[], None] | None = None  # leases may be lost: called by the listener of tasks
        self.since = NEVER  # the client's clock when the last of the subscriptions was made
        self._wakeups: dict[str, Pushed] = {}
        self._taken: dict[str, int] = {}  # the fences of the last wake-ups taken: a cluster may send them twice
        self._waiting: dict[str, Event] = {}

    def deliver(self, ticket: str, place: int, fence: int) -> None:
        """Store a wake-up for a waiter, also for one that begins to wait later, or for a holder that was evicted."""
        if fence and self._taken.get(ticket) == fence:
            return
        if len(self._wakeups) >= CAPACITY:
            self._wakeups.pop(next(iter(self._wakeups)))
        self._wakeups[ticket] = Pushed(ticket, place, fence)
        event = self._waiting.get(ticket)
        if event is not None:
            event.set()

    def take(self, ticket: str) -> Pushed | None:
        """Remove and return the wake-up of this ticket."""
        wakeup = self._wakeups.pop(ticket, None)
        if wakeup is not None and wakeup.fence:
            if len(self._taken) >= CAPACITY:
                self._taken.clear()
            self._taken[ticket] = wakeup.fence
        return wakeup

    def take_wakeups(self, tickets: Iterable[str]) -> Collection[str]:
        """Remove the wake-ups of these holders. Returns the tickets of the evicted ones."""
        if not self._wakeups:
            return ()
        found = [ticket for ticket in tickets if ticket in self._wakeups]
        return [ticket for ticket in found if self._wakeups.pop(ticket).fence == 0]

    def wake_here(self, tickets: Collection[str]) -> None:
        """End the wait of these tickets, now or when it begins. From any thread."""
        for ticket in tickets:
            self.deliver(ticket, 0, 0)

    def wake_all(self) -> None:
        """Wake all waiters: a wake-up may have been missed, so they must poll."""
        for event in list(self._waiting.values()):
            event.set()
