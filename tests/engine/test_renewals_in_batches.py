"""Many renewals in one call: each has the outcome that it would have alone, on every store and for both faces."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

import pytest

import fairlock
from fairlock import aio
from fairlock.engine.run_sync import run
from fairlock.errors import RecordDamaged
from fairlock.rules.locks import EXCLUSIVE, Acquire, Evict, Granted, NotHolder, Release, Renew
from fairlock.rules.locks.step import poll_ttl
from fairlock.rules.pools import Give, Lost, On, Put, Seek, Taken, Touch, Touched
from fairlock.stores.base import Answer, OutcomeUnknown, PoolAnswer
from fairlock.stores.cas import CasBackend
from fairlock.stores.pool_items_as_rows import Rows
from fairlock.stores.sql.schema import Statement
from tests.servers.cassandra import Ring
from tests.servers.fake_nosql import FakeNosql
from tests.servers.groups import Cluster
from tests.servers.server import Server
from tests.servers.sql import Database

LEASE = 20_000_000

Both = Callable[[Callable[[Any], Coroutine[Any, Any, Any]]], Any]


STORES = ["memory", "sqlite", "redis", "redis_cluster", "postgresql", "mariadb", "oracle", "oci_nosql", "cassandra"]


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "memory://"
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/locks.db"
    if request.param == "redis":
        redis: Server = request.getfixturevalue("redis_alone")
        return redis.url
    if request.param == "redis_cluster":
        cluster: Cluster = request.getfixturevalue("redis_cluster")
        return cluster.url
    if request.param == "cassandra":
        ring: Ring = request.getfixturevalue("cassandra")
        return ring.url
    if request.param == "oci_nosql":
        fake: FakeNosql = request.getfixturevalue("fake_nosql")
        return fake.url()
    database: Database = request.getfixturevalue(request.param)
    return database.url


@pytest.fixture(params=["threads", "tasks"])
def on(request: pytest.FixtureRequest, url: str) -> Both:
    """Run this with the backend of a client."""

    def threads(work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        with fairlock.connect(url) as locks:
            return run(work(locks._session.backend))

    def tasks(work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        async def main() -> Any:
            async with aio.connect(url) as locks:
                return await work(locks._session.backend)

        return asyncio.run(main())

    return threads if request.param == "threads" else tasks


async def hold(backend: Any, name: str, ticket: str, capacity: int = EXCLUSIVE) -> int:
    weight = capacity if capacity == EXCLUSIVE else 1
    here = backend.open_listener()
    answer = await backend.call(name, Acquire(ticket, capacity, weight, LEASE, listener=here, owner="me"))
    assert isinstance(answer.reply, Granted)
    return answer.reply.fence


async def prepared(backend: Any, kind: str, number: int) -> tuple[tuple[str, Renew], Any]:
    """A lock in this state; its renewal, and the reply to that."""
    name, ticket = f"{kind} é{{{number}}}", f"{number:032x}"
    if kind == "unknown":
        return (name, Renew(ticket, 7)), NotHolder(None)
    fence = await hold(backend, name, ticket, 3 if kind == "slots" else EXCLUSIVE)
    good = Granted(fence, LEASE)
    if kind == "slots":
        await hold(backend, name, "another" + ticket, 3)
    elif kind == "wanted":
        here = backend.open_listener()
        await backend.call(name, Acquire("waits" + ticket, EXCLUSIVE, EXCLUSIVE, LEASE, listener=here))
    elif kind == "evicted":
        await backend.call(name, Evict(ticket, "ops", "stuck"))
        return (name, Renew(ticket, fence)), "evicted"
    elif kind == "released":
        await backend.call(name, Release(ticket))
        return (name, Renew(ticket, fence)), NotHolder(None)
    elif kind == "other fence":
        return (name, Renew(ticket, fence + 1)), NotHolder(None)
    elif kind == "longer":
        return (name, Renew(ticket, fence, None, 2 * LEASE)), Granted(fence, 2 * LEASE)
    return (name, Renew(ticket, fence)), good


KINDS = ("held", "slots", "wanted", "unknown", "evicted", "released", "other fence", "longer")


async def each_has_its_own_outcome(backend: Any) -> None:
    both = [await prepared(backend, KINDS[number % len(KINDS)], number) for number in range(40)]
    outcomes = await backend.call_many([renewal for renewal, _ in both])
    assert len(outcomes) == len(both)
    for (renewal, wanted), outcome in zip(both, outcomes, strict=True):
        if wanted == "evicted":
            assert outcome.reply.why.kind == "evicted" and outcome.reply.why.by == "ops", renewal
        else:
            assert outcome.reply == wanted, (renewal, outcome)
        assert not outcome.again
    for (name, renewal), wanted in both:
        state, now = await backend.look(name)
        if isinstance(wanted, Granted):
            grant = state.grant(renewal.ticket)
            assert grant.confirmed and wanted.left - 10_000_000 < grant.expires - now <= wanted.left
            count = len(state.holders) + len(state.queue)
            if name.startswith("wanted") and state.seen - grant.since >= poll_ttl(0):
                count = 2  # its waiter has not polled since it joined, and may have been removed
            assert count == (2 if name.startswith(("slots", "wanted")) else 1)
        elif wanted == NotHolder(None) and not name.startswith("other"):
            assert state.grant(renewal.ticket) is None  # a renewal creates nothing


def test_each_lock_has_its_own_outcome(on: Both) -> None:
    on(each_has_its_own_outcome)


async def each_item_has_its_own_outcome(backend: Any) -> None:
    pools = backend.pools
    calls: list[tuple[str, On]] = []
    wanted: list[Any] = []
    for pool in ("one", "two é"):
        keys = [f"{pool} key {number}" for number in range(12)]
        await pools.call(pool, Put(tuple((key, "[1]") for key in keys)))
        for number, key in enumerate(keys):
            ticket = f"{pool} {number}".replace(" ", "-")
            taken = (await pools.call(pool, Seek(ticket, LEASE, False, key=key))).reply
            assert isinstance(taken, Taken)
            touch = Touch(ticket if number % 3 else "nobody", taken.fence)
            calls.append((pool, On(key, touch)))
            wanted.append(Touched(LEASE) if number % 3 else Lost())
        calls.append((pool, On("no such item", Touch("x", 5))))
        wanted.append(Lost())
    outcomes = await pools.call_many(calls)
    assert [outcome.reply for outcome in outcomes] == wanted
    bodies = {item.body for item in (await pools.all("one"))[0]}
    assert bodies == {"[1]"}


def test_each_item_has_its_own_outcome(on: Both) -> None:
    on(each_item_has_its_own_outcome)


async def plain_renewals_are_made_together(backend: Any) -> None:
    if backend.batch_size == 1:
        return
    calls = [(f"p{n}", Renew(f"t{n}", await hold(backend, f"p{n}", f"t{n}"))) for n in range(backend.batch_size)]

    async def alone(name: str, command: Any) -> Any:
        raise AssertionError(f"{name} is renewed by itself")

    call, backend.call = backend.call, alone
    try:
        outcomes = await backend.call_many(calls)
    finally:
        backend.call = call
    assert all(isinstance(outcome.reply, Granted) for outcome in outcomes)


def test_plain_renewals_are_made_together(on: Both) -> None:
    on(plain_renewals_are_made_together)


def test_two_leases_of_one_semaphore_are_renewed_together(on: Both) -> None:
    async def work(backend: Any) -> None:
        calls = [("s", Renew(f"t{n}", await hold(backend, "s", f"t{n}", 3))) for n in range(3)]
        outcomes = await backend.call_many([*calls, ("s", Renew("nobody", 1))])
        assert [type(outcome.reply) for outcome in outcomes] == [Granted] * 3 + [NotHolder]

    on(work)


class Trouble:
    """What happens to one of the rows of a message, by another client and on the way."""

    def __init__(self, backend: Any, target: Any, read: str, write: str) -> None:
        self.backend = backend
        self.between: list[Callable[[], Coroutine[Any, Any, Any]]] = []  # once, after the rows were read
        self.lost: Callable[[int], bool] = lambda number: False  # whose reply is lost: the rows were written
        self._read, self._write = getattr(target, read), getattr(target, write)
        setattr(target, read, self.read)
        setattr(target, write, self.write)

    async def read(self, keys: Any) -> Any:
        found = await self._read(keys)
        while self.between:
            await self.between.pop()()
        return found

    async def write(self, writes: Any) -> Any:
        done = list(await self._write(writes))
        lost = [self.lost(number) for number in range(len(writes))]
        if writes and all(lost):
            raise OutcomeUnknown("the reply was lost, because a test wants it so")
        return [OutcomeUnknown("lost") if gone else each for gone, each in zip(lost, done, strict=True)]


async def trouble_with_one_lock_costs_no_other(backend: Any) -> None:
    if not isinstance(backend, CasBackend):
        return  # its store makes these steps itself: test_a_damaged_record_… is about that
    count = min(backend.batch_size, 24)
    names = [f"trouble {number}" for number in range(max(count, 8))]
    fences = [await hold(backend, name, f"t{name}") for name in names]
    calls = [(name, Renew(f"t{name}", fence)) for name, fence in zip(names, fences, strict=True)]
    damaged, evicted, late, wanted, released = names[:5]
    seen = await backend.store.read(damaged)
    await backend.store.write(seen.row._replace(body='["damaged"]'), seen.version, seen.now, ())
    await backend.call(evicted, Evict(f"t{evicted}", "ops", "stuck"))
    trouble = Trouble(backend, backend.store, "read_many", "write_many")
    here = backend.open_listener()
    waiter = Acquire("waits", EXCLUSIVE, EXCLUSIVE, LEASE, listener=here)
    trouble.between = [
        lambda: backend.call(late, Evict(f"t{late}", "ops", "in between")),
        lambda: backend.call(wanted, waiter),
        lambda: backend.call(released, Release(f"t{released}")),
    ]
    outcomes = dict(zip(names, await backend.call_many(calls), strict=True))
    assert isinstance(outcomes.pop(damaged), RecordDamaged)
    assert outcomes.pop(evicted).reply.why.reason == "stuck"
    assert outcomes.pop(late).reply.why.reason == "in between"
    assert outcomes.pop(released).reply == NotHolder(None)
    for name, fence in zip(names, fences, strict=True):
        if name in outcomes:
            assert outcomes[name].reply == Granted(fence, LEASE), name
    assert [waiting.ticket for waiting in (await backend.look(wanted))[0].queue] == ["waits"]


def test_trouble_with_one_lock_costs_no_other(on: Both) -> None:
    on(trouble_with_one_lock_costs_no_other)


async def a_lost_reply_is_repeated(backend: Any) -> None:
    if not isinstance(backend, CasBackend):
        return
    names = [f"lost {number}" for number in range(min(backend.batch_size, 12))]
    calls = [(name, Renew(f"t{name}", await hold(backend, name, f"t{name}"))) for name in names]
    trouble = Trouble(backend, backend.store, "read_many", "write_many")
    for lost in (lambda number: True, lambda number: number == 3):  # of the whole message; of one in the middle
        trouble.lost = lost
        outcomes = await backend.call_many(calls)
        for number, outcome in enumerate(outcomes):
            assert isinstance(outcome, OutcomeUnknown if lost(number) else Answer), (number, outcome)
        trouble.lost = lambda number: False
        again = await backend.call_many(
            [call for call, outcome in zip(calls, outcomes, strict=True) if not isinstance(outcome, Answer)]
        )
        assert all(isinstance(outcome.reply, Granted) for outcome in again)
    for name in names:
        state, _ = await backend.look(name)
        assert len(state.holders) == 1


def test_a_lost_reply_is_repeated(on: Both) -> None:
    on(a_lost_reply_is_repeated)


async def trouble_with_one_item_costs_no_other(backend: Any) -> None:
    if not isinstance(backend, CasBackend) or backend.pools.batch_size == 1:
        return
    pools, store = backend.pools, backend.pools.item_store
    keys = [f"key {number}" for number in range(8)]
    await pools.call("p", Put(tuple((key, "[1]") for key in keys)))
    calls: list[tuple[str, On]] = []
    for key in keys:
        taken = (await pools.call("p", Seek(f"t-{key}", LEASE, False, key=key))).reply
        calls.append(("p", On(key, Touch(f"t-{key}", taken.fence))))
    damaged, given, late = keys[:3]
    await damage_item(backend, "p", damaged)
    await pools.call("p", On(given, Give(f"t-{given}", calls[1][1].command.fence)))
    trouble = Trouble(backend, store, "get_many", "put_many")
    trouble.between = [lambda: pools.call("p", On(late, Give(f"t-{late}", calls[2][1].command.fence)))]
    outcomes = await pools.call_many(calls)
    assert isinstance(outcomes[0], RecordDamaged)
    assert [outcome.reply for outcome in outcomes[1:]] == [Lost(), Lost(), *[Touched(LEASE)] * 5]
    for lost in (lambda number: True, lambda number: number == 2):
        trouble.lost = lost
        outcomes = await pools.call_many(calls[3:])
        for number, outcome in enumerate(outcomes):
            assert isinstance(outcome, OutcomeUnknown if lost(number) else PoolAnswer), (number, outcome)
        trouble.lost = lambda number: False
        assert [outcome.reply for outcome in await pools.call_many(calls[3:])] == [Touched(LEASE)] * 5


async def damage_item(backend: Any, pool: str, key: str) -> None:
    store, items = backend.store, backend.pools.item_store
    if isinstance(items, Rows):
        seen = await store.read(items._prefix(pool) + key)
        await store.write(seen.row._replace(body='["damaged"]'), seen.version, seen.now, ())
    elif hasattr(store, "executor"):
        name = "`key`" if store.dialect.name == "MariaDB" else "key"
        await store.call(Statement(f"UPDATE fairlock_items SET body='damaged' WHERE {name} = '{key}'", (), False), {})
    elif hasattr(store, "sender"):
        _, bucket, _ = items._place(pool, key)
        where = f"pool='{pool}' AND bucket={bucket} AND key='{key}'"
        await store.sender.simple(f"UPDATE fairlock.fairlock_items SET body='damaged' WHERE {where} IF EXISTS")
    else:
        await store.statement(lambda db: db.change("UPDATE fairlock_items SET body='damaged' WHERE key=?", (key,)))


def test_trouble_with_one_item_costs_no_other(on: Both) -> None:
    on(trouble_with_one_item_costs_no_other)


SEED = 7


@pytest.mark.parametrize("face", ["threads", "tasks"])
@pytest.mark.parametrize("store", ["redis", "postgresql", "mariadb", "sqlite"])
def test_a_client_with_many_leases_loses_only_what_is_taken_from_it(
    store: str, face: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """400 leases of 3 s for two of their lengths; some are released and some evicted meanwhile, by a seeded choice."""
    url = f"sqlite:///{tmp_path}/locks.db"
    if store != "sqlite":
        url = request.getfixturevalue("redis_alone" if store == "redis" else store).url
    names = [f"lease {number} {face}" for number in range(400)]
    rng = Random(SEED)
    gone = set(rng.sample(names, 30))
    evicted = set(sorted(gone)[::3])

    def judge(leases: dict[str, Any]) -> None:
        lost = {name for name, lease in leases.items() if lease.lost}
        assert lost == evicted
        assert {leases[name].reason for name in evicted} == {"evicted"}
        assert {name for name, lease in leases.items() if not lease.held} == gone

    def by_threads() -> None:
        with fairlock.connect(url, lease=3) as locks:
            leases = {name: locks.lock(name).acquire() for name in names}
            for name in sorted(gone):
                time.sleep(0.1)
                if name in evicted:
                    locks.evict(name, reason="a test")
                else:
                    leases[name].release()
            time.sleep(3)
            judge(leases)

    async def by_tasks() -> None:
        async with aio.connect(url, lease=3) as locks:
            leases = {name: await locks.lock(name).acquire() for name in names}
            for name in sorted(gone):
                await asyncio.sleep(0.1)
                if name in evicted:
                    await locks.evict(name, reason="a test")
                else:
                    await leases[name].release()
            await asyncio.sleep(3)
            judge(leases)

    if face == "threads":
        by_threads()
    else:
        asyncio.run(by_tasks())


def test_a_damaged_record_costs_its_own_lease_and_no_other(redis_alone: Server) -> None:
    async def work(backend: Any) -> None:
        calls = [(f"x{n}", Renew(f"t{n}", await hold(backend, f"x{n}", f"t{n}"))) for n in range(70)]
        redis_alone.call("DEL", "fairlock:{x3}")
        redis_alone.call("SET", "fairlock:{x3}", "of another type")
        outcomes = await backend.call_many(calls)
        assert isinstance(outcomes[3], RecordDamaged) and outcomes[3].name == "x3"
        assert all(isinstance(o.reply, Granted) for n, o in enumerate(outcomes) if n != 3)

    with fairlock.connect(redis_alone.url) as locks:
        run(work(locks._session.backend))
