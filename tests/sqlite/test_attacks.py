"""Another user of the machine attacks: by links and directories that are exchanged while clients use the database."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sqlite.processes import python
from tests.sqlite.users import People, gid, only_root, people, uid

pytestmark = only_root

HOLDER = """
    from tests.sqlite.users import become
    become(sys.argv[2])
    os.umask(0o002)
    store = store_at(sys.argv[1])
    reply = step(store, sys.argv[3], enter("H", store.open_listener(), lease=3600))
    print(store.open_listener(), type(reply).__name__, flush=True)
    while not os.path.exists(sys.argv[1] + ".stop"):
        store._check_at = 0.0
        run(store.read(sys.argv[3]))
        time.sleep(0.0005)
    """

CHALLENGER = """
    from fairlock.errors import LockError
    from tests.sqlite.users import become
    become(sys.argv[2])
    os.umask(0o002)
    acquired = tries = 0
    said = ""
    print("ready", flush=True)
    while not os.path.exists(sys.argv[1] + ".stop"):
        store = store_at(sys.argv[1])
        for name in sys.argv[3:]:
            try:
                reply = step(store, name, enter("C", store.open_listener(), wait=False))
                acquired += type(reply).__name__ == "Granted"
                tries += 1
            except LockError as bad:
                said = str(bad)
        run(store.close())
    print(acquired, tries, said, flush=True)
    """

ATTACK = """
    import ctypes, itertools, socket
    from tests.sqlite.users import become
    become(sys.argv[2])
    os.umask(0)
    libc = ctypes.CDLL(None, use_errno=True)
    database, _, victims, folders = sys.argv[1], sys.argv[2], sys.argv[3].split(":"), sys.argv[4].split(":")
    listeners, work = database + ".wakeups", os.path.join(os.path.dirname(database), "work")
    os.mkdir(work)

    def exchange(one, other):
        return libc.renameat2(-100, one.encode(), -100, other.encode(), 2) == 0

    def attempt(what, *args):
        try:
            return what(*args)
        except OSError:
            pass

    links = []
    for i, victim in enumerate(victims):
        links.append(f"{work}/link{i}")
        os.symlink(victim, links[-1])
    dead = f"{work}/dead"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as corpse:
        corpse.bind(dead)
    traps = []
    for i, folder in enumerate(folders):
        traps.append(f"{work}/folder{i}")
        attempt(os.symlink, folder, traps[-1])
    os.mkdir(f"{work}/mine")
    traps += [f"{work}/mine", *(f for f in folders if os.path.dirname(f) == os.path.dirname(database))]
    swaps = 0
    print("ready", flush=True)
    for turn in itertools.count():
        if os.path.exists(database + ".stop"):
            break
        for name in attempt(os.listdir, listeners) or ():
            file = f"{listeners}/{name}"
            for trap in [*links, dead]:                 # what lies there is exchanged, and back
                swaps += exchange(file, trap) and exchange(file, trap)
            link = links[turn % len(links)]
            swaps += exchange(file, dead)               # somebody asks whether its owner lives
            time.sleep(0.0002)
            exchange(file, dead)
            attempt(os.rename, file, f"{work}/taken")   # its owner makes it again ...
            for _ in range(300):
                if exchange(file, link):                # ... and we are there before it has its mode
                    swaps += 1
                    time.sleep(0.0002)
                    exchange(file, link)
                    break
            if os.path.exists(database + ".stop"):
                break
        trap = traps[turn % len(traps)]
        if exchange(listeners, trap):
            swaps += 1
            time.sleep(0.001)
            exchange(listeners, trap)
        if turn % 3 == 0 and attempt(os.rename, listeners, f"{work}/listeners{turn}") is None:
            for _ in range(300):                        # somebody makes the directory again
                if exchange(listeners, trap):
                    swaps += 1
                    time.sleep(0.001)
                    exchange(listeners, trap)
                    break
    print(swaps, flush=True)
    """


@pytest.fixture(scope="module")
def made() -> Iterator[People]:
    yield from people()


class Watched:
    """Files whose mode and owner must not change, wherever they are moved."""

    def __init__(self, *files: Path) -> None:
        self._files = {file: os.open(file, os.O_PATH | os.O_NOFOLLOW) for file in files}
        self._before = self._state()

    def _state(self) -> dict[Path, tuple[int, int, int]]:
        found = {file: os.fstat(fd) for file, fd in self._files.items()}
        return {file: (there.st_mode, there.st_uid, there.st_gid) for file, there in found.items()}

    def are_the_same(self) -> None:
        after = self._state()
        for fd in self._files.values():
            os.close(fd)
        assert after == self._before


def own(path: Path, name: str) -> Path:
    os.chown(path, uid(name), gid(name))
    return path


def first_line(process: "subprocess.Popen[str]") -> list[str]:
    assert process.stdout is not None
    return process.stdout.readline().split(maxsplit=2)


def sealed(folder: Path, name: str = "root") -> Path:
    folder.mkdir(mode=0o700)
    return own(folder, name)


def locked(file: Path, name: str = "root") -> Path:
    file.write_text("secret")
    file.chmod(0o600)
    return own(file, name)


@pytest.mark.parametrize("seconds", [5, pytest.param(30, marks=pytest.mark.soak)])
def test_a_user_of_the_database_can_neither_take_files_of_others_nor_make_a_second_holder(
    made: People, place: Path, seconds: int
) -> None:
    """A user of the database may write anything there; but nothing happens to the files of others."""
    made.join(made.alice)
    made.join(made.mallory)
    shared = place / "shared"
    shared.mkdir()
    os.chown(shared, 0, gid(made.group))
    shared.chmod(0o2770)
    victims = [locked(place / "key of root"), locked(place / "key of alice", made.alice)]
    folders = [sealed(place / "folder of root"), sealed(place / "folder of alice", made.alice),
               sealed(shared / "root"), sealed(shared / "alice", made.alice)]  # fmt: skip
    locked(folders[0] / "inside")
    files = Watched(*victims, *folders, folders[0] / "inside")

    database = shared / "locks.db"
    database.touch()
    os.chown(database, uid(made.alice), gid(made.group))
    database.chmod(0o660)
    begun: list[subprocess.Popen[str]] = []
    try:
        for name, lock in (("", "of root"), (made.alice, "of alice")):
            begun.append(python(HOLDER, database, name, lock))
            assert first_line(begun[-1])[1] == "Granted"
        begun.append(python(ATTACK, database, made.mallory, ":".join(map(str, victims)), ":".join(map(str, folders))))
        attack = begun[-1]
        assert first_line(attack) == ["ready"]
        challengers = [python(CHALLENGER, database, name, "of root", "of alice") for name in ("", made.alice)]
        begun += challengers
        assert [first_line(challenger) for challenger in challengers] == [["ready"], ["ready"]]
        time.sleep(seconds)
        (shared / "locks.db.stop").touch()
        assert int(first_line(attack)[0]) > 20 * seconds, "it did attack"
        files.are_the_same()
        for challenger in challengers:
            acquired, tries, *said = first_line(challenger)
            assert int(acquired) == 0, "a second holder"
            assert int(tries) > 20, said
    finally:
        (shared / "locks.db.stop").touch()
        for process in begun:
            try:
                process.communicate(timeout=20)
            finally:
                process.kill()
