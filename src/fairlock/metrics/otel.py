"""Metrics and traces for OpenTelemetry: `connect(url, on_event=Metrics())`.

    lock.acquire.duration   histogram, s: how long it took to acquire, or to give up
    lock.hold.duration      histogram, s: how long it was held
    lock.renewal.duration   histogram, s: how long the store took to renew a lease
    lock.lease.margin       histogram, s: what was left of a lease when it was renewed
    lock.held, lock.waiters up-down counters
    lock.lost               counter, by lock.reason
    lock.conflicts          counter: acquires that found it held by another

Each has lock.group; durations also have lock.outcome, and lock.acquire.duration has lock.contended. A wait longer than
a millisecond is a span, "lock.wait", in the trace of the thread or task that waited. Only it has the full name.

A histogram of the SDK takes longer for one value than memory:// for a lock. So values are kept and given to the SDK
when it collects; of more than MOST the oldest before that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..engine.events import Event
from ..errors import ConfigError
from .measure_events import BUCKETS, CONFLICTS, HISTOGRAMS, LOST, Histogram, Labels, Measure, Record

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
    from opentelemetry.trace import TracerProvider

SPAN_FROM = 0.001  # seconds
MOST = 50_000  # values that wait for the next collection


class Metrics(Measure):
    """Gives the events of clients to OpenTelemetry, to the given providers or else to the global ones."""

    def __init__(
        self,
        meter_provider: MeterProvider | None = None,
        tracer_provider: TracerProvider | None = None,
        *,
        group: Callable[[str], str] | None = None,
    ) -> None:
        try:
            from opentelemetry import metrics, trace
        except ImportError:
            raise ConfigError("OpenTelemetry is not installed: pip install 'fairlock[otel]'.") from None
        self._values: list[tuple[Any, float, dict[str, str | bool]]] = []
        super().__init__(group)
        self._observation = metrics.Observation
        self._tracer = trace.get_tracer("fairlock", tracer_provider=tracer_provider)
        self._failed = trace.Status(trace.StatusCode.ERROR)
        meter = metrics.get_meter("fairlock", meter_provider=meter_provider)
        bounds = [float(bound) for bound in BUCKETS]
        self._histograms: dict[Histogram, Any] = {
            name: meter.create_histogram(f"lock.{name}", "s", text, explicit_bucket_boundaries_advisory=bounds)
            for name, (_, text) in HISTOGRAMS.items()
        }
        # The first callback also records what the histograms have got: the SDK collects them after the callbacks.
        meter.create_observable_up_down_counter("lock.held", [self._held], "{hold}", "Holds now.")
        waiters, conflicts = lambda _: self._counts(self.waiters), lambda _: self._counts(self.conflicts)
        meter.create_observable_up_down_counter("lock.waiters", [waiters], "{waiter}", "Waiters now.")
        meter.create_observable_counter("lock.lost", [self._lost], "{lease}", LOST)
        meter.create_observable_counter("lock.conflicts", [conflicts], "{acquire}", CONFLICTS)

    def _reset(self) -> None:
        super()._reset()
        self._values = []

    def __call__(self, event: Event) -> None:
        if event.place and event.seconds >= SPAN_FROM:
            self._span(event)
        Measure.__call__(self, event)

    def _series(self, histogram: Histogram, labels: Labels) -> Record:
        attributes: dict[str, str | bool] = {
            f"lock.{key}": value == "true" if key == "contended" else value
            for key, value in zip(HISTOGRAMS[histogram][0], labels, strict=True)
        }
        instrument = self._histograms[histogram]

        def record(measured: Sequence[float]) -> None:
            self._values += [(instrument, seconds, attributes) for seconds in measured]
            if len(self._values) > MOST:  # as many as came: a release must not wait until all are recorded
                self._record(len(measured))

        return record

    def record(self) -> None:
        """Give all values to the SDK now. It happens by itself when the SDK collects, and at its shutdown."""
        self.evaluate()
        with self._mutex:
            self._record(len(self._values))

    def _record(self, number: int) -> None:
        values = self._values[:number]
        del self._values[:number]
        for instrument, seconds, attributes in values:
            instrument.record(seconds, attributes)

    def _held(self, _: CallbackOptions) -> Iterable[Observation]:
        self.record()
        return self._counts(self.held)

    def _lost(self, _: CallbackOptions) -> Iterator[Observation]:
        for (group, reason), number in list(self.lost.items()):
            yield self._observation(number, {"lock.group": group, "lock.reason": reason})

    def _counts(self, counts: dict[str, int]) -> Iterator[Observation]:
        for group, number in list(counts.items()):
            yield self._observation(number, {"lock.group": group})

    def _span(self, event: Event) -> None:
        """Make the span of a wait that is over. It is emitted in the thread or task that waited: that has the trace."""
        end = time.time_ns()
        span = self._tracer.start_span(
            "lock.wait",
            start_time=end - int(event.seconds * 1e9),
            attributes={
                "lock.name": event.name,
                "lock.group": self._groups[event.name],
                "lock.owner": event.owner,
                "lock.outcome": event.outcome,
                "lock.place": event.place,
                "lock.fence": event.fence,
            },
        )
        if event.kind == "given_up":
            span.set_status(self._failed)
        span.end(end)
