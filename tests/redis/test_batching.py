"""Many locks in one script: fewer messages, and everything else as if each had been asked for alone."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from fairlock import StoreError, aio
from fairlock.rules.locks import EXCLUSIVE
from fairlock.stores.redis import encoding
from tests.api_parity.test_nothing_left import nothing_is_left
from tests.redis.proxy import Proxy, kind_of
from tests.servers.groups import Cluster, Sentinels
from tests.servers.server import Server

MANY = 40
NAMES = [f"x{number}" for number in range(MANY)]


async def known(locks: aio.Locks, names: list[str] = NAMES) -> None:
    """Each was used once: from now on the short way is open to it."""
    for name in names:
        async with locks.lock(name):
            pass


async def cycles(locks: aio.Locks, names: list[str] = NAMES) -> list[int]:
    """All of them at once; their fences."""

    async def cycle(name: str) -> int:
        async with locks.lock(name) as lease:
            return lease.fence

    return await asyncio.gather(*[cycle(name) for name in names])


def scripts_run(server: Server) -> int:
    return int(server.client.info("commandstats")["cmdstat_evalsha"]["calls"])


def on(url: str, work: Callable[[aio.Locks], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with aio.connect(url) as locks:
            await known(locks)
            await cycles(locks)  # by now the server knows the scripts, too
            await work(locks)

    asyncio.run(main())
    nothing_is_left(url, 5)


def test_the_requests_of_one_turn_are_one_script(redis_alone: Server) -> None:
    async def work(locks: aio.Locks) -> None:
        before = scripts_run(redis_alone)
        first, second = await cycles(locks), await cycles(locks)
        assert scripts_run(redis_alone) - before == 4
        assert all(one < other for one, other in zip(first, second, strict=True))

    on(redis_alone.url, work)


def test_more_than_one_script_may_have_are_several(redis_alone: Server) -> None:
    names = [f"y{number}" for number in range(300)]

    async def work(locks: aio.Locks) -> None:
        await known(locks, names)
        before = scripts_run(redis_alone)
        await cycles(locks, names)
        assert scripts_run(redis_alone) - before == 6

    on(redis_alone.url, work)


def test_different_requests_are_not_mixed_up(redis_alone: Server) -> None:
    async def work(locks: aio.Locks) -> None:
        leases = await asyncio.gather(
            locks.lock("x1").acquire(), locks.lock("x2", lease=7).acquire(), locks.lock("x3", note="why").acquire(),
            locks.rwlock("x4").read().acquire(), locks.semaphore("s", 3).acquire(),
        )  # fmt: skip
        found = {r.name: r.holders[0] for r in (await locks.snapshot()).resources if r.holders}
        assert {name: (round(who.expires_in), who.note, who.weight) for name, who in found.items()} == {
            "x1": (30, "", EXCLUSIVE), "x2": (7, "", EXCLUSIVE), "x3": (30, "why", EXCLUSIVE), "x4": (30, "", 1),
            "s": (30, "", 1),
        }  # fmt: skip
        for lease in leases:
            assert lease is not None
            await lease.release()

    on(redis_alone.url, work)


def test_one_that_another_client_holds_keeps_nobody_else(redis_alone: Server) -> None:
    async def work(locks: aio.Locks) -> None:
        async with aio.connect(redis_alone.url) as other:
            held = await other.lock("x7").acquire()
            assert held is not None
            waiting = asyncio.ensure_future(cycles(locks, ["x7"]))
            await cycles(locks, [name for name in NAMES if name != "x7"])
            assert not waiting.done()
            await held.release()
            (fence,) = await waiting
            assert fence > held.fence

    on(redis_alone.url, work)


def test_the_trouble_of_one_is_no_other_ones(redis_alone: Server) -> None:
    async def work(locks: aio.Locks) -> None:
        strange = encoding.keys("", "x7")[0]
        redis_alone.client.delete(strange)
        redis_alone.client.set(strange, "somebody else's")
        found = await asyncio.gather(*[cycles(locks, [name]) for name in NAMES], return_exceptions=True)
        assert [number for number, one in enumerate(found) if isinstance(one, BaseException)] == [7]
        assert isinstance(found[7], StoreError)
        redis_alone.client.delete(strange)
        await cycles(locks)

    on(redis_alone.url, work)


def test_a_server_that_has_forgotten_the_scripts_gets_them_again(redis_alone: Server) -> None:
    async def work(locks: aio.Locks) -> None:
        for _ in range(3):
            redis_alone.client.script_flush()
            await cycles(locks)

    on(redis_alone.url, work)


@pytest.mark.parametrize("turns", range(6))
def test_the_cancelled_leave_nothing_and_the_others_go_on(redis_alone: Server, turns: int) -> None:
    async def work(locks: aio.Locks) -> None:
        tasks = [asyncio.ensure_future(cycles(locks, [name])) for name in NAMES]
        for _ in range(turns):
            await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert not any(isinstance(one, BaseException) for one in found[1::2])
        assert [r.name for r in (await locks.snapshot(idle=True)).resources if r.holders or r.queue] == []
        await cycles(locks)

    on(redis_alone.url, work)


@pytest.mark.parametrize("fate", ["cut", "drop"])
@pytest.mark.parametrize("kind", ["acquire", "release"])
def test_an_answer_that_is_lost_is_asked_for_again_by_each(redis_alone: Server, kind: str, fate: str) -> None:
    with Proxy(redis_alone.port) as proxy:

        async def work(locks: aio.Locks) -> None:
            for times in range(1, 4):
                await cycles(locks)
                proxy.fate = lambda request, most=times: (  # type: ignore[misc]
                    fate if kind_of(request) == kind and proxy.cuts < most else ""
                )
                await cycles(locks)
                assert proxy.cuts == times

        on(proxy.url, work)


def test_a_full_server_lets_nobody_in_and_everybody_out(start_redis: Callable[..., Server]) -> None:
    server = start_redis()

    async def work(locks: aio.Locks) -> None:
        got = await asyncio.gather(*[locks.lock(name).acquire() for name in NAMES[:20]])
        leases = [lease for lease in got if lease is not None]
        assert len(leases) == 20
        server.client.config_set("maxmemory", 1)
        found = await asyncio.gather(*[cycles(locks, [name]) for name in NAMES[20:]], return_exceptions=True)
        assert all(isinstance(one, StoreError) and "memory" in str(one) for one in found)
        before = scripts_run(server)
        for lease in leases:
            assert lease.held
        await asyncio.gather(*[lease.__aexit__(None, None, None) for lease in leases])
        assert scripts_run(server) - before == 1
        server.client.config_set("maxmemory", 0)

    on(server.url, work)


def test_in_a_cluster_each_has_a_script_of_its_own(redis_cluster: Cluster) -> None:
    async def work(locks: aio.Locks) -> None:
        before = sum(scripts_run(one) for one in redis_cluster.masters)
        await cycles(locks)
        assert sum(scripts_run(one) for one in redis_cluster.masters) - before == 2 * MANY

    on(redis_cluster.url, work)


def test_a_master_that_sentinels_name_takes_many_at_once(redis_sentinel: Sentinels) -> None:
    async def work(locks: aio.Locks) -> None:
        await cycles(locks)

    on(redis_sentinel.url, work)


def test_a_cycle_of_a_task_takes_few_calls(redis_alone: Server) -> None:
    """The tasks of a batch are woken together, and their replies are accepted together. With one call of the loop for
    each task it would be 12 calls more."""
    calls = 0

    def count(_: Any, event: str, __: Any) -> None:
        nonlocal calls
        calls += event == "call"

    async def work(locks: aio.Locks) -> None:
        async def turns(lock: aio.Lock) -> None:
            for _ in range(10):
                async with lock:
                    pass

        objects = [locks.lock(name) for name in NAMES]
        sys.setprofile(count)
        try:
            await asyncio.gather(*[turns(lock) for lock in objects])
        finally:
            sys.setprofile(None)
        assert calls / MANY / 10 < 30

    on(redis_alone.url, work)
