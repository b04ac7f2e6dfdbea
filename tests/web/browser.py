"""Debian's Chromium, driven by Playwright. Where one of them is missing, tests fail in CI and are skipped elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.servers import programs
from tests.servers.fixtures import lacking

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SIZE = {"width": 1480, "height": 980}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for the tests of a file. It ends with the file: while it runs, this thread can run no other loop."""
    if (program := programs.find("chromium")) is None:
        lacking("This machine has no Chromium, which drives the page: apt-get install chromium.")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        lacking("This Python has no Playwright: ./dev test brings it.")
    with sync_playwright() as playwright:
        # The sandbox needs rights that root in a container and an unpacked package lack, and our own page needs none.
        options = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=program, args=options)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """A function that opens a page. An error in its console fails the test."""
    contexts = []
    problems: list[str] = []

    def open_page(url: str, **options: Any) -> Page:
        context = chromium.new_context(**{"viewport": SIZE, "color_scheme": "dark", **options})
        contexts.append(context)
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.on("console", lambda line: problems.append(line.text) if line.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == [], problems
