"""What the page cannot show in full: long queues, large rings, long histories, and what it does not know. Whatever is
left out is counted."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fairlock
from fairlock.web.asgi_app import SPANS
from fairlock.web.event_journal_file import Journal
from fairlock.web.events_from_snapshots import Happened
from tests.web.conftest import UI, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

    Open = Callable[..., Page]

MANY = 14  # more than a row has


class Crowd:
    """Clients with owners of their own, which hold and wait."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.cancel = threading.Event()
        self.clients: list[fairlock.Locks] = []
        self.threads: list[threading.Thread] = []

    def client(self, owner: str) -> fairlock.Locks:
        self.clients.append(fairlock.connect(self.url, owner=owner))
        return self.clients[-1]

    def start(self, work: Callable[[], object]) -> None:
        self.threads.append(threading.Thread(target=work))
        self.threads[-1].start()

    def end(self) -> None:
        self.cancel.set()
        for thread in self.threads:
            thread.join(20)
        for client in self.clients:
            client.close()


@pytest.fixture
def crowd(ui: UI) -> Iterator[Crowd]:
    it = Crowd(ui.store)
    yield it
    it.end()


def test_holders_and_waiters_that_a_row_leaves_out_are_counted_found_and_listed(
    ui: UI, open_page: Open, crowd: Crowd
) -> None:
    for number in range(MANY):
        crowd.client(f"holder-{number:02}").semaphore("left:out", MANY).acquire()
    for number in range(MANY):
        locks = crowd.client(f"waiter-{number:02}")
        crowd.start(lambda it=locks: it.semaphore("left:out", MANY).acquire(cancel=crowd.cancel))
        until(lambda n=number: len(getattr(ui.resource("left:out"), "queue", ())) == n + 1)
    last = f"waiter-{MANY - 1:02}"
    page = open_page(f"{ui.base}?filter=owner:{last}&span=60#token={ui.token}")
    row = page.locator("tr[data-name='left:out']")
    row.wait_for()
    assert last not in row.inner_text()
    row.get_by_text("+2 more", exact=True).wait_for()
    row.get_by_text("+6", exact=True).wait_for()
    page.locator(".timeline .hidden-bars").wait_for()
    bars = page.locator(".timeline .lane").first.locator("g rect.open, g rect.wait").count()
    label = page.locator(".timeline .hidden-bars").first.text_content()
    assert label == f"and {2 * MANY - bars} more"
    page.fill("#filter", f"holder-{MANY - 1:02}")
    row.wait_for()
    row.locator(".name").click()
    page.locator("#panel .queue li").nth(MANY - 1).wait_for()
    page.locator("#panel .holder").nth(MANY - 1).wait_for()
    assert page.locator("#panel .holder").count() == page.locator("#panel .queue li").count() == MANY
    page.fill("#filter", "nobody-of-this-name")
    row.wait_for(state="detached")


def test_a_ring_of_many_with_long_names_is_drawn_without_overlaps(ui: UI, open_page: Open, crowd: Crowd) -> None:
    names = [f"tenant/8f14e45f-ceea-467f/region/eu-central-1/partition-{number:06}/compaction" for number in range(9)]
    together = threading.Barrier(len(names))

    def work(number: int) -> None:
        locks = crowd.client(f"web-7f9c6d5b8-x2x4q-{number}.production.svc.cluster.local:4117")
        with locks.lock(names[number]):
            together.wait(30)
            locks.lock(names[(number + 1) % len(names)]).acquire(cancel=crowd.cancel)

    for number in range(len(names)):
        crowd.start(lambda n=number: work(n))
    page = open_page(f"{ui.base}#token={ui.token}")
    ring = page.locator(".ring")
    ring.wait_for()
    assert ring.get_by_text("9 wait for each other").count() == 1
    assert ring.locator(".links li").count() == 9
    assert ring.locator(".between").text_content() == "… 4 more …"
    overlaps = """() => {
        const boxes = [...document.querySelectorAll(".ring .node rect")].map((it) => it.getBoundingClientRect());
        const cross = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
        const texts = [...document.querySelectorAll(".ring .node")].filter((node) => {
            const [box, text] = [...node.children].map((it) => it.getBoundingClientRect());
            return text.left < box.left || text.right > box.right;
        });
        return [boxes.some((a, at) => boxes.some((b, other) => other > at && cross(a, b))), texts.length];
    }"""
    assert page.evaluate(overlaps) == [False, 0]
    shown = [text.split("tenant/")[0] for text in ring.locator(".node.lock text").all_text_contents()]
    assert len(set(shown)) == len(shown) == 5, "what differs is shown of each name"


def test_a_kind_that_the_page_does_not_know_is_shown_as_it_is(ui: UI, open_page: Open) -> None:
    """A server of another version may send it, and a row may lack what this page expects."""
    hello = {"store": "test://", "who": "me", "csrf": "", "admin": False, "journal": False, "exclusive": 7}
    event = {"id": 1, "at": time.time(), "name": "x", "owner": "", "note": "", "ticket": "", "fence": 0}
    events = [{**event, "id": n, "kind": kind, "seconds": None, "detail": ""} for n, kind in enumerate(KINDS)]
    state = {
        "look": 1, "whole": True, "at": time.time(), "age": 0.0, "gone": [], "rings": [], "deadlocks": 0, "error": "",
        "rows": [{"name": "x", "kind": "barrier", "rest": 1}, {"name": "y"}, {"name": "z", "kind": "constructor"}],
        "figures": {"held": 0, "waiting": 0, "longest": 0, "stale": 0, "damaged": 0, "names": 3, "lost": {}},
        "events": events,
    }  # fmt: skip
    page = open_page("about:blank")
    body = f"event: hello\ndata: {json.dumps(hello)}\n\nid: a.1.1\ndata: {json.dumps(state)}\n\n"
    page.route("**/api/stream", lambda it: it.fulfill(status=200, content_type="text/event-stream", body=body))
    page.goto(f"{ui.base}?filter=kind:b#token={ui.token}")
    page.locator("tr[data-name=x] .badge", has_text="barrier").wait_for()
    page.fill("#filter", "")
    page.locator("tr[data-name=y] .badge", has_text="unknown").wait_for()
    page.locator("tr[data-name=z] .badge", has_text="constructor").wait_for()
    assert [line.split()[1] for line in page.locator(".events li").all_inner_texts()] == KINDS[::-1]
    page.locator("tr[data-name=x] .name").click()
    page.locator("#panel").get_by_text("0 holders").wait_for()


KINDS = ["handed_over", "constructor", "__proto__"]


def test_a_history_that_is_cut_says_from_when_it_is_complete(tmp_path: Path, open_page: Open) -> None:
    now, file = time.time(), tmp_path / "journal.db"
    journal = Journal(file)
    journal.add(
        Happened(now - 250 + number / 50, "released", f"n{number % 5}", "o", "", f"t{number}", 1, 0.01)
        for number in range(SPANS + 500)
    )
    journal.close()
    ui = UI(tmp_path, "--journal", str(file))
    try:
        page = open_page(ui.url)
        page.locator(".timeline .foot", has_text=re.compile(r"before \d\d:\d\d:\d\d not all is shown")).wait_for()
        page.goto(f"{ui.base}?span=60#token={ui.token}")
        page.locator(".timeline .hold").first.wait_for(state="attached")
        assert "not all is shown" not in page.locator(".timeline .foot").inner_text()
        page.locator(".events", has_text="The newest 60").wait_for()
        page.goto("about:blank")  # before its server ends, which the console would report
    finally:
        ui.end()
