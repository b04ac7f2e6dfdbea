"""Metrics and spans of OpenTelemetry: what its SDK collects after real locks."""

import asyncio
import threading
import time
from typing import Any

import pytest

import fairlock
from fairlock import LockTimeout, aio
from fairlock.metrics import otel
from fairlock.metrics.otel import Metrics

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Collected:
    """A reader of metrics and of spans, and the `on_event` that fills it."""

    def __init__(self, **options: Any) -> None:
        self.reader = InMemoryMetricReader()
        self.spans = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        self.on_event = Metrics(MeterProvider([self.reader]), self.tracers, **options)

    def points(self) -> dict[str, dict[tuple[Any, ...], Any]]:
        """Return the data points of each metric, by the values of their attributes."""
        data = self.reader.get_metrics_data()
        metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics] if data else []
        return {
            m.name: {tuple(v for _, v in sorted((p.attributes or {}).items())): p for p in m.data.data_points}
            for m in metrics
        }


@pytest.fixture
def collected() -> Collected:
    return Collected()


@pytest.fixture
def url() -> str:
    return f"memory://otel-{time.monotonic_ns()}"


def test_a_hold(collected: Collected) -> None:
    with fairlock.connect("memory://", on_event=collected.on_event) as locks, locks.lock("order:1") as lease:
        lease.renew()
        assert collected.points()["lock.held"]["order:{n}",].value == 1
    points = collected.points()
    assert points["lock.held"]["order:{n}",].value == 0
    acquire = points["lock.acquire.duration"][False, "order:{n}", "acquired"]
    assert (acquire.count, acquire.attributes["lock.contended"]) == (1, False)
    assert len(acquire.explicit_bounds) == 18
    assert points["lock.hold.duration"]["order:{n}", "released"].count == 1
    assert points["lock.renewal.duration"]["order:{n}",].count == 1
    assert 25 < points["lock.lease.margin"]["order:{n}",].sum <= 27
    assert collected.spans.get_finished_spans() == ()


def test_a_wait_is_a_span_in_the_trace_of_its_thread(collected: Collected, url: str) -> None:
    tracer = collected.tracers.get_tracer("test")
    with fairlock.connect(url) as other, fairlock.connect(url, owner="me", on_event=collected.on_event) as locks:
        held = other.lock("order:7").acquire()
        threading.Timer(0.1, held.release).start()
        with tracer.start_as_current_span("request") as request, locks.lock("order:7") as lease:
            fence = lease.fence
    wait, outer = collected.spans.get_finished_spans()
    assert (wait.name, outer.name) == ("lock.wait", "request")
    assert wait.parent is not None
    assert wait.parent.span_id == request.get_span_context().span_id
    assert dict(wait.attributes or {}) == {
        "lock.name": "order:7", "lock.group": "order:{n}", "lock.owner": "me", "lock.outcome": "acquired",
        "lock.place": 1, "lock.fence": fence,
    }  # fmt: skip
    assert wait.start_time is not None
    assert wait.end_time is not None
    assert 0.08 < (wait.end_time - wait.start_time) / 1e9 < 5
    assert wait.status.is_ok or wait.status.is_unset
    points = collected.points()
    assert points["lock.conflicts"]["order:{n}",].value == 1
    assert points["lock.waiters"]["order:{n}",].value == 0


def test_a_task_that_gives_up_has_a_span_that_failed(collected: Collected, url: str) -> None:
    tracer = collected.tracers.get_tracer("test")

    async def main() -> None:
        async with aio.connect(url) as other, aio.connect(url, on_event=collected.on_event) as locks, other.lock("x"):
            with tracer.start_as_current_span("request"), pytest.raises(LockTimeout):
                async with locks.lock("x", timeout=0.05):
                    pass

    asyncio.run(main())
    wait, outer = collected.spans.get_finished_spans()
    assert wait.parent == outer.context
    assert not wait.status.is_ok
    assert dict(wait.attributes or {})["lock.outcome"] == "timeout"


def test_a_loss_has_its_reason(collected: Collected) -> None:
    with fairlock.connect("memory://", on_event=collected.on_event) as locks:
        lease = locks.lock("x", max_hold=0.05).acquire()
        time.sleep(0.06)
        assert lease.lost
        until = time.monotonic() + 10
        while (points := collected.points())["lock.held"]["x",].value and time.monotonic() < until:
            time.sleep(0.005)
    assert points["lock.lost"]["x", "max_hold"].value == 1
    assert points["lock.hold.duration"]["x", "lost"].count == 1
    assert points["lock.held"]["x",].value == 0


def test_no_value_is_missing_between_two_collections(collected: Collected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otel, "MOST", 700)
    turns = 3000
    with fairlock.connect("memory://", on_event=collected.on_event) as locks:
        for number in range(turns):
            with locks.lock("x"):
                pass
            if number == turns // 2:
                collected.points()
    points = collected.points()
    assert points["lock.acquire.duration"][False, "x", "acquired"].count == turns
    assert points["lock.hold.duration"]["x", "released"].count == turns


def test_groups_can_be_given(url: str) -> None:
    collected = Collected(group=lambda name: "all")
    with fairlock.connect(url, on_event=collected.on_event) as locks, locks.lock("a"), locks.lock("b"):
        assert collected.points()["lock.held"]["all",].value == 2
