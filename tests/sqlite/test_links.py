"""A path with symbolic links: root follows none that other users can exchange, and a path may lead elsewhere later."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import fairlock
from fairlock.errors import LockError
from fairlock.stores.sqlite import location
from fairlock.stores.sqlite.walked_path import WalkedPath, walk
from tests.sqlite.processes import put, run, store_at, until
from tests.sqlite.users import People, database, folder, link, only_root, people, refusal, uid, works


@pytest.fixture(scope="module")
def made() -> Iterator[People]:
    yield from people()


@only_root
@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("where", ["the file", "a directory"])
def test_root_follows_no_link_of_another_user_to_a_database_of_its_own(
    made: People, place: Path, where: str, there: bool
) -> None:
    """That user could make root use, or make, a database at any place, and two clients of root use two of them."""
    own, target = folder(place / "of alice", made.alice), folder(place / "of root", "", 0o700)
    if there:
        database(target / "locks.db")
    if where == "the file":
        path = link(own / "locks.db", target / "locks.db", made.alice)
    else:
        path = link(own / "link", target, made.alice) / "locks.db"
    said = refusal(path)
    assert f"user {made.alice} can exchange the link {path if where == 'the file' else path.parent}" in said
    assert "Name the database by its own path, without the link." in said
    assert (target / "locks.db").exists() == there, "nothing was made"
    assert not (target / "locks.db.wakeups").exists()


@only_root
def test_root_follows_no_link_that_another_user_has_put_in_a_directory_like_tmp(made: People, place: Path) -> None:
    tmp, own = folder(place / "tmp", "", 0o1777), folder(place / "of alice", made.alice)
    database(own / "locks.db", made.alice)
    said = refusal(link(tmp / "by mallory.db", own / "locks.db", made.mallory))
    assert f"user {made.mallory} can exchange the link {tmp}/by mallory.db" in said
    works(link(tmp / "by alice.db", own / "locks.db", made.alice))
    works(link(tmp / "by root.db", own / "locks.db", ""))


@only_root
def test_root_follows_no_link_to_a_directory_below_one_of_another_user(made: People, place: Path) -> None:
    """The link belongs to root, and lies where others can exchange it for another one."""
    own, target = folder(place / "of alice", made.alice), folder(place / "of root", "")
    path = link(own / "link", target, "") / "locks.db"
    assert f"user {made.alice} can exchange what lies in {own}" in refusal(path)
    works(link(place / "fine", target, "") / "locks.db")
    path = link(place / "round about", "of alice/link/../fine", "") / "locks.db"
    assert f"user {made.alice} can exchange what lies in {own}" in refusal(path)


@only_root
def test_a_link_of_the_owner_of_the_database_is_followed_with_the_rights_of_that_user(
    made: People, place: Path
) -> None:
    own = folder(place / "of alice", made.alice)
    folder(own / "data", made.alice)
    path = link(own / "link", "data", made.alice) / "locks.db"
    works(path)
    for end in ("", ".wakeups"):
        assert (own / f"data/locks.db{end}").stat().st_uid == uid(made.alice)


@only_root
def test_a_link_that_is_exchanged_while_root_opens_makes_nothing_elsewhere(
    made: People, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    above, target = folder(place / "of alice", made.alice), folder(place / "of root", "")
    own = folder(above / "sub", made.alice)

    def looked(path: str) -> WalkedPath:
        try:
            return walk(path)
        finally:
            own.rename(above / "away")
            own.symlink_to(target)

    monkeypatch.setattr(location, "walk", looked)
    with pytest.raises(LockError, match=r"Not a directory|exchanged while"):
        put(store_at(own / "locks.db"), "k")
    assert list(target.iterdir()) == []


@only_root
@pytest.mark.parametrize("by", ["HOME", "XDG_STATE_HOME"])
def test_root_with_the_home_of_another_user_makes_the_default_store_for_that_user(
    made: People, place: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """As sudo -E does. What root made there would lock that user out, and a link there could lead anywhere."""
    own = folder(place / "of alice", made.alice)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv(by, str(own))
    path = Path(location.default_path())
    works(path)
    while path != own:
        assert path.stat().st_uid == uid(made.alice), path
        path = path.parent
    elsewhere = folder(place / "of root", "")
    again = folder(place / "of mallory", made.mallory)
    monkeypatch.setenv(by, str(again))
    link(again / Path(location.default_path()).relative_to(again).parts[0], elsewhere, made.mallory)
    refusal(Path(location.default_path()))
    assert list(elsewhere.iterdir()) == [], "nothing was made"


# -- a path that leads elsewhere while the database is open


@pytest.mark.parametrize("what", ["a link", "a directory"])
def test_the_sockets_lie_beside_the_database_that_is_open(place: Path, what: str) -> None:
    for name in ("one", "other"):
        (place / name).mkdir()
    path = place / "way" / "locks.db"
    path.parent.symlink_to("one")
    store = store_at(path)
    put(store, "k")
    if what == "a link":
        path.parent.unlink()
        path.parent.symlink_to("other")
    else:
        (place / "one").rename(place / "away")
        (place / "one").mkdir()
    listener = store.open_listener()
    old = place / ("one" if what == "a link" else "away")
    assert (old / "locks.db.wakeups" / listener).is_socket()
    other = store_at(path)
    put(other, "k")
    assert other.open_listener()
    store._check_at = 0.0
    put(store, "k")  # it finds out, and opens the database to which the path leads
    assert store.open_listener() == listener
    assert (path.parent / "locks.db.wakeups" / listener).is_socket()
    other._listeners.send(listener, "hello")
    assert store._listeners.receive() == ["hello"]
    assert store._db.file == other._db.file
    run(store.close())
    run(other.close())


def test_a_path_that_leads_to_another_database_costs_the_leases_at_once(place: Path) -> None:
    for name in ("one", "other"):
        (place / name).mkdir()
    (place / "current").symlink_to("one")
    with fairlock.connect(f"sqlite:///{place}/current/locks.db", lease=120) as locks:
        lease = locks.lock("x").acquire()
        (place / "new").symlink_to("other")
        (place / "new").rename(place / "current")
        with fairlock.connect(f"sqlite:///{place}/current/locks.db") as others, others.lock("x"):
            until(lambda: lease.lost)
            assert lease.reason == "store_reset"
