"""A page with 10,000 busy names stays usable, and a page is readable for all: contrast, labels, themes, phones."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.machine_load import within
from tests.servers.fixtures import lacking
from tests.servers.server import REAPER
from tests.web.conftest import UI, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

    Open = Callable[..., Page]


class MainThread:
    """The time that the main thread of a page was at work, by the clock of the CPU: without what else is at work."""

    def __init__(self, page: Page) -> None:
        self._browser = page.context.new_cdp_session(page)
        self._browser.send("Performance.enable", {"timeDomain": "threadTicks"})

    def milliseconds(self) -> float:
        metrics = self._browser.send("Performance.getMetrics")["metrics"]
        return next(float(each["value"]) * 1000 for each in metrics if each["name"] == "TaskDuration")


@pytest.fixture(scope="module")
def many_names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = tmp_path_factory.mktemp("many") / "port"
    process = subprocess.Popen([sys.executable, "-m", "tests.web.many_names", str(file)], cwd=Path(__file__).parents[2])
    REAPER.watch(process.pid)
    try:
        until(lambda: file.exists() and file.read_text().endswith("\n"), 60)
        yield f"http://127.0.0.1:{file.read_text().strip()}/"
    finally:
        process.kill()
        process.wait()


def test_ten_thousand_names_are_painted_in_a_second_and_updated_in_a_tenth(many_names: str, open_page: Open) -> None:
    page = open_page("about:blank")
    page.set_default_timeout(60_000)
    thread = MainThread(page)
    page.goto(many_names)
    page.locator("tbody tr").nth(59).wait_for()
    assert thread.milliseconds() < 1000, "until all that is seen is painted"
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert painted <= 1000 * within(1, below=10)
    assert page.locator("tbody tr").count() < 200, "only what is seen is in the document"
    assert "10000 names" in page.locator(".table .foot").inner_text()
    page.evaluate(HIDE, True)
    page.locator(".dot.hidden").wait_for()
    seconds, work = work_of(page, thread, 2)
    at_rest = work / seconds  # numbers count and bars move by themselves
    page.evaluate(HIDE, False)
    page.locator(".dot.live").wait_for()
    page.evaluate(COUNT_UPDATES)
    before, began = thread.milliseconds(), time.monotonic()
    page.wait_for_timeout(6500)  # some looks, and a new order of the rows
    page.wait_for_function("() => window.updates >= 1", timeout=60_000)  # the server needs a core for that, too
    seconds, work = time.monotonic() - began, thread.milliseconds() - before
    updates = page.evaluate("window.updates")
    # Work takes more CPU time, too, where others use the caches of the same core.
    assert (work - at_rest * seconds) / updates <= 100 * within(1, below=2)
    assert at_rest <= 100, "milliseconds in each second in which nothing happens"
    page.fill("#filter", "orders:09999")
    page.locator("tr[data-name='orders:09999']").wait_for()
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")


def work_of(page: Page, thread: MainThread, seconds: float) -> tuple[float, float]:
    """Return how long that was, and the milliseconds of work in it."""
    before, began = thread.milliseconds(), time.monotonic()
    page.wait_for_timeout(seconds * 1000)
    return time.monotonic() - began, thread.milliseconds() - before


HIDE = """(hidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
# With each look the time of the timeline moves on.
COUNT_UPDATES = """() => {
    window.updates = 0;
    new MutationObserver(() => { window.updates += 1; }).observe(document.querySelector(".timeline svg"), {
        subtree: true, childList: true, attributes: true,
    });
}"""


def test_the_table_grows_while_it_is_scrolled(many_names: str, open_page: Open) -> None:
    page = open_page(many_names)
    page.set_default_timeout(60_000)
    page.locator("tbody tr").nth(59).wait_for()
    page.evaluate("document.querySelector('.scroll').scrollTo(0, 1e6)")
    page.locator("tbody tr").nth(100).wait_for()


def test_the_heat_map_shows_where_somebody_waited(ui: UI, open_page: Open) -> None:
    ui.holder("web-1:95", "hot")
    ui.holder("web-2:96", "hot", wait=False)
    until(lambda: (it := ui.resource("hot")) and it.queue)
    page = open_page(f"{ui.base}?filter=hot&span=60#token={ui.token}")
    page.locator("tr[data-name=hot] .chip").wait_for()
    page.get_by_role("button", name="contention").click()
    drawn = "() => [...document.querySelectorAll('.timeline .heat')].some((path) => path.getAttribute('d'))"
    page.wait_for_function(drawn)
    assert page.locator(".timeline .label").all_text_contents() == ["hothot"]
    page.reload()
    page.locator(".timeline .heat").first.wait_for(state="attached")
    assert "lanes=heat" in page.url


def test_a_phone_shows_the_holders_and_the_details_of_a_row(ui: UI, open_page: Open) -> None:
    ui.holder("web-1:97", "small:screen")
    page = open_page(f"{ui.base}?filter=small:#token={ui.token}", viewport={"width": 390, "height": 844})
    row = page.locator("tr[data-name='small:screen']")
    row.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off"
    who = row.locator(".who")
    assert page.evaluate("(it) => it.scrollWidth <= it.clientWidth && it.clientWidth > 60", who.element_handle())
    row.click()
    page.locator("#panel .danger").wait_for()
    box = page.locator("#panel").bounding_box()
    assert box is not None and box["y"] >= 0 and box["y"] + box["height"] <= 845, "beside the row, not far under it"


def axe(page: Page) -> list[str]:
    """Return what axe finds against WCAG A and AA."""
    try:
        source = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()
    except ModuleNotFoundError:
        lacking("This Python has no axe-playwright-python, which brings axe: ./dev test has it.")
    page.evaluate(source)
    tags = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}}
    found: dict[str, Any] = page.evaluate("(options) => axe.run(document, options)", tags)
    assert len(found["passes"]) > 15
    return [f"{each['id']}: {node['html'][:200]} {node['failureSummary']}" for each in found["violations"]
            for node in each["nodes"]]  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_a_picture_is_taken(ui: UI, open_page: Open, tmp_path: Path, scheme: str) -> None:
    """The pictures of both themes are kept if FAIRLOCK_PICTURES names a folder."""
    ui.holder("web-1:4101", f"{scheme}:orders")
    for number in (2, 3):
        ui.holder(f"web-{number}:410{number}", f"{scheme}:orders", wait=False)
    ring = [ui.holder(f"deploy-{at}:1", f"{scheme}:{name}", f"{scheme}:{after}") for at, name, after in RING]
    for each in ring:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    index = ui.locks.rwlock(f"{scheme}:search")
    with index.read(), ui.locks.semaphore(f"{scheme}:api", 3, note="charge"):
        writer = ui.start(sys.executable, "-c", WRITER, ui.store, f"{scheme}:search")
        page = open_page(f"{ui.base}?name={scheme}:orders#token={ui.token}", color_scheme=scheme)
        page.locator(".ring svg").first.wait_for()
        page.locator(".chip.writer").wait_for()
        page.locator("#panel .danger").click()
        page.get_by_text("At once").click()
        assert axe(page) == []
        picture = page.screenshot(full_page=True)
        assert len(picture) > 50_000
        if folder := os.environ.get("FAIRLOCK_PICTURES"):
            (Path(folder) / f"page-{scheme}.png").write_bytes(picture)
        page.keyboard.press("Escape")
        page.locator("form.evict").wait_for(state="detached")
        page.keyboard.press("?")
        page.locator("dialog[open]").wait_for()
        assert axe(page) == []
    for each in (*ring, writer):
        each.kill()


RING = [(1, "acme", "beta"), (2, "beta", "gamma"), (3, "gamma", "acme")]
WRITER = """
import sys, fairlock
with fairlock.connect(sys.argv[1], owner="web-4:4104") as locks:
    locks.rwlock(sys.argv[2]).write().acquire()
"""
