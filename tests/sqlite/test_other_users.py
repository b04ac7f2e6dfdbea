"""Other users of the machine: those who share a file, root among them, and those who must not matter to it."""

import os
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fairlock.errors import LockError
from fairlock.stores.sqlite import SqliteStore, file_permissions
from tests.sqlite.processes import dead_socket, put, python, run, store_at
from tests.sqlite.users import People, gid, only_root, people, uid

Client = Callable[..., SqliteStore]

USER = """
    import fairlock
    from tests.sqlite.users import become
    become(sys.argv[2])
    os.umask(int(sys.argv[3], 8))
    locks = fairlock.connect("sqlite:///" + sys.argv[1], lease=120)
    print("ready", flush=True)
    for word in map(str.strip, sys.stdin):
        try:
            if word == "acquire":
                lease = locks.lock("x").acquire(timeout=60)
                print(time.monotonic(), flush=True)
            elif word == "release":
                print(time.monotonic(), flush=True)
                lease.release()
            elif word == "doctor":
                print(" | ".join(f"{level}: {text}" for level, text in run(store_at(sys.argv[1]).doctor())), flush=True)
        except Exception as bad:
            print(type(bad).__name__, bad, flush=True)
    """


class User:
    """A client in a process of another user."""

    def __init__(self, path: Path, name: str = "", umask: str = "022") -> None:
        self.process = python(USER, path, name, umask)
        self._ready = False

    def call(self, word: str) -> str:
        self.write(word)
        return self.read()

    def write(self, word: str) -> None:
        if not self._ready:
            self._ready = True
            assert self.read() == "ready"
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def made() -> Iterator[People]:
    for names in people():
        names.join(names.alice)
        names.join(names.mallory)
        yield names


@pytest.fixture
def user() -> Iterator[Callable[..., User]]:
    begun: list[User] = []

    def begin(*args: object) -> User:
        begun.append(User(*args))  # type: ignore[arg-type]
        return begun[-1]

    yield begin
    for one in begun:
        one.end()


Begin = Callable[..., User]


# -- the mode of the files


@pytest.mark.parametrize(
    ("umask", "mode"), [(0o022, 0o600), (0o077, 0o600), (0o027, 0o600), (0o002, 0o660), (0o007, 0o660), (0, 0o660)]
)
def test_the_files_are_for_the_group_if_the_umask_lets_it_write_and_never_for_others(
    path: Path, umask: int, mode: int
) -> None:
    before = os.umask(umask)
    try:
        store = store_at(path)
        assert store.open_listener()
        put(store, "k")
    finally:
        os.umask(before)
    try:
        assert {stat.S_IMODE(os.stat(f"{path}{end}").st_mode) for end in ("", "-wal", "-shm")} == {mode}
        assert stat.S_IMODE(os.stat(f"{path}.wakeups").st_mode) == (0o2770 if mode == 0o660 else 0o700)
        assert stat.S_IMODE(os.stat(f"{path}.wakeups/{store.listener}").st_mode) == mode, "whatever the umask is"
    finally:
        run(store.close())


def test_a_file_that_is_there_keeps_its_mode(path: Path) -> None:
    path.touch(0o644)
    path.chmod(0o644)
    store = store_at(path)
    put(store, "k")
    run(store.close())
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


# -- sharing


