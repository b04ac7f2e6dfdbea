"""Locks and pools in a real Cassandra of one node: what a cycle costs, what is in the table, the tool by its URL."""

import asyncio
import json
import subprocess
import sys
import threading
from functools import partial

import pytest
from cassandra.concurrent import execute_concurrent_with_args

import fairlock
from fairlock import aio
from fairlock.rules.pools.codec import encode_body
from fairlock.stores.cassandra import cql, pool_items
from tests.servers.cassandra import Ring


def sender(locks: fairlock.Locks):  # type: ignore[no-untyped-def]
    return locks._session.backend.store.sender  # type: ignore[attr-defined]


def test_a_cycle_without_competition_is_two_transactions(cassandra: Ring) -> None:
    with fairlock.connect(cassandra.session(), keyspace="fairlock") as locks:
        lock = locks.lock("x")
        with lock:
            pass
        before = sender(locks).sent
        for _ in range(10):
            with lock:
                pass
        assert sender(locks).sent - before <= 22  # now and then a clock is a millisecond behind itself


def test_one_row_tells_who_holds_it(cassandra: Ring) -> None:
    with fairlock.connect(cassandra.session(), keyspace="fairlock", owner="web-3") as locks, locks.lock("x") as lease:
        row = cassandra.session().execute("SELECT owner, score FROM fairlock.fairlock_locks WHERE key='x'").one()
        assert row.owner == "web-3"
        assert lease.fence <= row.score < lease.fence + 100


def test_a_url_is_enough_for_threads_and_for_tasks(cassandra: Ring) -> None:
    async def tasks() -> int:
        async with aio.connect(cassandra.url) as locks, locks.lock("x") as lease:
            return lease.fence

    with fairlock.connect(cassandra.url) as locks:
        assert "cassandra:cassandra" not in locks.store
        with locks.lock("x") as lease:
            first = lease.fence
    assert asyncio.run(tasks()) > first


def test_eight_clients_of_one_lock_need_few_transactions_and_see_no_error(cassandra: Ring) -> None:
    """With sections of 5 ms: to stand in the queue, and to leave; the rest are conflicts."""
    rounds, count, fences = 6, 0, []
    clients = [fairlock.connect(cassandra.session(), keyspace="fairlock", lease=10) for _ in range(8)]

    def work(locks: fairlock.Locks) -> None:
        nonlocal count
        for _ in range(rounds):
            with locks.lock("x", local_handoff=False).hold(timeout=60) as lease:
                seen = count
                threading.Event().wait(0.005)
                count = seen + 1
                fences.append(lease.fence)

    workers = [threading.Thread(target=work, args=(locks,)) for locks in clients]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    grants = 8 * rounds
    assert count == grants
    assert fences == sorted(fences)
    assert sum(sender(locks).sent for locks in clients) / grants <= 3.5
    for locks in clients:
        locks.close()


def test_items_are_spread_over_buckets_and_each_is_had_once(cassandra: Ring) -> None:
    with fairlock.connect(cassandra.session(), keyspace="fairlock") as locks:
        pool = locks.pool("jobs")
        keys = [f"job-{number}" for number in range(12)]
        assert pool.add_many([(key, None) for key in keys]) == 12
        found = cassandra.session().execute("SELECT bucket FROM fairlock.fairlock_items")
        assert len({row.bucket for row in found}) > 4
        had = [item.key for item in iter(lambda: pool.acquire(blocking=False), None)]
        assert sorted(had) == sorted(keys)
        for bucket in range(pool_items.BUCKETS):  # within a bucket: first come, first served
            mine = [key for key in had if pool_items.bucket_for(key) == bucket]
            assert mine == [key for key in keys if pool_items.bucket_for(key) == bucket]


