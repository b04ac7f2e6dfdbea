"""Other users exchange directories above a database that root uses: root never joins the log of one to another."""

import os
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fairlock.errors import LockError
from fairlock.stores.sqlite import connection, location, root_acts_as_file_owner
from fairlock.stores.sqlite.walked_path import WalkedPath, walk
from tests.sqlite.processes import put, python, run, store_at
from tests.sqlite.users import People, database, folder, gid, link, only_root, people, refusal, uid, works

pytestmark = only_root


@pytest.fixture(scope="module")
def made() -> Iterator[People]:
    yield from people()


# -- what is refused, and what works


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666])
def test_a_database_of_root_in_a_directory_of_another_user_is_refused(made: People, place: Path, mode: int) -> None:
    own = folder(place / "of alice", made.alice)
    said = refusal(database(own / "locks.db", mode=mode))
    assert f"user {made.alice} can exchange what lies in {own}" in said
    assert f"give it to user {made.alice}: chown {uid(made.alice)} '{own}/locks.db'." in said
    assert [file.name for file in own.iterdir()] == ["locks.db"], "nothing was opened"
    os.chown(own / "locks.db", uid(made.alice), gid(made.alice))
    works(own / "locks.db")


@pytest.mark.parametrize("there", [True, False])
def test_a_database_of_root_further_below_a_directory_of_another_user_is_refused(
    made: People, place: Path, there: bool
) -> None:
    above = folder(place / "of alice", made.alice)
    own = folder(above / "of root", "", 0o700)
    if there:
        database(own / "locks.db")
    said = refusal(own / "locks.db")
    assert f"user {made.alice} can exchange what lies in {above}" in said
    assert "Move it below directories that only root may write" in said
    assert (own / "locks.db").exists() == there, "nothing was made"


def test_a_database_of_one_user_below_a_directory_of_another_is_refused(made: People, place: Path) -> None:
    above = folder(place / "of mallory", made.mallory)
    own = folder(above / "of alice", made.alice)
    said = refusal(database(own / "locks.db", made.alice))
    assert f"user {made.mallory} can exchange what lies in {above}" in said
    assert f"directories that only root and user {made.alice} may write" in said


def test_a_database_of_a_group_is_used_with_the_rights_of_its_owner(made: People, place: Path) -> None:
    own = folder(place / "shared", "", 0o2770, made.group)
    said = refusal(own / "locks.db")
    assert f"group {made.group} can exchange" in said
    assert f"or let group {made.group} use it first" in said
    said = refusal(database(own / "locks.db", mode=0o660, group=made.group))
    assert f"chown USER:{gid(made.group)}" in said
    os.chown(own / "locks.db", uid(made.alice), gid(made.group))
    works(own / "locks.db")
    (own / "locks.db").chmod(0o600)
    assert f"group {made.group} can exchange" in refusal(own / "locks.db")


def test_a_directory_of_root_that_everybody_may_write_is_refused(made: People, place: Path) -> None:
    own = folder(place / "open", "", 0o777)
    assert f"chmod o-w '{own}'" in refusal(database(own / "locks.db", made.alice))
    own.chmod(0o1777)  # there nobody can exchange what belongs to others
    works(own / "locks.db")


def test_root_uses_a_database_of_another_user_in_a_directory_like_tmp_with_the_rights_of_that_user(
    made: People, place: Path
) -> None:
    """Its owner can replace the log, and as root SQLite would give what it finds there to that owner."""
    own = folder(place / "tmp", "", 0o1777)
    path = database(own / "locks.db", made.alice)
    assert root_acts_as_file_owner.owner(walk(str(path)), path.stat()) == (uid(made.alice), gid(made.alice))
    works(path)
    assert root_acts_as_file_owner.owner(walk(str(own / "of root.db"))) is None
    works(own / "of root.db")


