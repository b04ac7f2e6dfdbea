"""What has been heard: wake-ups that arrived, and who waits for them. Colourless; how they arrive is in ears.py."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from ..contract import NEVER, Colour, Event, Pushed

KEPT = 1000  # wake-ups that nobody has asked for yet


class Hearing:
    def __init__(self, colour: Colour) -> None:
        self._colour = colour
        self.breaks = 0  # how often a subscription broke
        self.on_break: Callable[[], None] | None = None  # what was held may be gone: called by the loop of tasks
        self.since = NEVER  # the client's clock when the last of the subscriptions was made
        self._hints: dict[str, Pushed] = {}
        self._taken: dict[str, int] = {}  # the fences of the last wake-ups given out: a cluster may tell them twice
        self._waiting: dict[str, Event] = {}

    def hear(self, ticket: str, place: int, fence: int) -> None:
        """A wake-up arrived, for one who waits here or is about to, or for a holder who is to go."""
        if fence and self._taken.get(ticket) == fence:
            return
        if len(self._hints) >= KEPT:
            self._hints.pop(next(iter(self._hints)))
        self._hints[ticket] = Pushed(ticket, place, fence)
        event = self._waiting.get(ticket)
        if event is not None:
            event.set()

    def take(self, ticket: str) -> Pushed | None:
        hint = self._hints.pop(ticket, None)
        if hint is not None and hint.fence:
            if len(self._taken) >= KEPT:
                self._taken.clear()
            self._taken[ticket] = hint.fence
        return hint

    def hinted(self, tickets: Iterable[str]) -> Collection[str]:
        """Of these holders: who was told to go."""
        if not self._hints:
            return ()
        found = [ticket for ticket in tickets if ticket in self._hints]
        return [ticket for ticket in found if self._hints.pop(ticket).fence == 0]

    def wake_here(self, tickets: Collection[str]) -> None:
        """End the waiting of these, now or when it begins. From any thread."""
        for ticket in tickets:
            self.hear(ticket, 0, 0)

    def wake_all(self) -> None:
        """Something may have been missed: whoever waits is to ask."""
        for event in list(self._waiting.values()):
            event.set()
