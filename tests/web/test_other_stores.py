"""The page works with every store by -u alone: here on Redis and on PostgreSQL, without and with a journal."""

import time
from pathlib import Path

import pytest

import fairlock
from tests.machine_load import within
from tests.web.conftest import UI, until


@pytest.mark.parametrize("store", ["redis_alone", "postgresql"])
def test_the_page_shows_a_store_by_its_url(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue(store)
    ui = UI(tmp_path, "--journal", str(tmp_path / "journal.db"), url=server.url)
    try:
        stream = ui.stream()
        next(stream)
        with ui.locks.lock("orders:7", note="ship"):
            began = time.monotonic()
            for state, _ in stream:
                if rows := [row for row in state["rows"] if row["name"] == "orders:7"]:
                    break
            assert time.monotonic() - began < within(2, below=9), "on Redis, too, where the keeper lists it"
            assert rows[0]["holders"][0]["note"] == "ship"
            assert rows[0]["holders"][0]["owner"] == "the-test"
            assert ui.ask("/metrics").body.count(b"fairlock_held{") >= 1
        for state, _ in ui.stream():
            if "released" in [event["kind"] for event in state["events"] if event["name"] == "orders:7"]:
                break
        assert b'fairlock_held{group="orders:{n}"} 0.0' in ui.ask("/metrics").body, "it is 0, and not absent"
    finally:
        ui.end()


def test_the_metrics_count_leases_that_were_lost_or_evicted_by_any_client(tmp_path: Path) -> None:
    """Also of one that has died, which cannot count its own."""
    ui = UI(tmp_path)
    try:
        stream = ui.stream()
        next(stream)
        assert b"fairlock_lost_total{" not in ui.ask("/metrics").body
        dying = ui.holder("dying", "orders:8", lease=3)
        dying.kill()
        evicted = ui.locks.lock("orders:9").acquire()
        until(lambda: "orders:9" in [event["name"] for event in next(stream)[0]["events"]])
        ui.locks.evict("orders:9", reason="test", at_once=True)
        until(lambda: b'fairlock_lost_total{group="orders:{n}",reason="expired"} 1.0' in ui.ask("/metrics").body, 30)
        until(lambda: b'fairlock_lost_total{group="orders:{n}",reason="evicted"} 1.0' in ui.ask("/metrics").body, 30)
        until(lambda: evicted.lost)
    finally:
        ui.end()


def test_the_client_of_a_page_is_an_ordinary_client(tmp_path: Path) -> None:
    """It holds nothing in the store that it shows: what a page keeps for itself lies beside its journal."""
    ui = UI(tmp_path, "--journal", str(tmp_path / "journal.db"))
    try:
        next(ui.stream())
        assert ui.locks.snapshot().resources == ()
        with fairlock.connect(f"sqlite:///{tmp_path}/journal.db-lock") as beside:
            assert [one.name for one in beside.snapshot().resources] == ["journal"]
    finally:
        ui.end()
