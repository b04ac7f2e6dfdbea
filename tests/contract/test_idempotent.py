"""Idempotency keys and build, on every store and in both faces."""

from typing import Any

import pytest

from fairlock import ConfigError, LeaseLost, aio
from fairlock.recipes import InProgress
from fairlock.recipes.idempotent_base import SWEEP_EVERY
from fairlock.testing.faults import Faults
from fairlock.testing.harness import Harness
from fairlock.testing.suite.parametrize import Behaviours, PoolBehaviours


class Counter:
    """A function whose calls are counted. The first ones fail."""

    def __init__(self, failures: int = 0) -> None:
        self.fences: list[int] = []
        self.failures = failures

    async def __call__(self, lease: aio.Lease) -> Any:
        self.fences.append(lease.fence)
        if len(self.fences) <= self.failures:
            raise ZeroDivisionError
        return {"calls": len(self.fences)}


def counted(counter: Counter) -> Any:
    async def function(lease: aio.Lease) -> Any:
        return await counter(lease)

    return function


class TestIdempotent(PoolBehaviours):
    async def test_a_key_runs_once_and_every_client_gets_its_result(self, harness: Harness) -> None:
        counter = Counter()
        clients = [harness.connect() for _ in range(3)]
        results = [await each.idempotent("pay").run("order", counted(counter)) for each in clients * 2]
        assert results == [{"calls": 1}] * 6
        assert await clients[0].idempotent("pay").run("another", counted(counter)) == {"calls": 2}
        assert await clients[0].idempotent("other").run("order", counted(counter)) == {"calls": 3}

    async def test_a_result_is_what_json_makes_of_it_for_the_first_caller_too(self, harness: Harness) -> None:
        async def pair(lease: aio.Lease) -> tuple[int, None]:
            return 1, None

        async def nothing(lease: aio.Lease) -> None: ...

        keys = harness.connect().idempotent("x")
        assert [await keys.run("pair", pair) for _ in range(2)] == [[1, None]] * 2
        assert [await keys.run("none", nothing) for _ in range(2)] == [None, None]  # type: ignore[func-returns-value]

    async def test_an_exception_is_not_stored(self, harness: Harness) -> None:
        counter = Counter(failures=1)
        keys = harness.connect().idempotent("x")
        with pytest.raises(ZeroDivisionError):
            await keys.run("a", counted(counter))
        assert await keys.run("a", counted(counter)) == {"calls": 2}
        assert counter.fences[0] < counter.fences[1]

    async def test_a_result_that_is_not_json_is_an_error(self, harness: Harness) -> None:
        async def nonsense(lease: aio.Lease) -> object:
            return object()

        with pytest.raises(ConfigError, match="JSON"):
            await harness.connect().idempotent("x").run("a", nonsense)

    async def test_while_one_runs_another_waits_or_is_told(self, harness: Harness) -> None:
        one, two = harness.connect(owner="first"), harness.connect()
        counter = Counter()

        async def inside(lease: aio.Lease) -> Any:
            with pytest.raises(InProgress, match=r"'a' of 'x' is still running.*first"):
                await two_keys.run("a", counted(counter), timeout=0)
            return "first"

        two_keys = two.idempotent("x")
        assert await one.idempotent("x").run("a", inside) == "first"
        assert await two_keys.run("a", counted(counter), timeout=0) == "first"
        assert counter.fences == []

    async def test_those_that_wait_get_the_result(self, harness: Harness) -> None:
        one, two = harness.connect(), harness.connect()
        counter = Counter()
        gate = await harness.connect().lock("idempotent:x:a").acquire()  # as if it were running it
        assert gate is not None
        waiting = [harness.go(each.idempotent("x").run("a", counted(counter))) for each in (one, two, two)]
        await harness.in_queue("idempotent:x:a", 3)
        await gate.release()
        assert [await each.result(within=5) for each in waiting] == [{"calls": 1}] * 3

    async def test_keys_of_any_length_and_sign(self, harness: Harness) -> None:
        keys = harness.connect().idempotent("x")
        counter = Counter()
        for key in ("k" * 500, "k" * 499 + "j", "a\0b", "ä/{}*"):
            await keys.run(key, counted(counter))
        assert await keys.run("k" * 500, counted(counter)) == {"calls": 1}
        assert len(counter.fences) == 4
        with pytest.raises(ConfigError):
            await keys.run("", counted(counter))


