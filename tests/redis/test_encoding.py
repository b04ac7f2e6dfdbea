"""The keys of a resource: one slot whatever its name, keys of its own, and scripts that are loaded when missing."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

import fairlock
import fairlock.aio
from fairlock.stores.redis import encoding
from tests.servers.groups import Cluster
from tests.servers.server import Server

NAMES = [
    "orders", "two words", "{braces}", "{", "}", "}{", "{}", "a{b}c{d}", "%7B", "100 %", "ünïcode ☂", "日本語",
    ":queue", "x:queue",
    "x", "x}:queue", "fairlock:{x}", "a\x1fb", "*?[a]", "'quoted' \"twice\"", "back\\slash", "a" * 200,
]  # fmt: skip


@pytest.mark.parametrize("namespace", ["", "team", "{team}"])
@pytest.mark.parametrize("name", NAMES)
def test_all_keys_of_a_resource_lie_in_one_slot(namespace: str, name: str) -> None:
    assert len({key_slot(key.encode()) for key in encoding.keys(namespace, name)}) == 1


@given(name=st.text(min_size=1), namespace=st.text(max_size=5))
def test_all_keys_of_any_resource_lie_in_one_slot(name: str, namespace: str) -> None:
    keys = [key.encode("utf-8", "surrogatepass") for key in encoding.keys(namespace, name)]
    assert len({key_slot(key) for key in keys}) == 1
    assert len(set(keys)) == 5


@given(st.lists(st.text(alphabet="{}%7BD:axline", min_size=1, max_size=8), unique=True, max_size=6))
def test_no_two_names_share_a_key(names: list[str]) -> None:
    keys = [key for name in names for key in encoding.keys("", name)]
    assert len(set(keys)) == len(keys)


def test_names_are_spread_over_the_slots() -> None:
    assert len({key_slot(encoding.keys("", f"order:{number}")[0].encode()) for number in range(1000)}) > 900


def test_a_cluster_agrees_about_the_slots(redis_cluster: Cluster) -> None:
    server = redis_cluster.servers[0]
    for name in NAMES:
        asked = {server.call("CLUSTER", "KEYSLOT", key) for key in encoding.keys("", name)}
        assert asked == {key_slot(encoding.keys("", name)[0].encode())}


@pytest.mark.parametrize("which", ["redis_alone", "valkey"])
def test_scripts_that_the_server_has_forgotten_are_loaded_again(which: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(which)
    with fairlock.connect(server.url) as locks:
        for _ in range(2):
            server.call("SCRIPT", "FLUSH")
            lease = locks.lock("x").acquire()  # the short way in
            assert lease
            server.call("SCRIPT", "FLUSH")
            assert not locks.lock("x").acquire(False)  # the full step
            server.call("SCRIPT", "FLUSH")
            lease.renew()  # the full step
            server.call("SCRIPT", "FLUSH")
            assert locks.snapshot().resources[0].holders  # a look
            server.call("SCRIPT", "FLUSH")
            lease.release()  # the short way out, or the full step


def test_tasks_load_them_again_too(redis_alone: Server) -> None:
    async def go() -> None:
        async with fairlock.aio.connect(redis_alone.url) as locks:
            for _ in range(2):
                redis_alone.call("SCRIPT", "FLUSH")
                lease = await locks.lock("x").acquire()
                assert lease
                redis_alone.call("SCRIPT", "FLUSH")
                assert not await locks.lock("x").acquire(False)
                redis_alone.call("SCRIPT", "FLUSH")
                await lease.release()

    asyncio.run(go())
