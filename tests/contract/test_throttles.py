"""Throttles, on every store and in both faces."""

import pytest

from fairlock import ConfigError, LockTimeout, aio
from fairlock.recipes.throttle_base import SLACK
from fairlock.testing.faults import PAUSE, Faults
from fairlock.testing.harness import Harness
from fairlock.testing.suite.parametrize import Behaviours


class TestThrottles(Behaviours):
    async def test_no_more_starts_than_the_limit(self, harness: Harness) -> None:
        one, two = (harness.connect().throttle("api", 3, per=60) for _ in range(2))
        assert [await each.wait(timeout=0) for each in (one, two, one, two)] == [True, True, True, False]

    async def test_a_weight_counts_as_that_many(self, harness: Harness) -> None:
        api = harness.connect().throttle("api", 5, per=60, timeout=0)
        assert await api.wait(weight=3)
        assert not await api.wait(weight=3)
        assert await api.wait(weight=2)
        assert not await api.wait()
        with pytest.raises(ConfigError):
            await api.wait(weight=6)

    async def test_a_start_stays_counted_when_its_client_is_closed(self, harness: Harness) -> None:
        one, two = harness.connect(), harness.connect()
        assert await one.throttle("api", 1, per=60).wait()
        await one.close()
        assert not await two.throttle("api", 1, per=60).wait(timeout=0)

    async def test_a_decorated_function_waits_or_raises(self, harness: Harness) -> None:
        client = harness.connect()

        async def call(n: int) -> int:
            return n + 1

        decorated = client.throttle("api", 1, per=60, timeout=0)(call)
        assert await decorated(1) == 2
        with pytest.raises(LockTimeout, match="'api' has no start left: 1 in 60 s"):
            await decorated(1)


class TestThrottlesInTime(Behaviours):
    async def test_those_that_wait_start_in_order_and_never_too_soon(self, harness: Harness) -> None:
        clients = [harness.connect() for _ in range(2)]
        starts: list[tuple[float, int]] = []

        async def start(number: int) -> None:
            assert await clients[number % 2].throttle("api", 2, per=1).wait(timeout=60)
            starts.append((harness.time(), number))

        working = []
        for number in range(8):
            working.append(harness.go(start(number)))
            if harness.manual_clock is None:
                await harness.pass_time(0.02)
            elif number >= 2:
                await harness.in_queue("throttle:api", number - 1)
            else:
                await working[-1].result(within=0.001)
        for each in working[2:]:
            await each.result(within=1.5)
        order = sorted(starts)
        if harness.manual_clock is not None:  # else one that is slow may have to take another slot
            assert [number // 2 for _, number in order] == [0, 0, 1, 1, 2, 2, 3, 3], "two may start at one time"
        for (first, _), (third, _) in zip(order, order[2:], strict=False):
            assert third - first >= 1, "never three in any second"
        assert order[-1][0] - order[0][0] < 20

    async def test_a_slot_opens_by_the_time_of_its_grant_however_late_the_replies_were(self, harness: Harness) -> None:
        if harness.manual_clock is None:
            pytest.skip("It needs a clock that stands still.")
        starts = [harness.time()]

        async def start(client: aio.Locks) -> None:
            assert await client.throttle("api", 1, per=10).wait()
            starts.append(harness.time())

        await harness.go(start(harness.connect(faults=Faults("slow", on="Detach")))).result(within=1)
        await harness.go(start(harness.connect())).result(within=12)
        assert [at - starts[0] for at in starts[1:]] == pytest.approx([PAUSE, 10 * (1 + SLACK)], abs=0.01)

    async def test_a_caller_that_was_slow_closes_its_slot_for_longer_and_takes_no_other(self, harness: Harness) -> None:
        slow = harness.connect(faults=Faults("slow", on="Detach")).throttle("api", 2, per=1.5)
        assert await harness.go(slow.wait()).result(within=1)
        assert await harness.connect().throttle("api", 2, per=1.5).wait(timeout=0)
        assert not await harness.connect().throttle("api", 2, per=1.5).wait(timeout=0)
