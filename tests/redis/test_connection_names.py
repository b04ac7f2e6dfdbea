"""The name that a server shows for each connection: the owner of its client, without a right of its own."""

import asyncio
import os
import re

import fairlock
from fairlock import aio
from fairlock.stores.redis import acl
from tests.servers.server import Server


def names(server: Server) -> set[str]:
    """Return the names of all connections but the one that asks."""
    lines = server.call("CLIENT", "LIST").splitlines()
    return {found for line in lines if (found := re.search(r" name=(\S*)", line)[1])}  # type: ignore[index]


def test_each_connection_shows_the_owner_of_its_client(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url, owner="web 3é") as locks, locks.lock("x"):
        locks.lock("y").acquire()
        assert names(redis_alone) == {"fairlock:web_3_"}

    async def in_tasks() -> None:
        async with aio.connect(redis_alone.url) as locks, locks.lock("x"):
            assert names(redis_alone) == {f"fairlock:{os.uname().nodename}:{os.getpid()}"}

    asyncio.run(in_tasks())


def test_a_name_of_ones_own_is_used_also_with_the_older_protocol(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url, client_name="shop", protocol=2) as locks, locks.lock("x"):
        assert names(redis_alone) == {"shop"}


def test_a_child_shows_its_own(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url) as locks, locks.lock("x"):
        pid = os.fork()
        if not pid:
            try:
                locks.lock("y").acquire()
                os._exit(0 if any(each.endswith(f":{os.getpid()}") for each in names(redis_alone)) else 1)
            finally:
                os._exit(2)
        assert os.waitpid(pid, 0)[1] == 0


def test_a_user_without_the_right_to_set_names_is_named_too(redis_alone: Server) -> None:
    assert "client" not in acl.line()
    redis_alone.call(*acl.line(password="x").split())
    url = redis_alone.url.replace("://", "://fairlock:x@")
    try:
        with fairlock.connect(url, client_name="mine") as locks, locks.lock("x"):
            assert names(redis_alone) == {"mine"}

        async def in_tasks() -> None:
            async with aio.connect(url, owner="tasks") as locks, locks.lock("x"):
                assert names(redis_alone) == {"fairlock:tasks"}

        asyncio.run(in_tasks())
    finally:
        redis_alone.call("ACL", "DELUSER", "fairlock")
