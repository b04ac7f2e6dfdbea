"""The lease of an item: renewal, loss, and lost replies."""

import asyncio

import pytest

from ...engine.grant_state import GrantState
from ...errors import ConfigError, LeaseLost, NotHeld, StoreError
from ..faults import Faults, everywhere
from ..harness import Harness
from .parametrize import PoolBehaviours, add_and_get, get, pool_with


class TestItemLeases(PoolBehaviours):
    async def test_an_item_renews_itself(self, harness: Harness) -> None:
        item = await add_and_get(harness.connect().pool("jobs", lease=1.5))
        await harness.pass_time(2.5)
        assert item.held
        assert await harness.connect().pool("jobs").acquire(False) is None
        await item.done()

    async def test_an_item_that_is_not_renewed_is_anybodys_after_its_lease(self, harness: Harness) -> None:
        item = await add_and_get(harness.connect().pool("jobs", lease=0.6), renew=False)
        await harness.pass_time(0.65)
        assert item.lost
        assert item.reason == "expired"
        later = await get(harness.connect().pool("jobs"), blocking=False)
        assert later.fence > item.fence
        with pytest.raises(LeaseLost):
            await item.update(1)
        with pytest.raises(LeaseLost):
            await item.done()
        assert later.held

    async def test_what_was_given_back_cannot_be_finished_or_removed(self, harness: Harness) -> None:
        client = harness.connect()
        jobs = await pool_with(client, "a")
        item = await get(jobs)
        await item.release()
        await item.release()
        for finish in (item.done, item.delete):
            with pytest.raises(NotHeld, match=r"^'a' of 'jobs' was given back, so it cannot be (finished|removed)\."):
                await finish()
        closed = await get(jobs)
        await client.close()
        with pytest.raises(NotHeld, match="given back"):
            await closed.done()
        assert (await harness.connect().pool("jobs").counts()).free == 1

    async def test_a_lost_item_cannot_be_finished_however_often(self, harness: Harness) -> None:
        item = await add_and_get(harness.connect().pool("jobs", lease=0.5), renew=False)
        await harness.pass_time(0.55)
        assert item.lost
        for _ in range(2):
            with pytest.raises(LeaseLost):
                await item.done()

    async def test_an_item_that_is_renewed_by_hand_is_kept(self, harness: Harness) -> None:
        jobs = harness.connect().pool("jobs", lease=harness.short_lease)
        item = await add_and_get(jobs, renew=False)
        for number in range(4):
            await harness.pass_time(harness.short_lease / 3)
            await (item.renew() if number % 2 else item.update(number))
        assert item.held
        await item.done()
        assert (await jobs.counts()).done == 1

    @pytest.mark.parametrize("renew", [True, False])
    async def test_an_extended_item_lasts_without_its_client(self, harness: Harness, renew: bool) -> None:
        faults = Faults()
        jobs = harness.connect(faults=faults).pool("jobs", lease=0.5)
        item = await add_and_get(jobs, renew=renew)
        await item.extend(3)
        assert 2 < item.remaining() <= 3
        faults.cut = True
        await harness.pass_time(1)
        assert item.held
        assert await harness.connect().pool("jobs").acquire(False) is None
        faults.over()
        await item.done()
        assert (await jobs.counts()).done == 1

    async def test_an_extended_item_is_renewed_at_its_new_length_and_never_becomes_shorter(
        self, harness: Harness
    ) -> None:
        jobs = await pool_with(harness.connect(), "a", "b", lease=0.5)
        item = await get(jobs)
        await item.extend(20)
        await item.extend(1)
        await item.update({"step": 1})
        assert item.remaining() > 15
        await item.release()
        other = await get(jobs)
        await other.renew()
        assert other.remaining() <= 0.5, "each has a lease of its own"

    async def test_an_item_that_is_not_held_is_not_extended(self, harness: Harness) -> None:
        jobs = await pool_with(harness.connect(), "a", "b", lease=0.5)
        lost, given = await get(jobs, renew=False), await get(jobs, renew=False)
        for bad in (0, -1, 0.1, "3"):
            with pytest.raises(ConfigError):
                await lost.extend(bad)  # type: ignore[arg-type]
        await given.release()
        with pytest.raises(NotHeld):
            await given.extend(3)
        await harness.pass_time(0.55)
        with pytest.raises(LeaseLost):
            await lost.extend(3)

    async def test_a_loss_is_known_before_another_worker_has_it(self, harness: Harness) -> None:
        faults = Faults()
        item = await add_and_get(harness.connect(faults=faults).pool("jobs", lease=0.6))
        other = harness.connect().pool("jobs")
        faults.cut = True
        waiting = harness.go(get(other))
        lost_first = False
        for _ in range(80):
            await harness.pass_time(0.01)
            had = waiting.done
            lost_first = lost_first or (item.lost and not had)
            if had:
                break
        assert lost_first
        assert (await waiting.result(within=0.2)).fence > item.fence
        assert item.reason in ("unreachable", "expired")
        with pytest.raises(LeaseLost):
            await item.done()

    async def test_what_was_done_so_far_is_there_for_the_next(self, harness: Harness) -> None:
        item = await add_and_get(harness.connect().pool("jobs", lease=0.5), {"step": 0}, renew=False)
        await item.update({"step": 3})
        await harness.pass_time(0.55)
        assert (await get(harness.connect().pool("jobs"))).body == {"step": 3}

    async def test_a_late_worker_cannot_change_the_item_of_another(self, harness: Harness) -> None:
        """Fences are for that: the store itself refuses, whatever the late one believes."""
        faults = Faults()
        jobs = harness.connect(faults=faults).pool("jobs", lease=0.5)
        item = await add_and_get(jobs, 1, renew=False)
        await harness.pass_time(0.5)
        later = await get(harness.connect().pool("jobs"), blocking=False)
        item._reason = ""
        item._grant.state, item._grant.loss = GrantState.HELD, None
        item._grant.deadline = float("inf")
        with pytest.raises(LeaseLost):
            await item.done(body="late")
        assert later.held
        (seen,) = await jobs.items()
        assert (seen.state, seen.body, seen.fence) == ("taken", 1, later.fence)

    async def test_a_loss_in_a_clean_body_is_raised_and_else_noted(self, harness: Harness) -> None:
        jobs = await pool_with(harness.connect(), "a", "b", lease=0.5)
        if harness.face == "threads":
            with pytest.raises(LeaseLost, match="'a' of 'jobs'"):
                async with jobs.hold(renew=False):
                    await harness.pass_time(0.55)
            with pytest.raises(ZeroDivisionError) as caught:
                async with jobs.hold(renew=False):
                    await harness.pass_time(0.55)
                    raise ZeroDivisionError
            assert "was lost" in caught.value.__notes__[0]
            return

        async def work() -> None:
            async with jobs.hold(renew=False):
                await asyncio.sleep(30)

        working = harness.go(work())
        await harness.pass_time(0.55)
        with pytest.raises(LeaseLost, match="'a' of 'jobs'"):
            await working.result()


