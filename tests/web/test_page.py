"""The page in a browser, as a person on call uses it."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

import fairlock
from tests.machine_load import within
from tests.web.conftest import UI, until

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    Open = Callable[..., Page]


def row(page: Page, name: str) -> Locator:
    return page.locator(f'tr[data-name="{name}"]')


def address(ui: UI, query: str = "") -> str:
    return f"{ui.base}{query}#token={ui.token}"


def test_the_table_shows_an_acquire_of_another_process_within_two_seconds(ui: UI, open_page: Open) -> None:
    page = open_page(address(ui))
    page.locator(".dot.live").wait_for()
    ui.holder("web-1:41", "orders:1")
    began = time.monotonic()
    row(page, "orders:1").wait_for()
    assert time.monotonic() - began < within(2, below=8)
    assert "web-1:41" in row(page, "orders:1").inner_text()
    assert "as a test" in row(page, "orders:1").inner_text()
    assert page.locator("#figure-held b").inner_text() != "0"


def test_a_pool_is_a_row_with_the_items_of_its_owners(ui: UI, open_page: Open) -> None:
    pool = ui.locks.pool("jobs")
    pool.add_many(["mail 1", "mail 2"])
    page = open_page(address(ui))
    page.locator(".dot.live").wait_for()
    item = pool.acquire(key="mail 1")
    row(page, "jobs").get_by_text("mail 1").wait_for()
    assert "pool 1/2" in row(page, "jobs").inner_text()
    row(page, "jobs").get_by_role("button").first.click()
    page.locator("#panel .holder").wait_for()
    assert page.locator("#panel button", has_text="Evict").count() == 0, "an item is not evicted here"
    assert item is not None
    item.release()
    row(page, "jobs").get_by_text("free").wait_for()


def test_the_token_leaves_the_address_and_survives_a_reload(ui: UI, open_page: Open) -> None:
    page = open_page(address(ui))
    page.locator(".dot.live").wait_for()
    assert ui.token not in page.url
    page.reload()
    page.locator(".dot.live").wait_for()


def test_without_a_token_the_page_says_how_to_get_in(ui: UI, chromium: object, open_page: Open) -> None:
    page = open_page("about:blank")
    context = page.context
    other = context.new_page()  # its console is not looked at: the browser reports the refusal there
    other.goto(ui.base)
    other.get_by_text("Open the address that `fairlock ui` printed").wait_for()
    assert other.locator("table").count() == 0


def test_the_bar_of_a_dead_holder_runs_out_and_the_next_chip_moves_up(ui: UI, open_page: Open) -> None:
    """The holder is frozen, as on a machine that died: SQLite notices a process that was killed sooner than its lease
    ends."""
    page = open_page(address(ui))
    first = ui.holder("web-1:50", "killed", lease=5)
    ui.holder("web-2:51", "killed", wait=False)
    until(lambda: (it := ui.resource("killed")) and it.queue)
    ui.holder("web-3:52", "killed", wait=False)
    until(lambda: len(getattr(ui.resource("killed"), "queue", ())) == 2)
    chips = row(page, "killed").locator(".chip")
    page.wait_for_function("() => document.querySelectorAll('tr[data-name=killed] .chip').length === 2")
    assert [text.split()[:2] for text in chips.all_inner_texts()] == [["1.", "web-2:51"], ["2.", "web-3:52"]]
    first.send_signal(signal.SIGSTOP)
    width = "() => document.querySelector('tr[data-name=killed] .bar span').getBoundingClientRect().width"
    widths = [page.evaluate(width)]
    row(page, "killed").locator(".bar.low").wait_for()  # less than a quarter is left
    widths.append(page.evaluate(width))
    assert widths[1] < widths[0] * 0.7
    row(page, "killed").get_by_text("web-2:51").first.wait_for()
    page.wait_for_function("() => document.querySelector('tr[data-name=killed] .who').innerText.includes('web-2:51')")
    page.wait_for_function("() => document.querySelectorAll('tr[data-name=killed] .chip').length === 1")
    assert chips.all_inner_texts()[0].startswith("1. web-3:52")
    page.locator(".events li", has_text="killed").filter(has_text="lost").wait_for()
    page.click("#figure-lost")
    page.locator("tr[data-name='orders:1']").wait_for(state="detached")
    assert row(page, "killed").count() == 1


def test_the_next_chip_of_a_killed_holder_moves_up_within_two_seconds(ui: UI, open_page: Open) -> None:
    first = ui.holder("web-1:60", "killed -9")
    ui.holder("web-2:61", "killed -9", wait=False)
    page = open_page(address(ui))
    row(page, "killed -9").locator(".chip").wait_for()
    first.kill()
    began = time.monotonic()
    row(page, "killed -9").locator(".chip").wait_for(state="detached")
    assert time.monotonic() - began < within(2, below=10)
    assert row(page, "killed -9").locator(".who").inner_text().startswith("web-2:61")


def test_filter_selection_and_sort_survive_a_reload_and_a_link(ui: UI, open_page: Open) -> None:
    with ui.locks.lock("keep:1", note="payroll"), ui.locks.lock("keep:2"), ui.locks.lock("other"):
        page = open_page(address(ui))
        page.fill("#filter", "keep:")
        row(page, "keep:1").wait_for()
        page.locator("tr[data-name=other]").wait_for(state="detached")
        row(page, "keep:2").click()
        page.locator("#panel").get_by_text("last fence").wait_for()
        page.get_by_role("button", name="lock", exact=True).click()  # sort by name
        page.get_by_role("button", name="by owner").click()
        page.get_by_role("button", name="Zoom out").click()
        for link in (page, open_page(page.url + f"#token={ui.token}", color_scheme="light")):
            link.reload()
            row(link, "keep:1").wait_for()
            assert link.input_value("#filter") == "keep:"
            assert row(link, "other").count() == 0
            assert "chosen" in (row(link, "keep:2").get_attribute("class") or "")
            assert "keep:2" in link.locator("#panel .title").inner_text()
            assert link.locator("th[aria-sort=ascending]").inner_text().startswith("lock")
            assert link.locator("button[aria-pressed=true]", has_text="by owner").count() == 1
            assert "15m" in link.locator(".timeline h2").inner_text()
        page.fill("#filter", "PAYROLL kind:lock owner:the-test")
        page.locator("tr[data-name='keep:2']").wait_for(state="detached")
        assert row(page, "keep:1").count() == 1


def test_a_ring_of_three_is_drawn_with_the_youngest_marked(ui: UI, open_page: Open) -> None:
    page = open_page(address(ui))
    names = ["ring:a", "ring:b", "ring:c"]
    processes = [ui.holder(f"ring-{number}", name, names[(number + 1) % 3]) for number, name in enumerate(names)]
    try:
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        drawing = page.locator(".ring svg")
        drawing.wait_for()
        assert sorted(page.locator(".ring .node.lock text").all_text_contents()) == sorted(name * 2 for name in names)
        assert len(page.locator(".ring .node.owner rect").all()) == 3
        assert page.locator(".ring .node.youngest").count() == 1
        assert page.locator(".ring .edge").count() == 6
        label = drawing.get_attribute("aria-label") or ""
        assert all(name in label for name in names)
        assert page.locator("#figure-deadlock.bad b").inner_text() == "1"
        page.click("#figure-deadlock")
        page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 3")
        assert page.locator("tbody .badge", has_text="deadlock").count() == 3
        page.locator(".ring .link", has_text="ring:b").first.click()
        assert page.locator("#panel .title").inner_text() == "ring:b"
    finally:
        for process in processes:
            process.kill()


def test_a_holder_is_evicted_at_once_with_the_typed_name(ui: UI, open_page: Open) -> None:
    ui.holder("web-7:70", "stuck job")
    page = open_page(address(ui, "?name=stuck+job"))
    page.get_by_role("button", name="Evict…").click()
    form = page.locator("form.evict")
    button = form.get_by_role("button", name="Evict web-7:70")
    assert "not renewed any more" in form.inner_text()
    assert button.is_disabled()
    form.locator("input[name=reason]").fill("it's <stuck>")
    assert button.is_enabled()
    form.get_by_text("At once").click()
    assert "may still be working" in form.inner_text()
    assert button.is_disabled()
    form.locator("input[name=typed]").fill("stuck")
    assert button.is_disabled()
    form.locator("input[name=typed]").fill("stuck job")
    command = form.locator(".command code").inner_text()
    ticket = ui.holders("stuck job")[0].ticket
    told = ["evict", "stuck job", "--ticket", ticket, "--reason", "it's <stuck>", "--at-once"]
    shell = subprocess.run(["sh", "-c", f'set -- {command}; printf "%s\\n" "$@"'], capture_output=True, text=True)
    assert shell.stdout.splitlines() == ["fairlock", *told]
    button.click()
    form.wait_for(state="detached")
    until(lambda: not ui.holders("stuck job"))
    event = page.locator("#panel .history li", has_text="evicted")
    event.wait_for()
    assert "it's <stuck>" in event.inner_text()
    assert re.search(r"by \S+@\S+:", event.inner_text())


def test_a_holder_is_evicted_at_the_end_of_its_lease(ui: UI, open_page: Open) -> None:
    lost = []
    lease = ui.locks.lock("ends later", lease=4, on_lost=lost.append).acquire()
    page = open_page(address(ui, "?name=ends+later"))
    page.get_by_role("button", name="Evict…").click()
    page.locator("form.evict input[name=reason]").fill("make room")
    page.get_by_role("button", name="Evict the-test").click()
    page.locator("#panel .history li", has_text="eviction").wait_for()
    until(lambda: lost)
    assert lease
    with pytest.raises(fairlock.LeaseLost, match="make room"):
        lease.ensure_held()


def test_a_holder_is_asked_to_release(ui: UI, open_page: Open) -> None:
    """The reason is text of others: no part of it becomes an element."""
    asked: list[fairlock.Lease] = []
    with ui.locks.lock("ask me", on_asked=asked.append) as lease:
        page = open_page(address(ui, "?name=ask+me"))
        page.get_by_role("button", name="Ask to release…").click()
        form = page.locator("form.evict")
        assert "holds the name as before" in form.inner_text()
        assert page.get_by_role("button", name="Ask the-test").is_disabled()
        reason = "it's <img src=x onerror=alert(1)>"
        form.locator("input[name=reason]").fill(reason)
        (holder,) = ui.holders("ask me")
        line = form.locator(".command code").inner_text()
        assert line == f"fairlock ask 'ask me' --ticket {holder.ticket} --reason 'it'\\''s {reason[5:]}'"
        page.get_by_role("button", name="Ask the-test").click()
        form.wait_for(state="detached")
        until(lambda: asked)
        assert lease.held and lease.asked_to_release is not None
        assert lease.asked_to_release.reason == reason and "@" in lease.asked_to_release.by
        shown = page.locator("#panel .holder .asked")
        shown.wait_for()
        assert reason in shown.inner_text()
        assert "asked" in row(page, "ask me").locator(".badge.warn").inner_text()
        audit = page.locator("#panel .audit li")
        audit.wait_for()
        assert reason in audit.inner_text() and "the-test" in audit.inner_text()
        page.locator("#panel .history li", has_text="asked to release").first.wait_for()
        assert page.locator("#panel img").count() == 0


def test_without_admin_nothing_can_be_evicted(read_only: UI, open_page: Open) -> None:
    with read_only.locks.lock("x"):
        page = open_page(address(read_only, "?name=x"))
        page.locator("#panel .holder").wait_for()
        page.locator("#panel .history li").first.wait_for()
        assert page.get_by_role("button", name="Evict").count() == 0
        assert page.get_by_role("button", name="Ask").count() == 0
        assert "read-only" in page.locator(".where").inner_text()


def test_the_keyboard_alone_is_enough(ui: UI, open_page: Open) -> None:
    ui.holder("web-8:80", "keys:1")
    ui.holder("web-8:81", "keys:2")
    page = open_page(address(ui, "?sort=name"))
    press = page.keyboard.press
    row(page, "keys:2").wait_for()
    press("/")
    page.keyboard.type("keys:")
    press("Enter")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 2")
    press("j")
    chosen = page.locator("#panel .title")
    first = chosen.inner_text()
    press("j")
    page.wait_for_function("(was) => document.querySelector('#panel .title').innerText !== was", arg=first)
    press("k")
    page.wait_for_function("(was) => document.querySelector('#panel .title').innerText === was", arg=first)
    press("?")
    page.locator("dialog[open]").wait_for()
    press("Escape")
    page.locator("dialog[open]").wait_for(state="detached")
    for theme in ("light", "dark", None):
        press("t")
        assert page.locator("html").get_attribute("data-theme") == theme
    press("p")
    page.locator("#pause[aria-pressed=true]").wait_for()
    press("p")
    press("Enter")
    assert page.evaluate("document.activeElement.id") == "panel"
    page.locator("#panel .danger").wait_for()
    for _ in range(5):
        press("Tab")
        if "Evict" in page.evaluate("document.activeElement.innerText"):
            break
    press("Enter")
    page.keyboard.type("by keys")
    press("Tab")
    press("ArrowDown")  # at once
    press("Tab")
    page.keyboard.type(first)
    press("Enter")
    until(lambda: not ui.holders(first))
    page.locator("form.evict").wait_for(state="detached")
    press("Escape")
    page.locator("#panel").wait_for(state="detached")


def test_the_next_key_belongs_to_what_the_last_one_opened(ui: UI, open_page: Open) -> None:
    """A fast typist, or a slow browser: no key is lost in the frame in which a form, the help or the details appear,
    and none of them means something else there."""
    with ui.locks.lock("typed:1"), ui.locks.lock("typed:2"):
        page = open_page(address(ui, "?sort=name&filter=typed:"))
        row(page, "typed:2").wait_for()
        press = "(key) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))"
        focus = "document.activeElement"
        assert page.evaluate(f"() => {{ ({press})('j'); ({press})('Enter'); return {focus}.id; }}") == "panel"
        assert page.evaluate(f"() => {{ ({press})('?'); return document.querySelector('dialog').open; }}")
        page.keyboard.press("Escape")
        page.locator("dialog[open]").wait_for(state="detached")
        for kind in ("danger", "polite"):
            page.locator(f"#panel .{kind}").wait_for()
            click = f"document.querySelector('#panel .{kind}').click()"
            assert page.evaluate(f"() => {{ {click}; return {focus}.name; }}") == "reason"
            page.keyboard.type("k")
            page.keyboard.press("Escape")
            assert page.evaluate("document.activeElement.id") == "panel", "and j, k and Escape work from there"
        assert page.locator("#panel .title").inner_text() == "typed:1"


def test_a_form_stays_when_the_details_cannot_be_read(ui: UI, open_page: Open) -> None:
    with ui.locks.lock("typing", lease=3):
        page = open_page("about:blank")
        failed: list[str] = []
        page.goto(address(ui, "?name=typing"))
        page.get_by_role("button", name="Evict…").click()
        page.locator("form.evict input[name=reason]").fill("half a sen")
        reply = {"status": 200, "body": "not JSON"}
        page.route("**/api/name?*", lambda route: (failed.append(route.request.url), route.fulfill(**reply)))
        page.locator("#panel .bad").wait_for()  # the details are read again with each renewal
        assert failed and page.locator("form.evict input[name=reason]").input_value() == "half a sen"


def test_a_row_moves_at_most_every_five_seconds(ui: UI, open_page: Open) -> None:
    with ui.locks.lock("move:a"), ui.locks.lock("move:b"):
        page = open_page(address(ui, "?filter=move:"))
        row(page, "move:b").wait_for()
        order = "() => [...document.querySelectorAll('tbody tr')].map((row) => row.dataset.name).join()"
        assert page.evaluate(order) == "move:a,move:b"
        # Seen from here, rows move at the end of an interval of five seconds: wait for one to begin.
        with ui.locks.lock("move:0"):
            page.wait_for_function(f"() => ({order})().startsWith('move:0')")
            began = time.monotonic()
            waiter = ui.holder("web-9:90", "move:b", wait=False)
            row(page, "move:b").locator(".chip").wait_for()
            seen = page.evaluate(order)
            assert seen == "move:0,move:a,move:b" or time.monotonic() - began > 4
            page.wait_for_function(f"() => ({order})() === 'move:b,move:0,move:a'")
            assert time.monotonic() - began > 4
            waiter.kill()


def test_a_hidden_tab_reads_nothing_and_catches_up(ui: UI, open_page: Open) -> None:
    page = open_page(address(ui))
    page.locator(".dot.live").wait_for()
    sent = []
    page.on("request", lambda request: sent.append(request) if "/api/" in request.url else None)
    hide = """(hidden) => {
        Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(hide, True)
    page.locator(".dot.hidden").wait_for()
    page.wait_for_timeout(300)
    sent.clear()
    with ui.locks.lock("while hidden"):
        page.wait_for_timeout(2500)
        assert sent == []
        assert row(page, "while hidden").count() == 0
        page.evaluate(hide, False)
        row(page, "while hidden").wait_for()
        (stream,) = [request for request in sent if request.url.endswith("/api/stream")]
        assert re.fullmatch(r"\w+\.\d+\.\d+", stream.headers["last-event-id"])
