"""connect() also takes a client of redis-py: it goes where the client goes, and leaves the client as it is."""

import asyncio
import gc
import subprocess
import sys
import weakref

import pytest
import redis
import redis.asyncio
from redis.asyncio.sentinel import Sentinel as TaskSentinel
from redis.sentinel import Sentinel

import fairlock
from fairlock import aio
from fairlock.errors import ConfigError
from fairlock.stores.redis.address_from_client import read
from tests.servers.server import Server

SECRETS = {"username": "ann", "password": "s3cret"}


@pytest.mark.parametrize("url", [
    "redis://localhost:6379", "redis://h1:7000/3", "redis://[::1]:7000", "rediss://h1:7000/2", "unix:///run/redis.sock",
])
@pytest.mark.parametrize("driver, blocking", [(redis, True), (redis.asyncio, False)])
def test_a_client_goes_where_its_url_goes(url: str, driver, blocking: bool) -> None:  # type: ignore[no-untyped-def]
    assert read(driver.Redis.from_url(url), blocking, {}).where == url


@pytest.mark.parametrize("driver, blocking", [(redis, True), (redis.asyncio, False)])
def test_who_it_is_and_how_it_is_secured_comes_along(driver, blocking: bool) -> None:  # type: ignore[no-untyped-def]
    told = SECRETS | {"ssl_ca_certs": "/etc/ca.pem", "client_name": "shop", "socket_timeout": 1.5}
    found = read(driver.Redis(host="h1", ssl=True, **told), blocking, {})
    assert told.items() <= found.driver.items()
    assert found.secure
    assert "s3cret" not in found.where


def test_what_a_client_does_with_replies_and_failures_does_not_come_along() -> None:
    client = redis.Redis(decode_responses=True, max_connections=1, health_check_interval=1)
    driver = read(client, True, {}).driver
    assert not {"decode_responses", "retry", "retry_on_error", "health_check_interval"} & set(driver)


@pytest.mark.parametrize("sentinels, blocking", [(Sentinel, True), (TaskSentinel, False)])
def test_a_client_of_sentinel_brings_the_sentinels_and_the_service(sentinels, blocking: bool) -> None:  # type: ignore[no-untyped-def]
    watch = sentinels([("h1", 1), ("h2", 2)], password="s3cret", db=2)
    found = read(watch.master_for("mymaster"), blocking, {})
    assert (found.kind, found.service, found.hosts) == ("sentinel", "mymaster", (("h1", 1), ("h2", 2)))
    assert found.where == "redis+sentinel://h1:1,h2:2/mymaster/2"
    assert found.driver["password"] == "s3cret"
    with pytest.raises(ConfigError, match="master_for"):
        read(watch.slave_for("mymaster"), blocking, {})


def test_a_client_of_a_cluster_brings_the_nodes_that_it_knows() -> None:
    found = read(redis.asyncio.RedisCluster("h1", 7000, password="s3cret", ssl=True), False, {})
    assert (found.kind, found.hosts, found.secure) == ("cluster", (("h1", 7000),), True)
    assert found.driver["password"] == "s3cret"


class Mine(redis.Redis):
    """As programs have it that add a method or two."""


def test_a_subclass_is_a_client_too() -> None:
    assert fairlock.connect(Mine(port=7000)).store == "redis://localhost:7000"


@pytest.mark.parametrize("connect, client, cure", [
    (fairlock.connect, redis.asyncio.Redis(), "fairlock.aio"),
    (aio.connect, redis.Redis(), "redis.asyncio.Redis"),
    (aio.connect, Mine(), "redis.asyncio.Redis"),
    (fairlock.connect, redis.ConnectionPool(), "not a client"),
    (fairlock.connect, 5, "a URL, a path, a client of redis-py"),
])
def test_what_cannot_be_used_is_refused_with_the_cure(connect, client: object, cure: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError, match=cure):
        connect(client)


def test_a_client_without_the_rest_of_the_driver_names_what_is_missing() -> None:
    code = "import sys; sys.modules['hiredis'] = None; import redis, fairlock; fairlock.connect(redis.Redis())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.endswith("A client of redis-py needs hiredis: pip install 'fairlock[redis]'.\n")


def test_an_option_of_the_driver_belongs_to_the_client() -> None:
    with pytest.raises(ConfigError, match="socket_timeout"):
        fairlock.connect(redis.Redis(), socket_timeout=1)


def test_the_clients_own_way_with_replies_is_no_matter(redis_alone: Server) -> None:
    client = redis.Redis(port=redis_alone.port, decode_responses=True, max_connections=1, protocol=2)
    with fairlock.connect(client) as locks, fairlock.connect(redis_alone.url) as others:
        with locks.lock("x"):
            assert others.lock("x").locked()
            assert client.ping()
    client.close()


async def through_a_client(url: str) -> None:
    async with redis.asyncio.Redis.from_url(url, decode_responses=True) as client:
        async with aio.connect(client) as locks, aio.connect(url) as others:
            async with locks.lock("x"):
                assert await others.lock("x").locked()


def test_a_client_of_asyncio_too(redis_alone: Server) -> None:
    asyncio.run(through_a_client(redis_alone.url))


def test_locks_outlive_the_client_and_do_not_keep_it(redis_alone: Server) -> None:
    client = redis.Redis(port=redis_alone.port)
    gone = weakref.ref(client.connection_pool)
    locks = fairlock.connect(client)
    with locks.lock("x"):
        client.close()
        del client
        gc.collect()
        assert gone() is None
        assert locks.lock("x").locked()
    locks.close()
