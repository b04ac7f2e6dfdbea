"""The cost of a lock, counted by the database itself: hidden statements are statements, too."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import fairlock
import fairlock.aio
from tests.servers.sql import USER, MariaDB, PostgreSQL

CYCLES = 20


@pytest.fixture
def postgresql_count(postgresql: PostgreSQL) -> Iterator[Callable[[], int]]:
    """Yield a function that counts the statements of the program in the log."""
    postgresql.run(f"ALTER ROLE {USER} SET log_statement = 'all'")

    def count() -> int:
        text = (postgresql.folder / "out").read_text(errors="replace")
        return text.count("LOG:  statement:") + text.count("LOG:  execute ")

    yield count
    postgresql.run(f"ALTER ROLE {USER} RESET log_statement")


@pytest.fixture
def mariadb_count(mariadb: MariaDB) -> Callable[[], int]:
    asked = 0

    def count() -> int:
        nonlocal asked
        asked += 1
        return int(mariadb.run("SHOW GLOBAL STATUS LIKE 'Questions'")[0][1]) - asked

    return count


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_a_lock_that_nobody_else_wants_costs_two_statements(name: str, request: pytest.FixtureRequest) -> None:
    count: Callable[[], int] = request.getfixturevalue(f"{name}_count")
    server = request.getfixturevalue(name)
    with fairlock.connect(server.url) as locks:
        lock = locks.lock("x")
        for _ in range(5):
            with lock:
                pass
        before = count()
        for _ in range(CYCLES):
            with lock:
                pass
        assert count() - before == 2 * CYCLES


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_a_look_is_two_statements_however_many_names_were_used(name: str, request: pytest.FixtureRequest) -> None:
    """One for the locks, one for the pools. bench/snapshots.py measures the time, with a hundred thousand names."""
    count: Callable[[], int] = request.getfixturevalue(f"{name}_count")
    server = request.getfixturevalue(name)
    with fairlock.connect(server.url) as locks:
        with locks.lock("used"):
            pass
        column = "`key`" if name == "mariadb" else "key"
        values = ", ".join(f"('order:{number}', 1, '', 'not decoded', {number})" for number in range(2500))
        server.run(f"INSERT INTO fairlock_locks ({column}, score, owner, body, version) VALUES {values}")
        with locks.lock("x"), locks.lock("y"):
            locks.snapshot()
            before = count()
            assert [one.name for one in locks.snapshot().resources] == ["x", "y"]
            assert count() - before == 2


def test_taking_an_item_and_being_done_with_it(postgresql: PostgreSQL, postgresql_count: Callable[[], int]) -> None:
    """One statement for each: the taken item is known, and a waiter for this very item is found at once."""
    with fairlock.connect(postgresql.url) as locks:
        pool = locks.pool("jobs")
        pool.add_many([str(n) for n in range(CYCLES + 3)])
        for _ in range(3):
            pool.acquire(False).done()  # type: ignore[union-attr]
        before = postgresql_count()
        items = [pool.acquire(False) for _ in range(CYCLES)]
        assert all(items)
        assert postgresql_count() - before == CYCLES
        before = postgresql_count()
        for item in items:
            item.done()  # type: ignore[union-attr]
        assert postgresql_count() - before == CYCLES


def test_a_crowd_costs_few_statements_and_all_get_the_same_share(postgresql: PostgreSQL) -> None:
    """One to grant the lock to the next waiter, one by which it sees that, one to enter the queue again; and the
    cost of a conflict, if the one before has come back between those two."""
    clients = [fairlock.connect(postgresql.url) for _ in range(16)]
    grants = [0] * len(clients)
    over = threading.Event()
    for client in clients:
        client.ping()
    backends = [client._session.backend for client in clients]

    def spent() -> tuple[list[int], int, int]:
        statements = backends[0].store.executor.statements  # type: ignore[attr-defined]  # all share it
        return list(grants), statements, sum(each.conflicts for each in backends)  # type: ignore[attr-defined]

    def until_all_have(number: int) -> None:
        end = time.monotonic() + 60
        while min(grants) < number and time.monotonic() < end:
            time.sleep(0.02)

    def work(number: int) -> None:
        lock = clients[number].lock("x")
        while not over.is_set():
            with lock:
                grants[number] += 1
                time.sleep(0.005)

    crowd = [threading.Thread(target=work, args=(number,)) for number in range(len(clients))]
    for one in crowd:
        one.start()
    until_all_have(1)  # not what it costs that all come at once
    before = spent()
    until_all_have(8)
    after = spent()
    over.set()
    for one in crowd:
        one.join(60)
    for client in clients:
        client.close()
    each = [now - then for now, then in zip(after[0], before[0], strict=True)]
    turns, statements, conflicts = sum(each), after[1] - before[1], after[2] - before[2]
    result = f"{turns} grants, {statements} statements, {conflicts} conflicts, {each}"
    assert min(each) > 4, result
    assert statements <= 4.5 * turns, result
    assert conflicts <= 1.3 * turns, result
    assert max(each) <= 2 * min(each), result


def connections(postgresql: PostgreSQL) -> set[int]:
    return {row[0] for row in postgresql.run("SELECT pid FROM pg_stat_activity WHERE usename = %s", USER)}


def test_more_threads_than_connections_wait_for_each_other_and_not_in_vain(postgresql: PostgreSQL) -> None:
    before = connections(postgresql)  # of clients that earlier tests have left
    with fairlock.connect(postgresql.url) as locks:
        done: list[int] = []

        def work(number: int) -> None:
            for turn in range(10):
                with locks.lock(f"{number} {turn}"):
                    pass
            done.append(number)

        crowd = [threading.Thread(target=work, args=(number,)) for number in range(30)]
        for one in crowd:
            one.start()
        for one in crowd:
            one.join(60)
        assert len(done) == 30
        assert len(connections(postgresql) - before) <= 9


def test_a_long_queue_is_not_compressed_by_each_write(postgresql: PostgreSQL) -> None:
    """With 64 in the queue that would be two thirds of the server's work."""
    with fairlock.connect(postgresql.url) as locks:
        locks.ping()
        locks.snapshot()
    found = postgresql.run(
        "SELECT attstorage FROM pg_attribute WHERE attrelid = 'fairlock_locks'::regclass AND attname = 'body'"
    )
    assert found == [("e",)]