def test_however_many_there_are_they_come_in_order(cassandra: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than are known to be next; and what is added meanwhile comes behind them."""
    monkeypatch.setattr(pool_items, "AHEAD", 16)
    with fairlock.connect(cassandra.session(), keyspace="fairlock") as locks:
        pool, keys = locks.pool("jobs"), [f"job-{number}" for number in range(pool_items.AHEAD + 20)]
        insert = cassandra.session().prepare(cql.ADD.format(keyspace="fairlock").removesuffix(" IF NOT EXISTS"))
        null = partial(encode_body, "null", "jobs")
        rows = [("jobs", pool_items.bucket_for(key), key, number, null(key)) for number, key in enumerate(keys)]
        execute_concurrent_with_args(cassandra.session(), insert, rows)  # at once, for this is not about adding
        for number, key in enumerate(keys[: pool_items.AHEAD + 5]):
            item = pool.acquire(blocking=False)
            assert item is not None and item.key == key
            if number == 3:
                item.release()
                pool.add("late")
        rest = [item.key for item in iter(lambda: pool.acquire(blocking=False), None)]
        assert rest[:15] == keys[-15:]
        assert rest[15:] == ["late", keys[3]]


@pytest.mark.parametrize("few", [1, 64])
def test_in_a_crowd_items_come_in_the_order_of_their_bucket(
    cassandra: Ring, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """The order holds for a bucket of few items and for one of more than are read at once."""
    monkeypatch.setattr(pool_items, "FEW", few)
    with fairlock.connect(cassandra.session(), keyspace="fairlock") as locks:
        items = locks._session.backend.pools.item_store  # type: ignore[union-attr]
        pool, keys = locks.pool("jobs"), [f"job-{number}" for number in range(40, 0, -1)]
        pool.add_many([(key, None) for key in keys])
        items.crowded = locks._session.clock() + 60
        had = [item.key for item in iter(lambda: pool.acquire(blocking=False), None)]
        assert had != keys, "at random"
        for bucket in range(pool_items.BUCKETS):
            assert [key for key in had if pool_items.bucket_for(key) == bucket] == [
                key for key in keys if pool_items.bucket_for(key) == bucket
            ]


def test_who_waits_for_an_item_writes_nothing_into_the_log(cassandra: Ring, caplog: pytest.LogCaptureFixture) -> None:
    """Cassandra warns of some questions, and the driver passes it on."""
    with fairlock.connect(cassandra.session(), keyspace="fairlock") as locks:
        assert locks.pool("jobs").acquire(timeout=0.3) is None
        locks.pool("jobs").add("a")
        assert locks.pool("jobs").acquire(timeout=5) is not None
        assert locks.pool("jobs").acquire(timeout=0.1) is None
    assert [record.getMessage() for record in caplog.records] == []


def test_a_removed_item_is_gone_and_its_fence_is_not(cassandra: Ring) -> None:
    with fairlock.connect(cassandra.session(), keyspace="fairlock") as locks:
        pool = locks.pool("jobs")
        pool.add("a")
        item = pool.acquire()
        assert item is not None
        assert pool.remove("a", force=True) is True
        assert pool.items() == []
        assert pool.acquire(blocking=False) is None
        assert pool.add("a") is True
        again = pool.acquire(blocking=False)
        assert again is not None and again.fence > item.fence
        assert cassandra.session().execute("SELECT count(*) FROM fairlock.fairlock_items").one()[0] == 1


def test_the_tool_works_by_its_url_alone(cassandra: Ring) -> None:
    def tool(*args: str) -> "subprocess.CompletedProcess[str]":
        words = [sys.executable, "-m", "fairlock", "-u", cassandra.url, *args]
        return subprocess.run(words, capture_output=True, text=True, timeout=60)

    ran = tool("run", "x", "--", "echo", "in")
    assert ran.stdout == "in\n", ran.stderr
    doctor = tool("doctor", "--json")
    told = json.loads(doctor.stdout)["checks"]
    assert doctor.returncode == 0, doctor.stdout
    assert any("Paxos v2" in check["text"] for check in told)
    assert [check["text"] for check in told if check["level"] == "warning" and "ms" not in check["text"]] == [
        "There are few copies (replication_factor 1): if one node is down its locks are, too. Three are usual."
    ]
    assert "CREATE TABLE" in tool("schema").stdout
    assert tool("pool", "add", "jobs", "one").returncode == 0
    assert tool("pool", "run", "jobs", "-c", "echo $FAIRLOCK_ITEM").stdout == "one\n"
    assert "1 done" in tool("pool", "ls", "jobs").stdout
