"""How a test opens its store: by a URL, or by a backend with a manual clock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..stores.base import Backend, Runtime
from ..stores.cas import CasBackend
from ..stores.memory import MemoryBackend
from .clock import ManualClock
from .dict_store import DictServer, DictStore


class Site:
    """A store for one test. `url` if it has one; else `backend` opens it."""

    url: str = ""
    clock: ManualClock | None = None
    """The clock of the store, if it is a manual one; None: real time."""

    def backend(self, runtime: Runtime, namespace: str) -> Backend:
        """Open it for one more client. Not called if it has a URL."""
        raise NotImplementedError("a store with a URL is opened by connect()")

    def forget(self, name: str) -> bool:
        """Let the store lose what it knows about a name, as after a restore from an old copy.

        False: nothing was done, and the kit does it, which knows CasBackend and MemoryBackend.
        """
        return False

    def damage(self, name: str, item: str) -> bool:
        """Make unreadable what the store keeps of this item of the pool of that name, or with no item of the lock.

        False: nothing was done, and the kit may try.
        """
        return False


class UrlSite(Site):
    """A store with a URL, in real time."""

    def __init__(self, url: str) -> None:
        self.url = url


class MemorySite(Site):
    """The reference implementation, with a manual clock."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.hub = self.clock.hub()

    def backend(self, runtime: Runtime, namespace: str) -> Backend:
        return MemoryBackend(self.hub, runtime, namespace)


class DictSite(Site):
    """The engine of all databases over a dict, with a manual clock."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.server = DictServer(self.clock.micros)

    def backend(self, runtime: Runtime, namespace: str) -> Backend:
        return CasBackend(DictStore(self.server, runtime), runtime, namespace)


OpenSite = Callable[[Path], "str | Site"]
"""Makes a URL that no other test uses, or a Site, from an empty folder."""
