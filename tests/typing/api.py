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


def a_lock_that_may_have_a_timeout(lock: fairlock.Lock) -> None:
    assert_type(lock.acquire(), fairlock.Lease | None)


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


def elections(locks: fairlock.Locks) -> None:
    def main(term: fairlock.Lease) -> int:
        return term.fence

    with locks.elect("x", lease=5, note="n") as term:
        assert_type(term, fairlock.Lease)
    assert_type(locks.elect("x").run(main), int)
    assert_type(locks.elect("x"), recipes.Election)
    assert_type(recipes.elect(locks, "x").acquire(), fairlock.Lease)
    assert_type(locks.leader("x"), recipes.Leader | None)
    assert_type(recipes.leader(locks, "x"), recipes.Leader | None)


async def elections_of_tasks(locks: aio.Locks) -> None:
    async def main(term: aio.Lease) -> int:
        return term.fence

    async with locks.elect("x", lease=5, note="n") as term:
        assert_type(term, aio.Lease)
    assert_type(await locks.elect("x").run(main), int)
    assert_type(locks.elect("x"), task_recipes.Election)
    assert_type(await locks.leader("x"), recipes.Leader | None)


def trees(locks: fairlock.Locks) -> None:
    tree = locks.tree("a/b", timeout=1, lease=timedelta(seconds=5), note="n")
    assert_type(tree, recipes.Tree)
    assert_type(tree.read(), recipes.TreeLock)
    assert_type(tree.write().acquire(False), recipes.TreeLease | None)
    with tree.write() as lease:
        assert_type(lease, recipes.TreeLease)
        assert_type(lease.fence, int)
        assert_type(lease.lost, bool)
        lease.release()


async def trees_of_tasks(locks: aio.Locks) -> None:
    tree = task_recipes.tree(locks, "a/b")
    assert_type(await tree.write().acquire(timeout=5), task_recipes.TreeLease | None)
    async with tree.read() as lease:
        assert_type(lease, task_recipes.TreeLease)
        await lease.release()


def once_per_tick(locks: fairlock.Locks) -> None:
    @locks.once("x", every=timedelta(hours=1), tries=3, timeout=5, lease=60)
    def report(day: int) -> str:
        return "done"

    assert_type(report(3), str | None)
    with locks.once("x", cron="0 3 * * *") as turn:
        assert_type(turn, fairlock.Item | None)
    assert_type(recipes.once(locks, "x", every=1), recipes.Once)


async def once_per_tick_for_tasks(locks: aio.Locks) -> None:
    @locks.once("x", every=3600)
    async def report(day: int) -> str:
        return "done"

    assert_type(await report(3), str | None)
    async with locks.once("x", every=1) as turn:
        assert_type(turn, aio.Item | None)


def keys(locks: fairlock.Locks) -> None:
    def pay(lease: fairlock.Lease) -> dict[str, int]:
        return {"fence": lease.fence}

    payments = locks.idempotent("payments", lease=5)
    assert_type(payments, recipes.Idempotent)
    assert_type(payments.run("order", pay, keep=timedelta(days=2), timeout=0), dict[str, int])


async def keys_for_tasks(locks: aio.Locks) -> None:
    async def pay(lease: aio.Lease) -> dict[str, int]:
        return {"fence": lease.fence}

    assert_type(await locks.idempotent("payments").run("order", pay), dict[str, int])


def throttles(locks: fairlock.Locks) -> None:
    calls = locks.throttle("api", 10, per=timedelta(seconds=1), timeout=5)
    assert_type(calls, recipes.Throttle)
    assert_type(calls.wait(weight=2, timeout=0), bool)

    @calls
    def call(n: int) -> str:
        return ""

    assert_type(call(1), str)


async def throttles_for_tasks(locks: aio.Locks) -> None:
    assert_type(await locks.throttle("api", 10, per=1).wait(), bool)

    @locks.throttle("api", 10, per=1)
    async def call(n: int) -> str:
        return ""

    assert_type(await call(1), str)


def builds(locks: fairlock.Locks) -> None:
    def get() -> str | None:
        return None

    def make() -> str:
        return ""

    def put(value: str) -> None: ...

    assert_type(locks.build("x", get=get, make=make, put=put, timeout=5), str)


async def builds_for_tasks(locks: aio.Locks) -> None:
    async def get() -> str | None:
        return None

    async def make() -> str:
        return ""

    async def put(value: str) -> None: ...

    assert_type(await locks.build("x", get=get, make=make, put=put, timeout=5), str)
