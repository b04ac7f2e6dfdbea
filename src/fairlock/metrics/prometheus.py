"""Metrics for Prometheus, by prometheus-client: `connect(url, on_event=Metrics())`.

    fairlock_acquire_duration_seconds   how long it took to acquire, or to give up: group, outcome, contended
    fairlock_hold_duration_seconds      how long it was held: group, outcome
    fairlock_renewal_duration_seconds   how long the store took to renew a lease: group
    fairlock_lease_margin_seconds       what was left of a lease when it was renewed: group
    fairlock_held, fairlock_waiters     now: group
    fairlock_lost_total                 leases that were lost: group, reason
    fairlock_conflicts_total            acquires that found it held by another: group

A program that shows the state of a whole store, as the page does, calls `show(snapshot, rings)` besides, and `add_lost`
for what it sees lost: then held, waiters and lost are those of all clients, and these are added:

    fairlock_longest_wait_seconds       the longest wait now: group
    fairlock_expired                    leases that have ended and were not taken by another: group
    fairlock_deadlocks                  rings of holders that wait for each other: certain
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..engine.find_deadlocks import Ring
from ..engine.snapshots import Snapshot
from ..errors import ConfigError
from .measure_events import BUCKETS, HELP, LABELS, Histogram, Labels, Measure, Record

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric

NAMES: dict[Histogram, str] = {
    "acquire": "fairlock_acquire_duration_seconds",
    "hold": "fairlock_hold_duration_seconds",
    "renewal": "fairlock_renewal_duration_seconds",
    "margin": "fairlock_lease_margin_seconds",
}


class Metrics(Measure):
    """Counts the events of clients for Prometheus. A collector: it registers itself in `registry`, if one is given."""

    def __init__(
        self, registry: CollectorRegistry | None = None, *, group: Callable[[str], str] | None = None
    ) -> None:
        _client()
        self._values: dict[Histogram, dict[Labels, list[float]]] = {}
        self._shown: tuple[Snapshot, tuple[Ring, ...]] | None = None
        self._known: set[str] = set()  # groups that were shown: when nothing of them is busy they are 0, not absent
        super().__init__(group)
        if registry is not None:
            registry.register(self)

    def _reset(self) -> None:
        super()._reset()
        self._values = {histogram: {} for histogram in LABELS}

    def _series(self, histogram: Histogram, labels: Labels) -> Record:
        values = self._values[histogram].setdefault(labels, [0.0] * (len(BUCKETS) + 2))  # ..., above the last, the sum

        def record(measured: Sequence[float]) -> None:
            ordered, below = sorted(measured), 0
            for bucket, bound in enumerate(BUCKETS):
                to = bisect_right(ordered, bound, below)
                values[bucket] += to - below
                if (below := to) == len(ordered):
                    break
            values[len(BUCKETS)] += len(ordered) - below
            values[-1] += sum(ordered)

        return record

    def show(self, snapshot: Snapshot, rings: Iterable[Ring] = ()) -> None:
        """From here on report the state of the store as this snapshot has it."""
        self._shown = snapshot, tuple(rings)

    def add_lost(self, name: str, reason: str) -> None:
        """Count a lease of any client that was lost. A client that has died does not count its own."""
        group = self._groups[name]
        with self._mutex:
            self.lost[group, reason] = self.lost.get((group, reason), 0) + 1

    def describe(self) -> Sequence[Metric]:
        """Return nothing: the registry must not collect to find the names."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics. A registry of prometheus-client calls this."""
        core = _client().core
        self.evaluate()
        with self._mutex:
            for histogram, name in NAMES.items():
                family = core.HistogramMetricFamily(name, HELP[histogram], labels=LABELS[histogram])
                for labels, values in self._values[histogram].items():
                    family.add_metric(list(labels), _cumulative(values), values[-1])
                yield family
            lost = core.CounterMetricFamily("fairlock_lost", HELP["lost"], labels=("group", "reason"))
            for (group, reason), number in self.lost.items():
                lost.add_metric([group, reason], number)
            yield lost
            conflicts = core.CounterMetricFamily("fairlock_conflicts", HELP["conflicts"], labels=("group",))
            for group, number in self.conflicts.items():
                conflicts.add_metric([group], number)
            yield conflicts
            held, waiters = dict(self.held), dict(self.waiters)
        if self._shown is not None:
            held, waiters = {}, {}
            yield from self._state(*self._shown, held, waiters)
        for name, text, values_by_group in (
            ("fairlock_held", "Holds now.", held),
            ("fairlock_waiters", "Waiters now.", waiters),
        ):
            gauge = core.GaugeMetricFamily(name, text, labels=("group",))
            for group, number in values_by_group.items():
                gauge.add_metric([group], number)
            yield gauge

    def _state(
        self, snapshot: Snapshot, rings: tuple[Ring, ...], held: dict[str, int], waiters: dict[str, int]
    ) -> Iterator[Metric]:
        core = _client().core
        self._known.update(self._groups[one.name] for one in snapshot.resources)
        longest, expired = dict.fromkeys(self._known, 0.0), dict.fromkeys(self._known, 0)
        held.update(expired)
        waiters.update(expired)
        for one in snapshot.resources:
            group = self._groups[one.name]
            held[group] += sum(bool(h.owner) for h in one.holders)
            waiters[group] += len(one.queue)
            expired[group] += len(one.expired)
            longest[group] = max([longest[group], *(w.waited for w in one.queue)])
        tables: tuple[tuple[str, str, dict[str, Any]], ...] = (
            ("fairlock_longest_wait_seconds", "The longest wait now.", longest),
            ("fairlock_expired", "Leases that have ended and were not taken by another.", expired),
        )
        for name, text, values in tables:
            gauge = core.GaugeMetricFamily(name, text, labels=("group",))
            for group, value in values.items():
                gauge.add_metric([group], value)
            yield gauge
        deadlocks = core.GaugeMetricFamily(
            "fairlock_deadlocks", "Rings of holders that wait for each other.", labels=("certain",)
        )
        for certain in (True, False):
            deadlocks.add_metric([str(certain).lower()], sum(ring.certain is certain for ring in rings))
        yield deadlocks

    def text(self) -> bytes:
        """Return the metrics in the text format of Prometheus: the body of /metrics."""
        client = _client()
        registry = client.CollectorRegistry()
        registry.register(self)
        text: bytes = client.generate_latest(registry)
        return text


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of `Metrics.text()`."""


def _cumulative(values: list[float]) -> list[tuple[str, float]]:
    total, rows = 0.0, []
    for bound, number in zip((*map(str, map(float, BUCKETS)), "+Inf"), values, strict=False):
        total += number
        rows.append((bound, total))
    return rows


def _client() -> Any:
    try:
        import prometheus_client
        import prometheus_client.core
    except ImportError:
        raise ConfigError("Metrics for Prometheus need prometheus-client: pip install 'fairlock[ui]'.") from None
    return prometheus_client
