"""A user who lacks a right to the file or its directory gets a sentence with the cure that fits."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sqlite.processes import python
from tests.sqlite.users import People, gid, only_root, people, uid

pytestmark = only_root

TRY = """
    from fairlock.errors import LockError
    from tests.sqlite.users import become
    become(sys.argv[2])
    store = store_at(sys.argv[1])
    try:
        put(store, "k")
        print("it worked")
    except LockError as bad:
        print(type(bad).__name__, getattr(bad, "refused", None), bad)
    run(store.close())
    """


@pytest.fixture(scope="module")
def made() -> Iterator[People]:
    for names in people():
        names.join(names.alice)
        yield names


def of(path: Path, name: str, group: str, mode: int) -> Path:
    os.chown(path, uid(name) if name else 0, gid(group))
    path.chmod(mode)
    return path


@pytest.fixture
def told(made: People, place: Path) -> Callable[[int, int], str]:
    """Return mallory's error with a database of alice, by the mode of its directory and of the file; 0: no file."""

    def use(folder: int, file: int) -> str:
        path = place / "app" / "locks.db"
        path.parent.mkdir()
        if file:
            path.touch()
            of(path, made.alice, made.group, file)
        of(path.parent, made.alice, made.group, folder)
        return python(TRY, path, made.mallory).communicate(timeout=60)[0]

    return use


Told = Callable[[int, int], str]


@pytest.mark.parametrize(
    ("folder", "file", "closed"),
    [(0o2770, 0o660, "app"), (0o2770, 0, "app"), (0o2775, 0, "app"), (0o2775, 0o660, "app/locks.db")],
)
def test_what_is_open_to_a_group_names_the_group_to_join(
    made: People, place: Path, told: Told, folder: int, file: int, closed: str
) -> None:
    said = told(folder, file)
    assert said.startswith(f"StoreError True {place / closed} may not be ")
    assert f"by user {made.mallory}; it belongs to user {made.alice}. " in said
    assert f"Join its group {made.group} (usermod -aG {made.group} {made.mallory}) and log in" in said
    assert "FAIRLOCK_URL" in said


@pytest.mark.parametrize(
    ("folder", "file", "closed"), [(0o700, 0o600, "app"), (0o755, 0, "app"), (0o755, 0o600, "app/locks.db")]
)
def test_what_is_open_to_its_owner_only_gets_the_command_of_the_documentation(
    place: Path, told: Told, folder: int, file: int, closed: str
) -> None:
    said = told(folder, file)
    assert said.startswith(f"StoreError True {place / closed} may not be ")
    assert "Ask its owner to open it to a group of both of you, while no process uses it: " in said
    if closed == "app":
        assert f"chgrp GROUP '{place}/app', chmod 2770 '{place}/app'; or name another store" in said
    else:
        assert f"chgrp GROUP '{place}/app/locks.db', chmod 660 '{place}/app/locks.db', rm -r" in said


def test_the_cures_are_cures(made: People, place: Path, told: Told) -> None:
    """The lines of the sentences, one after another, until it works."""
    assert "may not be entered" in told(0o700, 0o600)
    path = place / "app" / "locks.db"
    of(path.parent, made.alice, made.mallory, 0o2770)
    of(path, made.alice, made.mallory, 0o660)
    assert python(TRY, path, made.mallory).communicate(timeout=60)[0] == "it worked\n"


def test_an_owner_that_has_closed_the_file_to_itself(made: People, place: Path) -> None:
    path = place / "locks.db"
    path.touch()
    of(path, made.mallory, made.mallory, 0o400)
    of(place, made.mallory, made.mallory, 0o755)
    said = python(TRY, path, made.mallory).communicate(timeout=60)[0]
    assert f"Give yourself the right: chmod u+rw '{path}'" in said
