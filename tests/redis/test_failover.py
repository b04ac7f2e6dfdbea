"""Another server takes over: Sentinel promotes a replica, a Cluster loses a master, a slot moves. Workers count all the
while, as in test_server_dies.py; everybody goes on within seconds, and fences rise.

Only what has not lost a write can promise that nobody is inside twice: a slot that moves does, a replica that takes
over does not, unless min_replicas says so.
"""

import threading
import time
from pathlib import Path

import pytest

import fairlock
from fairlock import StoreError
from tests.api_parity.test_nothing_left import nothing_is_left
from tests.redis.test_server_dies import Workers
from tests.redis.test_waiting import queue_at
from tests.servers.groups import Cluster, Sentinels, WithReplica
from tests.servers.server import Server, until

SOON = 20.0  # seconds; a failover takes two or three of them here


def fences_rise(url: str, names: list[str], folder: Path) -> None:
    """Check that each fence from now on is greater than all fences that the workers got."""
    with fairlock.connect(url) as locks:
        for name in names:
            with locks.lock(name, timeout=30) as lease:
                assert lease.fence > int((folder / f"count-{name}").read_text().split()[0])


def all_go_on(turns: list[list[tuple[str, float]]], back: float) -> bool:
    return all(any(when > back for _, when in mine) for mine in turns)


def test_sentinel_promotes_the_replica_of_a_killed_master(redis_sentinel: Sentinels, tmp_path: Path) -> None:
    workers = Workers(redis_sentinel.url, tmp_path, 4, 5, lease=5)
    try:
        workers.go_on(50, 40)
        old, new = redis_sentinel.master, redis_sentinel.replica
        old.kill()
        assert workers.go_on(50, 40) < SOON
        assert redis_sentinel.master is new
        back = time.time()
        time.sleep(4)
        _, doubts, turns = workers.end()
    finally:
        workers.kill()
    assert all_go_on(turns, back), doubts
    fences_rise(redis_sentinel.url, ["x"], tmp_path)


def test_a_forced_failover_of_sentinel(redis_sentinel: Sentinels, tmp_path: Path) -> None:
    workers = Workers(redis_sentinel.url, tmp_path, 4, 5, lease=5)
    try:
        workers.go_on(50, 40)
        redis_sentinel.failover()
        assert workers.go_on(50, 40) < SOON
        back = time.time()
        time.sleep(4)
        _, doubts, turns = workers.end()
    finally:
        workers.kill()
    assert all_go_on(turns, back), doubts
    fences_rise(redis_sentinel.url, ["x"], tmp_path)


def test_a_cluster_loses_a_master(redis_cluster: Cluster, tmp_path: Path) -> None:
    names = ["x", "y", "z", "foo"]
    workers = Workers(redis_cluster.url, tmp_path, 4, 5, lease=5, names=names)
    try:
        workers.go_on(50, 40)
        old = redis_cluster.owner_of("fairlock:{x}")
        old.kill()
        until(lambda: redis_cluster.owner_of("fairlock:{x}") is not old, "a replica is promoted", 30)
        assert workers.go_on(50, 40) < SOON
        back = time.time()
        time.sleep(6)
        _, doubts, turns = workers.end()
    finally:
        workers.kill()
    assert all_go_on(turns, back), doubts
    redis_cluster.heal()
    fences_rise(redis_cluster.url, names, tmp_path)


@pytest.mark.parametrize("face", ["threads", "tasks"])
def test_a_client_that_only_waits_finds_the_new_master_too(redis_cluster: Cluster, face: str) -> None:
    """Nothing else is asked by that client, so it is the listening that meets the dead one."""

    def lose_the_master() -> None:
        old = redis_cluster.owner_of("fairlock:{x}")
        old.call("SET", "{x}", "1")
        assert old.call("WAIT", 1, 5000) == 1
        old.kill()
        until(lambda: redis_cluster.owner_of("fairlock:{x}") is not old, "a replica is promoted", 30)

    late = queue_at(redis_cluster.url, face, lose_the_master, in_order=False, places=False)
    assert max(late) < 8


def move(cluster: Cluster, slot: int, old: Server, new: Server) -> None:
    """As redis-cli --cluster reshard does it."""
    old_id, new_id = old.call("CLUSTER", "MYID"), new.call("CLUSTER", "MYID")
    new.call("CLUSTER", "SETSLOT", slot, "IMPORTING", old_id)
    old.call("CLUSTER", "SETSLOT", slot, "MIGRATING", new_id)
    until(lambda: _carry(old, new, slot), "the slot is empty")
    for server in (new, old, *cluster.masters):
        server.call("CLUSTER", "SETSLOT", slot, "NODE", new_id)


