"""Files and rows that were damaged at random: one bad record costs one name, no error is raw, no lock is granted twice.

Seeded, and every failure names its seed: `FAIRLOCK_SEED=17 ./dev test tests/sqlite/test_damaged_files.py` plays one.
"""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairlock
from fairlock import LockError, Locks

FILES, ROWS = 60, 60
MANY = 3000
ONE = os.environ.get("FAIRLOCK_SEED")
HELD = ("alpha", "beta", "gamma")
WILD: tuple[Any, ...] = (0, -1, 2**62, 1.5, "", "x", b"\xff\xfe", b"", "[]", "null", '{"a":1}', "[3,1]", "9" * 400)


def seeds(number: int) -> list[int]:
    return [int(ONE)] if ONE else list(range(number))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database in which three names are held by leases without a process, and three items are taken."""
    path = tmp_path_factory.mktemp("damaged") / "template.db"
    with fairlock.connect(f"sqlite:///{path}") as locks:
        for name in HELD:
            lease = locks.lock(name, note="precious").acquire()
            assert lease is not None
            lease.detach(3600)
        for number in range(20):  # and names that were used
            with locks.lock(f"used-{number}"):
                pass
        jobs = locks.pool("jobs", lease=3600)
        jobs.add_many({f"job-{n}": {"n": n} for n in range(12)})
    with fairlock.connect(f"sqlite:///{path}") as locks:
        for _ in range(3):
            assert locks.pool("jobs", lease=3600).acquire(False, renew=False) is not None
        locks._session.grants.clear()  # as a process that was killed
    return path


def documented(work: Callable[[], Any]) -> Any:
    """Return the result, or the exception if that is one of ours. Anything else is raised, and fails the test."""
    try:
        return work()
    except LockError as error:
        return error


def use(locks: Locks) -> list[str]:
    """Everything that a client does. The names that it was granted although they are held."""
    twice = []
    documented(locks.snapshot)
    documented(locks.ping)
    for name in HELD:
        documented(lambda: locks.lock(name).locked())  # noqa: B023
        if isinstance(documented(lambda: locks.lock(name).acquire(False)), fairlock.Lease):  # noqa: B023
            twice.append(name)
        documented(lambda: locks.attach(name, "0" * 32))  # noqa: B023
    documented(lambda: locks.lock("used-3").acquire(False))
    documented(lambda: locks.semaphore("new", 2).acquire(False))
    jobs = locks.pool("jobs", lease=3600)
    for _ in range(13):
        item = documented(lambda: jobs.acquire(False))
        if not isinstance(item, fairlock.Item):
            break
        if documented(lambda: item.body) in ({"n": 0}, {"n": 1}, {"n": 2}):  # noqa: B023
            twice.append(item.key)
        documented(item.done)
    documented(jobs.items)
    documented(jobs.counts)
    documented(locks.close)
    return twice


def check(path: Path, seed: int) -> None:
    try:
        locks = fairlock.connect(f"sqlite:///{path}", busy_timeout=0.1)
        twice = use(locks)
    except Exception as error:
        raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
    assert not twice, f"seed {seed}: {twice} granted twice"


def damage_bytes(path: Path, rng: random.Random) -> None:
    whole = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 2, 8))):
        place = rng.randrange(len(whole))
        whole[place] ^= 1 << rng.randrange(8) if rng.random() < 0.5 else rng.randrange(1, 256)
    path.write_bytes(whole)


@pytest.fixture
def copy(template: Path, tmp_path: Path) -> Callable[[], Path]:
    def made() -> Path:
        path = tmp_path / "x.db"
        for end in ("", "-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
        return Path(shutil.copy(template, path))

    return made


@pytest.mark.parametrize("files", [FILES, pytest.param(MANY, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])])
def test_damaged_files_raise_nothing_raw_and_grant_nothing_twice(copy: Callable[[], Path], files: int) -> None:
    for seed in seeds(files):
        path = copy()
        damage_bytes(path, random.Random(seed))
        check(path, seed)


def damage_row(path: Path, rng: random.Random) -> str:
    """Damage one row; its key."""
    with sqlite3.connect(path) as db:
        db.text_factory = bytes
        if rng.random() < 0.7:
            table, columns, of = "fairlock_locks", ("score", "owner", "body", "body", "body", "version"), ""
        else:
            table, of = "fairlock_items", "pool"
            columns = ("score", "fence", "ticket", "lease", "owner", "note", "body")
        rowid, key = rng.choice(db.execute(f"SELECT rowid, key FROM {table}").fetchall())
        column = rng.choice(columns)
        value: Any = rng.choice(WILD)
        if column == "body" and rng.random() < 0.6:
            body = db.execute(f"SELECT CAST(body AS BLOB) FROM {table} WHERE rowid=?", (rowid,)).fetchone()[0]
            text = bytearray(body)
            text[rng.randrange(len(text))] ^= 1 << rng.randrange(7)
            value = bytes(text)
        cast = "CAST(? AS TEXT)" if type(value) is bytes and rng.random() < 0.7 else "?"
        db.execute(f"UPDATE {table} SET {column}={cast} WHERE rowid=?", (value, rowid))
    db.close()
    return of or key.decode()


@pytest.mark.parametrize("rows", [ROWS, pytest.param(MANY, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])])
def test_a_damaged_row_costs_one_name(copy: Callable[[], Path], rows: int) -> None:
    for seed in seeds(rows):
        path = copy()
        bad = damage_row(path, random.Random(seed))
        check(path, seed)
        if bad == "pool":
            continue
        with fairlock.connect(f"sqlite:///{path}") as locks:
            for name in {*HELD, "used-5"} - {bad}:
                got = locks.lock(name).acquire(False)
                assert (got is None) == (name in HELD), f"seed {seed}: {name}"
            names = {r.name for r in locks.snapshot(idle=True).resources}
            assert {*HELD, bad} <= names, f"seed {seed}"
