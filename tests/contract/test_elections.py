"""Elections on every store and in both faces: one leads, a loss is noticed, the next one takes over."""

import pytest

from fairlock import Lease, LeaseLost, StoreError
from fairlock.recipes import Leader
from fairlock.testing.faults import Faults
from fairlock.testing.harness import Harness
from fairlock.testing.suite.parametrize import Behaviours


class TestElections(Behaviours):
    async def test_one_leads_and_the_next_has_a_greater_fence(self, harness: Harness) -> None:
        one, two = harness.connect(owner="one"), harness.connect(owner="two")
        fences: list[int] = []

        async def lead() -> None:
            async with two.elect("scheduler") as term:
                fences.append(term.fence)

        async with one.elect("scheduler", note="beat") as term:
            other = harness.go(lead())
            await harness.in_queue("scheduler", 1)
            found = await two.leader("scheduler")
            assert isinstance(found, Leader)
            assert (found.owner, found.fence, found.note) == ("one", term.fence, "beat")
            assert not other.done
        await other.result(within=1)
        assert fences[0] > term.fence
        assert await one.leader("scheduler") is None

    async def test_the_leader_is_shown_with_the_time_of_its_election(self, harness: Harness) -> None:
        client = harness.connect()
        assert await client.leader("never held") is None
        async with client.elect("x"):
            first = await client.leader("x")
            await harness.pass_time(0.02)
            assert await client.leader("x") == first
        async with client.elect("x"):
            second = await client.leader("x")
        assert first is not None and second is not None and second.since >= first.since + 0.02

    async def test_a_leader_that_was_evicted_stands_again(self, harness: Harness) -> None:
        client = harness.connect(lease=5)
        sleep = harness.unwrapped(client).session.runtime.sleep
        terms: list[Lease] = []

        async def main(term: Lease) -> str:
            terms.append(term)
            while len(terms) == 1 and not term.lost:
                await sleep(0.05)
            return "led"

        async def led() -> bool:
            return bool(terms)

        running = harness.go(client.elect("x").run(main))
        await harness.until(led, "it leads")
        await harness.observer.evict("x", reason="a test", at_once=True)
        assert await running.result(within=10) == "led"
        assert len(terms) == 2 and terms[1].fence > terms[0].fence
        assert await client.leader("x") is None

    async def test_what_main_returns_and_raises_ends_the_run(self, harness: Harness) -> None:
        client = harness.connect()

        async def work(term: Lease) -> int:
            return 7

        async def fail(term: Lease) -> int:
            raise ZeroDivisionError

        async def of_another_lock(term: Lease) -> None:
            raise LeaseLost("of another lock")

        assert await client.elect("x").run(work) == 7
        with pytest.raises(ZeroDivisionError):
            await client.elect("x").run(fail)
        with pytest.raises(LeaseLost, match="of another"):
            await client.elect("x").run(of_another_lock)
        assert await client.leader("x") is None

    async def test_a_store_that_is_down_at_first_is_an_error(self, harness: Harness) -> None:
        faults = Faults()
        client = harness.connect(faults=faults)
        faults.cut = True

        async def main(term: Lease) -> None: ...

        with pytest.raises(StoreError):
            await harness.go(client.elect("x").run(main)).result(within=30)
        faults.over()


class TestElectionsInTime(Behaviours):
    async def test_a_store_that_is_down_after_a_loss_is_tried_again(self, harness: Harness) -> None:
        faults = Faults()
        client = harness.connect(faults=faults, lease=0.6)
        sleep = harness.unwrapped(client).session.runtime.sleep
        terms: list[Lease] = []

        async def main(term: Lease) -> str:
            terms.append(term)
            while len(terms) == 1 and not term.lost:
                await sleep(0.05)
            return "led"

        async def led() -> bool:
            return bool(terms)

        running = harness.go(client.elect("x").run(main))
        await harness.until(led, "it leads")
        faults.cut = True
        await harness.pass_time(1.5)
        assert not running.done
        faults.over()
        assert await running.result(within=10) == "led"

    async def test_a_leader_whose_lease_has_ended_is_not_shown(self, harness: Harness) -> None:
        faults = Faults()
        client = harness.connect(faults=faults, lease=0.6)
        assert await client.elect("x").acquire()
        assert await harness.observer.leader("x") is not None
        faults.cut = True
        await harness.pass_time(0.8)
        assert await harness.observer.leader("x") is None
        faults.over()
