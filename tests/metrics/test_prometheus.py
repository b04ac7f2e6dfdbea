"""Metrics for Prometheus: what a scrape shows after real locks."""

import logging
import os
import threading
import time
from subprocess import run

import pytest

import fairlock
from fairlock import Snapshot
from fairlock.engine import release
from fairlock.engine.find_deadlocks import Ring, RingMember
from fairlock.metrics import measure_events
from fairlock.metrics.prometheus import Metrics
from tests.servers import programs
from tests.servers.fixtures import lacking

prometheus_client = pytest.importorskip("prometheus_client")


@pytest.fixture
def url() -> str:
    return f"memory://prometheus-{time.monotonic_ns()}"


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(prometheus_client.CollectorRegistry())


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    registry = prometheus_client.CollectorRegistry()
    registry.register(metrics)
    return registry.get_sample_value(name, labels)  # type: ignore[no-any-return]


def test_a_hold(metrics: Metrics) -> None:
    with fairlock.connect("memory://", on_event=metrics) as locks:
        for number in (1, 2, 3):
            with locks.lock(f"order:{number}") as lease:
                assert value(metrics, "fairlock_held", group="order:{n}") == 1
                lease.renew()
    group = "order:{n}"
    acquire = {"group": group, "outcome": "acquired", "contended": "false"}
    assert value(metrics, "fairlock_acquire_duration_seconds_count", **acquire) == 3
    assert value(metrics, "fairlock_hold_duration_seconds_count", group=group, outcome="released") == 3
    assert value(metrics, "fairlock_renewal_duration_seconds_count", group=group) == 3
    assert value(metrics, "fairlock_lease_margin_seconds_bucket", group=group, le="10.0") == 0
    assert value(metrics, "fairlock_lease_margin_seconds_bucket", group=group, le="30.0") == 3
    margin = value(metrics, "fairlock_lease_margin_seconds_sum", group=group)
    assert margin is not None
    assert 75 < margin <= 81
    assert value(metrics, "fairlock_held", group=group) == 0
    assert value(metrics, "fairlock_conflicts_total", group=group) is None


def test_a_wait_a_timeout_and_a_loss(metrics: Metrics, url: str) -> None:
    with fairlock.connect(url) as other, fairlock.connect(url, on_event=metrics) as locks:
        with other.lock("x"):
            assert locks.lock("x").acquire(timeout=0.06) is None
            thread = threading.Thread(target=lambda: locks.lock("x").acquire().release())
            thread.start()
            until = time.monotonic() + 10
            while value(metrics, "fairlock_waiters", group="x") != 1 and time.monotonic() < until:
                time.sleep(0.005)
            assert value(metrics, "fairlock_waiters", group="x") == 1
        thread.join()
        lease = locks.lock("x", max_hold=0.1).acquire()
        time.sleep(0.12)
        assert lease.lost
        until = time.monotonic() + 10
        while value(metrics, "fairlock_held", group="x") and time.monotonic() < until:
            time.sleep(0.005)
    assert value(metrics, "fairlock_waiters", group="x") == 0
    assert value(metrics, "fairlock_conflicts_total", group="x") == 2
    assert value(metrics, "fairlock_lost_total", group="x", reason="max_hold") == 1
    timeout = {"group": "x", "outcome": "timeout", "contended": "true"}
    assert value(metrics, "fairlock_acquire_duration_seconds_count", **timeout) == 1
    assert value(metrics, "fairlock_acquire_duration_seconds_bucket", le="0.05", **timeout) == 0
    assert value(metrics, "fairlock_acquire_duration_seconds_bucket", le="+Inf", **timeout) == 1
    assert value(metrics, "fairlock_hold_duration_seconds_count", group="x", outcome="lost") == 1


