"""What connect() takes for a store: the names that users know, and paths."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairlock
from fairlock import aio

BOTH = pytest.mark.parametrize("connect", [fairlock.connect, aio.connect])


@BOTH
@pytest.mark.parametrize(
    "said, meant",
    [
        ("postgres://user:pw@h1/db", "postgresql://h1/db"),
        ("postgres+psycopg://user:pw@h1/db?listen=postgres://h2/db", "postgresql://h1/db"),
        ("valkey://user:pw@h1:6380/2", "redis://h1:6380/2"),
        ("valkeys://h1", "rediss://h1"),
        ("valkey+sentinel://h1,h2/main", "redis+sentinel://h1,h2/main"),
        ("valkeys+cluster://h1,h2", "rediss+cluster://h1,h2"),
    ],
)
def test_other_names_of_a_store_are_known(connect: Callable[..., Any], said: str, meant: str) -> None:
    assert connect(said).store == meant


@BOTH
def test_a_name_that_only_looks_like_one_is_not(connect: Callable[..., Any]) -> None:
    for wrong in ("valkeyx://h1", "postgres", "postgres:/h1/db", "://postgres"):
        with pytest.raises(fairlock.ConfigError, match=r"No store is called|not a store's URL"):
            connect(wrong)


class Bytes:
    """A path of the kind that os.scandir(b'…') yields."""

    def __init__(self, path: Path) -> None:
        self.path = os.fsencode(path)

    def __fspath__(self) -> bytes:
        return self.path


@BOTH
def test_a_path_is_a_file_for_sqlite(
    connect: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = connect(f"sqlite:///{tmp_path}/locks.db").store
    assert connect(tmp_path / "locks.db").store == where
    assert connect(Bytes(tmp_path / "locks.db")).store == where
    monkeypatch.chdir(tmp_path)
    assert connect(Path("locks.db")).store == where
    assert connect(Path("sqlite:odd?name.db")).store == f"sqlite:///{tmp_path}/sqlite:odd?name.db"


def test_a_path_excludes_those_who_come_by_its_url(tmp_path: Path) -> None:
    with fairlock.connect(tmp_path / "locks.db") as one, fairlock.connect(f"sqlite:///{tmp_path}/locks.db") as two:
        with one.lock("x"):
            assert two.lock("x").acquire(blocking=False) is None