def _carry(old: Server, new: Server, slot: int) -> bool:
    keys = old.call("CLUSTER", "GETKEYSINSLOT", slot, 100)
    if keys:
        old.call("MIGRATE", "127.0.0.1", new.port, "", 0, 5000, "KEYS", *keys)
        time.sleep(0.05)
    return not keys


def test_a_slot_moves_under_load_and_no_lock_is_held_twice(redis_cluster: Cluster, tmp_path: Path) -> None:
    workers = Workers(redis_cluster.url, tmp_path, 4, 5, lease=10)
    slot = int(redis_cluster.servers[0].call("CLUSTER", "KEYSLOT", "fairlock:{x}"))
    home = redis_cluster.owner_of("fairlock:{x}")
    other = next(server for server in redis_cluster.masters if server is not home)
    slowest = 0.0
    try:
        workers.go_on(50, 40)
        for there in (other, home, other, home):
            here = home if there is other else other
            move(redis_cluster, slot, here, there)
            slowest = max(slowest, workers.go_on(20, 40))
        time.sleep(2)
        wrong, doubts, turns = workers.end()
    finally:
        workers.kill()
        if redis_cluster.owner_of("fairlock:{x}") is not home:
            move(redis_cluster, slot, other, home)
    assert wrong == []
    assert workers.total() == sum(map(len, turns))
    assert slowest < 8
    assert not {"store_reset", "ConfigError"} & set(doubts), doubts
    fences_rise(redis_cluster.url, ["x"], tmp_path)


@pytest.mark.parametrize("face", ["threads", "tasks"])
def test_a_waiter_in_a_slot_that_moves_keeps_its_place(redis_cluster: Cluster, face: str) -> None:
    slot = int(redis_cluster.servers[0].call("CLUSTER", "KEYSLOT", "fairlock:{x}"))
    home = redis_cluster.owner_of("fairlock:{x}")
    other = next(server for server in redis_cluster.masters if server is not home)
    try:
        late = queue_at(redis_cluster.url, face, lambda: move(redis_cluster, slot, home, other))
    finally:
        if redis_cluster.owner_of("fairlock:{x}") is not home:
            move(redis_cluster, slot, other, home)
    assert max(late) < 4


def test_a_holder_over_a_failover_without_min_replicas_keeps_it_or_is_notified(redis_sentinel: Sentinels) -> None:
    told = threading.Event()
    with fairlock.connect(redis_sentinel.url, lease=6) as locks:
        lease = locks.lock("x", on_lost=lambda lease: told.set()).acquire()
        assert lease
        redis_sentinel.master.call("WAIT", 1, 2000)
        redis_sentinel.master.kill()
        time.sleep(7)
        if lease.held:
            lease.renew()
            with fairlock.connect(redis_sentinel.url) as other:
                assert other.lock("x").acquire(False) is None
            lease.release()
        else:
            assert told.wait(5)


def test_with_min_replicas_no_lock_is_held_twice_over_a_failover(redis_sentinel: Sentinels, tmp_path: Path) -> None:
    """Until the new master has a replica of its own nothing is confirmed, so nobody gets in; then everybody goes on."""
    workers = Workers(redis_sentinel.url, tmp_path, 4, 5, lease=5, min_replicas=1)
    try:
        workers.go_on(50, 40)
        old, new = redis_sentinel.master, redis_sentinel.replica
        old.kill()
        until(lambda: redis_sentinel.master is new, "the replica is promoted", 30)
        redis_sentinel.heal()
        workers.go_on(50, 60)
        time.sleep(2)
        wrong, doubts, turns = workers.end()
    finally:
        workers.kill()
    assert wrong == [], doubts
    assert workers.total() == sum(map(len, turns))
    fences_rise(redis_sentinel.url, ["x"], tmp_path)


def test_what_no_replica_has_does_not_count(redis_with_replica: WithReplica) -> None:
    with fairlock.connect(redis_with_replica.url, lease=5, min_replicas=1) as locks:
        held = locks.lock("x").acquire()
        assert held
        redis_with_replica.replica.kill()
        with pytest.raises(StoreError, match=r"min_replicas.*Are the replicas running"):
            locks.lock("y").acquire(timeout=3)
        held.release()
        redis_with_replica.heal()
        with locks.lock("y", timeout=10), locks.lock("x", timeout=10):
            pass
    nothing_is_left(redis_with_replica.url, 5)
