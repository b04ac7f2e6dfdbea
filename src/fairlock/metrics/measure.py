"""Counts and measures the events of clients: what the metrics of OpenTelemetry and of Prometheus share.

An acquire must not wait for its own measurement, so a call only keeps what counts of the event. It is evaluated when
the values are read, or when many events have come together.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Literal

from ..engine.events import Event, Measured
from .names import Groups

TOGETHER = 20_000  # events; more are not kept until somebody reads the values

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
"""The upper bounds of the histograms, in seconds."""

Histogram = Literal["acquire", "hold", "renewal", "margin"]
Labels = tuple[str, ...]
LABELS: dict[Histogram, Labels] = {
    "acquire": ("group", "outcome", "contended"),
    "hold": ("group", "outcome"),
    "renewal": ("group",),
    "margin": ("group",),
}


ENDS = ("released", "lost", "evicted", "detached")


class Measure:
    """Give it to clients as `on_event`. One object may serve many clients, of threads and of asyncio."""

    def __init__(self, group: Callable[[str], str] | None = None) -> None:
        self._groups = Groups(group)
        self._pending: deque[Measured] = deque()
        self._mutex = Lock()
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._pending.clear()
        self._found: dict[tuple[str, str, str, bool], tuple[str, int, Callable[[float], None] | None]] = {}
        self.held: dict[str, int] = {}
        self.waiters: dict[str, int] = {}
        self.conflicts: dict[str, int] = {}
        self.lost: dict[tuple[str, str], int] = {}

    def __call__(self, event: Event) -> None:
        kind, name, _, _, _, _, *measured = event
        self.measure_uncontended((kind, name, *measured))  # type: ignore[arg-type]

    def measure_uncontended(self, measured: Measured) -> None:
        """Keep what counts of an event. A client calls this itself for a lock that is free: it takes less time."""
        pending = self._pending
        pending.append(measured)
        if len(pending) >= TOGETHER:
            self.evaluate()

    def evaluate(self) -> None:
        """Evaluate the events that have come since the last time."""
        if self._pid != os.getpid():  # in the child of a fork, which holds nothing and has done nothing
            self._mutex = Lock()
            self._reset()
        with self._mutex:
            pending = self._pending
            take, known, held = pending.popleft, self._found, self.held
            for _ in range(len(pending)):
                kind, name, seconds, outcome, contended, place, margin, reason = take()
                found = known.get((kind, name, outcome, contended))
                if found is None:
                    found = self._find((kind, name, outcome, contended))
                group, change, record = found
                if change:
                    held[group] += change
                if record is not None:
                    record(seconds)
                if contended:
                    self._count_wait(kind, group, place)
                elif kind == "renewed":
                    self._series("margin", (group,))(max(margin, 0.0))
                if reason:
                    self.lost[group, reason] = self.lost.get((group, reason), 0) + 1

    def _count_wait(self, kind: str, group: str, place: int) -> None:
        if kind == "waiting":
            self.waiters[group] = self.waiters.get(group, 0) + 1
            return
        self.conflicts[group] = self.conflicts.get(group, 0) + 1
        if place:
            self.waiters[group] = self.waiters.get(group, 0) - 1

    def _find(self, key: tuple[str, str, str, bool]) -> tuple[str, int, Callable[[float], None] | None]:
        """Return for this kind of event: its group, by how much it changes the holds, and what records its seconds."""
        kind, name, outcome, contended = key
        if not name:
            return "", 0, None  # store_down, store_up
        group = self._groups[name]
        record = None
        if kind in ("acquired", "given_up"):
            record = self._series("acquire", (group, outcome, "true" if contended else "false"))
        elif kind in ENDS and outcome:
            record = self._series("hold", (group, outcome))
        elif kind == "renewed":
            record = self._series("renewal", (group,))
        self.held.setdefault(group, 0)
        change = 1 if kind in ("acquired", "attached") else -1 if kind in ENDS else 0
        if len(self._found) >= 10_000:
            self._found.clear()
        found = self._found[key] = group, change, record
        return found

    def _series(self, histogram: Histogram, labels: Labels) -> Callable[[float], None]:
        """Return what records a value of this time series."""
        raise NotImplementedError
