"""In a tight loop of writes a client keeps a snapshot. Nothing of another client is overlooked or lost by that."""

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairlock
from fairlock import Locks, aio
from fairlock.stores.sqlite.connection import FEW, Connection
from fairlock.stores.sqlite.maintenance import Maintenance
from tests.sqlite.processes import python, until


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/locks.db"


@pytest.fixture
def locks(url: str) -> Iterator[Locks]:
    with fairlock.connect(url) as locks:
        yield locks


def connection(locks: Locks | aio.Locks) -> Connection:
    db = locks.session.backend.store._db  # type: ignore[attr-defined]
    assert isinstance(db, Connection)
    return db


def loop_until_kept(locks: Locks, name: str = "x") -> Connection:
    """Acquire and release until the client keeps a snapshot. On a busy machine that is not so after each loop."""
    db = first_cycle(locks, name)
    end = time.monotonic() + 30
    while db.snapshot is None:
        assert time.monotonic() < end, "no snapshot was kept"
        for _ in range(FEW):
            with locks.lock(name):
                pass
    return db


def first_cycle(locks: Locks, name: str) -> Connection:
    with locks.lock(name):
        pass
    return connection(locks)


def test_the_keeper_ends_it_when_the_loop_is_over(locks: Locks, tmp_path: Path) -> None:
    db = loop_until_kept(locks)
    end = time.monotonic() + 10
    while db.snapshot is not None:
        assert time.monotonic() < end, "it would keep the log from being emptied"
        time.sleep(0.02)
    other = sqlite3.connect(tmp_path / "locks.db", timeout=5, isolation_level=None)
    assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
    other.close()


def test_the_keeper_ends_it_while_the_lock_is_held(locks: Locks) -> None:
    db = loop_until_kept(locks)
    with locks.lock("x"):
        end = time.monotonic() + 10
        while db.snapshot is not None:
            assert time.monotonic() < end
            time.sleep(0.02)


def test_it_does_not_keep_its_own_client_from_cutting_the_log(
    locks: Locks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop_until_kept(locks)
    monkeypatch.setattr(Maintenance, "_is_long", lambda self: True)
    maintenance = locks.session.backend.store._maintenance  # type: ignore[attr-defined]
    assert maintenance.checkpoint() is True
    assert os.stat(tmp_path / "locks.db-wal").st_size == 0


def test_a_lock_that_another_client_has_released_is_free(locks: Locks, url: str) -> None:
    with fairlock.connect(url) as others:
        theirs = others.lock("y").acquire()
        loop_until_kept(locks)
        theirs.release()
        with locks.lock("y").acquire(timeout=0) or pytest.fail("the snapshot still shows it as held"):
            pass


def test_a_statement_that_writes_anything_else_is_not_refused(locks: Locks, url: str) -> None:
    db = loop_until_kept(locks)
    with fairlock.connect(url) as others, others.lock("y"):
        assert db.change("UPDATE fairlock_meta SET base=base", ()) == 1


def test_the_same_lock_of_another_client(locks: Locks, url: str) -> None:
    with fairlock.connect(url) as others:
        for _ in range(20):
            loop_until_kept(locks)
            with others.lock("x") as theirs:
                assert locks.lock("x").acquire(timeout=0) is None
                assert [h.fence for h in locks.snapshot("x").resources[0].holders] == [theirs.fence]
            with locks.lock("x") as ours:
                assert ours.fence > theirs.fence


def test_another_lock_of_another_client(locks: Locks, url: str) -> None:
    """Its writes make each snapshot stale: ours are refused, and made again."""
    db = loop_until_kept(locks)
    with fairlock.connect(url) as others:
        for _ in range(5):
            loop_until_kept(locks)
            with others.lock("y") as theirs:
                found = locks.snapshot("y").resources[0]
                assert [h.fence for h in found.holders] == [theirs.fence]
            loop_until_kept(locks)
            with others.lock("y"), locks.lock("x") as ours:
                assert db.snapshot is None
                assert locks.snapshot("x").resources[0].holders[0].fence == ours.fence


def test_clients_with_a_lock_each_do_not_disturb_each_other(url: str) -> None:
    cycles = 2000
    last: dict[str, int] = {}

    def work(name: str) -> None:
        with fairlock.connect(url) as locks:
            for _ in range(cycles):
                with locks.lock(name) as lease:
                    assert lease.fence > last.get(name, 0)
                    last[name] = lease.fence

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(last) == ["a", "b", "c"]
    with fairlock.connect(url) as locks:
        for name, fence in last.items():
            with locks.lock(name) as lease:
                assert lease.fence > fence


def test_refusals_make_it_rarer_until_it_lasts_again(locks: Locks) -> None:
    db = loop_until_kept(locks)
    with db.guard:
        db.refused()
        assert (db.snapshot, db.enough) == (None, 4 * FEW)
        db.refused()
        assert db.enough == 4 * FEW, "no snapshot was kept: this was the write of a moment"
    end = time.monotonic() + 30
    while db.enough > FEW:
        assert time.monotonic() < end, "they have lasted"
        with locks.lock("x"):
            pass


def test_a_fork_in_the_loop(locks: Locks, url: str, tmp_path: Path) -> None:
    for _ in range(5):
        loop_until_kept(locks)
        child = os.fork()
        if not child:
            try:
                with fairlock.connect(url) as theirs, theirs.lock("x"), locks.lock("child"):
                    os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with locks.lock("x"):
            pass
    check = sqlite3.connect(tmp_path / "locks.db")
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()


def test_closing_in_the_loop_closes_the_file(url: str, tmp_path: Path) -> None:
    locks = fairlock.connect(url)
    db = loop_until_kept(locks)
    locks.close()
    assert (db.snapshot, db.cursor) == (None, None)
    database = str(tmp_path / "locks.db")
    held = [
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.islink(f"/proc/self/fd/{fd}")
    ]
    assert not [path for path in held if path.startswith(database)]


def test_tasks_keep_none(url: str) -> None:
    """A task may block its loop, and with it the keeper."""

    async def loop() -> None:
        async with aio.connect(url) as locks:
            for _ in range(50 * FEW):
                async with locks.lock("x"):
                    pass
                assert connection(locks).snapshot is None

    asyncio.run(loop())


def test_a_process_stopped_in_the_loop_only_keeps_the_log_from_being_emptied(
    locks: Locks, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
        import os, signal, sys, fairlock
        locks = fairlock.connect(sys.argv[1])
        while True:
            with locks.lock("theirs"):
                pass
            if locks.session.backend.store._db.snapshot is not None:
                os.kill(os.getpid(), signal.SIGSTOP)
        """
    process = python(code, url)
    until(lambda: os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT))
    monkeypatch.setattr(Maintenance, "_is_long", lambda self: True)
    for _ in range(100):
        with locks.lock("x"):
            pass
    log, maintenance = tmp_path / "locks.db-wal", locks.session.backend.store._maintenance  # type: ignore[attr-defined]
    assert maintenance.checkpoint() is False
    assert os.stat(log).st_size
    with locks.lock("theirs").acquire(timeout=0) or pytest.fail("it was released before the process stopped"):
        pass
    process.kill()
    process.communicate()
    assert maintenance.checkpoint() is True
    assert os.stat(log).st_size == 0
