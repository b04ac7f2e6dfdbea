"""What the doctor says about a server, the rights that the schema names, and that each of them is needed."""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest

import fairlock
from fairlock import ConfigError, LockError, StoreError, aio
from fairlock.engine.run_sync import run
from fairlock.stores.redis import acl, doctor
from tests.servers.groups import Cluster, WithReplica
from tests.servers.server import Server, until

Start = Callable[..., Server]

SECRET = "s3cr3t-w0rd"


def said(url: str, **options: object) -> str:
    with fairlock.connect(url, **options) as locks:  # type: ignore[arg-type]
        found = run(locks.session.backend.doctor())
    assert all(level in ("ok", "note", "warning", "error") for level, _ in found)
    assert all(sentence.endswith(("…", ".")) and SECRET not in sentence for _, sentence in found), found
    return "\n".join(f"{level}: {sentence}" for level, sentence in found)


def tool(url: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairlock", "-u", url, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=dict(os.environ))


def test_a_server_that_keeps_nothing(redis_alone: Server) -> None:
    text = said(redis_alone.url)
    assert f"ok: Redis {redis_alone.info('server')['redis_version']}, up for" in text
    assert "ok: Its clock and the one of this machine agree." in text
    assert "warning: A lock here can be lost when the server restarts: it keeps nothing on disk." in text
    assert "ok: It has no limit of memory" in text
    assert "note: It has no replica" in text
    assert "ok: This user may do all that locks need" in text
    assert "Could a lock be lost here otherwise?" in text
    assert "error:" not in text


def test_valkey(valkey: Server) -> None:
    assert f"ok: Valkey {valkey.info('server')['valkey_version']}, up for" in said(valkey.url)


def test_it_leaves_nothing_behind(redis_alone: Server) -> None:
    said(redis_alone.url)
    assert redis_alone.call("KEYS", "*") == []


@pytest.mark.parametrize(
    "options, words",
    [
        (["--appendonly", "yes", "--appendfsync", "always"], "ok: It writes to disk before it replies"),
        (["--appendonly", "yes", "--appendfsync", "everysec"], "note: A lock here can be lost when its machine"),
        (["--appendonly", "yes", "--appendfsync", "no"], "warning: A lock here can be lost when its machine crashes"),
        (["--save", "3600 1"], "goes back to its last snapshot (save 3600 1)"),
        (["--maxmemory", "100mb", "--maxmemory-policy", "noeviction"], "ok: When its memory is full it throws"),
        (["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"], "away any key (maxmemory-policy allkeys-lru)"),
        (["--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"], "keys that have an end, and those of locks"),
        (["--maxmemory", "1", "--maxmemory-policy", "noeviction"], "warning: Its memory is full to"),
        (["--maxclients", "2"], "of at most 2 connections are in use"),
    ],
)
def test_how_a_lock_can_be_lost(start_redis: Start, options: list[str], words: str) -> None:
    server = start_redis(*options)
    with server.client.pubsub() as one:
        one.subscribe("x")
        assert words in said(server.url)


def test_replicas(redis_with_replica: WithReplica) -> None:
    assert "A lock here can be lost when a replica takes over: it has 1 replica" in said(redis_with_replica.url)
    assert "error: It is a replica and grants no locks" in said(redis_with_replica.replica.url)


def test_a_server_that_is_too_old(redis_alone: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "OLDEST", (99, 0))
    assert "is older than 7.0: fairlock is not tested with it" in said(redis_alone.url)


def test_a_clock_that_is_off(redis_alone: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    now = doctor.time.time
    monkeypatch.setattr(doctor.time, "time", lambda: now() - 90)
    assert "note: Its clock is 90.0 s ahead of the one of this machine. Leases go by its clock alone" in said(
        redis_alone.url
    )


def test_the_tool_prints_it(redis_alone: Server) -> None:
    done = tool(redis_alone.url, "doctor")
    assert done.returncode == 0, done
    assert "It replies in" in done.stdout
    assert "A lock here can be lost when the server restarts" in done.stdout
    found = json.loads(tool(redis_alone.url, "doctor", "--json").stdout)
    assert found["store"] == redis_alone.url
    assert found["scope"] == "machines"


def test_the_tool_says_that_a_server_cannot_be_reached(start_redis: Start) -> None:
    server = start_redis(password=SECRET)
    wrong = tool(f"redis://:wrong-{SECRET}@{server.address}", "doctor")
    assert wrong.returncode == 77
    assert "error    redis://" in wrong.stdout
    assert SECRET not in wrong.stdout + wrong.stderr
    server.kill()
    assert tool(server.url, "doctor").returncode == 69


# Rights


def schema(url: str) -> list[str]:
    """The words of the line that it prints. The server is not asked: whatever its address is, the line is the same."""
    return printed_schema(re.sub(r"\d+(?:\.\d+){3}:\d+", "127.0.0.1:1", url)).split()


@cache
def printed_schema(url: str) -> str:
    done = tool(url, "schema")
    assert done.returncode == 0, done
    first, *_ = [line for line in done.stdout.splitlines() if line.startswith("ACL SETUSER")]
    return first.replace(">PASSWORD", f">{SECRET}")


def as_user(server: Server, words: list[str]) -> str:
    server.call("ACL", "DELUSER", "fairlock")
    server.call(*words)
    return f"redis://fairlock:{SECRET}@{server.address}"


def whole_life(url: str) -> None:
    """Everything that a client does, by threads and by tasks."""
    with fairlock.connect(url, lease=2) as locks, fairlock.connect(url, lease=2) as other:
        locks.ping()
        with ThreadPoolExecutor() as threads, locks.lock("x") as lease:
            lease.renew()
            waiting = threads.submit(other.lock("x", timeout=5).acquire)
            while not waiting.done() and not any(r.queue for r in locks.snapshot("x").resources):
                time.sleep(0.01)
            assert locks.lock("x").locked() is True
            assert locks.snapshot().resources
            assert locks.snapshot(idle=True).resources
        assert waiting.result()
        with locks.rwlock("rw").read(), other.rwlock("rw").read():
            pass
        with locks.rwlock("rw").write() as writer:
            writer.downgrade()
        with locks.semaphore("s", 2), other.semaphore("s", 2):
            with pytest.raises(ConfigError, match="2 slots"):
                locks.semaphore("s", 5).acquire(False)
            locks.resize("s", 3)
        lease = locks.lock("detached").acquire()  # type: ignore[assignment]
        other.attach("detached", lease.detach(5)).release()
        lease = locks.lock("ended").acquire()  # type: ignore[assignment]
        lease.detach(0.5)
        assert other.lock("ended", timeout=5).acquire()
        assert locks.lock("evicted").acquire()
        other.evict("evicted", reason="a test", at_once=True)
        assert [line.kind for line in locks.audit("evicted")] == ["evicted"]
        with ThreadPoolExecutor() as threads:
            jobs = locks.pool("jobs")
            named = threads.submit(other.pool("jobs").acquire, timeout=5, key="j")
            anyone = threads.submit(other.pool("jobs").acquire, timeout=5)
            time.sleep(0.05)
            jobs.add_many(["i", "j"])
            for each in (anyone, named):
                each.result().update({"n": 1})
            jobs.items(), jobs.counts()
            anyone.result().release()
            named.result().done()
            jobs.remove("i"), jobs.remove("j")
        locks.repair("jobs")

    async def by_tasks() -> None:
        async with aio.connect(url) as locks, aio.connect(url) as other:
            async with locks.lock("t"):
                waiting = asyncio.create_task(other.lock("t", timeout=5).acquire())
                while not waiting.done() and not any(r.queue for r in (await locks.snapshot("t")).resources):
                    await asyncio.sleep(0.01)
            assert await waiting

    asyncio.run(by_tasks())


def refusals(server: Server) -> list[str]:
    return [entry["object"] for entry in server.client.acl_log()]


def test_the_printed_user_can_do_all_that_a_client_does(start_redis: Start) -> None:
    server = start_redis()
    whole_life(as_user(server, schema(server.url)))
    assert [what for what in refusals(server) if "client" not in what] == []  # redis-py says its name, and may not


def test_the_printed_user_can_do_nothing_else(start_redis: Start) -> None:
    server = start_redis()
    url = as_user(server, schema(server.url))
    import redis

    with redis.Redis.from_url(url) as user:
        for words in (["GET", "x"], ["ZADD", "mine", "1", "x"], ["PUBLISH", "news", "x"], ["FLUSHALL"], ["KEYS", "*"]):
            with pytest.raises(redis.exceptions.NoPermissionError):
                user.execute_command(*words)


@pytest.mark.parametrize("right", [*acl.commands(), "~fairlock:*", "&fairlock:listener:*"])
def test_each_right_is_needed(start_redis: Start, right: str) -> None:
    server = start_redis()
    words = schema(server.url)
    words.remove(right if right[0] in "~&" else f"+{right}")
    url = as_user(server, words)
    with contextlib.suppress(Exception):  # a script that is refused in the middle may leave anything behind
        whole_life(url)
    assert [what for what in refusals(server) if "client" not in what] != []


def test_the_rights_for_another_database(start_redis: Start) -> None:
    server = start_redis()
    words = schema(f"{server.url}/3")
    assert "+select" in words
    assert "+select" not in schema(server.url)
    whole_life(as_user(server, words) + "/3")


EVERY_RIGHT = [*acl.commands(), *acl.DATABASE, *acl.REPLICAS]


def test_the_doctor_names_each_right_that_is_missing(start_redis: Start) -> None:
    """It tries all that the printed line allows: who lacks one of them gets no all-clear."""
    server = start_redis()
    words = schema(f"{server.url}/3?min_replicas=1")
    assert {word[1:] for word in words if word.startswith("+")} == {*EVERY_RIGHT}
    tail = "/3?min_replicas=1"
    text = said(as_user(server, words) + tail)
    assert "note: This user may not read INFO." in text
    assert "ok: This user may do all that locks need" in text
    unnamed = {}
    for right in EVERY_RIGHT:
        with fairlock.connect(as_user(server, [word for word in words if word != f"+{right}"]) + tail) as locks:
            try:
                checks = run(locks.session.backend.doctor())
                found = "\n".join(sentence for level, sentence in checks if level == "error")
            except LockError as error:  # without SELECT nobody gets so far
                found = str(error)
        if f"to run {right.upper().replace('|', ' ')}" not in found:
            unnamed[right] = found
    assert unnamed == {}
    assert server.call("KEYS", "*") == []


def test_the_doctor_names_keys_and_channels_that_are_missing(start_redis: Start) -> None:
    server = start_redis()
    words = schema(server.url)
    assert "to use the keys fairlock:*" in said(as_user(server, [word for word in words if word != "~fairlock:*"]))
    assert "to use the channels" in said(as_user(server, [word for word in words if word != "&fairlock:listener:*"]))


def test_the_doctor_names_what_a_cluster_needs(redis_cluster: Cluster) -> None:
    words = schema(redis_cluster.url)
    assert {"+asking", "+cluster|slots"} <= {*words}
    for right in ("asking", "publish"):
        for server in redis_cluster.servers:
            as_user(server, [word for word in words if word != f"+{right}"])
        text = said(redis_cluster.url.replace("://", f"://fairlock:{SECRET}@"))
        assert f"to run {right.upper()}" in text
    for server in redis_cluster.servers:
        server.call("ACL", "DELUSER", "fairlock")


@pytest.mark.parametrize("right", ["publish", "pexpireat"])
def test_a_missing_right_is_not_reported_as_a_loss(start_redis: Start, right: str) -> None:
    """The script that lets the next one in is refused in its middle: released it is, and lost it was not."""
    server = start_redis()
    words = schema(server.url)
    url = as_user(server, words)
    with fairlock.connect(url) as locks, fairlock.connect(server.url) as other, ThreadPoolExecutor() as threads:
        for turn in range(3):
            lease = locks.lock("x").acquire()
            assert lease
            waits = threads.submit(other.lock("x", timeout=10).acquire)
            until(lambda: any(one.queue for one in other.snapshot("x").resources), "somebody waits")
            if turn:
                server.call("ACL", "SETUSER", "fairlock", f"-{right}")
            with contextlib.suppress(StoreError):
                lease.release()
            assert not lease.lost
            waited = waits.result()
            assert waited
            waited.release()
            server.call("ACL", "SETUSER", "fairlock", f"+{right}")
