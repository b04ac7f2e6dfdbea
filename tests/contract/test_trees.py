"""Locks on paths, on every store and in both faces. tests/recipes/test_tree.py has the model of all interleavings."""

import pytest

from fairlock import ConfigError, LockTimeout, aio
from fairlock.recipes.aio import TreeLease, TreeLock
from fairlock.testing.harness import Harness
from fairlock.testing.suite.parametrize import Behaviours

NODES = ["a", "a/b", "a/c", "a/b/d"]
OPERATIONS = [(path, mode) for path in NODES for mode in ("read", "write")]


def related(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def make(client: aio.Locks, path: str, mode: str) -> TreeLock:
    tree = client.tree(path)
    return tree.write() if mode == "write" else tree.read()


async def take(lock: TreeLock) -> TreeLease:
    lease = await lock.acquire(False)
    assert lease is not None
    return lease


class TestTrees(Behaviours):
    async def test_every_pair_of_two_clients_excludes_as_it_should(self, harness: Harness) -> None:
        one, two = harness.connect(), harness.connect()
        for path, mode in OPERATIONS:
            held = await take(make(one, path, mode))
            for other, wanted in OPERATIONS:
                got = await make(two, other, wanted).acquire(False)
                conflict = related(path, other) and "write" in (mode, wanted)
                assert (got is None) == conflict, f"{mode} {path} and {wanted} {other}"
                if got is not None:
                    await got.release()
            await held.release()
        found = await harness.observer.snapshot("tree:*")
        assert [each.name for each in found.resources if each.busy] == []

    async def test_a_writer_waits_for_a_reader_above_and_then_works(self, harness: Harness) -> None:
        one, two = harness.connect(), harness.connect()
        reader = await take(one.tree("repo").read())

        async def write() -> bool:
            async with two.tree("repo/src/api").write() as lease:
                return lease.held

        writing = harness.go(write())
        await harness.in_queue("tree:repo", 1)
        assert not writing.done
        await reader.release()
        assert await writing.result(within=5)

    async def test_a_reader_waits_for_a_writer_below_and_not_for_readers(self, harness: Harness) -> None:
        one, two = harness.connect(), harness.connect()
        beside = await take(one.tree("repo/doc").read())
        writer = await take(one.tree("repo/src").write())

        async def read() -> None:
            async with two.tree("repo").read():
                pass

        reading = harness.go(read())
        await harness.in_queue("tree:repo/", 1)
        assert not reading.done
        await writer.release()
        await reading.result(within=5)
        await beside.release()

    async def test_a_timeout_names_what_is_in_the_way_and_leaves_nothing(self, harness: Harness) -> None:
        one, two = harness.connect(owner="other"), harness.connect()
        held = await take(one.tree("repo/src").write())

        async def write() -> None:
            async with two.tree("repo/src/api", timeout=0.1).write():
                raise AssertionError("it is held")

        with pytest.raises(LockTimeout, match=r"'repo/src/api' could not be .*'repo/src' is held by other"):
            await harness.go(write()).result(within=5)
        await held.release()
        found = await harness.observer.snapshot("tree:*")
        assert [each.name for each in found.resources if each.busy] == []

    async def test_the_fence_of_a_node_rises(self, harness: Harness) -> None:
        one, two = harness.connect(), harness.connect()
        fences = []
        for client in (one, two, one):
            async with client.tree("a/b").write() as lease:
                fences.append(lease.fence)
        assert fences == sorted(set(fences))

    async def test_what_the_body_raises_releases_it(self, harness: Harness) -> None:
        client = harness.connect()
        with pytest.raises(ZeroDivisionError):
            async with client.tree("a/b").write() as lease:
                assert lease.held and not lease.lost and lease.remaining() > 0
                raise ZeroDivisionError
        assert not lease.held
        assert await client.tree("a").write().acquire(False)

    async def test_a_path_that_is_none_is_refused(self, harness: Harness) -> None:
        client = harness.connect()
        for path in ("", "/", "a//b", "a/../b", "./a", "a\0b"):
            with pytest.raises(ConfigError):
                client.tree(path)
        assert client.tree("/a/b/").path == "a/b"

    async def test_long_paths_have_names_that_the_store_takes(self, harness: Harness) -> None:
        client = harness.connect()
        long = "/".join(["a" * 60] * 5)
        async with client.tree(long).write():
            assert await client.tree(long).read().acquire(False) is None
            assert await client.tree("a" * 60).read().acquire(False) is None