def test_one_object_serves_many_threads_and_clients(
    metrics: Metrics, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, size = 400, 4
    monkeypatch.setattr(measure_events, "TOGETHER", 100)
    monkeypatch.setattr(release, "MEASURED_TOGETHER", 100)

    def work() -> None:
        with fairlock.connect(url, on_event=metrics) as locks:
            for _ in range(turns):
                with locks.lock("x"):
                    pass

    threads = [threading.Thread(target=work) for _ in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert value(metrics, "fairlock_hold_duration_seconds_count", group="x", outcome="released") == size * turns
    assert value(metrics, "fairlock_held", group="x") == 0
    assert value(metrics, "fairlock_waiters", group="x") in (0, None)


def test_a_thousand_releases_are_evaluated_together_and_no_more_is_kept() -> None:
    metrics = Metrics(group=lambda name: name.partition(":")[0])
    kept = metrics.fairlock_measured("a:2")
    with fairlock.connect("memory://", on_event=metrics) as locks:
        with locks.lock("b"):
            pass
        for number in range(release.MEASURED_TOGETHER):
            assert len(kept.released) == number, "names of one group are kept together"
            with locks.lock(f"a:{number % 3}"):
                pass
        assert (len(kept.acquired), len(kept.released)) == (0, 0)
        assert len(metrics.fairlock_measured("b").released) == 1, "other groups wait for their turn"
        with locks.lock("a:1"):
            assert value(metrics, "fairlock_held", group="a") == 1
    assert value(metrics, "fairlock_hold_duration_seconds_count", group="a", outcome="released") == 1001


def test_a_lock_used_before_and_after_a_fork_counts_in_the_child_what_the_child_does(metrics: Metrics) -> None:
    with fairlock.connect("memory://", on_event=metrics) as locks:
        lock = locks.lock("x")
        with lock:
            pass
        child = os.fork()
        if not child:
            value(metrics, "fairlock_held", group="x")
            with lock:
                held = value(metrics, "fairlock_held", group="x")
            count = value(metrics, "fairlock_hold_duration_seconds_count", group="x", outcome="released")
            os._exit(0 if (held, count) == (1, 1) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert value(metrics, "fairlock_hold_duration_seconds_count", group="x", outcome="released") == 1


@pytest.mark.parametrize("level", [logging.DEBUG, logging.WARNING])
def test_metrics_and_the_log_read_the_same_events(
    metrics: Metrics, caplog: pytest.LogCaptureFixture, level: int
) -> None:
    caplog.set_level(level, "fairlock")
    with fairlock.connect("memory://", on_event=metrics) as locks, locks.lock("x"):
        assert value(metrics, "fairlock_held", group="x") == 1
    assert value(metrics, "fairlock_held", group="x") == 0
    logged = [record.event.kind for record in caplog.records if hasattr(record, "event")]
    assert logged == (["acquired", "released"] if level == logging.DEBUG else [])


def test_in_the_child_of_a_fork_nothing_is_counted_yet(metrics: Metrics) -> None:
    with fairlock.connect("memory://", on_event=metrics) as locks, locks.lock("x"):
        child = os.fork()
        if not child:
            os._exit(0 if value(metrics, "fairlock_held", group="x") is None else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert value(metrics, "fairlock_held", group="x") == 1


def test_groups_can_be_given(url: str) -> None:
    metrics = Metrics(group=lambda name: name.partition(":")[0])
    with fairlock.connect(url, on_event=metrics) as locks, locks.lock("user:alice"), locks.lock("user:bob"):
        assert value(metrics, "fairlock_held", group="user") == 2


def test_the_state_of_a_whole_store(metrics: Metrics, url: str) -> None:
    with fairlock.connect(url) as one, fairlock.connect(url) as other:
        thread = threading.Thread(target=lambda: other.lock("x:1").acquire().release())
        with one.lock("x:1"), one.lock("x:2"):
            thread.start()
            until = time.monotonic() + 10
            while not any(r.queue for r in one.snapshot().resources) and time.monotonic() < until:
                time.sleep(0.005)
            member = RingMember("a", "1", "x", "y", 1.0, "t", "u")
            metrics.show(one.snapshot(), [Ring((member,), True)])
        thread.join()
    assert value(metrics, "fairlock_held", group="x:{n}") == 2
    assert value(metrics, "fairlock_waiters", group="x:{n}") == 1
    assert value(metrics, "fairlock_expired", group="x:{n}") == 0
    longest = value(metrics, "fairlock_longest_wait_seconds", group="x:{n}")
    assert longest is not None
    assert 0 <= longest < 10
    assert value(metrics, "fairlock_deadlocks", certain="true") == 1
    assert value(metrics, "fairlock_deadlocks", certain="false") == 0
    metrics.show(Snapshot("memory://", 0.0, ()))
    assert value(metrics, "fairlock_held", group="x:{n}") == 0, "a name that is idle is not in a snapshot"


def test_promtool_accepts_a_scrape(metrics: Metrics) -> None:
    promtool = programs.find("promtool") or lacking("This machine has no promtool.")
    with fairlock.connect("memory://", on_event=metrics) as locks, locks.lock('a"\\\n'.strip() + "{1}"):
        metrics.show(locks.snapshot())
        text = metrics.text()
    checked = run([promtool, "check", "metrics"], input=text, capture_output=True, timeout=60)
    assert checked.returncode == 0, checked.stderr + checked.stdout
    assert b"fairlock_held" in text
