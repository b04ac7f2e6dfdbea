"""Names, owners, notes, reasons and bodies are text of others: on the page they stay text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

import fairlock
from tests.web.conftest import UI, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

    Open = Callable[..., Page]

EVIL = [
    "<script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "</td></tr></table><svg/onload=window.pwned=1>",
    "javascript:window.pwned=1",
    "'\"`><b>${window.pwned=1}</b>{{7*7}}",
]


def test_nothing_that_others_wrote_is_run(ui: UI, open_page: Open) -> None:
    leases = []
    for number, evil in enumerate(EVIL):
        client = fairlock.connect(ui.store, owner=f"{evil}{number}"[:60])
        leases.append((client, client.lock(f"xss:{evil}", note=evil).acquire()))
    pool = ui.locks.pool(f"xss:{EVIL[0]}")
    pool.add(EVIL[1], {EVIL[2]: EVIL[1]})
    waiter = ui.holder(EVIL[1], f"xss:{EVIL[0]}", wait=False)
    until(lambda: (it := ui.resource(f"xss:{EVIL[0]}")) and it.queue)
    page = open_page(ui.url)
    page.fill("#filter", "xss:")
    page.wait_for_function("(n) => document.querySelectorAll('tbody tr').length === n", arg=len(EVIL))
    shown = page.locator("main table").inner_text()
    for evil in EVIL:
        assert evil in shown
        page.locator("tr button.name", has_text=evil).click()
        page.locator("#panel .history li").first.wait_for()
    page.locator("tr button.name", has_text=EVIL[0]).click()
    page.locator("#panel .items").wait_for()
    assert EVIL[1] in page.locator("#panel .items").inner_text()
    assert EVIL[1] in page.locator("#panel .queue").inner_text()
    page.get_by_role("button", name="Evict…").click()
    page.locator("form.evict input[name=reason]").fill(EVIL[1])
    page.locator("form.evict").get_by_role("button", name="Evict <script>").click()
    page.locator("#panel .history li", has_text=EVIL[1]).first.wait_for()
    page.get_by_role("button", name="by owner").click()
    page.locator(".timeline .hold").first.hover()
    page.locator(".tip").wait_for()
    page.reload()
    page.locator("#panel .history li").first.wait_for()
    assert page.evaluate("window.pwned") is None
    assert page.locator("#page script, #page img, #page [onload], #page [onerror]").count() == 0
    waiter.kill()
    for client, _ in leases:
        client.close()


@pytest.mark.parametrize("query", [
    "?filter=%3Cimg%20src=x%20onerror=window.pwned=1%3E", "?name=%3Cscript%3Ewindow.pwned=1%3C/script%3E",
    "?sort=__proto__&only=constructor&lanes=toString", "?span=NaN&end=-1e99", "?span=1e999&end=x", "?only=%00&name=%00",
])  # fmt: skip
def test_an_address_that_others_made_does_no_harm(ui: UI, open_page: Open, query: str) -> None:
    with ui.locks.lock("a row", note="or nothing would be sorted"):
        page = open_page(f"{ui.base}{query}#token={ui.token}")
        page.locator(".dot.live").wait_for()
        page.locator(".timeline svg").first.wait_for()
        assert page.evaluate("window.pwned") is None


def test_marks_that_reorder_text_are_shown_as_escapes(ui: UI, open_page: Open) -> None:
    with ui.locks.lock("pay\u202ellor", note="a\u200bb"):
        page = open_page(f"{ui.base}?filter=pay#token={ui.token}")
        page.locator("tr button.name", has_text="pay\\u{202e}llor").wait_for()
        assert "a\\u{200b}b" in page.locator("tbody tr").inner_text()
