"""Workers that wait for an item: they are woken at once, in the order in which they asked, and leave nothing behind."""

import pytest

from ...errors import ConfigError
from ..harness import Harness
from .parametrize import PoolBehaviours, add_and_get, get

any_or_named = pytest.mark.parametrize("key", [None, "a"])


class TestWaitingForItems(PoolBehaviours):
    async def test_a_waiter_gets_an_item_that_is_added(self, harness: Harness) -> None:
        waiting = await harness.queue_up_for_item(get(harness.connect().pool("jobs")))
        assert not waiting.done
        jobs = harness.connect().pool("jobs")
        await jobs.counts()  # it is connected now, which takes long where there are many servers
        begun = harness.time()
        await jobs.add("a", 7)
        item = await waiting.result()
        assert (item.key, item.body, item.held) == ("a", 7, True)
        assert harness.time() - begun < 0.5, "woken, and not only by looking again"
        await harness.workers("jobs", 0)

    @any_or_named
    async def test_a_waiter_gets_an_item_that_is_given_back(self, harness: Harness, key: str | None) -> None:
        jobs = harness.connect().pool("jobs")
        item = await add_and_get(jobs)
        if key is not None:
            await jobs.add("free, and not waited for")
        waiting = await harness.queue_up_for_item(get(harness.connect().pool("jobs"), key=key), named=key is not None)
        begun = harness.time()
        await item.release()
        assert (await waiting.result()).fence > item.fence
        assert harness.time() - begun < 0.9

    @any_or_named
    async def test_a_waiter_gets_an_item_when_it_expires(self, harness: Harness, key: str | None) -> None:
        item = await add_and_get(harness.connect().pool("jobs", lease=1.5), renew=False)
        begun = harness.time()
        waiting = await harness.queue_up_for_item(get(harness.connect().pool("jobs"), key=key), named=key is not None)
        later = await waiting.result(within=1.52)
        assert later.fence > item.fence
        assert 1.4 < harness.time() - begun < 2.2

    async def test_a_waiter_gets_an_item_when_it_has_rested(self, harness: Harness) -> None:
        item = await add_and_get(harness.connect().pool("jobs"))
        waiting = await harness.queue_up_for_item(get(harness.connect().pool("jobs")))
        begun = harness.time()
        await item.release(after=0.4)
        assert (await waiting.result(within=0.42)).key == "a"
        assert 0.38 <= harness.time() - begun < 0.9  # the store's clock counts the pause, and ours is another one

    @any_or_named
    async def test_a_wait_that_is_too_long_gives_none_and_leaves_nothing(
        self, harness: Harness, key: str | None
    ) -> None:
        jobs = harness.connect().pool("jobs")
        begun = harness.time()
        waiting = harness.go(jobs.acquire(timeout=0.3, key=key))
        assert await waiting.result(within=0.301) is None
        assert 0.3 <= harness.time() - begun < 1
        await harness.workers("jobs", 0, named=key is not None)
        await jobs.add("a")
        assert (await get(jobs, blocking=False)).key == "a"

    async def test_waiting_workers_get_items_in_the_order_in_which_they_asked(self, harness: Harness) -> None:
        served: list[int] = []

        async def work(number: int) -> None:
            item = await get(harness.connect().pool("jobs"))
            served.append(number)
            await item.done()

        waiting = []
        for number in range(6):
            waiting.append(await harness.queue_up_for_item(work(number), number + 1))
        jobs = harness.connect().pool("jobs")
        for number in range(6):
            await jobs.add(f"job {number}")
            await waiting[number].result()
            assert served == list(range(number + 1))

    async def test_many_added_at_once_reach_all_waiters(self, harness: Harness) -> None:
        waiting = []
        for number in range(4):
            waiting.append(await harness.queue_up_for_item(get(harness.connect().pool("jobs")), number + 1))
        begun = harness.time()
        await harness.connect().pool("jobs").add_many(["a", "b", "c", "d"])
        assert [(await each.result()).key for each in waiting] == ["a", "b", "c", "d"]
        assert harness.time() - begun < 1.9  # less than the window in which a hand-over is confirmed

    async def test_threads_or_tasks_of_one_client_wait_side_by_side(self, harness: Harness) -> None:
        jobs = harness.connect().pool("jobs")
        waiting = []
        for number in range(3):
            waiting.append(await harness.queue_up_for_item(get(jobs), number + 1))
        await harness.connect().pool("jobs").add_many(["a", "b", "c"])
        assert [(await each.result()).key for each in waiting] == ["a", "b", "c"]

    async def test_a_newcomer_does_not_pass_the_waiters(self, harness: Harness) -> None:
        await add_and_get(harness.connect().pool("jobs", lease=1.5), renew=False)
        first = harness.connect()
        waiting = await harness.queue_up_for_item(get(first.pool("jobs")))
        if harness.manual_clock is not None:
            harness.manual_clock.jump(1.5)  # it has expired, and nobody has noticed yet
            assert await harness.connect().pool("jobs").acquire(False) is None
        assert (await waiting.result(within=3.0)).key == "a"

    async def test_a_waiter_that_gives_up_makes_room_for_the_next(self, harness: Harness) -> None:
        first = await harness.queue_up_for_item(harness.connect().pool("jobs").acquire(timeout=0.8))
        second = await harness.queue_up_for_item(get(harness.connect().pool("jobs")), 2)
        assert await first.result(within=0.801) is None
        await harness.workers("jobs", 1)
        await harness.connect().pool("jobs").add("a")
        assert (await second.result()).key == "a"

    async def test_a_client_that_is_closed_waits_no_more(self, harness: Harness) -> None:
        client = harness.connect()
        await client.pool("jobs").add("a")
        item = await get(client.pool("jobs"))
        await client.close()
        assert not item.held
        assert (await get(harness.connect().pool("jobs"), blocking=False)).key == "a"
        with pytest.raises(ConfigError, match="closed"):
            await client.pool("jobs").acquire(False)


class TestWaitingForANamedItem(PoolBehaviours):
    async def test_it_is_waited_for_before_it_is_there(self, harness: Harness) -> None:
        waiting = await harness.queue_up_for_item(get(harness.connect().pool("jobs"), key="b"), named=True)
        begun = harness.time()
        await harness.connect().pool("jobs").add_many(["a", "b"])
        assert (await waiting.result()).key == "b"
        assert harness.time() - begun < 0.5
        assert (await harness.connect().pool("jobs").items("free"))[0].key == "a"

    async def test_it_is_waited_for_no_more_when_it_is_done(self, harness: Harness) -> None:
        item = await add_and_get(harness.connect().pool("jobs"))
        waiting = await harness.queue_up_for_item(get(harness.connect().pool("jobs"), key="a"), named=True)
        await item.done()
        with pytest.raises(ConfigError, match="is done"):
            await waiting.result()


class TestCancelledWorkers(PoolBehaviours):
    async def test_a_cancelled_worker_leaves_nothing(self, harness: Harness) -> None:
        if harness.face == "threads":
            pytest.skip("threads are not cancelled")
        jobs = harness.connect().pool("jobs")
        waiting = await harness.queue_up_for_item(jobs.acquire())
        waiting.cancel()
        await harness.workers("jobs", 0)
        await jobs.add("a")
        assert (await get(jobs, blocking=False)).key == "a"
