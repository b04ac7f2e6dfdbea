"""A store in a directory of its own, closed at the end of the test."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlock.stores.sqlite import SqliteStore
from tests.sqlite.processes import run, store_at


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "locks.db"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that other users may enter. pytest's own is closed to them."""
    with tempfile.TemporaryDirectory(prefix="fairlock-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture
def public(place: Path) -> Path:
    return place / "locks.db"


@pytest.fixture
def client(path: Path) -> Iterator[Callable[..., SqliteStore]]:
    """Opens clients of one database."""
    opened: list[SqliteStore] = []

    def connect(**options: Any) -> SqliteStore:
        opened.append(store_at(options.pop("path", path), **options))
        return opened[-1]

    yield connect
    for store in opened:
        run(store.close())
