"""Where a test finds its store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ..backends.cas import CasBackend
from ..backends.contract import Backend, Colour
from ..backends.memory import MemoryBackend
from .clock import HandClock
from .shelf import DictStore, Shelf


class Site(Protocol):
    """A store for one test. `url` if it has one; else `backend` opens it."""

    url: str
    clock: HandClock | None
    """The clock by which the store lives, if that is turned by hand."""

    def backend(self, colour: Colour, namespace: str) -> Backend: ...

    # A site whose backend the kit does not know may also have
    # def forget(self, name) -> None
    # which lets the store lose what it knows about a name, as after a restore from an old copy; and
    # def damage(self, name, item) -> bool
    # which makes unreadable what the store keeps of this item of the pool of that name, or with no item of the lock.
    # False: it did nothing, and the kit may try.


class UrlSite:
    """A store with a URL, in real time."""

    clock: HandClock | None = None

    def __init__(self, url: str) -> None:
        self.url = url

    def backend(self, colour: Colour, namespace: str) -> Backend:
        raise NotImplementedError("a store with a URL is opened by connect()")


class MemorySite:
    """The reference, by a clock that is turned by hand."""

    url = ""

    def __init__(self, folder: Path) -> None:
        self.clock: HandClock | None = HandClock()
        self.hub = self.clock.hub()

    def backend(self, colour: Colour, namespace: str) -> Backend:
        return MemoryBackend(self.hub, colour, namespace)


class DictSite:
    """The engine of all databases over a dict, by a clock that is turned by hand."""

    url = ""

    def __init__(self, folder: Path) -> None:
        self.clock: HandClock | None = HandClock()
        self.shelf = Shelf(self.clock.micros)

    def backend(self, colour: Colour, namespace: str) -> Backend:
        return CasBackend(DictStore(self.shelf, colour), colour, namespace)


OpenSite = Callable[[Path], "str | Site"]
"""From a folder of the test's own to a URL that nobody else uses, or to a Site."""
