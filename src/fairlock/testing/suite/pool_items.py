"""The items of a pool: adding, taking, giving back, finishing, removing, listing."""

import math
from datetime import timedelta
from typing import Any

import pytest

from ...errors import ConfigError, LeaseLost, LockTimeout, NotHeld
from ..harness import Harness
from .parametrize import PoolBehaviours, add_and_get, enter_and_leave, get, pool_with
from .validation import BAD_NAMES, GOOD_NAMES

BODIES: list[Any] = [None, True, 0, -1.5, "", "ö\n\0\"'🔒", [], {}, {"a": [1, {"b": None}]}, "x" * 65_000, 2**60]


class TestItems(PoolBehaviours):
    async def test_what_was_added_can_be_had_in_its_order(self, harness: Harness) -> None:
        jobs = harness.connect().pool("jobs")
        assert await jobs.add("c", {"n": 1}) is True
        await harness.pass_time(0.001)
        assert await jobs.add_many({"a": 2, "b": None}) == 2
        found = [await get(jobs) for _ in range(3)]
        assert [(item.key, item.body) for item in found] == [("c", {"n": 1}), ("a", 2), ("b", None)]
        assert await jobs.acquire(False) is None

    async def test_many_are_had_in_the_order_of_their_adding(self, harness: Harness) -> None:
        jobs = harness.connect().pool("jobs")
        keys = [f"{n * 7919 % 211:03}" for n in range(211)]  # more than are added in one step
        assert await jobs.add_many(keys) == 211
        assert [(await get(jobs)).key for _ in range(211)] == keys

    async def test_what_is_there_is_not_added_again(self, harness: Harness) -> None:
        jobs = harness.connect().pool("jobs")
        await jobs.add("a", 1)
        assert await jobs.add("a", 2) is False
        assert await jobs.add_many([("a", 3), ("b", 4), ("b", 5)]) == 1
        assert {item.key: item.body for item in await jobs.items()} == {"a": 1, "b": 4}
        await (await get(jobs, key="a")).done()
        assert await jobs.add("a", 3) is False

    async def test_an_item_has_the_fields_of_its_row(self, harness: Harness) -> None:
        jobs = harness.connect(owner="me").pool("jobs", lease=30)
        item = await add_and_get(jobs, {"n": 1})
        assert (item.name, item.key, item.body, item.owner) == ("jobs", "a", {"n": 1}, "me")
        assert (item.held, item.lost, item.reason) == (True, False, None)
        assert item.fence > 0
        assert 0 < item.remaining() <= 30
        assert bool(item)
        assert "'a' of 'jobs'" in repr(item)

    async def test_two_never_have_the_same_item(self, harness: Harness) -> None:
        mine, theirs = harness.connect().pool("jobs"), harness.connect().pool("jobs")
        await mine.add_many(["a", "b", "c"])
        found = {(await get(pool)).key for pool in (mine, theirs, mine)}
        assert found == {"a", "b", "c"}
        assert await theirs.acquire(False) is None

    async def test_what_is_given_back_goes_behind_what_waits(self, harness: Harness) -> None:
        jobs = await pool_with(harness.connect(), "a", "b")
        item = await get(jobs)
        await item.release(body="tried")
        assert not item.held
        assert not item.lost
        assert [(await get(jobs)).key for _ in range(2)] == ["b", "a"]
        assert [i.body for i in await jobs.items()] == ["tried", None]

    async def test_every_take_has_a_greater_fence(self, harness: Harness) -> None:
        jobs = await pool_with(harness.connect(), "a")
        fences = []
        for _ in range(4):
            item = await get(jobs)
            fences.append(item.fence)
            await item.release()
        assert fences == sorted(set(fences))

    async def test_what_is_done_is_not_had_again(self, harness: Harness) -> None:
        jobs = harness.connect(owner="me").pool("jobs")
        item = await add_and_get(jobs, 1)
        await item.done(body={"result": 2})
        assert await jobs.acquire(False) is None
        (seen,) = await jobs.items("done")
        assert (seen.key, seen.state, seen.body) == ("a", "done", {"result": 2})
        assert (seen.owner, seen.fence) == ("me", item.fence)
        assert seen.due_in < 0

    async def test_what_rests_is_had_after_that(self, harness: Harness) -> None:
        jobs = await pool_with(harness.connect(), "a")
        await (await get(jobs)).release(after=30)
        assert await jobs.acquire(False) is None
        (seen,) = await jobs.items("resting")
        assert 20 < seen.due_in <= 30
        await jobs.add("b")
        await (await get(jobs)).release(after=0.3)
        await harness.pass_time(0.3)
        assert (await get(jobs, blocking=False)).key == "b"

    async def test_what_is_deleted_is_gone(self, harness: Harness) -> None:
        jobs = harness.connect().pool("jobs")
        item = await add_and_get(jobs)
        await item.delete()
        assert await jobs.items() == []
        assert await jobs.add("a") is True

    async def test_letting_go_twice_does_nothing_and_no_other_end_takes_its_place(self, harness: Harness) -> None:
        jobs = await pool_with(harness.connect(), "a", "b")
        item = await get(jobs)
        await item.done()
        await item.done()
        await item.release()  # try: … done() … finally: release()
        with pytest.raises(NotHeld, match="'a' of 'jobs' was finished, so it cannot be removed"):
            await item.delete()
        with pytest.raises(NotHeld, match="'a' of 'jobs' was released"):
            item.ensure_held()
        with pytest.raises(NotHeld):
            await item.update(1)
        assert (await jobs.counts()).done == 1

    async def test_a_body_is_stored_while_the_work_continues(self, harness: Harness) -> None:
        jobs = harness.connect().pool("jobs")
        item = await add_and_get(jobs, {"step": 0})
        await item.update({"step": 1})
        assert item.body == {"step": 1}
        item.body["step"] = 7
        assert item.body == {"step": 1}
        assert (await jobs.items())[0].body == {"step": 1}

    @pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body)[:12])
    async def test_every_body_comes_back_as_it_was(self, harness: Harness, body: Any) -> None:
        jobs = harness.connect().pool("jobs")
        await jobs.add("a", body)
        assert (await get(jobs)).body == body
        assert (await jobs.items())[0].body == body

    async def test_pools_are_apart_and_so_are_namespaces_and_locks(self, harness: Harness) -> None:
        client = harness.connect()
        await client.pool("a").add("x")
        assert await client.pool("b").acquire(False) is None
        assert await harness.connect(namespace="n").pool("a").acquire(False) is None
        assert await client.lock("a").acquire(False)
        assert (await get(client.pool("a"))).key == "x"
        found = (await harness.snapshot()).resources
        assert sorted((r.name, r.kind) for r in found) == [("a", "lock"), ("a", "pool")]


