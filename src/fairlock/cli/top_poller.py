"""Reads the store for `fairlock top`, in a thread of its own, so that keys work while the store is slow or down."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from fairlock.engine.find_deadlocks import find_rings, in_both
from fairlock.engine.snapshots import describe_failure, unique_names

from . import output

if TYPE_CHECKING:
    from fairlock import AuditLine, Locks, Snapshot
    from fairlock.engine.find_deadlocks import Ring


def take_snapshot(locks: "Locks", pattern: str, every: bool) -> "Snapshot":
    """Return a snapshot in which each name occurs once: with `every`, behind its namespace."""
    return unique_names(locks.snapshot(pattern, namespaces=every), every)


class Poller:
    """Reads the store again and again in a thread. `latest` is the last snapshot, with the rings that two snapshots
    had; `audit` what operators did to the name `shown`, if it is not ''."""

    def __init__(
        self, locks: "Locks", pattern: str, every: float, wake: Callable[[], None], namespaces: bool = False
    ) -> None:
        self._locks, self._pattern, self._every, self._wake = locks, pattern, every, wake
        self._namespaces = namespaces
        self._at_once = threading.Event()
        self._before: tuple[Ring, ...] = ()
        self.latest: tuple[Snapshot, tuple[Ring, ...]] | None = None
        self.error = ""
        self.shown = ""
        self.audit: tuple[str, tuple[AuditLine, ...]] = "", ()
        self._read_at = time.monotonic()
        self.ended = False
        threading.Thread(target=self._run, name="fairlock-top", daemon=True).start()

    def hurry(self) -> None:
        """Read again now."""
        self._at_once.set()

    def _run(self) -> None:
        while not self.ended:
            began = time.monotonic()
            try:
                seen = take_snapshot(self._locks, self._pattern, self._namespaces)
                rings = find_rings(seen)
                self.latest = seen, in_both(self._before, rings)
                self._before, self.error = rings, ""
                self._read_at = began
                if name := self.shown:
                    self.audit = name, self._locks.audit(name)
            except Exception as error:  # whatever fails, the screen shows it, and the next look follows
                age = output.short_duration(time.monotonic() - self._read_at)
                self.error = f"{describe_failure(error)} What is shown is {age} old."
            self._wake()
            self._at_once.wait(max(self._every - (time.monotonic() - began), 0.05))
            self._at_once.clear()
