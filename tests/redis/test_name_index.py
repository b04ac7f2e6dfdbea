"""The index of busy names: who writes it and when, and what a look costs, counted in commands."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

import fairlock
from fairlock import aio
from fairlock.engine.renewal import Keeper
from fairlock.engine.run_sync import run
from fairlock.stores.redis.busy_name_index import BUSY
from tests.servers.groups import Cluster
from tests.servers.server import Server, until


def members(server: Server) -> list[list[str]]:
    """Kind, namespace and name of each member."""
    return sorted(str(each).split("\x1f")[:3] for each in server.client.zrange(BUSY, 0, -1))


def names(locks: fairlock.Locks) -> list[str]:
    return [one.name for one in locks.snapshot().resources]


def test_others_see_a_hold_within_about_a_second(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url, owner="a") as one, fairlock.connect(redis_alone.url) as other:
        lease = one.lock("x").acquire()
        until(lambda: names(other) == ["x"], "another client sees it")
        assert lease is not None
        assert time.monotonic()
        lease.release()
        assert names(other) == []
        until(lambda: members(redis_alone) == [], "it leaves the index")


def test_a_release_just_after_the_round_that_listed_it(redis_alone: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper has nothing more to do, and would end before the name may be taken off."""
    plan = Keeper.plan
    with fairlock.connect(redis_alone.url) as locks:
        lease = locks.lock("x").acquire()

        def plan_after_release(keeper: Keeper) -> float | None:
            if lease.held and members(redis_alone):
                lease.release()
            return plan(keeper)

        monkeypatch.setattr(Keeper, "plan", plan_after_release)
        until(lambda: not lease.held, "it was listed, and released")
        until(lambda: members(redis_alone) == [], "it leaves the index")


def test_tasks_list_their_holds_and_waits_too(redis_alone: Server) -> None:
    async def main() -> None:
        async with aio.connect(redis_alone.url) as one:
            async with one.lock("x"):
                while members(redis_alone) != [["l", "", "x"]]:
                    await asyncio.sleep(0.05)
                waiting = asyncio.create_task(one.semaphore("s", 1).acquire())
                await waiting
        assert members(redis_alone) == [], "a client that is closed leaves nothing"

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_short_hold_writes_nothing(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url) as locks:
        for number in range(50):
            with locks.lock(f"x{number}"):
                pass
        assert redis_alone.client.exists(BUSY) == 0
        assert names(locks) == []
        assert len(locks.snapshot(idle=True).resources) == 50


def test_a_first_use_of_a_name_is_one_command(redis_alone: Server) -> None:
    """Nothing is written but the lock."""
    with fairlock.connect(redis_alone.url) as locks:
        with locks.lock("warm"):
            pass

        def cycle() -> None:
            for number in range(10):
                with locks.lock(f"new{number}"):
                    pass

        assert redis_alone.count_commands(cycle) == 20


def test_a_client_sees_at_once_what_it_holds(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url) as one, fairlock.connect(redis_alone.url) as other:
        with one.lock("x"):
            assert names(one) == ["x"]
            assert names(other) == ["x"], "and from then on all do"


def test_one_of_many_holders_that_leaves_does_not_hide_the_others(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url) as one, fairlock.connect(redis_alone.url) as other:
        mine, theirs = one.semaphore("x", 2).acquire(), other.semaphore("x", 2).acquire()
        assert names(one) == names(other) == ["x"]
        assert mine is not None and theirs is not None
        mine.release()
        one.close()
        assert names(other) == ["x"]
        assert members(redis_alone) == [["l", "", "x"]]


def test_a_waiter_lists_what_it_waits_for(redis_alone: Server) -> None:
    """Its holder may have died before its keeper wrote anything."""
    with fairlock.connect(redis_alone.url) as one, fairlock.connect(redis_alone.url) as other:
        held = one.lock("x").acquire()
        assert held is not None
        one.session.backend.has_index = False  # its keeper writes nothing
        thread = threading.Thread(target=lambda: other.lock("x").acquire(timeout=5))
        thread.start()
        with fairlock.connect(redis_alone.url) as third:
            until(lambda: names(third) == ["x"], "it is seen")
            assert len(third.snapshot().resources[0].queue) == 1
        held.release()
        thread.join()


