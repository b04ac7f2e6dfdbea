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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..engine.find_deadlocks import Ring
from ..engine.snapshots import Snapshot
from ..errors import ConfigError
from .measure_events import BUCKETS, CONFLICTS, HISTOGRAMS, LOST, Histogram, Labels, Measure, Record

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric


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
        self._values = {histogram: {} for histogram in HISTOGRAMS}

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
            for histogram, (labels, text) in HISTOGRAMS.items():
                name = f"fairlock_{histogram.replace('.', '_')}_seconds"
                family = core.HistogramMetricFamily(name, text, labels=labels)
                for series, values in self._values[histogram].items():
                    family.add_metric(list(series), _cumulative(values), values[-1])
                yield family
            lost = core.CounterMetricFamily("fairlock_lost", LOST, labels=("group", "reason"))
            for series, number in self.lost.items():
                lost.add_metric(series, number)
            yield lost
            yield _by(core.CounterMetricFamily, "group", "fairlock_conflicts", CONFLICTS, self.conflicts)
            held, waiters = dict(self.held), dict(self.waiters)
        gauge = core.GaugeMetricFamily
        if self._shown is not None:
            snapshot, rings = self._shown
            held, waiters, longest, expired = self._sums(snapshot)
            yield _by(gauge, "group", "fairlock_longest_wait_seconds", "The longest wait now.", longest)
            text = "Leases that have ended and were not taken by another."
            yield _by(gauge, "group", "fairlock_expired", text, expired)
            certain = {str(each).lower(): sum(ring.certain is each for ring in rings) for each in (True, False)}
            yield _by(gauge, "certain", "fairlock_deadlocks", "Rings of holders that wait for each other.", certain)
        yield _by(gauge, "group", "fairlock_held", "Holds now.", held)
        yield _by(gauge, "group", "fairlock_waiters", "Waiters now.", waiters)

    def _sums(self, snapshot: Snapshot) -> tuple[dict[str, int], dict[str, int], dict[str, float], dict[str, int]]:
        """Return the holds, the waiters, the longest wait and the expired leases of each group."""
        self._known.update(self._groups[one.name] for one in snapshot.resources)
        held, waiters, expired = (dict.fromkeys(self._known, 0) for _ in range(3))
        longest = dict.fromkeys(self._known, 0.0)
        for one in snapshot.resources:
            group = self._groups[one.name]
            held[group] += sum(bool(h.owner) for h in one.holders)
            waiters[group] += len(one.queue)
            expired[group] += len(one.expired)
            longest[group] = max([longest[group], *(w.waited for w in one.queue)])
        return held, waiters, longest, expired

    def text(self) -> bytes:
        """Return the metrics in the text format of Prometheus: the body of /metrics."""
        client = _client()
        registry = client.CollectorRegistry()
        registry.register(self)
        text: bytes = client.generate_latest(registry)
        return text


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of `Metrics.text()`."""


def _by(family: Any, label: str, name: str, text: str, values: Mapping[str, float]) -> Metric:
    """Return a metric with one label."""
    metric: Metric = family(name, text, labels=(label,))
    for value, number in values.items():
        metric.add_metric([value], number)  # type: ignore[attr-defined]
    return metric


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
