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
from fairlock.rules.pools import Lost, On, Put, Seek, Taken, Touch, Touched
from fairlock.stores.base import RowSnapshot, RowWrite
from tests.servers.cassandra import Ring
from tests.servers.groups import Cluster
from tests.servers.server import Server
from tests.servers.sql import MariaDB, PostgreSQL

LEASE = 20_000_000

Both = Callable[[Callable[[Any], Coroutine[Any, Any, Any]]], Any]


@pytest.fixture(params=["memory", "sqlite", "redis", "redis_cluster", "postgresql", "mariadb", "cassandra"])
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
    if request.param == "postgresql":
        postgresql: PostgreSQL = request.getfixturevalue("postgresql")
        return postgresql.url
    if request.param == "cassandra":
        ring: Ring = request.getfixturevalue("cassandra")
        return ring.url
    mariadb: MariaDB = request.getfixturevalue("mariadb")
    return mariadb.url


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


def test_postgresql_needs_two_statements(postgresql: PostgreSQL) -> None:
    async def work(backend: Any) -> None:
        calls = [(f"q{n}", Renew(f"t{n}", await hold(backend, f"q{n}", f"t{n}"))) for n in range(100)]
        before = backend.store.executor.statements
        await backend.call_many(calls)
        assert backend.store.executor.statements - before == 2

    with fairlock.connect(postgresql.url) as locks:
        run(work(locks._session.backend))


def test_a_row_that_another_client_is_writing_is_not_waited_for_by_the_others(postgresql: PostgreSQL) -> None:
    """The write of many leaves it out. Its own renewal waits, as it would alone."""
    import psycopg

    async def work(backend: Any) -> None:
        store = backend.store
        names = [f"r{n}" for n in range(5)]
        for name in names:
            await hold(backend, name, "t")
        seen = [each for each in await store.read_many(names) if isinstance(each, RowSnapshot)]
        with psycopg.connect(postgresql.url) as other:
            other.execute("SELECT 1 FROM fairlock_locks WHERE key = 'r2' FOR UPDATE")
            writes = [RowWrite(each.row, each.version, each.now) for each in seen if each.row and each.version]
            versions = await store.write_many(writes)
            assert [version is None for version in versions] == [False, False, True, False, False]
            stale = await store.write_many(writes)
            assert stale == [None] * 5, "the versions are others now, or it is being written"

    with fairlock.connect(postgresql.url) as locks:
        run(work(locks._session.backend))


SEED = 7


@pytest.mark.parametrize("face", ["threads", "tasks"])
@pytest.mark.parametrize("store", ["redis", "postgresql", "sqlite"])
def test_a_client_with_many_leases_loses_only_what_is_taken_from_it(
    store: str, face: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """400 leases of 3 s for two of their lengths; some are released and some evicted meanwhile, by a seeded choice."""
    url = f"sqlite:///{tmp_path}/locks.db"
    if store != "sqlite":
        url = request.getfixturevalue("redis_alone" if store == "redis" else "postgresql").url
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
