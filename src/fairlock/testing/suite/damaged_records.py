"""One record or item is unreadable: only that name is affected, and a repair resets it."""

import pytest

from ...errors import LeaseLost, RecordDamaged
from ..damage_records import damage
from ..harness import Harness
from .parametrize import Behaviours, PoolBehaviours, get, pool_with, take


class TestDamagedRecords(Behaviours):
    async def test_a_damaged_record_costs_one_name(self, harness: Harness) -> None:
        mine, other = harness.connect(), harness.connect()
        good, bad = await take(mine.lock("good")), await take(mine.lock("bad"))
        await damage(harness, "bad")
        with pytest.raises(RecordDamaged, match=r"is damaged.*`fairlock doctor --repair bad` resets it") as caught:
            await other.lock("bad").acquire(timeout=5)
        assert caught.value.name == "bad"
        found = {resource.name: resource.kind for resource in (await harness.snapshot()).resources}
        assert found == {"good": "lock", "bad": "damaged"}
        with pytest.raises(LeaseLost):
            await bad.renew()
        await good.renew()
        assert (good.held, bad.lost) == (True, True)
        await mine.close()
        assert await other.lock("good").acquire(False)

    async def test_a_client_that_is_closed_before_it_noticed_the_damage_raises_nothing(self, harness: Harness) -> None:
        mine, other = harness.connect(), harness.connect()
        await take(mine.lock("bad"))
        await take(mine.lock("good"))
        await damage(harness, "bad")
        await mine.close()
        assert await other.lock("good").acquire(False)

    async def test_a_repaired_name_is_free_and_its_fences_rise(self, harness: Harness) -> None:
        locks = harness.connect()
        fence = (await take(harness.connect().lock("bad"))).fence
        assert await locks.repair("bad") == (), "nothing was damaged"
        await damage(harness, "bad")
        assert len(await locks.repair("bad")) == 1
        assert await locks.repair("bad") == ()
        again = await take(locks.lock("bad"))
        assert again.fence > fence
        await again.release()


class TestDamagedItems(PoolBehaviours):
    async def test_a_damaged_item_costs_that_item(self, harness: Harness) -> None:
        mine, other = harness.connect(), harness.connect()
        jobs = other.pool("jobs")
        await jobs.add_many({"a": 1, "b": 2, "c": 3, "d": 4})
        taken = await get(mine.pool("jobs"), key="c")
        await damage(harness, "jobs", "a")
        sound = [await get(jobs, blocking=False) for _ in range(2)]
        assert sorted((item.key, item.body) for item in sound) == [("b", 2), ("d", 4)]
        states = {item.key: item.state for item in await jobs.items()}
        assert states == {"a": "damaged", "b": "taken", "c": "taken", "d": "taken"}
        assert await jobs.acquire(False) is None
        counts = await jobs.counts()  # by columns, without a look at checksums
        assert counts.taken == 3
        assert counts.free <= 1
        with pytest.raises(RecordDamaged, match=r"the pool 'jobs'.* is damaged"):
            await jobs.acquire(False, key="a")
        await taken.renew()
        await mine.close()

    async def test_a_repaired_item_is_no_longer_in_the_way(self, harness: Harness) -> None:
        locks = harness.connect()
        jobs = await pool_with(locks, "a", "b")
        first = await get(jobs, key="a")
        await first.release()
        assert await locks.repair("jobs") == (), "nothing was damaged"
        await damage(harness, "jobs", "a")
        (sentence,) = await locks.repair("jobs")
        assert "'a'" in sentence
        assert await locks.repair("jobs") == ()
        assert "damaged" not in {item.state for item in await jobs.items()}
        await jobs.remove("a")
        await harness.pass_time(0.001)  # fences of what was removed go on by the clock
        assert await jobs.add("a")
        assert (await get(jobs, key="a")).fence > first.fence
