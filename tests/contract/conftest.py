"""The matrix: every store of this house, for threads and for tasks. A store that is not in it fails test_matrix.py.

Those that can live by a clock turned by hand do, and the suite takes them seconds. SQLite is there twice: by hand,
and in real time with its own clock. Of what lives in real time, the other kinds of lock are left to the long runs; but
not on Redis, which has its own implementation of the rules: there all kinds are played, except by tests that wait for
time to pass. Of Cassandra and OCI NoSQL, whose steps are the slowest, only a part is: the engine above them is the same
everywhere. OCI NoSQL is a fake of the service, and Oracle a stand-in for the database.
FAIRLOCK_STORES=memory,redis leaves the other stores out, which is quicker than to choose with -k from 20,000 tests.
"""

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fairlock.stores.base import Backend, Runtime
from fairlock.stores.cas import CasBackend
from fairlock.stores.sqlite import SqliteStore
from fairlock.testing.clock import ManualClock
from fairlock.testing.store_factories import DictSite, MemorySite, OpenSite, Site, UrlSite
from fairlock.testing.suite import matrix
from tests.servers.cassandra import Ring
from tests.servers.fake_nosql import FakeNosql
from tests.servers.groups import Cluster, Sentinels
from tests.servers.server import Server
from tests.servers.sql import Database, MariaDB, PgBouncer, PostgreSQL