class TestNamedItems(PoolBehaviours):
    async def test_one_of_many_can_be_had_by_its_name(self, harness: Harness) -> None:
        jobs = await pool_with(harness.connect(), "a", "b", "c")
        assert (await get(jobs, key="b")).key == "b"
        assert await jobs.acquire(False, key="b") is None
        assert [(await get(jobs)).key for _ in range(2)] == ["a", "c"]

    async def test_one_that_is_not_there_is_not_had(self, harness: Harness) -> None:
        assert await harness.connect().pool("jobs").acquire(False, key="a") is None

    async def test_a_done_item_is_an_error(self, harness: Harness) -> None:
        jobs = await pool_with(harness.connect(), "a")
        await (await get(jobs)).done()
        for limit in (0, None):
            with pytest.raises(ConfigError, match="'a' of 'jobs' is done"):
                await jobs.acquire(timeout=limit, key="a")

    async def test_a_hold_of_a_taken_item_names_its_worker(self, harness: Harness) -> None:
        jobs = harness.connect(owner="web-3").pool("jobs")
        await add_and_get(jobs)
        with pytest.raises(LockTimeout, match=r"'a' of 'jobs' could not be acquired \(taken by web-3\)\.$"):
            await enter_and_leave(jobs.hold(key="a", timeout=0))
        with pytest.raises(LockTimeout, match="it is not there"):
            await enter_and_leave(jobs.hold(key="b", timeout=0))