def test_tables_of_another_user_are_used_as_they_are(postgresql: PostgreSQL) -> None:
    postgresql.run("DROP TABLE IF EXISTS fairlock_locks, fairlock_items")
    with fairlock.connect(postgresql.url) as locks, locks.lock("x"):
        pass
    postgresql.run("ALTER TABLE fairlock_locks OWNER TO operator")
    postgresql.run(f"GRANT ALL ON fairlock_locks TO {USER}")
    postgresql.run("DROP TABLE fairlock_items")
    try:
        with fairlock.connect(postgresql.url) as locks:
            locks.pool("jobs").add("one")
            assert locks.lock("x").acquire(False)
    finally:
        postgresql.run("DROP TABLE IF EXISTS fairlock_locks, fairlock_items")


def test_a_crowd_of_tasks_waits_for_a_connection_as_long_as_replies_arrive(postgresql: PostgreSQL) -> None:
    """Each of a hundred tasks makes a row, which takes the server 50 ms: longer in all than a reply may take."""
    with fairlock.connect(postgresql.url) as locks, locks.lock("x"):
        pass
    sleeps = "'BEGIN PERFORM pg_sleep(0.05); RETURN NEW; END'"
    postgresql.run(f"CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS {sleeps}")
    postgresql.run("CREATE TRIGGER slow BEFORE INSERT ON fairlock_locks FOR EACH ROW EXECUTE FUNCTION slow()")

    async def crowd() -> None:
        async with fairlock.aio.connect(postgresql.url + "?timeout=0.5") as locks:
            held = await asyncio.gather(*[locks.lock(f"name {n}").acquire() for n in range(100)])
            assert all(each is not None and each.held for each in held)

    try:
        asyncio.run(crowd())
    finally:
        postgresql.run("DROP FUNCTION slow CASCADE")


def test_a_crowd_of_tasks_creates_the_tables_once(postgresql: PostgreSQL) -> None:
    postgresql.run("DROP TABLE IF EXISTS fairlock_locks, fairlock_items")

    async def crowd() -> int:
        async with fairlock.aio.connect(postgresql.url) as locks:
            held = await asyncio.gather(*[locks.lock(f"name {n}").acquire() for n in range(100)])
            assert all(each is not None and each.held for each in held)
            return locks._session.backend.store.executor.statements  # type: ignore[attr-defined, no-any-return]

    assert asyncio.run(crowd()) < 350, "a read that fails, a read and a write for each, and the tables"