@pytest.mark.parametrize("name", ["", "alice"])
@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_a_log_that_is_a_hard_link_is_refused(made: People, place: Path, name: str, end: str) -> None:
    """Root can make one anywhere; other users only where fs.protected_hardlinks is 0."""
    own = folder(place / "tmp", "", 0o1777)
    path = database(own / "locks.db", made.alice if name else "")
    secret = place / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    os.link(secret, f"{path}{end}")
    assert "has 2 names (hard links)" in refusal(path)
    there = secret.stat()
    assert (there.st_uid, there.st_mode & 0o777, secret.read_text()) == (0, 0o600, "secret")


def test_a_path_that_changes_under_the_eyes_is_not_taken_for_one_of_root(made: People, place: Path) -> None:
    """A user who moves a directory away while root looks must not get root's own rights out of it."""
    above = folder(place / "of alice", made.alice)
    way = walk(str(above / "moved away" / "locks.db"))
    assert root_acts_as_file_owner.owner(way) == (uid(made.alice), gid(made.alice))


def test_root_of_a_user_namespace_is_a_plain_user(made: People, place: Path) -> None:
    """There the real root, the owner of the directories, has the user number of `nobody`."""
    own = folder(place / "of alice", made.alice, 0o700)
    code = """
        import ctypes
        from tests.sqlite.users import become
        become(sys.argv[2])
        libc, uid = ctypes.CDLL(None), os.getuid()
        libc.prctl(4, 1)  # PR_SET_DUMPABLE, or its files below /proc belong to the real root
        if libc.unshare(0x10000000):  # CLONE_NEWUSER
            print("no namespaces")
        else:
            with open("/proc/self/uid_map", "w") as file:
                file.write(f"0 {uid} 1")
            assert os.geteuid() == 0 and os.stat("/").st_uid
            put(store_at(sys.argv[1]), "k")
            print("it worked")
        """
    said = python(code, own / "locks.db", made.alice).communicate(timeout=60)[0]
    if said == "no namespaces\n":
        pytest.skip("this machine has no user namespaces for plain users")
    assert said == "it worked\n"


def test_the_log_is_removed_with_the_rights_of_the_owner(made: People, place: Path) -> None:
    """SQLite removes it by its path when the last client closes, and that may lead elsewhere by then."""
    own = folder(place / "of alice", made.alice)
    put(store := store_at(own / "locks.db"), "k")
    cursor = store._db.cursor
    assert cursor is not None

    class Closing:
        def close(self) -> None:
            (own / "made meanwhile").touch()
            cursor.connection.close()

    store._db.cursor = type("Cursor", (), {"connection": Closing()})()
    store._maintenance.is_due_at_the_end = lambda: False  # type: ignore[method-assign]  # one of 16 sweeps first
    run(store.close())
    assert (own / "made meanwhile").stat().st_uid == uid(made.alice)
    assert not Path(f"{own}/locks.db-wal").exists()


# -- the attack

ATTACK = """
    import ctypes
    from tests.sqlite.users import become
    above, name = sys.argv[1:3]
    libc = ctypes.CDLL(None)
    become(name)
    one, other = f"{above}/sub".encode(), f"{above}/other".encode()
    print("ready", flush=True)
    swaps = 0
    while not os.path.exists(f"{above}/stop"):
        swaps += libc.renameat2(-100, one, -100, other, 2) == 0
    print(swaps, flush=True)
    """


