"""Counts and measures the events of clients: what the metrics of OpenTelemetry and of Prometheus share.

An acquire must not wait for its own measurement, so a call only keeps what counts of the event. It is evaluated when
the values are read, or when many events have come together. The order of acquires and releases does not matter for
sums, so each has a list of its own.
"""

from __future__ import annotations

import os
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from itertools import repeat
from threading import Lock
from typing import Literal

from ..engine.events import Event, Measured
from .group_lock_names import Groups

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


Record = Callable[[Sequence[float]], None]
"""Records values of one time series."""

ENDS = ("released", "lost", "evicted", "detached")


class Measure:
    """Give it to clients as `on_event`. One object may serve many clients, of threads and of asyncio."""

    def __init__(self, group: Callable[[str], str] | None = None) -> None:
        self._groups = Groups(group)
        self._events: deque[Event] = deque()
        self._acquired: deque[tuple[str, float]] = deque()  # of locks that were free: most events
        self._released: deque[tuple[str, float]] = deque()
        self.fairlock_measured = Measured(self._acquired, self._released, TOGETHER, self.evaluate)
        self._mutex = Lock()
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        for pending in (self._events, self._acquired, self._released):
            pending.clear()
        self._found: dict[tuple[str, str, str, bool], tuple[str, int, Record | None]] = {}
        self.held: dict[str, int] = {}
        self.waiters: dict[str, int] = {}
        self.conflicts: dict[str, int] = {}
        self.lost: dict[tuple[str, str], int] = {}

    def __call__(self, event: Event) -> None:
        self._events.append(event)
        if len(self._events) >= TOGETHER:
            self.evaluate()

    def evaluate(self) -> None:
        """Evaluate the events that have come since the last time."""
        if self._pid != os.getpid():  # in the child of a fork, which holds nothing and has done nothing
            self._mutex = Lock()
            self._reset()
        with self._mutex:
            self._evaluate(self._acquired, "acquired", "acquired")
            self._evaluate(self._released, "released", "released")
            for _ in range(len(self._events)):
                self._evaluate_event(self._events.popleft())

    def _evaluate(self, pending: deque[tuple[str, float]], kind: str, outcome: str) -> None:
        """Evaluate the acquires, or the releases, of locks that were free."""
        by_name: defaultdict[str, list[float]] = defaultdict(list)
        for name, seconds in list(map(deque.popleft, repeat(pending, len(pending)))):  # others append meanwhile
            by_name[name].append(seconds)
        for name, values in by_name.items():
            group, change, record = self._find((kind, name, outcome, False))
            self.held[group] += change * len(values)
            assert record is not None
            record(values)

    def _evaluate_event(self, event: Event) -> None:
        kind, name, _, _, _, _, seconds, outcome, contended, place, margin, reason = event
        found = self._find((kind, name, outcome, contended))
        group, change, record = found
        if change:
            self.held[group] += change
        if record is not None:
            record((seconds,))
        if contended:
            self._count_wait(kind, group, place)
        elif kind == "renewed":
            self._series("margin", (group,))((max(margin, 0.0),))
        if reason:
            self.lost[group, reason] = self.lost.get((group, reason), 0) + 1

    def _count_wait(self, kind: str, group: str, place: int) -> None:
        if kind == "waiting":
            self.waiters[group] = self.waiters.get(group, 0) + 1
            return
        self.conflicts[group] = self.conflicts.get(group, 0) + 1
        if place:
            self.waiters[group] = self.waiters.get(group, 0) - 1

    def _find(self, key: tuple[str, str, str, bool]) -> tuple[str, int, Record | None]:
        """Return for this kind of event: its group, by how much it changes the holds, and what records its seconds."""
        known = self._found.get(key)
        if known is not None:
            return known
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

    def _series(self, histogram: Histogram, labels: Labels) -> Record:
        """Return what records values of this time series."""
        raise NotImplementedError
