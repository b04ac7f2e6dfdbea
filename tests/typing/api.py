"""The public API as programs use it. Checked by mypy --strict, never run: what changes here breaks somebody's build."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Literal, assert_type

import redis
import redis.asyncio

import fairlock
from fairlock import aio, recipes
from fairlock.recipes import aio as task_recipes


def clients() -> None:
    locks = fairlock.connect()
    assert_type(locks, fairlock.Locks)
    with fairlock.connect(
        "sqlite:///x.db", owner="me", lease=timedelta(seconds=5), namespace="n", scope="any", on_event=print
    ) as again:
        assert_type(again, fairlock.Locks)
    assert_type(locks.store, str)
    assert_type(locks.ping(), float)


def getting_in(locks: fairlock.Locks) -> None:
    lock = locks.lock("x", timeout=1, lease=2.5, max_hold=timedelta(hours=1), at_least=1, fair=False, reentrant=True)
    assert_type(lock, fairlock.Lock)
    assert_type(lock.acquire(), fairlock.Lease | None)  # it has a timeout of its own
    assert_type(locks.lock("x", lease=5, note="why").acquire(), fairlock.Lease)  # it waits for as long as it takes
    assert_type(locks.lock("x", timeout=None).acquire(), fairlock.Lease)
    either: fairlock.Lock = locks.lock("x")
    assert_type(either.acquire(), fairlock.Lease | None)
    assert_type(lock.acquire(False), fairlock.Lease | None)
    assert_type(lock.acquire(True, 5), fairlock.Lease | None)
    assert_type(lock.acquire(timeout=None), fairlock.Lease)
    assert_type(locks.lock("x").acquire(blocking=False), fairlock.Lease | None)
    assert_type(locks.lock("x").acquire(timeout=5), fairlock.Lease | None)
    assert_type(lock.locked(), bool)
    assert_type(lock.held, bool)
    with lock as lease:
        assert_type(lease, fairlock.Lease)
    with lock.hold(timeout=1, note="why") as lease:
        assert_type(lease, fairlock.Lease)
    lock.release()


def kinds(locks: fairlock.Locks) -> None:
    both = locks.rwlock("x", note="n")
    assert_type(both, fairlock.RWLock[fairlock.Lease])
    assert_type(both.read(), fairlock.Lock[fairlock.Lease])
    assert_type(both.write().acquire(), fairlock.Lease)
    assert_type(locks.rwlock("x", timeout=1).read(), fairlock.Lock)
    slots = locks.semaphore("s", 4, timeout=1)
    assert_type(slots, fairlock.Semaphore)
    assert_type(slots.slots, int | None)
    assert_type(slots.acquire(weight=2), fairlock.Lease | None)
    assert_type(locks.semaphore("s", None), fairlock.Semaphore[fairlock.Lease])
    assert_type(locks.semaphore("s", 4).acquire(weight=2), fairlock.Lease)
    assert_type(slots.acquire(timeout=None, weight=2), fairlock.Lease)
    with locks.lock_all("a", locks.lock("b"), timeout=3) as leases:
        assert_type(leases, Mapping[str, fairlock.Lease])


def a_lease(lease: fairlock.Lease, locks: fairlock.Locks) -> None:
    assert_type(lease.name, str)
    assert_type(lease.ticket, str)
    assert_type(lease.fence, int)
    assert_type(lease.owner, str)
    assert_type(lease.since, float)
    assert_type(lease.lost, bool)
    assert_type(lease.held, bool)
    assert_type(
        lease.reason,
        Literal["expired", "evicted", "unreachable", "max_hold", "forked", "store_reset"] | None,
    )
    assert_type(lease.remaining(), float)
    lease.ensure_held()
    lease.renew()
    lease.downgrade()
    assert_type(lease.detach(30), str)
    assert_type(locks.attach("x", lease.ticket), fairlock.Lease)
    lease.release()


def pools(locks: fairlock.Locks) -> None:
    jobs = locks.pool("jobs", lease=timedelta(minutes=1))
    assert_type(jobs, fairlock.Pool)
    assert_type(jobs.name, str)
    assert_type(jobs.add("a", {"n": 1}), bool)
    assert_type(jobs.add_many({"a": 1}), int)
    assert_type(jobs.add_many(["a", ("b", None)]), int)
    assert_type(jobs.remove("a", force=True), bool)
    assert_type(jobs.items(), list[fairlock.PoolItem])
    assert_type(jobs.items(state="free")[0].due_in, float)
    assert_type(jobs.counts(), fairlock.PoolCounts)
    assert_type(jobs.counts().done, int)
    assert_type(jobs.acquire(), fairlock.Item)
    assert_type(jobs.acquire(key="a"), fairlock.Item)
    assert_type(jobs.acquire(blocking=False), fairlock.Item | None)
    assert_type(jobs.acquire(True, 5, key="a", renew=False), fairlock.Item | None)
    with jobs.hold(finish=True, timeout=5, back_off=timedelta(seconds=1)) as item:
        assert_type(item, fairlock.Item)
        assert_type(item.key, str)
        assert_type(item.fence, int)
        assert_type(item.remaining(), float)
        item.update({"n": 2})
        item.renew()
        item.release({"n": 2}, after=5)
        item.done(body=None)
        item.delete()


def operators(locks: fairlock.Locks) -> None:
    assert_type(locks.evict("x", reason="stuck", ticket=None, at_once=True), tuple[str, ...])
    locks.resize("s", 8)
    locks.resize("s", None)
    snapshot = locks.snapshot("order:*")
    assert_type(snapshot, fairlock.Snapshot)
    assert_type(snapshot.resources, tuple[fairlock.Resource, ...])
    assert_type(snapshot.resources[0].holders[0].fence, int)
    assert_type(snapshot.resources[0].queue[0].waited, float)


def errors(timeout: fairlock.LockTimeout, loss: fairlock.LeaseLost) -> None:
    assert_type(timeout.name, str)
    assert_type(timeout.holders, tuple[str, ...])
    assert_type(timeout.place, int | None)
    assert_type(timeout.waited, float)
    assert_type(loss.reason, Literal["expired", "evicted", "unreachable", "max_hold", "forked", "store_reset"])
    if loss.reason == "evict":  # type: ignore[comparison-overlap]  # a misspelt reason is noticed
        pass


def heard(event: fairlock.Event) -> None:
    if event.kind == "lose":  # type: ignore[comparison-overlap]
        pass
    if event.kind == "lost":
        assert_type(event.kind, Literal["lost"])
    fairlock.connect(on_event=heard)


LOCKS = fairlock.connect("memory://")


@LOCKS.guard
def bare(number: int) -> str:
    return str(number)


@LOCKS.guard("order:{order}", timeout=5)
def named(order: int, fast: bool = False) -> str:
    return str(order)


@LOCKS.guard("order:{order}", skip=True)
def skipped(order: int) -> str:
    return str(order)


@LOCKS.lock("x")
def locked(number: int) -> str:
    return str(number)


def decorated() -> None:
    assert_type(bare(1), str)
    assert_type(named(1, fast=True), str)
    assert_type(skipped(1), str | None)
    assert_type(locked(1), str)


async def tasks() -> None:
    async with aio.connect("memory://", lease=5) as locks:
        assert_type(locks, aio.Locks)
        lock = locks.lock("x")
        assert_type(await lock.acquire(), aio.Lease)
        assert_type(await locks.lock("x", timeout=1).acquire(), aio.Lease | None)
        assert_type(await lock.acquire(blocking=False), aio.Lease | None)
        assert_type(await locks.semaphore("s", 2).acquire(weight=2), aio.Lease)
        assert_type(await locks.rwlock("x").read().acquire(), aio.Lease)
        assert_type(await lock.locked(), bool)
        assert_type(lock.held, bool)
        async with lock as lease:
            assert_type(lease, aio.Lease)
            assert_type(lease.remaining(), float)
            assert_type(lease.lost, bool)
            lease.ensure_held()
            await lease.renew()
            assert_type(await lease.detach(5), str)
        async with lock.hold(timeout=timedelta(seconds=1)) as lease:
            await lease.downgrade()
            await lease.release()
        async with locks.lock_all("a", "b") as leases:
            assert_type(leases, Mapping[str, aio.Lease])
        assert_type(await locks.snapshot(), fairlock.Snapshot)
        assert_type(await locks.evict("x", reason="stuck"), tuple[str, ...])
        assert_type(await locks.ping(), float)

        jobs = locks.pool("jobs")
        assert_type(jobs, aio.Pool)
        assert_type(await jobs.add("a"), bool)
        assert_type(await jobs.acquire(), aio.Item)
        assert_type(await jobs.acquire(False), aio.Item | None)
        assert_type(await jobs.items(), list[fairlock.PoolItem])
        async with jobs.hold(finish=True) as item:
            assert_type(item, aio.Item)
            await item.update(1)
            await item.done()

        @locks.guard("order:{order}")
        async def ship(order: int) -> str:
            return str(order)

        assert_type(await ship(1), str)

        @locks.guard("order:{order}", skip=True)
        async def skips(order: int) -> str:
            return str(order)

        assert_type(await skips(1), str | None)


def recipes_for_threads(client: redis.Redis) -> None:
    assert_type(fairlock.connect(client), fairlock.Locks)
    lock = recipes.ExpLock("x", redis=client, expiry=None, retries=3, interval=timedelta(milliseconds=5))
    assert_type(lock.locked, bool)
    assert_type(lock.try_lock(), bool)
    assert_type(lock.lock(), int)
    assert_type(lock.unlock(), bool)
    assert_type(lock.key_locked(), bool)
    assert_type(lock.key_owned(), bool)
    with lock.synchronize() as attempts:
        assert_type(attempts, int)
    mutex = recipes.FairMutex(client, "x", lock_time=timedelta(minutes=1))
    assert_type(mutex.lock(), fairlock.Lease)
    mutex.unlock()
    with mutex as lease:
        assert_type(lease, fairlock.Lease)
    drop_in = recipes.RedisPyLock(client, "x", timeout=10, blocking_timeout=1.5, thread_local=False)
    assert_type(drop_in.acquire(blocking=False, token="mine"), bool)
    assert_type(drop_in.lease, fairlock.Lease | None)
    assert_type(drop_in.local.token, bytes | None)
    with drop_in as entered:
        assert_type(entered, recipes.RedisPyLock)


async def recipes_for_tasks(client: redis.asyncio.Redis) -> None:
    assert_type(aio.connect(client), aio.Locks)
    async with task_recipes.FairMutex(client, "x") as lease:
        assert_type(lease, aio.Lease)
    async with task_recipes.RedisPyLock(client, b"x", timeout=10) as drop_in:
        assert_type(drop_in, task_recipes.RedisPyLock)
        assert_type(drop_in.lease, aio.Lease | None)
        assert_type(await drop_in.locked(), bool)
        assert_type(await drop_in.owned(), bool)
    assert_type(await drop_in.acquire(), bool)
