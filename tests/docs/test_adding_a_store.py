"""The stores that docs/adding-a-store.md and adding-wakeups.md build, read from the pages and put through the kit.

The whole kit in the long runs; otherwise what shows soonest that a store keeps order. The engine below them is played
whole every time, over the kit's own store in a dict.
"""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fairlock.stores.base import Backend, Runtime
from fairlock.stores.cas import CasBackend
from fairlock.testing import ManualClock, suite
from fairlock.testing.store_factories import Site
from tests.project_rules import snippets

LAST_PAGE = snippets.ROOT / "docs" / "adding-wakeups.md"  # it continues the first one
QUICK = {"TestAcquiring", "TestQueue"}


@cache
def page() -> dict[str, Any]:
    """Return the classes that the pages define."""
    names: dict[str, Any] = {}
    for _, block in snippets.python_blocks(LAST_PAGE):
        if block.language == "python" and "\nclass " in f"\n{block.text}":
            exec(block.text, names)
    return names


class PageSite(Site):
    def __init__(self, store: str, clock: ManualClock | None) -> None:
        self.clock = clock
        self.drawer = page()["Drawer"](clock.micros) if clock is not None else page()["Drawer"]()
        self.store = page()[store]

    def backend(self, runtime: Runtime, namespace: str) -> Backend:
        return CasBackend(self.store(self.drawer, runtime), runtime, namespace)


def smallest(folder: Path) -> PageSite:
    return PageSite("DrawerStore", None)  # it sleeps between two looks, and so lives in real time


def listening(folder: Path) -> PageSite:
    return PageSite("ListeningStore", ManualClock())


def pooling(folder: Path) -> PageSite:
    return PageSite("PoolingStore", ManualClock())


harness = suite.matrix({"smallest": smallest, "listening": listening, "pooling": pooling})

for _name in suite.__all__:
    if _name.startswith("Test"):
        # A class of its own: a mark on theirs would hold for every other store, too.
        _group = type(_name, (getattr(suite, _name),), {"__module__": __name__})
        globals()[_name] = _group if _name in QUICK else pytest.mark.soak(_group)


def test_the_smallest_store_has_less_than_a_hundred_lines() -> None:
    (block,) = [b for _, b in snippets.python_blocks(LAST_PAGE) if "class DrawerStore(" in b.text]
    assert sum(bool(line.strip()) for line in block.text.splitlines()) < 100
