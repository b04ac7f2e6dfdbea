"""Once per tick, on every store and in both faces."""

import pytest

from fairlock import ConfigError, LeaseLost, aio
from fairlock.testing.faults import Faults
from fairlock.testing.harness import Harness
from fairlock.testing.suite.parametrize import PoolBehaviours

HOUR = 3600  # long enough that no test crosses the end of a tick, but by chance


async def executes(client: aio.Locks, **options: object) -> bool:
    async with client.once("x", **{"every": HOUR, **options}) as turn:  # type: ignore[arg-type]
        return turn is not None


class TestOnce(PoolBehaviours):
    async def test_one_of_all_executes_a_tick(self, harness: Harness) -> None:
        clients = [harness.connect() for _ in range(3)]
        assert [await executes(client) for client in clients * 2] == [True, False, False, False, False, False]

    async def test_while_one_executes_the_others_do_not(self, harness: Harness) -> None:
        one, two = harness.connect(), harness.connect()
        async with one.once("x", every=HOUR) as turn:
            assert turn is not None and turn.fence > 0 and turn.held
            assert not await executes(two)
            assert not await executes(one)
        assert not await executes(two)

    async def test_a_failure_frees_the_tick_for_one_more_try(self, harness: Harness) -> None:
        one, two = harness.connect(), harness.connect()
        fences = []
        for client in (one, two):
            with pytest.raises(ZeroDivisionError):
                async with client.once("x", every=HOUR) as turn:
                    assert turn is not None
                    fences.append(turn.fence)
                    raise ZeroDivisionError
        assert fences[0] < fences[1]
        assert not await executes(one)
        assert not await executes(two)

    async def test_a_decorated_function_returns_none_if_it_is_not_its_turn(self, harness: Harness) -> None:
        client = harness.connect()

        async def report(n: int) -> int:
            return n + 1

        decorated = client.once("x", every=HOUR)(report)
        assert await decorated(1) == 2
        assert await decorated(1) is None

    async def test_names_are_apart(self, harness: Harness) -> None:
        client = harness.connect()
        assert await executes(client)
        async with client.once("y", every=HOUR) as turn:
            assert turn is not None

    async def test_bad_input_is_refused(self, harness: Harness) -> None:
        client = harness.connect()
        bad: list[dict[str, object]] = [
            {}, {"every": 0}, {"every": 1, "cron": "* * * * *"}, {"cron": "sometimes"}, {"every": 1, "tries": 0}
        ]  # fmt: skip
        for options in bad:
            with pytest.raises(ConfigError):
                client.once("x", **options)  # type: ignore[arg-type]


    async def test_another_every_counts_at_once(self, harness: Harness) -> None:
        """And not after the tick of the former one, which may be a month."""
        assert await executes(harness.connect(), every=30 * 24 * HOUR)
        assert await executes(harness.connect())
        assert not await executes(harness.connect())


class TestOnceInTime(PoolBehaviours):
    async def test_a_store_that_is_down_at_the_end_does_not_execute_it_twice(self, harness: Harness) -> None:
        faults = Faults()
        one, two = harness.connect(faults=faults), harness.connect()

        async def works() -> None:
            async with one.once("x", every=HOUR) as turn:
                assert turn is not None
                faults.then("down", "down")

        await harness.go(works()).result(within=1)
        await harness.pass_time(2)
        assert [item.state for item in await two.pool("once:x").items()] == ["free"]
        assert not await executes(two)

    async def test_the_next_tick_is_executed_again(self, harness: Harness) -> None:
        clients = [harness.connect() for _ in range(2)]
        ticks: list[int] = []
        for turn_of in range(60):
            async with clients[turn_of % 2].once("x", every=1) as turn:
                if turn is not None:
                    ticks.append(turn.body["tick"])
            await harness.pass_time(0.05)
        assert len(ticks) >= 3, "of three seconds or more"
        assert len(set(ticks)) == len(ticks), "none of them twice"

    async def test_a_crash_frees_the_tick_when_its_lease_has_ended(self, harness: Harness) -> None:
        faults = Faults()
        one, two = harness.connect(lease=1, faults=faults), harness.connect(lease=1)

        async def dies() -> None:
            async with one.once("x", every=HOUR):
                faults.cut = True  # as if it had died: nothing is renewed any more
                await harness.unwrapped(one).session.runtime.sleep(2)

        dying = harness.go(dies())

        async def begun() -> bool:
            return faults.cut

        await harness.until(begun, "it executes")
        assert not await executes(two)
        with pytest.raises(LeaseLost):
            await dying.result(within=3)
        await harness.pass_time(0.3)
        assert await executes(two)
        assert not await executes(two)
        faults.over()

    async def test_with_a_timeout_it_takes_over_after_a_failure(self, harness: Harness) -> None:
        one, two = harness.connect(), harness.connect()
        entered: list[bool] = []

        async def fails() -> None:
            async with one.once("x", every=HOUR) as turn:
                entered.append(turn is not None)
                await harness.unwrapped(one).session.runtime.sleep(0.3)
                raise ZeroDivisionError

        failing = harness.go(fails())

        async def begun() -> bool:
            return entered == [True]

        await harness.until(begun, "it executes")
        waiting = harness.go(executes(two, timeout=10))
        with pytest.raises(ZeroDivisionError):
            await failing.result(within=1)
        assert await waiting.result(within=5)

    async def test_with_a_timeout_it_ends_when_another_has_done_it(self, harness: Harness) -> None:
        one, two = harness.connect(), harness.connect()
        entered: list[bool] = []

        async def works() -> None:
            async with one.once("x", every=HOUR) as turn:
                entered.append(turn is not None)
                await harness.unwrapped(one).session.runtime.sleep(0.3)

        working = harness.go(works())

        async def begun() -> bool:
            return entered == [True]

        await harness.until(begun, "it executes")
        waiting = harness.go(executes(two, timeout=100))
        await working.result(within=1)
        assert not await waiting.result(within=5)
