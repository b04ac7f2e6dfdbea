"""The matrix: every store of this house, for threads and for tasks. A store that is not in it fails test_matrix.py.

Those that can live by a clock turned by hand do, and the suite takes them seconds. SQLite is there twice: by hand,
and in real time with its own clock; of the latter the other kinds of lock are left to the long runs.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.backends.cas import CasBackend
from holdfast.backends.contract import Backend, Colour
from holdfast.backends.sqlite import SqliteStore
from holdfast.testing.clock import HandClock
from holdfast.testing.sites import DictSite, MemorySite, OpenSite
from holdfast.testing.suite import matrix


class SqliteByHand:
    """A real file, real statements and real datagrams; only what time it is is told by the test."""

    url = ""

    def __init__(self, folder: Path) -> None:
        self.clock: HandClock | None = HandClock()
        self.path = folder / "locks.db"

    def backend(self, colour: Colour, namespace: str) -> Backend:
        assert self.clock is not None
        store = SqliteStore(self.path, colour)
        store._db.now = self.clock.micros  # type: ignore[method-assign]
        return CasBackend(store, colour, namespace)


STORES: dict[str, OpenSite] = {
    "memory": MemorySite,
    "cas": DictSite,
    "sqlite": SqliteByHand,
    "redis": lambda folder: __import__("redis").Redis(port=7399).flushall() and "redis://127.0.0.1:7399",
    "sqlite_in_real_time": lambda folder: f"sqlite:///{folder}/locks.db",
}

world = matrix(STORES)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory where that is possible: a thousand databases are made here, and a busy disk takes a second for each."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="holdfast-", dir=memory) as name:
        yield Path(name)


# Of what is played in real time, these wait for time to pass; they are left to the long runs, but for the named ones.
SLOW = {"TestKeeping", "TestLosing", "TestHowLong", "TestTheDeadInLine", "TestFaults", "TestManyFaults"}
ALL_THE_SAME = {
    "test_a_lease_renews_itself",
    "test_a_loss_is_known_before_anybody_else_gets_in",
    "test_on_the_way_in_nobody_is_refused_by_his_own_lock",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        called = getattr(item, "callspec", None)
        if called is None or not called.id.startswith("sqlite_in_real_time"):
            continue
        assert isinstance(item, pytest.Function)
        kind = called.params.get("kind")
        slow = item.cls is not None and item.cls.__name__ in SLOW and item.originalname not in ALL_THE_SAME
        if slow or (kind is not None and kind.label != "lock"):
            item.add_marker(pytest.mark.soak)