class SqliteByHand(Site):
    """A real file, real statements and real datagrams; only the clock is set by the test."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.path = folder / "locks.db"

    def backend(self, runtime: Runtime, namespace: str) -> Backend:
        store = SqliteStore(self.path, runtime)
        store._db.now = self.clock.micros  # type: ignore[method-assign]
        return CasBackend(store, runtime, namespace)

    def damage(self, name: str, item: str) -> bool:
        return item != "" and damage_in_a_file(self.path, item)


def damage_in_a_file(path: Path, item: str) -> bool:
    with sqlite3.connect(path, timeout=5) as db:
        done = db.execute("UPDATE fairlock_items SET body='x' WHERE key=?", (item,)).rowcount == 1
    db.close()
    return done


class SqliteSite(UrlSite):
    def __init__(self, folder: Path) -> None:
        self.path = folder / "locks.db"
        super().__init__(f"sqlite:///{self.path}")

    def damage(self, name: str, item: str) -> bool:
        return item != "" and damage_in_a_file(self.path, item)


class SqlSite(UrlSite):
    """A database of ours: what is damaged is damaged by its operator."""

    def __init__(self, url: str, operator: Database) -> None:
        super().__init__(url)
        self.operator = operator

    def damage(self, name: str, item: str) -> bool:
        if item:
            self.operator.run(f"UPDATE fairlock_items SET body='x' WHERE \"key\"='{item}'".replace('"', self.quote))
        return item != ""

    @property
    def quote(self) -> str:
        return "`" if isinstance(self.operator, MariaDB) else '"'


class RedisSite(Site):
    """One or several servers that are whole and empty, in real time."""

    def __init__(self, servers: Server | Sentinels | Cluster) -> None:
        self.servers = servers
        self.url = servers.url

    def forget(self, name: str) -> bool:
        masters = [self.servers] if isinstance(self.servers, Server) else self.servers.masters
        assert sum(master.call("DEL", *found) for master in masters if (found := master.call("KEYS", f"*{{{name}}}*")))
        return True

    def damage(self, name: str, item: str) -> bool:
        masters = [self.servers] if isinstance(self.servers, Server) else self.servers.masters
        key = f"fairlock:{{{name}}}"
        for master in masters:
            if master.call("KEYS", f"{key}*"):
                if item:
                    master.call("HSET", f"{key}:pool:items", f"={item}", "x")
                else:
                    master.call("DEL", key)
                    master.call("SET", key, "x")
        return True


@pytest.fixture
def on_redis(redis_alone: Server) -> RedisSite:
    return RedisSite(redis_alone)


@pytest.fixture
def on_valkey(valkey: Server) -> RedisSite:
    return RedisSite(valkey)


@pytest.fixture
def on_sentinel(redis_sentinel: Sentinels) -> RedisSite:
    return RedisSite(redis_sentinel)


@pytest.fixture
def on_cluster(redis_cluster: Cluster) -> RedisSite:
    return RedisSite(redis_cluster)


class FakeNosqlSite(Site):
    """A table of the fake, with a URL; all its clients have the same clock."""

    def __init__(self, fake: FakeNosql) -> None:
        self.fake = fake
        self.url = f"{fake.url()}&skew=0"

    def forget(self, name: str) -> bool:
        with self.fake.mutex:
            del self.fake.tables["locks"].rows[name]
        return True


@pytest.fixture
def on_oci_nosql(request: pytest.FixtureRequest) -> str | FakeNosqlSite:
    """A fake of the service, unless FAIRLOCK_TEST_OCI_URL names a table of the real one, which is emptied each time."""
    if url := os.environ.get("FAIRLOCK_TEST_OCI_URL"):
        from tests.servers.nosql_table import empty

        empty(url)
        return url
    return FakeNosqlSite(request.getfixturevalue("fake_nosql"))


class CassandraSite(Site):
    """One node, by one session for all clients of a test: to connect takes longer than most tests."""

    url = ""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring

    def backend(self, runtime: Runtime, namespace: str) -> Backend:
        from fairlock.stores.cassandra import open_cassandra

        return open_cassandra(self.ring.session(), runtime, namespace, {"keyspace": "fairlock", "skew": 0})

    def forget(self, name: str) -> bool:
        """Which nobody does in Cassandra, but a restore from an old copy does."""
        assert self.ring.session().execute(f"DELETE FROM fairlock.fairlock_locks WHERE key='{name}' IF EXISTS").one()[0]
        return True

    def damage(self, name: str, item: str) -> bool:
        if item:
            from fairlock.stores.cassandra.pool_items import bucket_for

            where = f"pool='{name}' AND bucket={bucket_for(item)} AND key='{item}'"
            self.ring.session().execute(f"UPDATE fairlock.fairlock_items SET body='x' WHERE {where} IF EXISTS")
        return item != ""


@pytest.fixture
def on_cassandra(cassandra: Ring) -> CassandraSite:
    return CassandraSite(cassandra)


@pytest.fixture
def on_postgresql(postgresql: PostgreSQL) -> SqlSite:
    return SqlSite(postgresql.url, postgresql)


@pytest.fixture
def on_pgbouncer(pgbouncer: PgBouncer) -> SqlSite:
    return SqlSite(pgbouncer.url, pgbouncer.server)


@pytest.fixture
def on_mariadb(mariadb: MariaDB) -> SqlSite:
    return SqlSite(mariadb.url, mariadb)


@pytest.fixture
def on_oracle(request: pytest.FixtureRequest) -> str | SqlSite:
    """A stand-in, unless FAIRLOCK_TEST_ORACLE_URL names a real one."""
    url = os.environ.get("FAIRLOCK_TEST_ORACLE_URL")
    if not url:
        oracle: Database = request.getfixturevalue("oracle")
        return SqlSite(oracle.url, oracle)
    import sqlalchemy

    engine = sqlalchemy.create_engine(url.replace("oracle://", "oracle+oracledb://"))
    with engine.begin() as connection:
        for table in sqlalchemy.inspect(engine).get_table_names():
            if table.startswith("fairlock_"):
                connection.exec_driver_sql(f"DELETE FROM {table}")
    engine.dispose()
    return url


STORES: dict[str, OpenSite | str] = {
    "memory": MemorySite,
    "cas": DictSite,
    "sqlite": SqliteByHand,
    "sqlite_in_real_time": SqliteSite,
    "redis": "on_redis",
    "valkey": "on_valkey",
    "redis_sentinel": "on_sentinel",
    "redis_cluster": "on_cluster",
    "cassandra": "on_cassandra",
    "oci_nosql": "on_oci_nosql",
    "postgresql": "on_postgresql",
    "pgbouncer": "on_pgbouncer",
    "mariadb": "on_mariadb",
    "oracle": "on_oracle",
}

played = os.environ.get("FAIRLOCK_STORES", ",".join(STORES)).split(",")
if unknown := set(played) - set(STORES):
    raise pytest.UsageError(f"FAIRLOCK_STORES names {', '.join(unknown)}; the stores are {', '.join(STORES)}.")
harness = matrix({name: STORES[name] for name in played})


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory where that is possible: a thousand databases are made here, and a busy disk takes a second for each."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fairlock-", dir=memory) as name:
        yield Path(name)


# Of what is played in real time, these wait for time to pass. They are left to the long runs, but for the named ones.
SLOW = {
    "TestRenewing", "TestLosing", "TestMaxHoldAndAtLeast", "TestDeadWaiters", "TestFaults", "TestManyFaults",
    "TestItemLeases", "TestElectionsInTime", "TestOnceInTime", "TestIdempotentInTime", "TestThrottlesInTime",
    "TestAsking",
}  # fmt: skip
ALL_THE_SAME = {
    "test_a_lease_renews_itself",
    "test_a_loss_is_known_before_another_client_holds_the_lock",
    "test_an_item_renews_itself",
    "test_on_acquire_no_client_is_refused_by_itself",
    "test_a_holder_learns_who_asks_and_holds_on",
    "test_a_detached_lease_shows_it_and_an_attached_one_has_it",
    "test_nobody_is_asked_without_a_reason_or_where_nobody_holds_it",
}
SQL = {"postgresql", "pgbouncer", "mariadb", "oracle"}
OVER_THE_WIRE = {"cassandra", "oci_nosql"}
IN_REAL_TIME = {"sqlite_in_real_time", "redis", "valkey", "redis_sentinel", "redis_cluster"} | SQL | OVER_THE_WIRE
# Where each step takes many milliseconds, these are left to the long runs, too: they are hundreds of steps, or count on
# several within less than a second.
MANY_STEPS = {
    "test_many_are_had_in_the_order_of_their_adding",
    "test_a_crowd_asks_the_store_no_more_than_once_a_second",
    "test_a_waiter_that_gives_up_while_the_store_is_silent_leaves_nothing",
    "test_many_added_at_once_reach_all_waiters",
    "test_a_waiter_that_gives_up_makes_room_for_the_next",
    "test_the_newest_hundred_are_kept",
}


# Of Cassandra, where a step is a transaction of several milliseconds and a node takes half a core, these are chosen; of
# OCI NoSQL, where it is several requests; of PgBouncer and Sentinel: behind them is the same store as without; and of
# Valkey, which runs the scripts of Redis.
CHOSEN = {
    "TestAcquiring", "TestReleasing", "TestQueue", "TestReadersAndWriters", "TestFences", "TestEvicting", "",
    "TestAsking", "TestAudit",
    "TestRenewing", "TestLosing", "TestItems", "TestWaitingForItems", "TestItemLeases", "TestCrowds",
    "TestDamagedRecords", "TestDamagedItems",
}  # fmt: skip
# Of the stand-in for Oracle what reads, writes and scans in each way that there is.
CHOSEN_OF_ORACLE = {
    "TestAcquiring", "TestReleasing", "TestFences", "TestInspecting", "TestSnapshots", "TestPoolsInSnapshots",
    "TestItems", "TestAudit",
    "TestDamagedRecords", "TestDamagedItems", "",
}  # fmt: skip


def is_for_the_long_runs(store: str, group: str, behaviour: str, kind: str) -> bool:
    if store not in IN_REAL_TIME:
        return False
    if store == "redis":
        return kind not in ("", "lock", "semaphore(3)") and group in SLOW
    if store in OVER_THE_WIRE and behaviour in MANY_STEPS:
        return True
    if store in ("cassandra", "oci_nosql", "pgbouncer", "redis_sentinel", "valkey") and group not in CHOSEN:
        return True
    if store == "oracle" and (group not in CHOSEN_OF_ORACLE or behaviour in MANY_STEPS):
        return True
    return kind not in ("", "lock", "semaphore(3)") or (group in SLOW and behaviour not in ALL_THE_SAME)


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Leave out the long runs when they are not wanted, which is quicker than to make 13,000 tests and deselect them.

    This list of pytest's has no public name. If it goes, all are made, and the mark deselects them as before.
    """
    yield
    calls = getattr(metafunc, "_calls", None)
    if calls and "harness" in metafunc.fixturenames and metafunc.config.getoption("markexpr") == "not soak":
        group = metafunc.cls.__name__ if metafunc.cls is not None else ""
        kept = [call for call in calls if not for_the_long_runs(call.params, group, metafunc.definition.originalname)]
        if kept:  # else pytest would make one test without a harness
            calls[:] = kept


def for_the_long_runs(params: Mapping[str, Any], group: str, behaviour: str) -> bool:
    kind = params.get("kind")
    return is_for_the_long_runs(params["harness"][0], group, behaviour, kind.label if kind is not None else "")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        called = getattr(item, "callspec", None)
        if called is None or "harness" not in called.params:
            continue
        assert isinstance(item, pytest.Function)
        group = item.cls.__name__ if item.cls is not None else ""
        if for_the_long_runs(called.params, group, item.originalname):
            item.add_marker(pytest.mark.soak)
