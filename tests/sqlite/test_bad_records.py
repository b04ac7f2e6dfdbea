"""One record that cannot be read: a sentence that names it, a repair, and everything else goes on."""

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fairlock
from fairlock import LeaseLost, Locks, RecordDamaged, aio
from fairlock.rules.checksum import seal
from fairlock.stores.sqlite import SqliteStore
from tests.sqlite.processes import ThreadRuntime, until

BAD: dict[str, Any] = {
    "bad JSON": "[3,", "other JSON": '{"a":1}', "wrong types": '[3,"x",null,[],{},"y",5,6,7,8]', "a number": 5,
    "a waiter that is none": seal("[3,1,false,5,1,5,[],[9,\t[1]\t],[]]"),
    "bytes": b"\xff\xfe", "nothing": "", "an older format": "[1,0,false,0,0,0,[],[],[]]",
}  # fmt: skip
SHORT = 3  # seconds; a lease that the keeper renews every second


@pytest.fixture
def locks(path: Path) -> Iterator[Locks]:
    with fairlock.connect(f"sqlite:///{path}", lease=SHORT) as client:
        yield client


def damage(path: Path, name: str, body: object, column: str = "body") -> None:
    time.sleep(0.002)  # longer than a client trusts what it read last
    with sqlite3.connect(path, timeout=5) as db:
        assert db.execute(f"UPDATE fairlock_locks SET {column}=? WHERE key=?", (body, name)).rowcount == 1
    db.close()


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
def test_the_sentence_names_it_and_other_names_go_on(locks: Locks, path: Path, body: object) -> None:
    for name in ("good", "bad"):
        with locks.lock(name):
            pass
    damage(path, "bad", body)
    with pytest.raises(RecordDamaged, match=r"The record of 'bad' in .* is damaged.*doctor --repair bad") as caught:
        locks.lock("bad").acquire(timeout=5)
    assert caught.value.name == "bad"
    assert caught.value.refused
    for ask in (locks.lock("bad").locked, lambda: locks.evict("bad", reason="test")):
        with pytest.raises(RecordDamaged):
            ask()
    with locks.lock("good"):
        assert {(r.name, r.kind) for r in locks.snapshot(idle=True).resources} == {("good", "lock"), ("bad", "damaged")}


def test_another_lease_of_the_same_client_is_kept_and_this_one_is_lost_at_once(locks: Locks, path: Path) -> None:
    told: list[str] = []
    good = locks.lock("good").acquire()
    bad = locks.lock("bad", on_lost=lambda lease: told.append(lease.name)).acquire()
    assert good is not None
    assert bad is not None
    damage(path, "bad", '[3,"x"]')
    until(lambda: bad.lost)
    assert bad.remaining() == 0
    assert bad.reason == "store_reset"
    with pytest.raises(LeaseLost, match="is damaged"):
        bad.ensure_held()
    until(lambda: told)
    until(lambda: not locks._session.pending_releases)  # there is nothing to leave, and nothing is tried again
    time.sleep(SHORT)  # longer than its lease
    assert good.held
    good.release()


def test_close_releases_the_others_and_raises_nothing(path: Path) -> None:
    locks = fairlock.connect(f"sqlite:///{path}")
    assert locks.lock("bad").acquire()
    assert locks.lock("good").acquire()
    damage(path, "bad", 5)
    locks.close()
    with fairlock.connect(f"sqlite:///{path}") as other:
        assert other.lock("good").acquire(False) is not None


def test_tasks_get_the_same_error(path: Path) -> None:
    async def work() -> None:
        async with aio.connect(f"sqlite:///{path}", lease=SHORT) as locks:
            good = await locks.lock("good").acquire()
            assert good is not None
            with pytest.raises(LeaseLost, match="is damaged"):
                async with locks.lock("bad"):
                    damage(path, "bad", "nonsense")
                    await asyncio.sleep(10)
            with pytest.raises(RecordDamaged):
                await locks.lock("bad").acquire()
            assert good.held
            assert await locks.repair("bad")
            assert await locks.repair("bad") == ()
            async with locks.lock("bad"):
                pass

    asyncio.run(work())


def test_a_waiter_gets_the_error_and_does_not_wait_for_its_timeout(locks: Locks, path: Path) -> None:
    with fairlock.connect(f"sqlite:///{path}") as other:
        lease = other.lock("bad").acquire()
        assert lease is not None
        begun = time.monotonic()
        damage_at = begun + 0.3

        def spoil() -> None:
            time.sleep(damage_at - time.monotonic())
            damage(path, "bad", "x")

        import threading

        thread = threading.Thread(target=spoil)
        thread.start()
        with pytest.raises(RecordDamaged):
            locks.lock("bad").acquire(timeout=30)
        thread.join()
        assert time.monotonic() - begun < 10


@pytest.mark.parametrize("column, value", [("body", "x"), ("version", "x"), ("version", b"\xff"), ("score", "x")])
def test_a_repair_resets_it_and_fences_go_on_rising(locks: Locks, path: Path, column: str, value: object) -> None:
    with locks.lock("bad") as lease:
        before = lease.fence
    damage(path, "bad", "x")
    damage(path, "bad", value, column)
    (sentence,) = locks.repair("bad")
    assert "'bad' was reset" in sentence
    assert locks.repair("bad") == ()
    with locks.lock("bad") as lease:
        assert lease.fence > before


