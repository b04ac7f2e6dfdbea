"""The history of a run as holds: who wanted what from when on, believed from when to when, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Event = dict[str, Any]
FOREVER = float("inf")


@dataclass
class LeaseBase:
    hold: str
    pid: int
    name: str
    asked: float
    weight: int = 1
    timeout: float = 0.0
    queued: bool = False
    """It stands in the queue from the moment at which it asked, or a moment later."""
    fresh: bool = False
    """Its client had no reply from the store before: it connects first, and its lease counts from before that."""
    owner: str = ""
    start: float = FOREVER
    """It believes from here …"""
    last: float = -FOREVER
    """… to here for certain; less than start: it never said so twice."""
    fence: int = 0
    ended: float = FOREVER
    how: str | None = None
    """'' released, 'interrupted', or the name of the exception. None: it never ended."""

    @property
    def holders(self) -> bool:
        return self.start < FOREVER

    @property
    def believed(self) -> bool:
        return self.start <= self.last

    def __str__(self) -> str:
        until = f"believed {self.start:.3f} to {self.last:.3f} with fence {self.fence}" if self.believed else "never in"
        return f"{self.name} by {self.hold} ({self.owner}): asked {self.asked:.3f}, {until}, ended {self.how!r}"


def read(history: Iterable[Event]) -> list[LeaseBase]:
    found: dict[tuple[str, str], LeaseBase] = {}
    for event in history:
        what, hold = event["what"], event.get("hold", "")
        if what == "asked":
            facts = {key: event[key] for key in ("weight", "timeout", "queued", "owner")}
            facts["fresh"] = event.get("fresh", False)
            found[hold, event["name"]] = LeaseBase(hold, event["pid"], event["name"], event["at"], **facts)
        elif what in ("in", "write"):
            key = hold, event["name"].partition("/")[0]
            each = found.get(key)
            if each is None:
                continue
            each.name, each.fence = event["name"], event["fence"]
            if what == "in":
                each.start = event["at"]
            elif event["held"]:
                each.last = event["at"]
        elif what == "ended":
            for name in [name for known, name in found if known == hold]:
                found[hold, name].ended, found[hold, name].how = event["at"], event["how"]
    return list(found.values())