def test_a_detached_lease_stays_in_it_without_its_client(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url) as one:
        lease = one.lock("x").acquire()
        assert lease is not None
        ticket = lease.detach(3600)
        with one.lock("y", at_least=600):
            pass
    with fairlock.connect(redis_alone.url) as other:
        assert names(other) == ["x", "y"]
        score = redis_alone.client.zscore(BUSY, "l\x1f\x1fx\x1f")
        assert isinstance(score, float)
        assert score > time.time() + 3600
        other.attach("x", ticket).release()


def test_an_expired_lease_is_shown_after_its_client_has_died(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url) as other:
        dead = fairlock.connect(redis_alone.url, lease=0.5)
        dead.lock("x").acquire()
        run(dead.session.list_names())
        dead.session.backend.topology.forget()  # type: ignore[attr-defined]
        dead._session.grants.clear()
        dead._session.closed = True
        until(lambda: [len(one.expired) for one in other.snapshot().resources] == [1], "it has expired")


def test_what_counts_no_more_is_removed_by_the_next_who_writes(redis_alone: Server) -> None:
    redis_alone.client.zadd(BUSY, {"l\x1f\x1fold\x1fgone": 1, "nonsense": time.time() + 60})
    with fairlock.connect(redis_alone.url) as locks:
        with locks.lock("x"):
            assert names(locks) == ["x"]
        assert "l\x1f\x1fold\x1fgone" not in redis_alone.client.zrange(BUSY, 0, -1)


@pytest.mark.parametrize("used", [100, 2000])
def test_a_look_costs_the_same_however_many_names_were_used(redis_alone: Server, used: int) -> None:
    """Of the page's poller it is the same call."""
    with fairlock.connect(redis_alone.url) as locks, fairlock.connect(redis_alone.url) as looking:
        for number in range(used):
            with locks.lock(f"order:{number}"):
                pass
        held = [locks.lock(f"order:{number}").acquire() for number in range(50)]
        assert len(names(locks)) == 50
        looking.snapshot()  # the server has the scripts now
        found: list[str] = []
        assert redis_alone.count_commands(lambda: found.extend(names(looking))) <= 3
        assert len(found) == 50
        assert all(held)


def test_all_names_are_read_in_pages(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url) as locks:
        for number in range(3000):
            with locks.lock(f"order:{number}"):
                pass
        redis_alone.client.config_resetstat()
        assert len(locks.snapshot(idle=True).resources) == 3000
        stats: dict[str, Any] = redis_alone.client.info("commandstats")
        assert stats["cmdstat_scan"]["calls"] >= 3
        assert stats["cmdstat_evalsha"]["calls"] >= 3000 / 128


def test_in_a_cluster_a_look_is_one_command_for_each_busy_name(redis_cluster: Cluster) -> None:
    with fairlock.connect(redis_cluster.url) as locks, fairlock.connect(redis_cluster.url, namespace="n") as other:
        held = [locks.lock(f"{{order}}:{number}").acquire() for number in range(20)]
        with other.lock("x"), locks.lock("used"):
            pass
        with other.lock("x"):
            assert len(names(locks)) == 20
            assert names(other) == ["x"]
            assert len(locks.snapshot(namespaces=True).resources) == 21
        every = locks.snapshot(idle=True, namespaces=True).resources
        assert len(every) == 22
        assert {one.namespace for one in every} == {"", "n"}
        assert all(held)


def test_an_index_that_another_program_has_overwritten_hides_nothing_and_is_made_again(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url) as locks, fairlock.connect(redis_alone.url) as looking:
        with locks.lock("held"):
            redis_alone.client.set(BUSY, "garbage")
            assert names(looking) == ["held"]
            assert any(
                "was overwritten by another program" in text for _, text in run(looking._session.backend.doctor())
            )
            until(lambda: redis_alone.client.type(BUSY) in ("zset", b"zset"), "its keeper writes it")
            assert names(looking) == ["held"]


def test_audit_lines_that_another_program_has_overwritten_begin_again(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url) as locks, locks.lock("x"):
        locks.ask("x", reason="before")
        redis_alone.client.set("fairlock:{x}:audit", "garbage")
        assert locks.audit("x") == ()
        locks.ask("x", reason="after")
        assert [line.reason for line in locks.audit("x")] == ["after"]