class TestIdempotentInTime(PoolBehaviours):
    async def test_a_result_ends_after_keep(self, harness: Harness) -> None:
        one, two = harness.connect(), harness.connect()
        counter = Counter()
        assert await one.idempotent("x").run("a", counted(counter), keep=0.5) == {"calls": 1}
        assert await two.idempotent("x").run("a", counted(counter), keep=0.5) == {"calls": 1}
        await harness.pass_time(0.6)
        assert await two.idempotent("x").run("a", counted(counter)) == {"calls": 2}
        assert await one.idempotent("x").run("a", counted(counter)) == {"calls": 2}

    async def test_results_that_have_ended_are_removed(self, harness: Harness) -> None:
        client = harness.connect()
        keys = client.idempotent("x")
        for number in range(10):
            await keys.run(f"old {number}", counted(Counter()), keep=0.5)
        await harness.pass_time(0.6)
        for number in range(12):
            await keys.run(f"new {number}", counted(Counter()))
        assert {item.key for item in await client.pool("idempotent:x").items()} == {f"new {n}" for n in range(12)}

    async def test_a_result_that_is_there_at_the_end_of_the_timeout_is_returned(self, harness: Harness) -> None:
        """Those that wait read it one by one, and the turn of this one may not come in time."""
        client = harness.connect()
        gate = await client.lock("idempotent:x:a").acquire()
        waiting = harness.go(harness.connect().idempotent("x").run("a", counted(Counter()), timeout=0.5))
        await harness.in_queue("idempotent:x:a", 1)
        await client.pool("idempotent:x").add("a", {"result": "there", "until": 10**18, "fence": 1})
        assert await waiting.result(within=0.6) == "there"
        await gate.release()

    async def test_what_tidies_up_fails_without_harm(self, harness: Harness) -> None:
        keys = harness.connect(faults=Faults("down", on="Seek")).idempotent("x")
        for number in range(SWEEP_EVERY):
            assert await keys.run(f"key {number}", counted(Counter())) == {"calls": 1}

    async def test_after_a_loss_nothing_is_stored(self, harness: Harness) -> None:
        faults = Faults()
        client = harness.connect(faults=faults, lease=0.6)
        sleep = harness.unwrapped(client).session.runtime.sleep

        async def stopped(lease: aio.Lease) -> str:
            faults.cut = True
            try:
                await sleep(1)
            finally:
                faults.over()
            return "too late"

        with pytest.raises(LeaseLost):
            await harness.go(client.idempotent("x").run("a", stopped)).result(within=3)
        assert await harness.connect().idempotent("x").run("a", counted(Counter())) == {"calls": 1}

    async def test_a_value_that_was_built_too_late_is_not_put(self, harness: Harness) -> None:
        faults = Faults()
        client = harness.connect(faults=faults, lease=0.6)
        sleep = harness.unwrapped(client).session.runtime.sleep
        cache: list[int] = []

        async def get() -> int | None:
            return None

        async def make() -> int:
            faults.cut = True
            try:
                await sleep(1)
            finally:
                faults.over()
            return 1

        async def put(value: int) -> None:
            cache.append(value)

        with pytest.raises(LeaseLost):
            await harness.go(client.build("page", get=get, make=make, put=put)).result(within=3)
        assert cache == []


class TestBuild(Behaviours):
    async def test_one_builds_and_the_others_read(self, harness: Harness) -> None:
        clients = [harness.connect() for _ in range(3)]
        cache: dict[str, str] = {}
        made: list[int] = []

        async def get() -> str | None:
            return cache.get("x")

        async def make() -> str:
            made.append(1)
            return "value"

        async def put(value: str) -> None:
            cache["x"] = value

        gate = await harness.connect().lock("page").acquire()
        assert gate is not None
        waiting = [harness.go(each.build("page", get=get, make=make, put=put)) for each in clients]
        await harness.in_queue("page", 3)
        await gate.release()
        assert [await each.result(within=5) for each in waiting] == ["value"] * 3
        assert made == [1]
        assert await clients[1].build("page", get=get, make=make, put=put, timeout=0) == "value"

    async def test_a_value_that_is_there_at_the_end_of_the_timeout_is_returned(self, harness: Harness) -> None:
        cache: list[int] = []

        async def get() -> int | None:
            return cache[0] if cache else None

        async def make() -> int:
            raise AssertionError("another has made it")

        async def put(value: int) -> None: ...

        gate = await harness.connect().lock("page").acquire()
        waiting = harness.go(harness.connect().build("page", get=get, make=make, put=put, timeout=0.5))
        await harness.in_queue("page", 1)
        cache.append(7)
        assert await waiting.result(within=0.6) == 7
        await gate.release()

    async def test_if_the_builder_fails_the_next_one_builds(self, harness: Harness) -> None:
        one, two = harness.connect(), harness.connect()
        cache: list[int] = []

        async def get() -> int | None:
            return cache[0] if cache else None

        async def fail() -> int:
            raise ZeroDivisionError

        async def make() -> int:
            return 0  # a value like any other

        async def put(value: int) -> None:
            cache.append(value)

        with pytest.raises(ZeroDivisionError):
            await one.build("page", get=get, make=fail, put=put)
        assert await two.build("page", get=get, make=make, put=put) == 0
        assert await one.build("page", get=get, make=fail, put=put) == 0
