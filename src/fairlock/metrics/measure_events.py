"""Counts and measures the events of clients: what the metrics of OpenTelemetry and of Prometheus share.

An acquire must not wait for its own measurement, so a call only keeps what counts of the event. It is evaluated when
the values are read, or when many events have come together. The order of acquires and releases does not matter for
sums, so each has values of its own. These are numbers in an array: an object for each would be memory that no cache
has yet, which takes longer than everything else of a measurement.
"""

from __future__ import annotations

import os
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Literal

from ..engine.events import Event, Measured
from .group_lock_names import Groups

TOGETHER = 20_000  # events; more are not kept until the values are read

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
"""The upper bounds of the histograms, in seconds."""

Histogram = Literal["acquire.duration", "hold.duration", "renewal.duration", "lease.margin"]
"""A part of its name: lock.hold.duration in OpenTelemetry, fairlock_hold_duration_seconds in Prometheus."""

Labels = tuple[str, ...]
HISTOGRAMS: dict[Histogram, tuple[Labels, str]] = {
    "acquire.duration": (("group", "outcome", "contended"), "How long it took to acquire a lock, or to give up."),
    "hold.duration": (("group", "outcome"), "How long a lock was held."),
    "renewal.duration": (("group",), "How long the store took to renew a lease."),
    "lease.margin": (("group",), "How much was left of a lease when it was renewed."),
}
LOST = "Leases that were lost."
CONFLICTS = "Acquires that found the lock held by another."

Record = Callable[[Sequence[float]], None]
"""Records values of one time series."""

ENDS = ("released", "lost", "evicted", "detached")


class Measure:
    """Give it to clients as `on_event`. One object may serve many clients, of threads and of asyncio."""

    def __init__(self, group: Callable[[str], str] | None = None) -> None:
        self._groups = Groups(group)
        self._events: deque[Event] = deque()
        self._measured: dict[str, Measured] = {}  # by group, of locks that were free: most events
        self._mutex = Lock()
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._events.clear()
        for one in self._measured.values():  # the requests for locks keep them, so they are emptied
            del one.acquired[:], one.released[:]
        self._found: dict[tuple[str, str, str, bool], tuple[int, Record | None]] = {}
        self.held: dict[str, int] = {}
        self.waiters: dict[str, int] = {}
        self.conflicts: dict[str, int] = {}
        self.lost: dict[tuple[str, str], int] = {}

    def __call__(self, event: Event) -> None:
        self._events.append(event)
        if len(self._events) >= TOGETHER:
            self.evaluate()

    def fairlock_measured(self, name: str) -> Measured:
        """Return what is kept of the holds of this name."""
        group = self._groups[name]
        if (known := self._measured.get(group)) is None:
            new = Measured(array("d"), array("d"), partial(self._evaluate_full, group))
            known = self._measured.setdefault(group, new)
        return known

    def evaluate(self) -> None:
        """Evaluate the events that have come since the last time."""
        self._forget_parent()
        with self._mutex:
            for group in list(self._measured):
                self._evaluate_group(group)
            for _ in range(len(self._events)):
                self._evaluate_event(self._events.popleft())

    def _evaluate_full(self, group: str) -> None:
        """Evaluate the values of this group, because many have come together."""
        self._forget_parent()
        with self._mutex:
            self._evaluate_group(group)

    def _forget_parent(self) -> None:
        if self._pid != os.getpid():  # in the child of a fork, which holds nothing and has done nothing
            self._mutex = Lock()
            self._reset()

    def _evaluate_group(self, group: str) -> None:
        """Evaluate the acquires and releases of locks that were free. The releases first: the acquire of each was noted
        before, so that never more of them are counted."""
        measured = self._measured[group]
        self._evaluate("released", group, _take(measured.released))
        self._evaluate("acquired", group, _take(measured.acquired))

    def _evaluate(self, kind: Literal["acquired", "released"], group: str, values: Sequence[float]) -> None:
        if values:
            change, record = self._find(kind, group, kind, False)
            self.held[group] += change * len(values)
            assert record is not None
            record(values)

    def _evaluate_event(self, event: Event) -> None:
        kind, name, _, _, _, _, seconds, outcome, contended, place, margin, reason = event
        if not name:
            return  # store_down, store_up
        group = self._groups[name]
        change, record = self._find(kind, group, outcome, contended)
        self.held[group] += change
        if record is not None:
            record((seconds,))
        if contended:
            self._count_wait(kind, group, place)
        elif kind == "renewed":
            self._series("lease.margin", (group,))((max(margin, 0.0),))
        if reason:
            self.lost[group, reason] = self.lost.get((group, reason), 0) + 1

    def _count_wait(self, kind: str, group: str, place: int) -> None:
        if kind == "waiting":
            self.waiters[group] = self.waiters.get(group, 0) + 1
            return
        self.conflicts[group] = self.conflicts.get(group, 0) + 1
        if place:
            self.waiters[group] = self.waiters.get(group, 0) - 1

    def _find(self, kind: str, group: str, outcome: str, contended: bool) -> tuple[int, Record | None]:
        """Return for this kind of event by how much it changes the holds, and what records its seconds."""
        key = kind, group, outcome, contended
        known = self._found.get(key)
        if known is not None:
            return known
        record = None
        if kind in ("acquired", "given_up"):
            record = self._series("acquire.duration", (group, outcome, "true" if contended else "false"))
        elif kind in ENDS and outcome:
            record = self._series("hold.duration", (group, outcome))
        elif kind == "renewed":
            record = self._series("renewal.duration", (group,))
        self.held.setdefault(group, 0)
        change = 1 if kind in ("acquired", "attached") else -1 if kind in ENDS else 0
        found = self._found[key] = change, record
        return found

    def _series(self, histogram: Histogram, labels: Labels) -> Record:
        """Return what records values of this time series."""
        raise NotImplementedError


def _take(values: array[float]) -> array[float]:
    """Return these values, and remove them. Others may append meanwhile."""
    taken = values[:]
    del values[: len(taken)]
    return taken
