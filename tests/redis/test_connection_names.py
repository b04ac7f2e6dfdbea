"""The name that a server shows for each connection: the owner of its client, without a right of its own."""

import asyncio
import os
import re
from collections.abc import Callable

import pytest

import fairlock
from fairlock import aio
from fairlock.stores.redis import acl
from tests.servers.server import Server


@pytest.fixture
def own_redis(start_redis: Callable[..., Server]) -> Server:
    """A server that no client of an earlier test is connected to: clients of one address share their connections."""
    return start_redis()


def names(server: Server) -> set[str]:
    """Return the names of all connections but the one that asks."""
    lines = server.call("CLIENT", "LIST").splitlines()
    return {found for line in lines if (found := re.search(r" name=(\S*)", line)[1])}  # type: ignore[index]


def test_each_connection_shows_the_owner_of_its_client(own_redis: Server) -> None:
    with fairlock.connect(own_redis.url, owner="web 3é") as locks, locks.lock("x"):
        locks.lock("y").acquire()
        assert names(own_redis) == {"fairlock:web_3_"}

    async def in_tasks() -> None:
        async with aio.connect(own_redis.url) as locks, locks.lock("x"):
            assert names(own_redis) == {f"fairlock:{os.uname().nodename}:{os.getpid()}"}

    asyncio.run(in_tasks())


def test_a_name_of_ones_own_is_used_also_with_the_older_protocol(own_redis: Server) -> None:
    with fairlock.connect(own_redis.url, client_name="shop", protocol=2) as locks, locks.lock("x"):
        assert names(own_redis) == {"shop"}


def test_a_child_shows_its_own(own_redis: Server) -> None:
    with fairlock.connect(own_redis.url) as locks, locks.lock("x"):
        pid = os.fork()
        if not pid:
            try:
                locks.lock("y").acquire()
                os._exit(0 if any(each.endswith(f":{os.getpid()}") for each in names(own_redis)) else 1)
            finally:
                os._exit(2)
        assert os.waitpid(pid, 0)[1] == 0


def test_a_user_without_the_right_to_set_names_is_named_too(own_redis: Server) -> None:
    assert "client" not in acl.line()
    own_redis.call(*acl.line(password="x").split())
    url = own_redis.url.replace("://", "://fairlock:x@")
    try:
        with fairlock.connect(url, client_name="mine") as locks, locks.lock("x"):
            assert names(own_redis) == {"mine"}

        async def in_tasks() -> None:
            async with aio.connect(url, owner="tasks") as locks, locks.lock("x"):
                assert names(own_redis) == {"fairlock:tasks"}

        asyncio.run(in_tasks())
    finally:
        own_redis.call("ACL", "DELUSER", "fairlock")
