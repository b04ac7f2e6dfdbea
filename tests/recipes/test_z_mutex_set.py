"""ZMutexSet: a sorted set of mutexes, shared with others who keep such a set."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
import redis.asyncio

from fairlock import ConfigError
from fairlock.recipes import ZMutexSet
from fairlock.recipes import redis_sorted_set_mutexes_lua as lua
from tests.machine_load import within
from tests.recipes.losing import losing_client
from tests.servers.server import Server

EXAMPLE = '''
from uuid import uuid4
from time import sleep
from threading import Thread
import redis
from redis_mutex import ZMutexSet as ZMutexSet

rpool = redis.ConnectionPool(host="localhost", port=6379, db=0)
r = redis.Redis(connection_pool=rpool)
mutexset = ZMutexSet(r, timeout_seconds=60)
mutex_name = str(uuid4())

def func1():
  # Let thread t3 enter blocking acquire()
  sleep(10)
  # Create named mutex mutex_name
  _ok = mutexset.create(mutex_name)

def func2():
  # Let thread t3 acquire mutex_name mutex
  sleep(20)
  # blocking (120s) call to acquire any available mutex
  # mutex_name becomes available timeout_seconds (60s) after last update/acquire
  _mutex = mutexset.acquire(timeout=120)
  sleep(10)
  _mutex = mutexset.release(mutex)

def func3():
  # blocking (30s) call to acquire named mutex mutex_name
  _mutex = mutexset.acquire(timeout=30, lock_id=mutex_name)
  sleep(10)
  _mutex = mutexset.update(_mutex)
  # mutex mutex_name expires after timeout_seconds (60s) since last update/acquire

t1=Thread(target=func1)
t2=Thread(target=func2)
t3=Thread(target=func3)
t1.start()
t2.start()
t3.start()
t1.join()
t2.join()
t3.join()
'''


@pytest.fixture
def client(redis_alone: Server) -> Iterator[redis.Redis]:
    with redis.Redis(port=redis_alone.port) as client:
        yield client


def now(client: redis.Redis) -> int:
    seconds, micros = client.time()
    return int(seconds) * 1_000_000 + int(micros)


def by_script(client: redis.Redis, order: str, at: int, *words: Any, timeout: int = 1_000_000) -> Any:
    """One step at a time of our choice."""
    text = (lua.OPEN + order).replace("redis.call('TIME')", f"{{0, {at}}}")
    keys = ["zmutex", "{zmutex}:fairlock"]
    return client.eval(text, 2, *keys, words[0], timeout, "channel", *words[1:])


def test_the_example_of_its_description_runs_as_written(redis_alone: Server, client: redis.Redis) -> None:
    """Its import, its server and a typo aside; and ten times as fast."""
    text = EXAMPLE.replace("from redis_mutex import", "from fairlock.recipes import")
    text = text.replace("port=6379", f"port={redis_alone.port}").replace("release(mutex)", "release(_mutex)")
    text = re.sub(r"(sleep\(|timeout=|timeout_seconds=)(\d+)", r"\1\2 / 10", text)
    saw: dict[str, Any] = {}
    note = r"\1; saw['\2 in ' + current_thread().name] = _mutex, time()"
    text = re.sub(r"(_mutex = mutexset\.(\w+)\(.*\))", note, text)
    begun = time.time()
    exec("from threading import current_thread\nfrom time import time\n" + text, {"saw": saw})
    (name, first), at = saw[by(saw, "acquire", 3)]
    assert 0.9 < at - begun < 1.5, "woken by create"
    (_, second), at = saw[by(saw, "update", 3)]
    assert second > first and 1.9 < at - begun < 2.5
    (again, third), at = saw[by(saw, "acquire", 2)]
    assert again == name and third > second
    assert 7.9 < at - begun < 8.6, "six seconds after the update"
    assert saw[by(saw, "release", 2)][0] == (name, 0)
    assert client.zcard("zmutex") == 0


def by(saw: dict[str, Any], what: str, number: int) -> str:
    """The key under which the function of this number has left what it saw."""
    return next(key for key in saw if key.startswith(what) and key.endswith(f"(func{number})"))


def test_the_data_is_the_sorted_set_of_the_description(client: redis.Redis) -> None:
    mutexes = ZMutexSet(client)
    assert mutexes.create("a") is True
    assert mutexes.create("a") is False
    assert client.zrange("zmutex", 0, -1, withscores=True) == [(b"a", 0.0)]
    before = now(client)
    mutex = mutexes.acquire()
    assert mutex is not None
    assert mutex[0] == "a" and before <= mutex[1] <= now(client)
    assert client.zscore("zmutex", "a") == mutex[1]
    newer = mutexes.update(mutex)
    assert newer is not None and newer[1] > mutex[1] and client.zscore("zmutex", "a") == newer[1]
    assert mutexes.release(newer, clean_up=False) == ("a", 0)
    assert client.zscore("zmutex", "a") == 0
    mutex = mutexes.acquire(lock_id="a")
    assert mutexes.release(mutex) == ("a", 0)
    assert client.zscore("zmutex", "a") is None
    assert mutexes.acquire() is None and mutexes.acquire(lock_id="a") is None
    assert sorted(client.keys()) == [b"{zmutex}:fairlock"]
    assert 0 < client.pttl("{zmutex}:fairlock") <= 180_000


def test_nothing_of_nothing_is_nothing(client: redis.Redis) -> None:
    mutexes = ZMutexSet(client)
    assert mutexes.update(None) is None
    assert mutexes.release(None) is None
    assert mutexes.delete("unknown") is False


def test_each_is_had_by_one(client: redis.Redis) -> None:
    mutexes = ZMutexSet(client)
    for name in "abc":
        mutexes.create(name)
    with ThreadPoolExecutor(8) as threads:
        found = [mutex for mutex in threads.map(lambda _: mutexes.acquire(), range(8)) if mutex]
    assert sorted(name for name, _ in found) == ["a", "b", "c"]
    assert len({stamp for _, stamp in found}) == 3


def test_what_has_expired_can_be_neither_updated_nor_released_and_is_anybodys(client: redis.Redis) -> None:
    mutexes = ZMutexSet(client, timeout_seconds=0.1)
    mutexes.create("a")
    mutex = mutexes.acquire()
    time.sleep(0.12)
    assert mutexes.update(mutex) is None
    assert mutexes.release(mutex) is None
    assert mutexes.get_stale() == ["a"]
    other = mutexes.acquire(lock_id="a")
    assert other is not None and mutex is not None and other[1] > mutex[1]
    assert mutexes.update(mutex) is None and mutexes.release(mutex) is None
    assert mutexes.update(other) is not None


def test_the_old_owner_is_out_even_within_the_same_microsecond(client: redis.Redis) -> None:
    at = 4_100_000_000_000_000
    by_script(client, lua.CREATE, at, "t0", "a")
    _, first = by_script(client, lua.ACQUIRE, at, "t1", "a")
    assert int(first) == at
    by_script(client, lua.RELEASE, at, "t2", "a", first, 0)
    _, second = by_script(client, lua.ACQUIRE, at, "t3", "a")
    assert int(second) == at + 1
    assert by_script(client, lua.UPDATE, at, "t4", "a", first) is None
    assert by_script(client, lua.RELEASE, at, "t5", "a", first, 1)[0] == 0
    assert by_script(client, lua.UPDATE, at, "t6", "a", second) is not None


def test_less_than_the_limit_is_free_and_more_is_held_to_the_microsecond(client: redis.Redis) -> None:
    at = 4_100_000_000_000_000
    client.zadd("zmutex", {"a": at})
    for wait, has in ((999_999, b"%d" % (at + 999_999)), (1_000_000, None), (1_000_001, None)):
        client.zadd("zmutex", {"a": at})
        found = by_script(client, lua.UPDATE, at + wait, f"t{wait}", "a", at)
        assert found == has
    assert len(by_script(client, lua.ACQUIRE, at + 1_000_000, "x", "a")) == 1
    assert len(by_script(client, lua.ACQUIRE, at + 1_000_001, "y", "a")) == 2


def test_stale_ones(client: redis.Redis) -> None:
    mutexes = ZMutexSet(client)
    for name in ("free", "taken"):
        mutexes.create(name)
    mutexes.acquire(lock_id="taken")
    client.zadd("zmutex", {"old": now(client) - 61_000_000})
    assert mutexes.get_stale() == ["free", "old"]
    assert mutexes.get_stale(include_unattended=False) == ["old"]
    assert mutexes.get_stale(include_expired=False) == ["free"]
    assert mutexes.get_stale(False, False) == []
    assert mutexes.delete("old") is True
    assert mutexes.get_stale() == ["free"]


# -- others who keep such a set


def test_other_programs_with_such_a_set_exclude_ours_and_are_excluded(client: redis.Redis) -> None:
    mutexes = ZMutexSet(client, "theirs", timeout_seconds=30)
    client.zadd("theirs", {"a": 0})
    mutex = mutexes.acquire()
    assert mutex is not None
    assert client.zrangebyscore("theirs", 0, f"({now(client) - 30_000_000}") == [], "to them it is taken"
    client.zadd("theirs", {"a": now(client) - 31_000_000})  # we were silent, and it was theirs meanwhile
    stolen = now(client)
    client.zadd("theirs", {"a": stolen})
    assert mutexes.update(mutex) is None and mutexes.release(mutex) is None
    assert mutexes.acquire() is None
    assert mutexes.update(("a", stolen)) is not None, "their tuples are as good as ours"


def test_a_client_that_decodes_does_as_well(redis_alone: Server) -> None:
    with redis.Redis(port=redis_alone.port, decode_responses=True) as client:
        mutexes = ZMutexSet(client)
        mutexes.create("größer")
        mutex = mutexes.acquire()
        assert mutex and mutex[0] == "größer" and mutexes.release(mutexes.update(mutex))


# -- waiting


def waits(mutexes: ZMutexSet, happens: Callable[[], object], **how: Any) -> float:
    """Return the seconds from then until a blocking acquire returned an item."""
    got: list[float] = []

    def wait() -> None:
        assert mutexes.acquire(timeout=10, **how)
        got.append(time.monotonic())

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.2)
    begun = time.monotonic()
    happens()
    thread.join(15)
    return got[0] - begun


def test_who_waits_is_woken_by_create_and_by_release(client: redis.Redis) -> None:
    mutexes = ZMutexSet(client, revalidate_seconds=5)
    assert waits(mutexes, lambda: mutexes.create("a")) < 0.5
    held = ("a", int(client.zscore("zmutex", "a") or 0))
    assert waits(mutexes, lambda: mutexes.release(held, clean_up=False), lock_id="a") < 0.5
    assert client.pubsub_numsub("fairlock:zmutex:zmutex") == [(b"fairlock:zmutex:zmutex", 0)], "nobody listens any more"


def test_who_waits_has_what_expires_at_once(client: redis.Redis) -> None:
    mutexes = ZMutexSet(client, timeout_seconds=0.6, revalidate_seconds=5)
    mutexes.create("a")
    mutexes.acquire()
    assert 0.3 < waits(mutexes, lambda: None) < 0.7


def test_who_waits_is_woken_by_others_if_the_server_tells_of_them(start_redis: Callable[..., Server]) -> None:
    with redis.Redis(port=start_redis("--notify-keyspace-events", "Kz").port) as client:
        mutexes = ZMutexSet(client, revalidate_seconds=5)
        assert waits(mutexes, lambda: client.zadd("zmutex", {"theirs": 0})) < 0.5


def test_who_waits_looks_again_if_it_does_not(client: redis.Redis) -> None:
    mutexes = ZMutexSet(client, revalidate_seconds=0.3)
    assert waits(mutexes, lambda: client.zadd("zmutex", {"theirs": 0})) < 0.6


def test_many_who_wait_need_one_more_connection(client: redis.Redis) -> None:
    def listening() -> set[str]:
        found: Any = client.client_list(_type="pubsub")
        return {each["id"] for each in found}

    mutexes = ZMutexSet(client, revalidate_seconds=5)
    others = listening()  # of earlier tests
    with ThreadPoolExecutor(10) as threads:
        waiting = [threads.submit(mutexes.acquire, 10) for _ in range(10)]
        time.sleep(0.3)
        assert len(listening() - others) == 1
        begun = time.monotonic()
        for name in "abcdefghij":
            mutexes.create(name)
        found = {mutex[0] for mutex in [each.result() for each in waiting] if mutex}
    assert found == set("abcdefghij") and time.monotonic() - begun < within(2, below=9)


def test_the_time_is_kept(client: redis.Redis) -> None:
    begun = time.monotonic()
    assert ZMutexSet(client).acquire(timeout=0.25) is None
    assert 0.25 <= time.monotonic() - begun < within(0.5, below=5)


# -- what goes wrong


@pytest.mark.parametrize("retries", [0, 1])
def test_a_lost_reply_acquires_one_and_ends_as_if_nothing_was_lost(
    client: redis.Redis, redis_alone: Server, retries: int
) -> None:
    bad, losses = losing_client(redis_alone, retries)
    with bad:
        mutexes = ZMutexSet(bad)
        losses.next(1)
        assert mutexes.create("a") is True
        client.zadd("zmutex", {"b": 0})
        losses.next(1)
        mutex = mutexes.acquire()
        assert mutex and mutex[0] == "a"
        losses.next(1)
        mutex = mutexes.update(mutex)
        assert mutex and client.zscore("zmutex", "a") == mutex[1]
        losses.next(1 - retries)  # a client that retries by itself hides a loss, and nothing reports this one
        assert mutexes.release(mutex, clean_up=False) == ("a", 0)
        assert client.zrange("zmutex", 0, -1, withscores=True) == [(b"a", 0.0), (b"b", 0.0)]


def test_an_acquire_that_is_broken_off_leaves_nothing_behind(client: redis.Redis, redis_alone: Server) -> None:
    bad, losses = losing_client(redis_alone)
    with bad:
        client.zadd("zmutex", {"a": 0})
        losses.next(1, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            ZMutexSet(bad).acquire()
        assert client.zscore("zmutex", "a") == 0


def test_what_makes_no_sense_is_told(client: redis.Redis) -> None:
    for settings in ({"timeout_seconds": 0}, {"revalidate_seconds": -1}, {"zsetname": ""}):
        with pytest.raises(ConfigError):
            ZMutexSet(client, **settings)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="for asyncio"):
        ZMutexSet(redis.asyncio.Redis())  # type: ignore[arg-type]
    mutexes = ZMutexSet(client)
    with pytest.raises(ConfigError, match="acquire"):
        mutexes.update("a")  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        mutexes.create("")
