"""What the page shows when something is unusual: very long names, a store that is down, a server that has ended."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fairlock
from tests.servers.server import Server
from tests.web.conftest import UI, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    Open = Callable[..., Page]

LONG = "tenant/8f14e45f-ceea-467f-a9d1-5b0c6d1f9f0a/region/eu-central-1/orders/partition-000042/compaction"
POD = "web-7f9c6d5b8-x2x4q.production.svc.cluster.local:4117"
LEFT = "() => document.querySelector('tr[data-name=\"x\"] .left .counter').textContent"


@pytest.fixture
def own_ui(tmp_path: Path) -> Iterator[UI]:
    ui = UI(tmp_path, "--admin")
    yield ui
    ui.end()


@pytest.fixture
def crowd(ui: UI) -> Iterator[None]:
    """One holder of LONG and ten that wait for it."""
    cancel = threading.Event()
    clients = [fairlock.connect(ui.store, owner=f"{number}.{POD}") for number in range(11)]
    clients[0].lock(LONG, note="a job that takes hours because nobody has pruned its table for years").acquire()
    threads = [threading.Thread(target=lambda it=it: it.lock(LONG).acquire(cancel=cancel)) for it in clients[1:]]
    for thread in threads:
        thread.start()
    until(lambda: len(getattr(ui.resource(LONG), "queue", ())) == 10)
    yield
    cancel.set()
    for thread in threads:
        thread.join(20)
    for it in clients:
        it.close()


def test_long_names_neither_widen_the_page_nor_push_other_rows_out(ui: UI, open_page: Open, crowd: None) -> None:
    page = open_page(f"{ui.base}?name={LONG}&filter=tenant#token={ui.token}")
    row = page.locator(f'tr[data-name="{LONG}"]')
    page.get_by_role("button", name="Evict…").click()
    page.get_by_label("At once").check()
    form = page.locator("#panel form.evict")
    for width in (1480, 1200, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off"
        outside = """(form) => {
            const edge = document.getElementById("panel").getBoundingClientRect().right;
            const all = [...form.querySelectorAll("*")];
            return all.filter((it) => it.getBoundingClientRect().right > edge).map((it) => it.outerHTML);
        }"""
        assert form.evaluate(outside) == []
        cancel = form.get_by_role("button", name="Cancel").bounding_box()
        assert cancel is not None and cancel["height"] < 45, "its word is on one line"
    assert row.locator(".chip").count() == 8
    assert row.get_by_text("+2", exact=True).count() == 1
    assert re.search(r"\ds$", row.locator(".chip").first.inner_text()), "the owner is cut, not how long it has waited"
    assert page.locator("#panel .queue li").count() == 10
    name = row.locator(".name").bounding_box()
    assert name is not None and name["height"] < 80, "three lines of it"


def test_the_first_order_is_by_the_waiting_that_a_lock_causes(ui: UI, open_page: Open) -> None:
    """Not by name until the next time that rows may move."""
    for number in (1, 2, 3):
        ui.holder(f"web-{number}:7", f"order:{'abc'[number - 1]}")
    ui.holder("web-9:7", "order:c", wait=False)
    open_page(f"{ui.base}?filter=order:#token={ui.token}").locator("tr[data-name='order:c'] .chip").first.wait_for()
    for _ in range(3):  # the server of the page has seen the waiter now
        page = open_page(f"{ui.base}?filter=order:#token={ui.token}")
        page.locator("tr[data-name='order:c']").wait_for()
        names = page.evaluate("[...document.querySelectorAll('tbody tr')].map((row) => row.dataset.name)")
        assert names == ["order:c", "order:a", "order:b"]


def test_a_row_shows_for_how_long_a_holder_has_held_it(ui: UI, open_page: Open) -> None:
    ui.holder("web-1:8", "held:long")
    page = open_page(f"{ui.base}?filter=held:#token={ui.token}")
    held = page.locator("tr[data-name='held:long'] .for .counter")
    held.wait_for()
    before = int(held.inner_text().rstrip("s"))
    until(lambda: int(held.inner_text().rstrip("s")) > before)


def test_a_server_that_has_ended_is_reported_and_nothing_counts_down(own_ui: UI, chromium: Browser) -> None:
    own_ui.holder("web-1:9", "x")
    page = chromium.new_page()
    try:
        page.goto(own_ui.url)
        page.locator("tr[data-name=x] .left").wait_for()
        own_ui.process.send_signal(signal.SIGKILL)
        page.locator(".banner", has_text="The server of this page does not reply.").wait_for()
        assert page.locator(".dot.offline").count() == 1
        before = page.evaluate(LEFT)
        page.locator(".banner", has_text=re.compile(r"was read [3-9]s ago")).wait_for()
        assert page.evaluate(LEFT) == before, "the lease may have been renewed meanwhile: nobody knows"
    finally:
        page.close()


def test_a_page_goes_on_when_its_server_does(own_ui: UI, chromium: Browser) -> None:
    page = chromium.new_page()
    try:
        page.goto(own_ui.url)
        page.locator(".dot.live").wait_for()
        own_ui.process.send_signal(signal.SIGSTOP)
        page.locator(".banner", has_text="The server of this page does not reply.").wait_for()
        own_ui.process.send_signal(signal.SIGCONT)
        own_ui.holder("web-1:10", "y")
        page.locator("tr[data-name=y]").wait_for()
        page.locator(".banner").wait_for(state="detached")
        assert page.locator(".dot.live").count() == 1
    finally:
        page.close()


def test_a_store_that_is_down_is_reported_and_nothing_counts_down(
    redis_alone: Server, tmp_path: Path, chromium: Browser
) -> None:
    ui = UI(tmp_path, "--admin", url=redis_alone.url)
    page = chromium.new_page()
    try:
        ui.holder("web-1:11", "x")
        page.goto(ui.url)
        page.locator("tr[data-name=x] .left").wait_for()
        redis_alone.stop()
        page.locator(".banner", has_text="does not reply in time").wait_for()
        assert page.locator(".where").inner_text().startswith("the store cannot be read")
        before = page.evaluate(LEFT)
        age = page.locator(".banner .counter")
        until(lambda: int(age.inner_text().rstrip("s")) >= 4)
        assert page.evaluate(LEFT) == before
        redis_alone.cont()
        page.locator(".banner").wait_for(state="detached", timeout=15_000)  # soon, however long its timeout was
        assert page.locator(".where").inner_text().startswith("live")
        page.wait_for_function(f"() => ({LEFT})() !== '{before}'")
    finally:
        redis_alone.cont()
        page.close()
        ui.end()


def test_the_timeline_shows_holds_waits_and_evictions_and_zooms(ui: UI, open_page: Open) -> None:
    ui.holder("web-1:12", "lane:a")
    ui.holder("web-2:12", "lane:a", wait=False)
    until(lambda: getattr(ui.resource("lane:a"), "queue", ()))
    (holder,) = ui.holders("lane:a")
    page = open_page(f"{ui.base}?filter=lane:&span=60#token={ui.token}")
    page.locator("svg .hold.open").wait_for()
    page.locator("svg .wait").first.wait_for()
    ui.locks.evict("lane:a", reason="a test", at_once=True)
    page.locator("svg .edge").first.wait_for(state="attached")
    page.locator("svg .hold:not(.open)").first.hover(force=True)
    tip = page.locator(".tip")
    tip.wait_for()
    wanted = ("lane:a", "web-1:12", "held", "evicted", "a test", f"fence {holder.fence}")
    assert [text for text in wanted if text not in tip.inner_text()] == []
    box = page.locator(".timeline svg").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] - 3)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] - 3, steps=4)
    page.mouse.up()
    page.wait_for_function("() => new URLSearchParams(location.search).has('end')")
    assert "–" in page.locator(".timeline h2").inner_text(), "from one time to another"
    page.get_by_role("button", name="live").click()
    page.wait_for_function("() => !new URLSearchParams(location.search).has('end')")