class Trap:
    """A directory of mallory with a database and a full log, which can be exchanged for one of a victim; or a link to
    the one for a link to the other."""

    def __init__(self, made: People, place: Path, victim: str, mode: int, links: bool = False) -> None:
        self.above = folder(place / "above", made.mallory)
        target = folder(place / "theirs" if links else self.above / "other", victim)
        own = folder(place / "mine" if links else self.above / "sub", made.mallory)
        if links:
            link(self.above / "other", target, made.mallory)
            link(self.above / "sub", own, made.mallory)
        self.path = self.above / "sub" / "locks.db"
        self.victim = database(target / "locks.db", victim)
        with sqlite3.connect(self.victim) as plain:
            plain.execute("PRAGMA journal_mode=WAL")
            plain.execute("CREATE TABLE precious (x)")
        plain.close()
        self.victim.chmod(mode)
        log(own / "locks.db", made.mallory)
        self._fd = os.open(self.victim, os.O_RDONLY)  # wherever it is moved
        self._folder = os.open(target, os.O_RDONLY)
        self._before = self._state()

    def exchange(self) -> None:
        """Run it as mallory, whatever user this thread is at the moment."""
        one, other, between = (self.above / name for name in ("sub", "other", "between"))
        for old, new in ((one, between), (other, one), (between, other)):
            subprocess.run(["mv", "-T", old, new], check=True)

    def caught_nothing(self) -> None:
        after = self._state()
        os.close(self._fd)
        os.close(self._folder)
        assert after == self._before

    def _state(self) -> tuple[bytes, int, int, list[str]]:
        there = os.fstat(self._fd)
        return os.pread(self._fd, 1 << 20, 0), there.st_uid, there.st_mode, sorted(os.listdir(self._folder))


VICTIMS = pytest.mark.parametrize(("whose", "mode"), [("root", 0o600), ("root", 0o644), ("alice", 0o600)])


@VICTIMS
@pytest.mark.parametrize("moment", ["after the look", "before the look"])
def test_a_directory_that_is_exchanged_between_the_database_and_its_log(
    made: People, place: Path, monkeypatch: pytest.MonkeyPatch, whose: str, mode: int, moment: str
) -> None:
    """SQLite opens the database when it connects, and the log with the first statement."""
    trap = Trap(made, place, made.alice if whose == "alice" else "", mode)
    connect = connection.connect

    def looked(path: str) -> WalkedPath:
        if moment == "before the look":
            trap.exchange()
        return walk(path)

    def connected(path: str) -> sqlite3.Connection:
        if moment == "after the look":
            trap.exchange()
        try:
            return connect(path)
        finally:
            trap.exchange()

    monkeypatch.setattr(location, "walk", looked)
    monkeypatch.setattr(connection, "connect", connected)
    store = store_at(trap.path)
    with suppress(LockError):
        put(store, "k")
        assert store._db.cursor is not None
        store._db.cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    run(store.close())
    trap.caught_nothing()


@VICTIMS
@pytest.mark.parametrize("seconds", [1, pytest.param(30, marks=pytest.mark.soak)])
@pytest.mark.parametrize("links", [False, True])
def test_a_directory_or_link_that_is_exchanged_all_the_time(
    made: People, place: Path, whose: str, mode: int, seconds: int, links: bool
) -> None:
    trap = Trap(made, place, made.alice if whose == "alice" else "", mode, links)
    attack = python(ATTACK, trap.above, made.mallory)
    used = 0
    try:
        assert attack.stdout is not None
        assert attack.stdout.readline() == "ready\n"
        end = time.monotonic() + seconds
        while time.monotonic() < end or not used:
            store = store_at(trap.path)
            with suppress(LockError):
                put(store, "k")
                store.open_listener()
                used += 1
            run(store.close())
    finally:
        (trap.above / "stop").touch()
        assert int(attack.communicate(timeout=20)[0]) > 100
    trap.caught_nothing()


def log(path: Path, name: str) -> None:
    """A database with a full log beside it, as a killed process leaves it; open to everybody."""
    killed = python(
        """
        store = store_at(sys.argv[1])
        for i in range(50):
            put(store, f"k{i}")
        os.kill(os.getpid(), 9)
        """,
        path,
    )
    killed.communicate(timeout=20)
    for end in ("", "-wal", "-shm"):
        file = Path(f"{path}{end}")
        os.chown(file, uid(name), gid(name))
        file.chmod(0o666)