def test_any_client_of_the_database_may_notify_a_listener(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    path.touch()
    path.chmod(0o660)
    store = store_at(path)
    directory = Path(f"{path}.wakeups")
    assert store.open_listener()
    assert directory.stat().st_mode & 0o777 == 0o770
    assert (directory / store.open_listener()).stat().st_mode & 0o777 == 0o660
    run(store.close())


def shared_by_group(place: Path, made: People) -> Path:
    """As docs/sqlite.md says."""
    folder = place / "shared"
    subprocess.run(["install", "-d", "-m", "2770", "-g", made.group, folder], check=True)
    return folder / "locks.db"


def root_beside(place: Path, made: People) -> Path:
    """As docs/sqlite.md says."""
    folder = place / "of one user"
    subprocess.run(["install", "-d", "-m", "700", "-o", made.alice, "-g", made.alice, folder], check=True)
    return folder / "locks.db"


SOON = 0.15  # seconds; by then the other one waits


def they_share(one: User, other: User) -> None:
    """Each wakes the other within 50 ms; the best of three, because a busy machine is slow."""
    for holder, waiter in ((one, other), (other, one)):
        took = []
        for _ in range(3):
            float(holder.call("acquire"))
            waiter.write("acquire")
            time.sleep(SOON)
            released = float(holder.call("release"))
            took.append(float(waiter.read()) - released)
            float(waiter.call("release"))
        assert min(took) <= 0.05, took


def a_death_is_noticed(holder: User, waiter: User) -> None:
    float(holder.call("acquire"))
    waiter.write("acquire")
    time.sleep(SOON)
    killed = time.monotonic()
    holder.process.kill()
    assert float(waiter.read()) - killed <= 1.0
    float(waiter.call("release"))


@only_root
@pytest.mark.parametrize("first", ["alice", "mallory"])
def test_two_users_of_a_group_share_a_file(made: People, place: Path, user: Begin, first: str) -> None:
    path = shared_by_group(place, made)
    names = [made.alice, made.mallory] if first == "alice" else [made.mallory, made.alice]
    one, other, third = (user(path, name, "002") for name in (*names, names[0]))
    they_share(one, other)
    a_death_is_noticed(one, other)
    a_death_is_noticed(other, third)


@only_root
@pytest.mark.parametrize("first", ["root", "alice"])
def test_root_and_another_user_share_a_file(made: People, place: Path, user: Begin, first: str) -> None:
    path = root_beside(place, made)
    names = ["", made.alice] if first == "root" else [made.alice, ""]
    one, other, third = (user(path, name) for name in (*names, names[0]))
    they_share(one, other)
    assert {os.stat(f"{path}{end}").st_uid for end in ("", "-wal", "-shm", ".wakeups")} == {uid(made.alice)}
    a_death_is_noticed(one, other)
    a_death_is_noticed(other, third)


@only_root
@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_root_gives_no_file_of_its_own_to_the_owner_of_the_database(made: People, place: Path, end: str) -> None:
    """SQLite gives the log to the owner of the database, who may have moved another file there."""
    path = root_beside(place, made)
    put(first := store_at(path), "k")
    run(first.close())
    secret = Path(f"{path}{end}")
    secret.write_text("secret" * 1000)
    secret.chmod(0o600)
    file = os.open(secret, os.O_PATH)  # wherever it is moved
    store = store_at(path)
    with suppress(LockError):
        put(store, "k")
    run(store.close())
    there = os.fstat(file)
    os.close(file)
    assert (there.st_uid, there.st_gid, stat.S_IMODE(there.st_mode)) == (0, 0, 0o600)


@only_root
def test_root_uses_a_file_of_another_user_in_a_directory_of_its_own(made: People, place: Path) -> None:
    """There nobody else can put anything beside the file, not even its owner."""
    path = place / "locks.db"
    path.touch()
    os.chown(path, uid(made.alice), gid(made.alice))
    put(store := store_at(path), "k")
    run(store.close())


@only_root
def test_after_opening_a_database_of_another_user_root_is_root_again(made: People, place: Path) -> None:
    path = root_beside(place, made)
    store = store_at(path)
    put(store, "k")
    assert store._maintenance.checkpoint()
    run(store.close())
    path.with_name("by root").touch()
    assert path.with_name("by root").stat().st_uid == 0
    assert path.stat().st_uid == uid(made.alice)


# -- outsiders


@only_root
@pytest.mark.parametrize("end", [".wakeups", "-wal", "-shm"])
def test_what_an_outsider_has_put_beside_the_database_is_refused(
    made: People, place: Path, user: Begin, end: str
) -> None:
    place.chmod(0o1777)
    strange = place / f"locks.db{end}"
    if end == ".wakeups":
        strange.mkdir(0o777)
        strange.chmod(0o777)
    else:
        strange.touch()
        strange.chmod(0o666)
    os.chown(strange, uid(made.mallory), gid(made.mallory))
    said = user(place / "locks.db", made.alice).call("acquire")
    assert said.startswith(f"StoreError {strange} belongs to user {made.mallory}")
    assert "move the database to a directory that only its users may write" in said


@only_root
def test_a_directory_that_an_outsider_owns_is_not_used_by_a_client_that_runs(made: People, place: Path) -> None:
    """It takes the place of the real one while that is away."""
    place.chmod(0o1777)
    one, two = store_at(place / "locks.db"), store_at(place / "locks.db")
    listener = one.open_listener()
    assert two.open_listener()
    directory = Path(one._db.real + ".wakeups")
    directory.rename(place / "elsewhere")
    directory.mkdir(0o777)
    os.chown(directory, uid(made.mallory), gid(made.mallory))
    dead_socket(directory / listener)
    for store in (one, two):
        store._listeners.heal()
    assert two.liveness([listener]) == (frozenset(), frozenset())
    assert os.listdir(directory) == [listener], "nobody has a socket there"
    new = store_at(place / "locks.db")
    assert new.open_listener() == ""
    for store in (one, two, new):
        run(store.close())


@only_root
def test_a_user_without_rights_to_the_file_can_lock_nothing_of_it(made: People, place: Path) -> None:
    """A lock for reading stops the writers as well, and the right to read is enough for one."""
    store = store_at(place / "locks.db")
    put(store, "k")
    assert store.open_listener()
    tried = python(
        """
        import fcntl
        from tests.sqlite.users import become
        become(sys.argv[2])
        for end in ("", "-wal", "-shm", ".wakeups"):
            try:
                fcntl.flock(os.open(sys.argv[1] + end, os.O_RDONLY), fcntl.LOCK_SH)
                print("locked", end)
            except PermissionError:
                pass
        print("done", flush=True)
        """,
        place / "locks.db",
        made.mallory,
    )
    assert tried.communicate(timeout=60)[0] == "done\n"
    run(store.close())


def test_a_directory_that_others_may_write_is_refused(path: Path) -> None:
    store = store_at(path)
    assert store.open_listener()
    run(store.close())
    Path(f"{path}.wakeups").chmod(0o777)
    store = store_at(path)
    with pytest.raises(Exception, match=r"may be written by users that may not write the database.*chmod go-w"):
        put(store, "k")


def test_nothing_is_removed_from_a_directory_that_takes_the_place_of_a_private_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It belongs to the same user, and somebody else who may write the directory above has exchanged the two."""
    precious = tmp_path / "precious"
    precious.mkdir(0o700)
    (precious / file_permissions.NEW).write_text("secret")
    make = os.mkdir

    def exchanged(name: str, mode: int, *, dir_fd: int) -> None:
        make(name, mode, dir_fd=dir_fd)
        (tmp_path / name).rename(tmp_path / "private")
        precious.rename(tmp_path / name)

    parent = os.open(tmp_path, file_permissions.DIRECTORY)
    monkeypatch.setattr(os, "mkdir", exchanged)
    with pytest.raises(PermissionError, match="replaced by another one"):
        file_permissions.make_directory("locks.db.wakeups", parent, file_permissions.ours_alone())
    os.close(parent)
    (there,) = tmp_path.glob(f".*/{file_permissions.NEW}")
    assert there.read_text() == "secret"


@pytest.mark.parametrize("what", ["a dead socket", "a file", "a link"])
def test_another_file_of_that_name_proves_no_death(client: Client, what: str) -> None:
    one, two = client(), client()
    assert one.open_listener()
    listener = two.open_listener()
    file = Path(two._db.real + ".wakeups", listener)
    file.unlink()
    if what == "a dead socket":
        dead_socket(file)
    elif what == "a file":
        file.touch()
    else:
        dead_socket(file.parent / "dead")
        file.symlink_to("dead")
    assert one.liveness([two.open_listener()]) == (frozenset(), frozenset())


def test_a_wakeup_is_not_sent_along_a_link(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = client(), client()
    assert one.open_listener()
    listener = two.open_listener()
    file = Path(two._db.real + ".wakeups", listener)
    monkeypatch.chdir(file.parent)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as victim:
        victim.bind("elsewhere")
        victim.setblocking(False)
        file.unlink()
        file.symlink_to("elsewhere")
        one._listeners.send(two.open_listener(), "hello")
        with pytest.raises(BlockingIOError):
            victim.recv(100)
