"""The servers that other tests rely on: they are what they say, come back whole, and never outlive the run."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.servers import fixtures
from tests.servers.groups import Cluster, Sentinels, WithReplica
from tests.servers.server import Server, free_port, until

Start = Callable[..., Server]


def test_a_server_answers_at_its_address(redis_alone: Server) -> None:
    assert redis_alone.info("server")["process_id"] == redis_alone.pid
    assert redis_alone.url == f"redis://127.0.0.1:{redis_alone.port}"


def test_each_test_finds_it_whole_and_empty(servers: fixtures.ItemStore) -> None:
    made: list[Server] = []

    def find() -> Server:
        return servers.get("of this test", lambda: made.append(Server(fixtures.redis_program())) or made[0])

    server = find()
    server.call("SET", "x", "1")
    server.stop()
    assert find() is server
    assert server.call("DBSIZE") == 0
    server.kill()
    assert find() is server
    assert server.answers()
    assert len(made) == 1


def test_what_takes_a_core_even_unused_ends_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    class Fake:
        def __init__(self, name: str) -> None:
            self.name = name

        def heal(self) -> None: ...

        def forget_everything(self) -> None: ...

        def end(self) -> None:
            ended.append(self.name)

    made = fixtures.ItemStore()
    for name in ("redis_cluster", "postgresql", "cassandra"):
        made.get(name, lambda name=name: Fake(name))  # type: ignore[misc]
    assert ended == []
    monkeypatch.setattr(fixtures, "UNUSED", -1.0)
    made.get("redis_alone", lambda: Fake("redis_alone"))
    assert sorted(ended) == ["cassandra", "redis_cluster"]
    assert made.get("redis_cluster", lambda: Fake("another")).name == "another"
    made.end_all()
    assert len(ended) == 5


def test_a_durable_one_keeps_what_it_has_confirmed(redis_durable: Server) -> None:
    redis_durable.call("SET", "x", "1")
    before = redis_durable.pid
    redis_durable.kill()
    assert not redis_durable.answers()
    redis_durable.restart()
    assert redis_durable.call("GET", "x") == "1"
    assert redis_durable.pid != before


def test_one_that_hangs_answers_again(start_redis: Start) -> None:
    server = start_redis()
    server.stop()
    assert not server.answers(within=0.2)
    server.cont()
    assert server.answers()


def test_a_password_goes_into_the_url(start_redis: Start) -> None:
    server = start_redis(password="open-sesame")
    assert server.url == f"redis://:open-sesame@127.0.0.1:{server.port}"
    assert server.answers()


def test_a_server_that_cannot_start_shows_why(start_redis: Start) -> None:
    with pytest.raises(AssertionError, match=r"(?s)did not start.*memory"):
        start_redis("--maxmemory", "much")


def test_no_port_is_one_that_the_system_hands_out() -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(1024 <= free_port() < first for _ in range(50))


def test_valkey_is_a_valkey(valkey: Server) -> None:
    assert valkey.info("server")["server_name"] == "valkey"


def test_a_replica_gets_what_its_master_has(redis_with_replica: WithReplica) -> None:
    redis_with_replica.master.call("SET", "x", "1")
    assert redis_with_replica.master.call("WAIT", 1, 5000) == 1
    assert redis_with_replica.replica.call("GET", "x") == "1"


def test_sentinels_promote_the_replica(redis_sentinel: Sentinels) -> None:
    old, new = redis_sentinel.master, redis_sentinel.replica
    old.kill()
    until(lambda: redis_sentinel.master is new, "the replica is promoted")
    redis_sentinel.heal()
    # On a busy machine a master may be silent for a second, and then the roles change once more.
    assert {redis_sentinel.master, redis_sentinel.replica} == {new, old}
    assert redis_sentinel.ready()


def test_a_cluster_goes_on_without_a_master(redis_cluster: Cluster) -> None:
    old = redis_cluster.owner_of("x")
    new = redis_cluster.replica_of(old)
    old.kill()
    until(lambda: redis_cluster.owner_of("x") is new and new.call("SET", "x", "1"), "the replica is promoted")
    redis_cluster.heal()
    owner = redis_cluster.owner_of("x")
    assert {owner, redis_cluster.replica_of(owner)} == {new, old}  # a busy machine may change the roles once more
    assert len(redis_cluster.masters) == 3


ENDING = """
import os, sys, time
from tests.servers.fixtures import redis_program
from tests.servers.server import Server
server = Server(redis_program())
server.stop()
print(server.pid, server.folder, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_server_outlives_the_run_that_started_it(number: signal.Signals) -> None:
    fixtures.redis_program()
    run = subprocess.Popen(
        [sys.executable, "-c", ENDING], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    assert run.stdout is not None
    with run.stdout:
        pid, folder = run.stdout.readline().split(maxsplit=1)
        os.kill(run.pid, number)
        run.wait(20)
    ends = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists() or Path(folder.strip()).exists():
        assert time.monotonic() < ends, "it still runs"
        time.sleep(0.01)


@pytest.mark.parametrize("ci", ["true", ""])
def test_a_missing_program_fails_in_ci_and_is_a_named_skip_at_home(monkeypatch: pytest.MonkeyPatch, ci: str) -> None:
    monkeypatch.setenv("PATH", "/no/programs")
    monkeypatch.delenv("FAIRLOCK_DEV", raising=False)
    monkeypatch.setenv("CI", ci)
    expected = pytest.fail.Exception if ci else pytest.skip.Exception
    with pytest.raises(expected, match="no redis-server"):
        fixtures.redis_program()
    with pytest.raises(expected, match="no java"):
        fixtures.oracle_stand_in()


def test_a_program_that_is_too_old_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "redis-server").write_text("#!/bin/sh\necho Redis server v=6.2.16 sha=0 bits=64\n")
    (tmp_path / "redis-server").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"Redis 7\.0 is the oldest"):
        fixtures.redis_program()