class TestHoldingItems(PoolBehaviours):
    async def test_a_clean_body_finishes_it_if_asked_to(self, harness: Harness) -> None:
        jobs = harness.connect().pool("jobs")
        await jobs.add("a", 1)
        async with jobs.hold(finish=True) as item:
            assert (item.key, item.body, item.held) == ("a", 1, True)
        assert not item.held
        assert await jobs.counts() == (0, 0, 0, 0, 1)

    async def test_a_clean_body_gives_it_back_if_not(self, harness: Harness) -> None:
        gpus = harness.connect().pool("gpus")
        await gpus.add("gpu0")
        for _ in range(2):
            async with gpus.hold() as item:
                assert item.key == "gpu0"
        async with await get(gpus) as item:
            assert item.held
        assert await gpus.counts() == (1, 0, 0, 0, 0)

    async def test_a_body_that_raises_gives_it_back_for_later(self, harness: Harness) -> None:
        jobs = await pool_with(harness.connect(), "a")
        with pytest.raises(ZeroDivisionError):
            async with jobs.hold(finish=True, back_off=0.3):
                raise ZeroDivisionError
        assert await jobs.counts() == (0, 1, 0, 0, 0)
        await harness.pass_time(0.3)
        with pytest.raises(ZeroDivisionError):
            async with jobs.hold(finish=True):
                raise ZeroDivisionError
        (seen,) = await jobs.items()
        assert 4 < seen.due_in <= 5

    async def test_an_item_that_the_body_has_released_stays_released(self, harness: Harness) -> None:
        jobs = await pool_with(harness.connect(), "a", "b")
        async with jobs.hold(finish=True) as item:
            await item.release(after=60)
        async with jobs.hold() as item:
            await item.done()
        assert [i.state for i in await jobs.items()] == ["resting", "done"]

    async def test_a_hold_is_for_one_use(self, harness: Harness) -> None:
        jobs = await pool_with(harness.connect(), "a")
        holding = jobs.hold()
        await enter_and_leave(holding)
        with pytest.raises(RuntimeError, match="one use"):
            await enter_and_leave(holding)

    async def test_a_hold_that_finds_nothing_counts_the_items(self, harness: Harness) -> None:
        jobs = harness.connect().pool("jobs")
        with pytest.raises(LockTimeout, match=r"No item of 'jobs' is free \(the pool is empty\)\.$"):
            await enter_and_leave(jobs.hold(timeout=0))
        await jobs.add_many(["a", "b"])
        await get(jobs)
        await (await get(jobs)).done()
        waiting = harness.go(enter_and_leave(jobs.hold(timeout=0.2)))
        with pytest.raises(LockTimeout) as caught:
            await waiting.result(within=0.201)
        text = "No item of 'jobs' is free (1 taken, 1 done); you waited 0.2 s, position 1 in the queue."
        assert str(caught.value) == text
        assert (caught.value.name, caught.value.place, caught.value.waited) == ("jobs", 1, 0.2)


class TestListingItems(PoolBehaviours):
    async def test_every_state_is_shown_and_counted(self, harness: Harness) -> None:
        client = harness.connect(owner="me")
        jobs, short = client.pool("jobs", lease=60), client.pool("jobs", lease=0.5)
        await jobs.add_many(["a", "b", "c", "d", "e"])
        await get(short, key="a", renew=False)
        await (await get(jobs, key="b")).done()
        await (await get(jobs, key="c")).release(after=60)
        await get(jobs, key="d")
        await harness.pass_time(0.5)
        states = {item.key: item.state for item in await jobs.items()}
        assert states == {"a": "expired", "b": "done", "c": "resting", "d": "taken", "e": "free"}
        assert await jobs.counts() == (1, 1, 1, 1, 1)
        for key, state in states.items():
            (found,) = await jobs.items(state=state)
            assert found.key == key
        (taken,) = await jobs.items("taken")
        assert taken.owner == "me"
        assert 50 < taken.due_in <= 60

    async def test_an_empty_pool_is_empty(self, harness: Harness) -> None:
        jobs = harness.connect().pool("jobs")
        assert await jobs.items() == []
        assert await jobs.counts() == (0, 0, 0, 0, 0)

    async def test_an_unknown_state_is_an_error(self, harness: Harness) -> None:
        with pytest.raises(ConfigError, match="one of free, resting, taken, expired, done, not 'lost'"):
            await harness.connect().pool("jobs").items("lost")