@pytest.mark.parametrize("score", [2**62, -5, "x", b"\xff", 1.5])
def test_a_damaged_fence_does_not_become_the_next_one(locks: Locks, path: Path, score: object) -> None:
    with locks.lock("bad") as lease:
        before = lease.fence
    damage(path, "bad", score, "score")
    damage(path, "bad", "x")
    locks.repair("bad")
    with locks.lock("bad") as lease:
        assert before < lease.fence < before + 10**9


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
def test_after_a_reboot_the_store_can_be_opened(path: Path, body: object) -> None:
    with fairlock.connect(f"sqlite:///{path}") as locks:
        for name in ("good", "bad", "ugly"):
            lease = locks.lock(name).acquire()
            assert lease is not None
            lease.detach(60)
        jobs = locks.pool("jobs")
        jobs.add_many(["a", "b"])
        assert jobs.acquire(False, key="a", renew=False)
        locks._session.grants.clear()
    damage(path, "bad", body)
    damage(path, "ugly", "x", "score")
    damage_item(path, "b", "fence", "x")
    store = SqliteStore(path, ThreadRuntime(), boot_id="another boot")
    store._open()
    store._db.close()
    with fairlock.connect(f"sqlite:///{path}") as locks:
        assert locks.lock("good").acquire(False) is None
        assert locks.lock("new").acquire(False) is not None


def damage_item(path: Path, key: str, column: str, value: object) -> None:
    with sqlite3.connect(path, timeout=5) as db:
        assert db.execute(f"UPDATE fairlock_items SET {column}=? WHERE key=?", (value, key)).rowcount == 1
    db.close()


@pytest.mark.parametrize(
    "column, value",
    [("body", "x"), ("body", b"\xff"), ("score", 5), ("fence", 7), ("ticket", "forged"), ("lease", "x"), ("note", 5)],
)
def test_a_damaged_item_costs_that_item(locks: Locks, path: Path, column: str, value: object) -> None:
    jobs = locks.pool("jobs")
    jobs.add_many({"a": 1, "b": 2, "c": 3})
    damage_item(path, "a", column, value)
    with jobs.hold(finish=True, timeout=0) as item:
        assert item.key == "b"
    assert [(i.key, i.state) for i in jobs.items()] == [("a", "damaged"), ("b", "done"), ("c", "free")]
    with pytest.raises(RecordDamaged, match="The item 'a' of the pool 'jobs'"):
        jobs.acquire(False, key="a")
    (sentence,) = locks.repair("jobs")
    assert "'a'" in sentence
    (aside, *_) = jobs.items()
    assert (aside.key, aside.state) == ("a", "done")
    assert locks.repair("jobs") == ()


def test_a_damaged_queue_of_a_pool_is_emptied_by_its_repair(locks: Locks, path: Path) -> None:
    jobs = locks.pool("jobs")
    assert jobs.acquire(timeout=0.05) is None  # it stood in the queue
    damage(path, "\x1fjobs", '["line2",5]')
    with pytest.raises(RecordDamaged, match=r"The queue of the pool 'jobs'.*--repair jobs"):
        jobs.acquire(timeout=0.05)
    assert len(locks.repair("jobs")) == 1
    jobs.add("a")
    assert jobs.acquire(timeout=1)


def test_a_damaged_clock_is_a_sentence_and_ends_no_lease(path: Path) -> None:
    """A wrong base would be a wrong time, by which every lease has expired."""
    with fairlock.connect(f"sqlite:///{path}") as locks:
        lease = locks.lock("x").acquire()
        assert lease is not None
        lease.detach(60)
    for base in (0, "x", 2**60):
        with sqlite3.connect(path) as db:
            was = db.execute("SELECT base FROM fairlock_meta").fetchone()[0]
            db.execute("UPDATE fairlock_meta SET base=?", (base,))
        with fairlock.connect(f"sqlite:///{path}") as locks, pytest.raises(fairlock.ConfigError, match="is damaged"):
            locks.lock("x").acquire(False)
        with sqlite3.connect(path) as db:
            db.execute("UPDATE fairlock_meta SET base=?", (was,))
        db.close()
    with fairlock.connect(f"sqlite:///{path}") as locks:
        assert locks.lock("x").acquire(False) is None


def test_every_row_names_its_format_and_carries_a_checksum(locks: Locks, path: Path) -> None:
    with locks.lock("x"):
        pass
    jobs = locks.pool("jobs")
    jobs.add("a", {"n": 1})
    with sqlite3.connect(path) as db:
        record = json.loads(db.execute("SELECT body FROM fairlock_locks WHERE key='x'").fetchone()[0])
        item = json.loads(db.execute("SELECT body FROM fairlock_items").fetchone()[0])
    db.close()
    assert record[0] == 3
    assert item[:2] == [2, {"n": 1}]
    assert type(record[-1]) is type(item[-1]) is int
