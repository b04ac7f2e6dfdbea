"""The pages build into a site: every page is in its navigation, and every link on it leads somewhere."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from functools import partial
from html import unescape
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.request import ProxyHandler, build_opener

import pytest

from tests.project_rules.snippets import ROOT

SETTINGS = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
PAGES = {page.name: page for page in (ROOT / "docs").glob("*.md")}
LIMIT = 150  # A page has one job. Longer only with a reason.
LONGER: dict[str, str] = {}
open_url = build_opener(ProxyHandler({})).open  # never through a proxy: everything is on loopback


class Html(HTMLParser):
    """Collects the links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.targets.add(value)
            elif name == "id" and value:
                self.anchors.add(value)


def pages_in_nav(entries: list[str | dict[str, object]]) -> list[str]:
    found: list[str] = []
    for entry in entries:
        for value in [entry] if isinstance(entry, str) else entry.values():
            found += pages_in_nav(value) if isinstance(value, list) else [str(value)]
    return found


def read_page(url: str) -> str | None:
    """Return the text behind a URL of the site, or None if there is none."""
    try:
        with open_url(url, timeout=10) as reply:
            return str(reply.read().decode("utf-8", "replace"))
    except HTTPError:
        return None


def broken_links(start: str) -> list[str]:
    """Follow every link of a site from its first page on. Return those that lead nowhere."""
    pages: dict[str, Html | None] = {}
    broken, left = [], [(start, start)]
    while left:
        source, target = left.pop()
        url, anchor = urldefrag(urljoin(source, target))
        if urlsplit(url).netloc != urlsplit(start).netloc:
            continue
        if url not in pages:
            text = read_page(url)
            pages[url] = Html(text if url.endswith(("/", ".html")) else "") if text is not None else None
            found = pages[url]
            left += [(url, each) for each in sorted(found.targets)] if found else []
        page = pages[url]
        if page is None or (anchor and url.endswith("/") and anchor not in page.anchors):
            broken.append(f"{source}: {target}")
    return broken


def serve(folder: Path) -> ThreadingHTTPServer:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """Build the site from a copy of the pages, serve it on loopback, and give its address."""
    if find_spec("zensical") is None:
        give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        give_up("zensical, which builds the site, is not installed.")
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    env = {**os.environ, "HOME": str(tmp_path)}
    built = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    server = serve(tmp_path / SETTINGS["site_dir"])
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def test_every_link_of_the_site_leads_somewhere(site: str) -> None:
    assert broken_links(site) == []
    assert "two terminals" in (read_page(site) or "")
    assert (read_page(f"{site}glossary/") or "").count("<tr>") > 10


def test_a_link_that_leads_nowhere_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "index.html").write_text('<a href="a/"></a> <a href="b/"></a> <a href="a/#x"></a> <a href="a/#y"></a>')
    (tmp_path / "a" / "index.html").write_text('<p id="x"></p><img src="../no.svg">')
    server = serve(tmp_path)
    try:
        found = broken_links(f"http://127.0.0.1:{server.server_port}/")
    finally:
        server.shutdown()
        server.server_close()
    assert sorted(each.rpartition(" ")[2] for each in found) == ["../no.svg", "a/#y", "b/"]


def test_every_page_is_in_the_navigation_once() -> None:
    assert sorted(pages_in_nav(SETTINGS["nav"])) == sorted(PAGES)
    sections = [name for entry in SETTINGS["nav"] for name in entry]
    assert sections == ["Home", "Tutorial", "How-to", "Reference", "Explanation"]


def test_a_page_is_short_or_has_a_reason() -> None:
    shown = {"README.md": ROOT / "README.md", **PAGES}
    long = {name for name, page in shown.items() if page.read_text().count("\n") > LIMIT}
    assert long == set(LONGER)
    assert (ROOT / "docs" / "glossary.md").read_text().count("\n") <= 40


def test_the_picture_shows_the_commands_of_its_script() -> None:
    commands = runpy.run_path(str(ROOT / "docs" / "make_terminals_svg.py"))
    picture = (ROOT / "docs" / "terminals.svg").read_text()
    shown = [unescape(line) for line in re.findall(r">\$ ([^<]+)</text>", picture)]
    assert shown == commands["FIRST"] + commands["SECOND"]