class TestRemovingItems(PoolBehaviours):
    async def test_a_free_item_can_be_removed(self, harness: Harness) -> None:
        jobs = await pool_with(harness.connect(), "a", "b")
        await (await get(jobs)).done()
        assert [await jobs.remove(key) for key in ("a", "b", "b", "c")] == [True, True, False, False]
        assert await jobs.items() == []

    async def test_a_taken_item_is_removed_only_by_force_and_its_worker_learns_of_it(self, harness: Harness) -> None:
        jobs = harness.connect().pool("jobs", lease=30)
        item = await add_and_get(jobs)
        with pytest.raises(ConfigError, match=r"'a' of 'jobs' is taken for another \d+ s"):
            await jobs.remove("a")
        assert await jobs.remove("a", force=True) is True
        with pytest.raises(LeaseLost, match="'a' of 'jobs' was lost"):
            await item.done()
        assert item.lost
        assert await jobs.items() == []


class TestBadItems(PoolBehaviours):
    @pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: repr(name)[:12])
    async def test_a_bad_name_is_refused_before_anything_is_sent(self, harness: Harness, name: str) -> None:
        client = harness.connect()
        with pytest.raises(ConfigError, match="A name"):
            client.pool(name)
        jobs = client.pool("jobs")
        for asking in (jobs.add(name), jobs.add_many(["a", (name, 1)]), jobs.remove(name)):
            with pytest.raises(ConfigError):
                await asking
        if name is not None:
            with pytest.raises(ConfigError, match="A key"):
                await jobs.acquire(False, key=name)
        assert await jobs.items() == []

    async def test_every_good_name_is_a_key_of_its_own(self, harness: Harness) -> None:
        jobs = harness.connect().pool("名前 *")
        assert await jobs.add_many(GOOD_NAMES) == len(GOOD_NAMES)
        assert {(await get(jobs)).key for _ in GOOD_NAMES} == set(GOOD_NAMES)

    @pytest.mark.parametrize(
        "body", [object(), {1, 2}, b"x", math.nan, math.inf, "\ud800", {"a": object()}], ids=lambda body: repr(body)[:9]
    )
    async def test_what_json_cannot_express_is_no_body(self, harness: Harness, body: Any) -> None:
        jobs = harness.connect().pool("jobs")
        await jobs.add("there", 1)
        item = await get(jobs)
        for asking in (jobs.add("a", body), jobs.add_many({"b": 1, "c": body}), item.update(body), item.done(body)):
            with pytest.raises(ConfigError, match="A body is what JSON can say"):
                await asking
        assert item.held
        assert [(i.key, i.body) for i in await jobs.items()] == [("there", 1)]

    async def test_a_body_that_is_too_large_is_an_error_and_nothing_is_lost(self, harness: Harness) -> None:
        jobs = harness.connect().pool("jobs")
        with pytest.raises(ConfigError, match="at most 64 KiB of JSON, this one 65537 bytes"):
            await jobs.add("a", "x" * 65_535)
        assert await jobs.add("a", "x" * 65_534)
        item = await get(jobs)
        with pytest.raises(ConfigError, match="64 KiB"):
            await item.release(body=["x" * 70_000])
        assert item.held

    async def test_bad_durations_and_rows_are_errors(self, harness: Harness) -> None:
        client = harness.connect()
        bad: Any
        for bad in (0, 0.1, -1, "5", True, math.nan, timedelta(0)):
            with pytest.raises(ConfigError):
                client.pool("jobs", lease=bad)
        jobs = await pool_with(client, "a")
        item = await get(jobs)
        for bad in (-1, math.nan, "5", True):
            with pytest.raises(ConfigError):
                await item.release(after=bad)
            with pytest.raises(ConfigError):
                jobs.hold(back_off=bad)
        for rows in ("abc", [1], [("a", 1, 2)], [None]):
            with pytest.raises(ConfigError, match="add_many"):
                await jobs.add_many(rows)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="does not wait"):
            await jobs.acquire(False, 1)
        assert item.held
