"""The listening store of docs/adding-a-store.md, read from the page and put through the whole kit."""

from functools import cache
from pathlib import Path
from typing import Any

from holdfast.backends.cas import CasBackend
from holdfast.backends.contract import Backend, Colour
from holdfast.testing import HandClock
from holdfast.testing.suite import *  # noqa: F403
from holdfast.testing.suite import matrix
from tests.house import snippets

PAGE = snippets.ROOT / "docs" / "adding-a-store.md"


@cache
def page() -> dict[str, Any]:
    """The classes that the page defines."""
    names: dict[str, Any] = {}
    for block in snippets.blocks(PAGE.read_text()):
        if block.language == "python" and "\nclass " in f"\n{block.text}":
            exec(block.text, names)
    return names


class PageSite:
    url = ""

    def __init__(self, store: str, clock: HandClock | None) -> None:
        self.clock = clock
        self.drawer = page()["Drawer"](clock.micros) if clock is not None else page()["Drawer"]()
        self.store = page()[store]

    def backend(self, colour: Colour, namespace: str) -> Backend:
        return CasBackend(self.store(self.drawer, colour), colour, namespace)


def listening(folder: Path) -> PageSite:
    return PageSite("ListeningStore", HandClock())


world = matrix({"listening": listening})


def test_a_store_of_the_page_has_about_a_hundred_lines() -> None:
    (smallest,) = [b for b in snippets.blocks(PAGE.read_text()) if "class DrawerStore" in b.text]
    assert sum(bool(line.strip()) for line in smallest.text.splitlines()) < 100