class TestLostRepliesOfPools(PoolBehaviours):
    @pytest.mark.parametrize("fault", ["before", "after", "slow"])
    async def test_one_seek_takes_one_item_whatever_happens_to_its_messages(self, harness: Harness, fault: str) -> None:
        faults = Faults(fault, on="Seek")
        await harness.connect().pool("jobs").add_many(["a", "b"])
        jobs = harness.connect(faults=faults).pool("jobs")
        item = await harness.go(get(jobs)).result(within=2)
        assert item.key == "a"
        assert (await jobs.counts()).taken == 1
        await item.done()

    @pytest.mark.parametrize("fault", ["before", "after", "slow", "twice"])
    async def test_a_request_about_an_item_is_done_once(self, harness: Harness, fault: str) -> None:
        await harness.connect().pool("jobs").add_many(["a", "b", "c"])
        faults = Faults(*[fault] * 3, on={"Give", "Finish", "Touch"})
        jobs = harness.connect(faults=faults).pool("jobs")
        first, second, third = await get(jobs), await get(jobs), await get(jobs)
        for letting_go in (first.done(1), second.release(2), third.update(3)):
            await harness.go(letting_go).result(within=1)
        assert [(i.state, i.body) for i in await jobs.items()] == [("done", 1), ("free", 2), ("taken", 3)]
        assert not first.lost
        assert not second.lost
        assert third.held

    @pytest.mark.parametrize("end", ["done", "delete"])
    @pytest.mark.parametrize("fault", [None, "before"])
    async def test_an_end_that_comes_after_another_worker_took_the_item_is_a_loss(
        self, harness: Harness, end: str, fault: str | None
    ) -> None:
        """Or both would report the item as done."""
        await harness.connect().pool("jobs").add("a")
        faults = Faults(fault, on={"Finish", "Remove"})
        item = await get(harness.connect(faults=faults).pool("jobs", lease=0.6), renew=False)
        faults.hang = True
        ending = harness.go(getattr(item, end)())
        await harness.pass_time(0.65)
        later = await get(harness.connect().pool("jobs"), blocking=False)
        faults.hang = False
        with pytest.raises(LeaseLost):
            await ending.result(within=2)
        await later.done()

    async def test_a_waiter_gets_an_added_item_although_no_wakeup_arrives(self, harness: Harness) -> None:
        faults = Faults()
        jobs = harness.connect(faults=faults).pool("jobs")
        faults.unreachable = True
        waiting = await harness.queue_up_for_item(get(jobs))
        await harness.connect().pool("jobs").add("a")
        assert (await waiting.result(within=2.1)).key == "a"

    async def test_a_store_that_is_down_is_reported_and_nothing_is_lost(self, harness: Harness) -> None:
        faults = Faults()
        jobs = harness.connect(faults=faults).pool("jobs", lease=30)
        item = await add_and_get(jobs)
        faults.cut = True
        for asking in (jobs.add("b"), jobs.acquire(False), item.update(1)):
            with pytest.raises(StoreError):
                await asking
        assert item.held
        with pytest.raises(StoreError):
            await item.done(body="done")
        faults.cut = False
        await harness.pass_time(1.5)
        (seen,) = await harness.connect().pool("jobs").items()
        assert (seen.state, seen.body) == ("done", "done"), "the keeper has sent it"

    async def test_a_waiter_that_gives_up_while_the_store_is_silent_leaves_nothing(self, harness: Harness) -> None:
        for script in everywhere(("before", "after"), 3):
            faults = Faults(*script, on={"Seek", "Quit"})
            jobs = harness.connect(faults=faults).pool("jobs")
            waiting = harness.go(jobs.acquire(timeout=0.3))
            try:
                assert await waiting.result(within=1.5) is None
            except StoreError:
                pass  # the time was over before it could be sent again
        await harness.pass_time(1.1)  # the keepers send what is left to send
        await harness.workers("jobs", 0)
        jobs = await pool_with(harness.connect(), "a")
        assert (await get(jobs, blocking=False)).key == "a"
