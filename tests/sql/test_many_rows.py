"""Many rows in one statement: how many statements renewals take, and what is not waited for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

import fairlock
from fairlock.engine.run_sync import run
from fairlock.rules.locks import Granted, Renew
from fairlock.rules.pools import On, Put, Seek, Touch
from fairlock.stores.base import ItemWrite, RowLocked, RowSnapshot, RowWrite
from tests.engine.test_renewals_in_batches import LEASE, hold
from tests.servers.sql import Database, MariaDB

DATABASES = ["postgresql", "mariadb", "oracle"]


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


def test_a_database_needs_two_statements(database: Database) -> None:
    async def work(backend: Any) -> None:
        executor, pools = backend.store.executor, backend.pools
        calls = [(f"q{n}", Renew(f"t{n}", await hold(backend, f"q{n}", f"t{n}"))) for n in range(100)]
        before = executor.statements
        await backend.call_many(calls)
        assert executor.statements - before == 2
        await pools.call("p", Put(tuple((f"k{n}", "[]") for n in range(100))))
        taken = [(await pools.call("p", Seek(f"t{n}", LEASE, False))).reply for n in range(100)]
        touches = [("p", On(item.key, Touch(f"t{n}", item.fence))) for n, item in enumerate(taken)]
        before = executor.statements
        await pools.call_many(touches)
        assert executor.statements - before == 2

    with fairlock.connect(database.url) as locks:
        run(work(locks._session.backend))


def test_two_clients_renew_slots_of_the_same_semaphores(database: Database) -> None:
    """In another order, and at the same time: no deadlock, and no slot is lost. A row that the other one is writing
    may look as if a transaction had sealed it."""

    async def renew(backend: Any, calls: list[tuple[str, Renew]]) -> None:
        for _ in range(15):
            for outcome in await backend.call_many(calls):
                assert isinstance(outcome, RowLocked) or isinstance(outcome.reply, Granted)

    async def take(backend: Any, ticket: str) -> list[tuple[str, Renew]]:
        names = [f"s{number}" for number in range(40)]
        return [(name, Renew(ticket, await hold(backend, name, ticket, 2))) for name in names]

    with fairlock.connect(database.url) as one, fairlock.connect(database.url, skew=0.001) as two:
        backends = [one._session.backend, two._session.backend]
        calls = [run(take(backend, f"t{number}")) for number, backend in enumerate(backends)]
        calls[1].reverse()
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(run, renew(*each)) for each in zip(backends, calls, strict=True)]
            for each in both:
                each.result(60)


@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_a_row_that_another_client_is_writing_is_not_waited_for_by_the_others(database: Database) -> None:
    """The write of many leaves it out. Its own renewal waits, as it would alone."""
    key = "`key`" if isinstance(database, MariaDB) else "key"

    async def work(backend: Any) -> None:
        store = backend.store
        names = [f"r{n}" for n in range(5)]
        for name in names:
            await hold(backend, name, "t")
        seen = [each for each in await store.read_many(names) if isinstance(each, RowSnapshot)]
        with closing(database.connect()) as other:
            other.autocommit(False) if isinstance(database, MariaDB) else setattr(other, "autocommit", False)
            other.cursor().execute(f"SELECT 1 FROM fairlock_locks WHERE {key} = 'r2' FOR UPDATE")
            writes = [RowWrite(each.row, each.version, each.now) for each in seen if each.row and each.version]
            versions = await store.write_many(writes)
            assert [isinstance(version, RowLocked) for version in versions] == [False, False, True, False, False]
            stale = await store.write_many(writes)
            assert isinstance(stale.pop(2), RowLocked)
            assert stale == [None] * 4, "the versions are others now"

    with fairlock.connect(database.url) as locks:
        run(work(locks._session.backend))


def test_each_row_is_compared_and_its_time_checked(database: Database) -> None:
    """The first one is as it was read, and the others are not, or the time is not now."""

    async def work(backend: Any) -> None:
        store = backend.store
        names = [f"c{n}" for n in range(4)]
        for name in names:
            await hold(backend, name, "t")
        seen = await store.read_many(names)
        good, other, ahead, late = (RowWrite(each.row, each.version, each.now) for each in seen)
        writes = [
            good, other._replace(expected=good.expected), ahead._replace(now=ahead.now + 5_000_000),
            late._replace(now=late.now - 1_500_000),
        ]  # fmt: skip
        assert [version is not None for version in await store.write_many(writes)] == [True, False, False, False]

        pools, items = backend.pools, backend.pools.item_store
        await pools.call("p", Put(tuple((f"k{n}", "[]") for n in range(6))))
        for n in range(6):
            await pools.call("p", Seek(f"t{n}", LEASE, False, key=f"k{n}"))
        found = await items.get_many([("p", f"k{n}") for n in range(6)])
        changes: list[dict[str, Any]] = [{}, {"score": 7}, {"fence": 7}, {"ticket": "other"}, {}]
        stale = [each._replace(item=each.item._replace(**change)) for each, change in zip(found, changes, strict=False)]
        stale[4] = stale[4]._replace(now=stale[4].now + 5_000_000)
        puts = [
            ItemWrite("p", one.item._replace(score=one.item.score + 9), old)
            for one, old in zip(found, stale, strict=False)
        ]
        puts.append(ItemWrite("p", found[5].item._replace(key="no such key"), found[5]))
        assert list(await items.put_many(puts)) == [True, False, False, False, False, False]

    with fairlock.connect(database.url) as locks:
        run(work(locks._session.backend))


def test_rows_are_sent_in_the_order_of_their_keys(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """So two clients lock them in the same order."""
    sent: list[list[str]] = []

    async def work(backend: Any) -> None:
        store, many = backend.store, type(backend.store.dialect.many)
        write = many.write
        monkeypatch.setattr(
            many, "write", lambda self, rows: sent.append([row["v_key"] for row in rows]) or write(self, rows)
        )
        names = ["b", "C", "a", "é"]
        for name in names:
            await hold(backend, name, "t")
        seen = await store.read_many(names)
        await store.write_many([RowWrite(each.row, each.version, each.now) for each in seen])
        await backend.pools.call("p", Put(tuple((name, "[]") for name in names)))
        items = backend.pools.item_store
        found = await items.get_many([("p", name) for name in names])
        await items.put_many([ItemWrite("p", each.item, each) for each in found])
        assert sent == [["C", "a", "b", "é"]] * 2

    with fairlock.connect(database.url) as locks:
        run(work(locks._session.backend))
